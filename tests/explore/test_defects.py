"""Each guard of the ledger is needed: without it, runs at random find that something does not hold."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.infrastructure.services.plugins.module_utils._call import attempt
from ansible_collections.infrastructure.services.plugins.plugin_utils._ledger import (
    editing,
    ledger,
    recording,
    seen,
    sql,
)

from .casts import CASTS, problems_of
from .choosing import Random
from .test_explore import FAULTS, TRIED_FOR

MOST = 600  # runs
BEGUN_AGAIN = "task that loses the answer of its begin, person, task"


def insert(part: str, other: str) -> tuple[Any, str, str]:
    """Change the statement of a beginning."""
    assert part in sql.INSERT
    return sql, "INSERT", sql.INSERT.replace(part, other)


class Forgetful(dict):
    """Has no first try."""

    def setdefault(self, _revision, now):
        return now


def begin_anew(self, *given) -> None:
    INIT(self, *given)
    self._first_tries = Forgetful()


INIT = recording.Recording.__init__
RUNNING = f"NOT ({sql._RUNNING})"
# The changes, and the cast that finds them.
DEFECTS = {
    "no look at the lease before the first byte": (
        [(attempt.Lease, "require", lambda _self, _seconds: None)],
        "task, person, task",
    ),
    "no look at the cell before the first byte": (
        [(attempt.Cell, "require", lambda _self: None)],
        "task, Ctrl-C, task",
    ),
    "a lease that counts from the last try": (
        [(recording.Recording, "__init__", begin_anew)],
        BEGUN_AGAIN,
    ),
    "no look for what was seen": (
        [(ledger.Ledger, "_look_back", lambda _self: None)],
        "task, backup, task",
    ),
    "no note of what was seen": (
        [(seen.Seen, "note_row", lambda *_given: None)],
        "task, backup, task",
    ),
    "an edit during a lease": (
        [
            (editing, "is_running", lambda _entry: False),
            (sql, "_IS_FREE", sql._IS_FREE.replace(RUNNING, "1 = 1")),
        ],
        "task, person who looks at once, task",
    ),
    "an approval that is good for ever": (
        [insert("number > ?", "number > ? AND 1 = 0")],
        "one approved plan twice, person who forgets",
    ),
    "a beginning in a ledger that was moved": (
        [insert(f"state = '{sql.IN_USE}' AND ", "")],
        "task, move, task at the target",
    ),
    "a beginning for the old URL": (
        [insert("AND base_url = ?", "AND base_url <> ? || '-'")],
        "task, new URL, task",
    ),
    "an outcome that overwrites an edit": (
        [(recording.Recording, "_was_changed_since", lambda _self, _written: False)],
        "list that loses the answer of its outcome, person who forgets",
    ),
    "an outcome that is dropped with its entry": (
        [(recording.Recording, "finished", lambda *given: given[3])],
        "task, person who does not look",
    ),
}


@pytest.mark.parametrize("defect", DEFECTS)
def test_a_defect_is_found(defect):
    changes, name = DEFECTS[defect]
    assert any(
        problems_of(
            CASTS[name],
            Random(seed),
            FAULTS[seed % len(FAULTS)],
            tried_for=TRIED_FOR[seed % len(TRIED_FOR)],
            changes=changes,
        )
        for seed in range(MOST)
    )
