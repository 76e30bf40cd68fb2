# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Credentials in options: which of them messages alone mask, with a warning."""

from __future__ import annotations

import pytest
from ansible_collections.infrastructure.services.plugins.module_utils._result import Result
from ansible_collections.infrastructure.services.plugins.module_utils._secrets import HIDDEN
from ansible_collections.infrastructure.services.plugins.module_utils._task import specs
from ansible_collections.infrastructure.services.plugins.module_utils._task.credentials import (
    secrets_of,
)
from ansible_collections.infrastructure.services.plugins.module_utils._task.validation import (
    validate,
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


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("ledger", "postgresql://u:short@db/x"),
        ("ledger", "host=db password=short"),
        ("to", "postgresql://u:short@db/x"),
        ("to", "host=db password=short"),
        ("base_url", "https://u:short@service.example"),
        ("to_base_url", "https://u:short@service.example"),
    ],
)
def test_an_invocation_shows_no_option_whose_url_may_have_a_password(option, value):
    options = validate(specs.LEDGER_MOVE, {option: value})
    assert options.invocation()["module_args"][option] == HIDDEN


@pytest.mark.parametrize("option", ["to_base_url", "auth_url"])
def test_the_password_of_each_url_is_masked_in_messages(option):
    secrets = secrets_of(specs.LEDGER_MOVE.own, {option: "https://u:a-long-pass-word@service"})
    assert secrets.scrub_message("a-long-pass-word here") == "******** here"
