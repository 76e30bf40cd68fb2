# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The table of states is complete, and the tables of the guide to the ledger match it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from ansible_collections.infrastructure.services.plugins.module_utils._errors import (
    ACCEPTED,
    OUTCOMES,
    UNKNOWN,
)
from ansible_collections.infrastructure.services.plugins.module_utils._resources.planning import (
    Wanted,
)
from ansible_collections.infrastructure.services.plugins.module_utils._resources.virtual_machine import (
    VIRTUAL_MACHINE,
)
from ansible_collections.infrastructure.services.plugins.module_utils._result import Result
from ansible_collections.infrastructure.services.plugins.module_utils._task.task import Task
from ansible_collections.infrastructure.services.plugins.plugin_utils._ledger import (
    decisions,
    entries,
)
from ansible_collections.infrastructure.services.plugins.plugin_utils._ledger.decisions import (
    AFTER,
    ON_FINDING,
    REFUSE,
)
from ansible_collections.infrastructure.services.plugins.plugin_utils._ledger.entries import (
    DONE,
    INTENT,
    STATES,
)

GUIDE = Path(__file__).resolve().parents[5] / "docs/docsite/rst/ledger.rst"
TABLES = GUIDE.read_text(encoding="utf-8").split(".. list-table::")[1:]
NONE = "none"  # how the guide represents a missing entry


def rows(first: str) -> list[list[str]]:
    """Return the cells of the table whose header starts with this cell, without the backticks."""
    (table,) = [table for table in TABLES if f"* - {first}\n" in table]
    cells = re.findall(r"^ +(\* | {2})- (.+)$", table, re.MULTILINE)
    found: list[list[str]] = []
    for mark, cell in cells:
        if mark == "* ":
            found.append([])
        found[-1].append(cell.strip("`"))
    return found[1:]


def test_every_state_and_outcome_is_in_the_table():
    assert set(ON_FINDING) == {None, *STATES}
    assert all(set(moves) == {"POST", "PUT"} for moves in ON_FINDING.values())
    assert {outcome for outcome, _envelope in AFTER} == set(OUTCOMES)
    assert set(AFTER.values()) == {None, *STATES} - {INTENT}


@pytest.mark.parametrize("is_listed", [True, False])
@pytest.mark.parametrize(
    "state", sorted(state for state, moves in ON_FINDING.items() if moves["POST"] == REFUSE)
)
def test_a_refusal_distinguishes_an_unusable_answer_from_an_unknown_outcome(state, is_listed):
    task = Task(VIRTUAL_MACHINE, settings=None, wanted=Wanted("web01", {}), is_listed=is_listed)
    entry = entries.Entry(state, {}, {}, "2026-01-02T03:04:05Z")
    told = Result.of_error(decisions.InDoubt(entry, task, "list them")).as_ansible()
    accepted = "the service accepted it, but its answer was lost or unusable"
    how = accepted if state == ACCEPTED else "how it ended is not known"
    assert f"create it at 2026-01-02T03:04:05Z; {how}." in told["msg"]
    assert told["outcome"] == ("accepted" if state == ACCEPTED else "unknown")
    exists = "It exists: do not create it again." in told["msg"]
    removed = "state: absent" in told["msg"]
    assert (exists, removed) == ((True, False) if state == ACCEPTED else (False, True))
    assert ("force: true the task creates it whatever" in told["msg"]) == (
        state != ACCEPTED and not is_listed
    )


def test_the_page_says_what_a_task_does_with_the_entry_it_finds():
    told = {(entry, create, update) for entry, _known, create, update in rows("Entry")}
    assert told == {
        (state or "none", moves["POST"], moves["PUT"]) for state, moves in ON_FINDING.items()
    }


def test_the_page_says_what_is_left_behind():
    words = {
        (ACCEPTED, True): "accepted``, with the asset",
        (ACCEPTED, False): "accepted``, without it",
    }
    told = {tuple(row) for row in rows("Outcome")}
    assert told == {
        (words.get(after, after[0]), state or "as it was before") for after, state in AFTER.items()
    }


def test_the_page_lists_every_transition_and_no_other():
    listed = {
        (state, after)
        for before, afterwards, _when in rows("From")
        for state in re.findall(r"\w+", before)
        for after in re.findall(r"\w+", afterwards)
    }
    begun = {
        (state or NONE, INTENT) for state in ON_FINDING
    }  # each may be sent again: an update, or with force
    ended = {(INTENT, state or NONE) for state in AFTER.values()}
    confirmed = {(state, DONE) for state in STATES if state != DONE}
    adopted = {(NONE, DONE), (NONE, ACCEPTED), (NONE, UNKNOWN)}  # those in doubt from a report
    assert listed == begun | ended | confirmed | adopted
