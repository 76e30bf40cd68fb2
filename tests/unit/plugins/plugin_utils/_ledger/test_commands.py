# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The commands about what is in doubt name the ledger."""

from __future__ import annotations

import pytest
from ansible_collections.infrastructure.services.plugins.plugin_utils._ledger.commands import (
    settle_commands,
)


@pytest.mark.parametrize(
    ("shown", "begin", "option"),
    [
        ("/srv/fleet.db", "", " -e ledger=/srv/fleet.db"),
        ("/srv/a fleet.db", "INFRASTRUCTURE_SERVICES_LEDGER='/srv/a fleet.db' ", ""),
        ("", "", ""),  # the URL has a password, and the user has set the variable
    ],
)
def test_the_commands_list_what_is_in_doubt_and_then_settle_it(shown, begin, option):
    playbook = f"{begin}ansible-playbook infrastructure.services"
    assert settle_commands(shown) == [
        f"{playbook}.in_doubt{option} -e file=in_doubt.csv",
        f"{playbook}.settle{option} -e file=in_doubt.csv",
    ]
