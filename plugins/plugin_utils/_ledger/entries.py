# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The values of a ledger: keys, entries, ended attempts and changes, and the errors it raises."""

from __future__ import annotations

import json
import os
import platform
import pwd
from contextlib import nullcontext, suppress
from datetime import datetime, timedelta, timezone
from enum import Enum
from functools import cache
from typing import Any, Callable, ContextManager, NamedTuple

from ...module_utils._errors import ACCEPTED, UNKNOWN, InvalidInput
from ...module_utils._http import strict_json
from ...module_utils._resources import planning

Entry = planning.Entry
_TIME = "%Y-%m-%dT%H:%M:%SZ"  # UTC
_TOO_DEEP = f"is nested deeper than {strict_json.MAX_DEPTH} levels"

# The states of an entry; `decisions` explains them.
INTENT, DONE = "intent", "done"
STATES = (INTENT, DONE, ACCEPTED, UNKNOWN)
STATES_IN_DOUBT = (INTENT, ACCEPTED, UNKNOWN)
ABSENT = "absent"  # no entry, in the history
PRESENT = "present"  # only an option of ledger_entry


class LedgerError(InvalidInput):
    """The ledger cannot be used."""


class Unanswered(LedgerError):
    """A statement failed for outside reasons; a write may have been committed all the same."""


class LedgerLost(Unanswered):
    """The ledger does not answer and no new connection can be made, or its file is busy."""


class Key(NamedTuple):
    """The key of an entry."""

    base_url: str  # canonical
    resource: str
    name: str


class Ended(NamedTuple):
    """How one attempt ended: a row of the history. The states may be ABSENT; it took `seconds`."""

    from_state: str
    to_state: str
    at: str = ""  # as began_at of an Entry
    by: str = ""
    run: str = ""
    outcome: str = ""
    status: int | None = None
    message: str = ""
    seconds: float | None = None
    trace_id: str = ""


class Mark(NamedTuple):
    """The state of a ledger, and its last move."""

    # Random, made with the tables; copies and moves keep it.
    ledger_id: str = ""
    # IN_USE, MOVING, MOVED or FILLING of `tables`; empty if there are no tables.
    state: str = ""
    # The name of the move, in both ledgers; empty if the ledger never moved.
    move: str = ""
    place: str = ""  # the other ledger of the move, for messages


class NewUrl(NamedTuple):
    """Where the entries of a base_url are, since they were moved."""

    base_url: str
    at: str  # UTC, as of an Entry
    by: str


class Waiting(NamedTuple):
    """How a task waits for others; `show` gets the awaited assets, and the entry of the first one."""

    # Makes the context of each wait.
    interruptible: Callable[[], ContextManager[object]] = nullcontext
    show: Callable[[list[Key], Entry | None], None] = lambda keys, entry: None


class Use(NamedTuple):
    """Where a ledger file is used; empty in PostgreSQL, where any controller may use it."""

    path: str = ""
    inode: int = 0
    host: str = ""


class Kind(Enum):
    """The purpose of a write, which decides how it is committed."""

    # Intents: on disk before the write returns; each takes effect on its own.
    BEGIN = "begin"
    # Outcomes: survive the death of this process; tried again while the ledger is lost.
    END = "end"
    # On disk before the write returns; all of it takes effect or nothing.
    EDIT = "edit"


class Change(NamedTuple):
    """One write: `before` as it was read (None: no entry), `after` (None: deleted), history row."""

    key: Key
    before: Entry | None
    after: Entry | None
    ended: Ended | None = None
    revision: int = 0  # of this write


def current_time() -> str:
    """Return the time in UTC, as entries have it."""
    return datetime.now(timezone.utc).strftime(_TIME)


def _time_after(before: Entry | None) -> str:
    """Return the current time, or a second after the last change of the entry if that is later.

    So a list of entries never has the time of a change that came after it was written.
    """
    now = current_time()
    if before is None or before.changed_at < now:
        return now
    with suppress(ValueError):  # something else wrote it
        last = datetime.strptime(before.changed_at, _TIME)
        return (last + timedelta(seconds=1)).strftime(_TIME)
    return now


def stamped(change: Change) -> Change:
    """Return the change with a new revision, and author and current time where none is given.

    The revision is random: a counter would start again when an entry is deleted and created anew,
    and an overtaken task could then finish the entry of another one.
    """
    now = _time_after(change.before)
    revision = int.from_bytes(os.urandom(8), "big") >> 1
    after = change.after
    ended = change.ended
    if after:
        after = after._replace(
            began_at=after.began_at or now,
            changed_at=after.changed_at or now,
            by=after.by or author(),
            revision=revision,
        )
    if ended:
        ended = ended._replace(at=ended.at or now, by=ended.by or author())
    return change._replace(after=after, ended=ended, revision=revision)


NOT_A_LEDGER = (
    "file is not a database, and is left as it is. Give the path of a ledger, or of a new one; if"
    " this was one, restore it from a backup"
)


def recorded_json(text: str) -> Any:
    """Return JSON as a value; raise ValueError if it is no JSON, or deeper than any recorded."""
    try:
        value = json.loads(text)
    except RecursionError:
        raise ValueError(_TOO_DEEP) from None
    except ValueError:
        raise ValueError("is not JSON") from None
    may_be_deep = text.count("[") + text.count("{") > strict_json.MAX_DEPTH
    if may_be_deep and strict_json.depth(value) > strict_json.MAX_DEPTH:
        raise ValueError(_TOO_DEEP)
    return value


def first_line(error: Exception) -> str:
    """Return the first line of a database error, without the hints that follow."""
    return (str(error).strip().splitlines() or [type(error).__name__])[0]


@cache
def author() -> str:
    """Return user@controller."""
    try:
        user = pwd.getpwuid(os.getuid()).pw_name
    except KeyError:  # as in a container that runs under an arbitrary uid
        user = str(os.getuid())
    return f"{user}@{platform.node()}"
