# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The values of a ledger: keys, entries and changes, and what the state of an entry means.

An entry is in one of four states. `intent`: a request may be in flight; while the lease of the
entry runs, only its owner may send or change it. `done`: it was accepted and the envelope is known.
`accepted`: it was accepted but the envelope was lost. `unknown`: it may or may not have been
processed. A creation whose intent has outlived its lease is in doubt, like one that is `accepted` or
`unknown`. An update is never in doubt, because sending it again is safe.
"""

from __future__ import annotations

import json
import os
import platform
import pwd
import re
import secrets
import time
from dataclasses import dataclass, replace
from enum import IntEnum
from functools import cache
from typing import Any, NamedTuple, Sequence

from ...module_utils._errors import ACCEPTED, NOT_SENT, REJECTED, UNKNOWN
from ...module_utils._resources import names, planning
from ...module_utils._resources.resources import ONLY_UPDATED, RESOURCES
from ...module_utils._task.specs import IN_DOUBT, STATES

Entry = planning.Entry

INTENT, DONE = "intent", planning.DONE
STATES_IN_DOUBT = (INTENT, ACCEPTED, UNKNOWN)
ABSENT = "absent"  # no entry, in the history
NO_LIMIT = 2**63 - 1  # of row numbers: no plan was approved
LONGEST_LEASE = 86400  # seconds
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
    # An intent: on disk before the write returns.
    BEGIN = 2
    # An asset that exists, after all other writers have committed.
    ADOPT = 3
    # The same, and all of it takes effect or nothing.
    EDIT = 4
    # A portion of a move: nothing takes effect if its first statement does not.
    COPY = 5


class Key(NamedTuple):
    """The key of an entry."""

    resource: str
    name: str  # or the id


class Serial(NamedTuple):
    """A row of a history, such as the last one: its number grows, and its revision is random."""

    number: int = 0  # 0: there is no row
    revision: int = 0


class HistoryRow(NamedTuple):
    """How one attempt began, without an outcome, or ended after `seconds`; or an edit, without one."""

    from_state: str
    to_state: str
    at: str = ""  # as began_at of an Entry
    by: str = ""
    run: str = ""
    outcome: str = ""
    status: int | None = None
    message: str = ""
    seconds: float | None = None
    revision: int = 0  # of the write
    began: int = 0  # the revision of the beginning


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

    @property
    def writes_entry(self) -> bool:
        """Whether it changes the entry; an edit may only write a row back."""
        return self.kind is not Write.EDIT or self.after != self.before


_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", re.ASCII)


def entry_of(resource: Any, name: Any, row: Sequence[Any]) -> Entry:
    """Return the entry with this key and these other columns of sql.ENTRIES.

    Raise ValueError, with the column, for a value of another shape.

    Somebody else may have written it, and its texts become commands and messages.
    """
    state, sent, asset, began_at, changed_at, by, run, revision, began, until, seconds = row
    try:
        bodies = json.loads(sent), json.loads(asset)
    except (ValueError, TypeError, RecursionError) as error:
        raise ValueError("its JSON") from error
    entry = Entry(state, *bodies, began_at, changed_at, by, run, revision, began, until)
    is_sound = {
        "resource": resource in RESOURCES,
        "name": names.is_name(name),
        "state": state in STATES,
        "sent": isinstance(entry.sent, dict),
        "asset": isinstance(entry.asset, dict),
        "began_at": isinstance(began_at, str) and _TIME.fullmatch(began_at),
        "changed_at": isinstance(changed_at, str) and _TIME.fullmatch(changed_at),
        "by": isinstance(by, str),
        "run": isinstance(run, str),
        "revision": isinstance(revision, int) and isinstance(began, int),
        "lease": isinstance(seconds, int) and 0 <= seconds <= LONGEST_LEASE,
    }
    for column, sound in is_sound.items():
        if not sound:
            raise ValueError(column)
    return entry


def current_time() -> str:
    """Return the time in UTC, as entries have it."""
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())


def time_of(seconds: int) -> str:
    """Return a time in seconds since 1970 as messages have it, in UTC."""
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(seconds))


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
    revision = change.revision or 1 + secrets.randbits(53)
    began = _began(change) or revision
    if after and change.writes_entry:
        after = after._replace(
            began_at=after.began_at or now,
            changed_at=after.changed_at or now,
            by=after.by or author(),
            revision=revision,
            began=after.began or began,
        )
    if row:
        row = row._replace(at=row.at or now, by=author(), revision=revision, began=began)
    return replace(change, after=after, row=row, revision=revision)


def _began(change: Change) -> int:
    """Return the revision of the beginning that a write belongs to, 0 if it is one itself."""
    if change.kind is Write.BEGIN:
        return 0
    owners = [change.row, change.after, change.before]
    if change.kind is Write.OUTCOME:  # of the attempt, whatever the entry is then
        owners = [change.before, change.after]
    return next((owner.began for owner in owners if owner and owner.began), 0)


def noted(edit: Change, run: str, message: str) -> Change:
    """Return the edit of a run with its row; one that is written back keeps its time."""
    after = edit.after
    if after and edit.writes_entry:
        after = after._replace(by="", run=run, changed_at="")
    row = edit.row or HistoryRow(state_of(edit.before), state_of(after))
    return replace(edit, after=after, row=row._replace(run=run, message=message))


def kind_of(edit: Change) -> str:
    """Return what an edit does to its entry, one of EDITS."""
    if is_in_doubt(edit.key, edit.after):
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


def id_of(entry: Entry) -> str:
    """Return the id of the asset of an entry by which it is found, '' for none."""
    return names.id_of(entry.asset)


def is_in_doubt(key: Key, entry: Entry | None) -> bool:
    """Return whether a person has to find out if an asset exists; only a creation can be in doubt."""
    return (
        key.resource not in ONLY_UPDATED
        and state_of(entry) in STATES_IN_DOUBT
        and not is_running(entry)
    )
