# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which ledger a task uses."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from ansible_collections.infrastructure.services.plugins.module_utils._errors import InvalidInput
from ansible_collections.infrastructure.services.plugins.plugin_utils._run.ledgers import (
    ledger_location,
)


def action_of(is_async: bool = False, **arguments: str) -> SimpleNamespace:
    keywords = SimpleNamespace(is_async=is_async)
    return SimpleNamespace(keywords=keywords, playbook_directory="/play", arguments=arguments)


@pytest.mark.parametrize(
    ("action", "ledger", "problem"),
    [
        (action_of(), "", "ledger: is empty"),
        (action_of(is_async=True), "x.db", "ledger: cannot be combined with async: "),
    ],
)
def test_a_ledger_that_cannot_be_used_is_refused(action, ledger, problem):
    with pytest.raises(InvalidInput) as refused:
        ledger_location(action, ledger)
    assert refused.value.msg.startswith(problem)
    with pytest.raises(InvalidInput) as refused:
        ledger_location(action, ledger, "to")
    assert refused.value.msg.startswith(problem.replace("ledger", "to"))


def test_a_path_in_a_playbook_is_below_it_and_a_path_in_the_environment_is_not(
    monkeypatch, tmp_path
):
    monkeypatch.chdir(tmp_path)
    assert ledger_location(action_of(ledger="x.db"), "x.db") == "/play/x.db"
    assert ledger_location(action_of(to="x.db"), "x.db", "to") == "/play/x.db"
    assert ledger_location(action_of(), "x.db") == str(tmp_path / "x.db")
