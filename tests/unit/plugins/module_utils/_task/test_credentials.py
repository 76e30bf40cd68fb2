# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Credentials in options: which of them messages alone mask, with a warning."""

from __future__ import annotations

import pytest
from ansible_collections.infrastructure.services.plugins.module_utils._result import Result
from ansible_collections.infrastructure.services.plugins.module_utils._task import specs
from ansible_collections.infrastructure.services.plugins.module_utils._task.credentials import (
    secrets_of,
)

URL = "postgresql://ledger:a-long-pass-word@db.example/ledger"
SPECS = [specs.LEDGER_ENTRY, specs.LEDGER_ENTRIES, specs.LEDGER_INFO, specs.LEDGER_MOVE]


@pytest.mark.parametrize("spec", SPECS, ids=lambda spec: spec.name)
@pytest.mark.parametrize("option", ["ledger", "to"])
def test_a_long_password_in_the_url_of_a_ledger_is_masked_without_a_warning(spec, option):
    secrets = secrets_of(spec.own, {option: URL})
    assert secrets.warnings() == []
    masked = {"url": URL.replace("a-long-pass-word", "********")}
    assert secrets.scrub(Result(asset={"url": URL})).asset == masked


@pytest.mark.parametrize(
    ("url", "name"),
    [("postgresql://ledger:short@db.example/ledger", "web01"), (URL, "a-long-pass-word-2")],
)
def test_a_password_that_is_short_or_part_of_a_name_is_warned_of(url, name):
    (warning,) = secrets_of(specs.LEDGER_ENTRY.own, {"ledger": url, "name": name}).warnings()
    assert warning.startswith("A credential has fewer than 8 characters, or is also part of a name")
