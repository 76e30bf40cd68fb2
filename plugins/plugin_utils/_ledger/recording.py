# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Runs a task under the ledger: record the intent, send, record the outcome.

An entry is in one of four states. `intent`: a request is in flight, or was when its process died. `done`: it was
accepted and the envelope is known. `accepted`: it was accepted but the envelope was lost. `unknown`: it may or may not
have been processed. docs/ledger.md shows the transitions.
"""

from __future__ import annotations

import time
from contextlib import contextmanager
from typing import Any, Iterator, NamedTuple

from ...module_utils._errors import ACCEPTED, NOT_SENT, REJECTED, UNKNOWN, Overtaken, ServicesError, sentence
from ...module_utils._http.urls import canonical_url
from ...module_utils._resources.flow import Recorded
from ...module_utils._secrets import Secrets, without_placeholders
from ...module_utils._task.task import Planned, Task
from .entries import ABSENT, DONE, INTENT, Change, Ended, Entry, Key, LedgerError, author
from .store import Ledger

SEND, COMPARE, REFUSE = "send", "compare", "refuse"

# What a task does when it finds an entry (None: no entry). A creation must not be repeated, an update may be.
# With `force` everything is sent.
ON_FINDING = {
    None: {"POST": SEND, "PUT": SEND},
    INTENT: {"POST": REFUSE, "PUT": SEND},
    DONE: {"POST": COMPARE, "PUT": COMPARE},
    ACCEPTED: {"POST": REFUSE, "PUT": SEND},
    UNKNOWN: {"POST": REFUSE, "PUT": SEND},
}

# The state of the entry after a request, by outcome and whether the envelope came back. None: as it was before.
AFTER = {
    (ACCEPTED, True): DONE,
    (ACCEPTED, False): ACCEPTED,
    (UNKNOWN, False): UNKNOWN,
    (REJECTED, False): None,
    (NOT_SENT, False): None,
}

# What is known of a creation whose entry is in this state.
_KNOWN = {INTENT: UNKNOWN, UNKNOWN: UNKNOWN, ACCEPTED: ACCEPTED}

# What to do about a creation whose outcome could not be recorded.
_BEFORE = "Before you run it again,"
_ADOPT = "infrastructure.services.ledger_entry (state: present and its asset), else it may be created twice."
_RECORD_BY_HAND = {
    ACCEPTED: f"{_BEFORE} record it with {_ADOPT}",
    UNKNOWN: f"{_BEFORE} look for it on the service; if it is there, record it with {_ADOPT}",
    **dict.fromkeys(
        (REJECTED, NOT_SENT),
        f"{_BEFORE} remove its entry with infrastructure.services.ledger_entry (state: absent).",
    ),
}

_UNUSABLE, _UNKNOWN = "the service accepted it, but its answer was lost or unusable", "how it ended is not known"
_RECORD = (
    "It exists: do not create it again. Look up its id on the service, and record its asset with"
    " infrastructure.services.ledger_entry (state: present)."
)
_SETTLE = (
    "Look for it on the service. If it is there, confirm it with infrastructure.services.ledger_entry (state: present"
    " and its asset); if not, remove the entry with the same module (state: absent), and this task creates it."
)
_FORCE = " With force: true the task creates it whatever the ledger says."
_COMMANDS = " For the commands, run: "
# What the ledger adds to the message of a creation that it has in doubt from now on, by the state of the entry.
_NEXT = {
    UNKNOWN: " The ledger prevents that until it is settled.",
    ACCEPTED: " Look up its id on the service and record it.",
}


class InDoubt(ServicesError):
    """An earlier task may have created the asset already."""

    def __init__(self, entry: Entry, task: Task, command: str) -> None:
        """`command`: the shell command that lists what is in doubt, with the commands that settle it."""
        self.outcome = _KNOWN[entry.state]
        how, what_next = (_UNUSABLE, _RECORD) if entry.state == ACCEPTED else (_UNKNOWN, _SETTLE)
        force = "" if task.is_listed or entry.state == ACCEPTED else _FORCE  # it would send all of a list again
        super().__init__(
            f"{task.resource.operation.noun} {task.wanted.key}: the ledger says that a task began to create it at"
            f" {entry.began_at}; {how}. This task sent nothing. {what_next}{force}{_COMMANDS}{command}"
        )

    def result(self) -> dict:
        """Return the result of the failed task, which itself changed nothing."""
        return dict(super().result(), changed=False)


class Begun(NamedTuple):
    """A task whose intent is recorded; without one if there is nothing to send after all."""

    planned: Planned
    intent: Entry | None = None
    at: float = 0.0  # seconds, on the clock of time.monotonic


class OneByOne:
    """Writes for a task that waits for the others that work on its asset, with the methods of a Queue."""

    lost = None

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger

    def begin(self, change: Change) -> tuple[bool, Entry | None]:
        """Lock the key and write the intent; return whether it was written, and the entry as it is now."""
        self._ledger.lock(change.key.number(), wait=True)
        self._ledger.check_not_replaced()
        written = self._ledger.begin_many([change])[0]
        return bool(written), written or self._ledger.get(change.key)

    def finish(self, change: Change) -> bool:
        """Write how an attempt ended; return False if another task changed the entry."""
        return self._ledger.finish_many([change])[0]

    def release(self, key: Key) -> None:
        """Release the lock of the key."""
        self._ledger.unlock(key.number())

    def close(self) -> None:
        """Close the ledger."""
        self._ledger.close()


class Recording:
    """What the tasks of one service and resource do with the ledger: look up, begin, finish; raises LedgerError."""

    def __init__(self, ledger: Ledger, secrets: Secrets, run: str, check_mode: bool = False, queue: Any = None) -> None:
        """`run`: names the run of Ansible; `queue`: writes for the threads of a list, None for a single task."""
        self._ledger, self._secrets, self._run, self._check_mode = ledger, secrets, run, check_mode
        self._is_list, self._writer = queue is not None, queue or OneByOne(ledger)
        self.warnings: list[str] = []  # of all tasks together

    def look_up(self, tasks: list[Task]) -> list[Planned]:
        """Return the tasks with their plans, or with why they send nothing."""
        self._ledger.check_not_replaced()
        keys = [key_of(task) for task in tasks]
        entries = self._ledger.get_many(*keys[0][:2], [key.name for key in keys]) if keys else {}
        self.warnings += _forced(tasks, entries)
        self._look_elsewhere([task for key, task in zip(keys, tasks) if key.name not in entries])
        return [self._planned(task, self._current(key, entries.get(key.name))) for key, task in zip(keys, tasks)]

    def _current(self, key: Key, entry: Entry | None) -> Entry | None:
        """Return an entry as the task that works on it leaves it; a list does not wait, and begins the asset later."""
        if self._check_mode or entry is None or entry.state != INTENT:
            return entry
        if not self._ledger.lock(key.number(), wait=not self._is_list):
            return None
        try:
            return self._ledger.get(key)
        finally:
            self._ledger.unlock(key.number())

    def _planned(self, task: Task, entry: Entry | None) -> Planned:
        operation, force = task.resource.operation, task.wanted.force
        found = ON_FINDING[entry.state if entry else None][operation.method]
        if found == REFUSE and not force:
            return Planned(task, entry=entry, error=InDoubt(entry, task, self._ledger.in_doubt_command))
        relied_on = found == COMPARE and not (force and operation.method == "POST")
        return task.planned(Recorded(entry.sent, entry.asset) if relied_on else None, entry)

    @contextmanager
    def begun(self, planned: Planned) -> Iterator[Begun]:
        """Record the intent and hold the lock of the asset within the context; raise Overtaken or InDoubt."""
        key = key_of(planned.task)
        try:
            yield self._begin(key, planned)
        finally:
            self._writer.release(key)

    def _begin(self, key: Key, planned: Planned) -> Begun:
        for _attempt in range(2):  # the entry may have changed since it was read, but does not while it is locked
            sent = without_placeholders(self._secrets.scrub({"sent": planned.plan.body})["sent"])
            asset = planned.entry.asset if planned.entry else {}
            intent = Entry(INTENT, sent, asset, by=author(), run=self._run)
            is_ours, entry = self._writer.begin(Change(key, planned.entry, intent))
            if is_ours:
                return Begun(planned, entry, time.monotonic())
            planned = self._planned(planned.task, entry)
            if planned.error:
                raise planned.error
            if planned.plan.settled:
                return Begun(planned)
        raise Overtaken(
            f"{planned.task.resource.operation.noun} {key.name}: another task began to work on it at the same time, so"
            " this one sent nothing. Run it again when the other one has finished."
        )

    def finish(self, begun: Begun, result: dict) -> dict:
        """Record how a task ended and return its result, with what to do next where the asset is in doubt."""
        task, seconds = begun.planned.task, time.monotonic() - begun.at
        change = ending(Change(key_of(task), begun.planned.entry, begun.intent), result, seconds)
        try:
            problem = "" if self._writer.finish(change) else "another task changed the entry at the same time"
        except LedgerError as error:
            problem = error.msg
        if problem:
            return unrecorded(result, problem, task)
        return self.with_next_step(result, task, change.after.state if change.after else None)

    def with_next_step(self, result: dict, task: Task, state: str | None) -> dict:
        """Return the result, with how to settle a creation that the ledger has in doubt."""
        if task.resource.operation.method != "POST" or task.wanted.force or state not in _NEXT:
            return result
        msg = f"{sentence(result.get('msg', ''))}{_NEXT[state]}{_COMMANDS}{self._ledger.in_doubt_command}"
        return dict(result, msg=msg)

    def close(self) -> None:
        """Write what is queued, and close the ledger of a list."""
        self._writer.close()

    def give_up(self, results: list[tuple[Task, dict]]) -> None:
        """Record that these tasks of a list, which did not end in time and can no longer send, sent nothing."""
        self._writer.give_up({key_of(task): result for task, result in results})

    @property
    def lost(self) -> str:
        """Why nothing can be recorded any more, empty while it can."""
        return f"the ledger does not answer ({self._writer.lost.msg})" if self._writer.lost else ""

    def not_listed(self, tasks: list[Task]) -> list[str]:
        """Return the names of the assets that are recorded at the same service but not in the list."""
        if not tasks:
            return []
        base_url, resource, _name = key_of(tasks[0])
        where, listed = {"base_url = ?": (base_url,), "resource = ?": (resource,)}, {task.wanted.key for task in tasks}
        return [key.name for key, _entry in self._ledger.entries(where, lambda name: name not in listed)]

    def _look_elsewhere(self, new: list[Task]) -> None:
        """Warn of the first asset that is recorded at another base_url, with nothing at its own; count the others."""
        base_url, resource, _name = key_of(new[0]) if new else Key("", "", "")
        found = self._ledger.elsewhere(base_url, resource, [task.wanted.key for task in new])
        if not found:
            return
        name, more = next(task.wanted.key for task in new if task.wanted.key in found), len(found) - 1
        others = f" The same is true of {more:,} other{'s' if more > 1 else ''}." if more else ""
        self.warnings.append(
            f"{new[0].resource.operation.noun} {name}: the ledger has one of this name at {', '.join(found[name])}, and"
            f" nothing yet at {base_url}. If both are the same service, use the base_url that is recorded;"
            f" otherwise they are two different assets.{others}"
        )


def key_of(task: Task) -> Key:
    """Return the ledger's key for the asset of a task."""
    return Key(canonical_url(task.settings.base_url), task.resource.operation.resource, task.wanted.key)


def ending(begun: Change, result: dict[str, Any], seconds: float = 0.0) -> Change:
    """Return the change that ends an attempt, with its row of the history; `begun`: the one that began it."""
    before, entry = begun.before, begun.after
    outcome, asset = result["outcome"], result.get("asset")
    state, trace_id = AFTER.get((outcome, asset is not None), UNKNOWN), result.get("trace_id") or ""
    after = before
    if state:
        recorded = entry.asset if asset is None else without_placeholders(asset)
        after = entry._replace(state=state, asset=recorded, changed_at="", trace_id=trace_id)
    ended = Ended(
        from_state=before.state if before else ABSENT,
        to_state=after.state if after else ABSENT,
        by=entry.by,
        run=entry.run,
        outcome=outcome,
        status=result.get("status"),
        message=result.get("msg", ""),
        seconds=round(seconds, 3),
        trace_id=trace_id,
    )
    return Change(begun.key, entry, after, ended)


def unrecorded(result: dict[str, Any], problem: str, task: Task) -> dict[str, Any]:
    """Return the failure of a task whose outcome could not be recorded, with everything that came back."""
    outcome = result["outcome"]
    operation, said = task.resource.operation, sentence(result.get("msg", ""))
    begin = f"{said} The" if said else f"{operation.noun} {task.wanted.key}: the"
    next_step = _RECORD_BY_HAND[outcome] if operation.method == "POST" else "Run it again, which sends it once more."
    msg = f"{begin} outcome is {outcome}, but it could not be recorded: {sentence(problem)} {next_step}"
    return dict(result, failed=True, changed=outcome == ACCEPTED, msg=msg)


def _forced(tasks: list[Task], entries: dict[str, Entry]) -> list[str]:
    """Return a warning that says how many recorded assets of a list `force` sends again."""
    again = sum(task.wanted.force and entry.state == DONE for task in tasks if (entry := entries.get(task.wanted.key)))
    if not again or not tasks[0].is_listed:
        return []
    operation = tasks[0].resource.operation
    of_list = f"{again:,} of its {len(tasks):,} {operation.noun}s are recorded in the ledger as {operation.done}"
    return [f"force: true applies to the whole list: {of_list}, and each is {operation.done} again."]
