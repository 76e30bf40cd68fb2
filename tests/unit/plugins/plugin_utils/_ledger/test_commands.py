# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The commands about what is in doubt name the ledger."""

from __future__ import annotations

from ansible_collections.infrastructure.services.plugins.plugin_utils._ledger.commands import (
    settle_commands,
)


def test_the_commands_list_what_is_in_doubt_and_then_settle_it():
    playbook, options = "ansible-playbook infrastructure.services", "-e ledger=/srv/fleet.db"
    assert settle_commands("/srv/fleet.db") == [
        f"{playbook}.in_doubt {options} -e file=in_doubt.csv",
        f"{playbook}.settle {options} -e file=in_doubt.csv",
    ]
