# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The values of a ledger: keys, entries and changes, and what the state of an entry means.

An entry is in one of four states. `intent`: a request may be in flight; while the lease of the
entry runs, only its owner may send or change it. `done`: it was accepted and the envelope is known.
`accepted`: it was accepted but the envelope was lost. `unknown`: it may or may not have been
processed. An intent whose lease has ended is in doubt, like `accepted` and `unknown`.
"""

from __future__ import annotations

import os
import platform
import pwd
import secrets
import time
from dataclasses import dataclass, replace
from enum import IntEnum
from functools import cache
from typing import NamedTuple

from ...module_utils._errors import ACCEPTED, NOT_SENT, REJECTED, UNKNOWN, InvalidInput
from ...module_utils._resources import planning
from ...module_utils._task.specs import IN_DOUBT

Entry = planning.Entry

INTENT, DONE = "intent", planning.DONE
STATES = (INTENT, DONE, ACCEPTED, UNKNOWN)
STATES_IN_DOUBT = (INTENT, ACCEPTED, UNKNOWN)
ABSENT = "absent"  # no entry, in the history
NO_LIMIT = 2**63 - 1  # of row numbers: no plan was approved
# What edits do to their entries.
EDITS = (
    "adopted",
    "settled_present",
    "settled_absent",
    "corrected",
    "forgotten",
    "unchanged",
    IN_DOUBT,
    "left",
)

# The state that a task leaves, by outcome and whether the envelope came back. None: as before.
AFTER = {
    (ACCEPTED, True): DONE,
    (ACCEPTED, False): ACCEPTED,
    (UNKNOWN, False): UNKNOWN,
    (REJECTED, False): None,
    (NOT_SENT, False): None,
}


class Write(IntEnum):
    """The purpose of a write, which decides how it is committed; each demands more than the last."""

    # An outcome: survives the death of this process.
    OUTCOME = 1
    # A further lease of an intent: on disk before the write returns.
    RENEWAL = 2
    # An intent, likewise.
    BEGIN = 3
    # All of it takes effect or nothing, after all other writers have committed.
    EDIT = 4


class LedgerError(InvalidInput):
    """The ledger cannot be used."""

    def __init__(self, problem: str) -> None:
        super().__init__("ledger", problem)


class LedgerAway(LedgerError):
    """The ledger does not answer now; a write may have been committed all the same."""


class Key(NamedTuple):
    """The key of an entry."""

    resource: str
    name: str  # or the id


class Serial(NamedTuple):
    """The last row of a history: it grows with each row, and identifies the history."""

    number: int = 0  # 0: there is no row
    revision: int = 0


class HistoryRow(NamedTuple):
    """How one attempt ended, or an edit of an entry, which has no outcome; it took `seconds`."""

    from_state: str
    to_state: str
    at: str = ""  # as began_at of an Entry
    by: str = ""
    run: str = ""
    outcome: str = ""
    status: int | None = None
    message: str = ""
    seconds: float | None = None


@dataclass(frozen=True)
class Change:
    """One write: an entry as it was read (None: none) and as it will be (None: deleted)."""

    kind: Write
    key: Key
    before: Entry | None
    after: Entry | None
    row: HistoryRow | None = None
    revision: int = 0  # of this write
    lease_seconds: int = 0  # of an intent
    # The last row of this asset in the approved plan.
    approved_row: int = NO_LIMIT


def current_time() -> str:
    """Return the time in UTC, as entries have it."""
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())


def time_of(seconds: int) -> str:
    """Return the UTC time of day of a time in seconds since 1970, as messages have it."""
    return time.strftime("%H:%M:%SZ", time.gmtime(seconds))


@cache
def author() -> str:
    """Return user@controller."""
    try:
        user = pwd.getpwuid(os.getuid()).pw_name
    except KeyError:  # as in a container that runs under an arbitrary uid
        user = str(os.getuid())
    return f"{user}@{platform.node()}"


def stamped(change: Change) -> Change:
    """Return the change with a new revision, and author and current time where none is given."""
    now = current_time()
    after, row = change.after, change.row
    # At most 53 bits, which any JSON tool keeps. A counter would start again with a new entry.
    revision = 1 + secrets.randbits(53)
    if after:
        after = after._replace(
            began_at=after.began_at or now,
            changed_at=after.changed_at or now,
            by=after.by or author(),
            revision=revision,
        )
    if row:
        row = row._replace(at=row.at or now, by=author())
    return replace(change, after=after, row=row, revision=revision)


def noted(edit: Change, run: str, message: str, at: str = "") -> Change:
    """Return the edit of a run with its row; `at`: when it became true, '' for now."""
    after = edit.after and edit.after._replace(by="", run=run, changed_at="")
    row = HistoryRow(state_of(edit.before), state_of(after), at=at, run=run, message=message)
    return replace(edit, after=after, row=row)


def kind_of(edit: Change) -> str:
    """Return what an edit does to its entry, one of EDITS."""
    if state_of(edit.after) in STATES_IN_DOUBT:
        return IN_DOUBT
    if edit.before == edit.after:
        return "unchanged"
    if edit.before is None:
        return "adopted"
    if edit.before.state == DONE:
        return "corrected" if edit.after else "forgotten"
    return "settled_present" if edit.after else "settled_absent"


def state_of(entry: Entry | None) -> str:
    """Return the state of an entry, as the history has it."""
    return entry.state if entry else ABSENT


def is_running(entry: Entry | None) -> bool:
    """Return whether another task may be sending a request for an entry."""
    return bool(entry and entry.lease_until)
