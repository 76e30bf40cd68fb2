# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Runs tasks under the ledger: look up the entries, record the intent, send, record the outcome."""

from __future__ import annotations

import time
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from typing import Iterator

from ...module_utils._errors import Message, Overtaken, ServicesError
from ...module_utils._fields import json_differences
from ...module_utils._result import Result
from ...module_utils._secrets import Secrets
from ...module_utils._task.task import Planned, Task
from . import decisions
from .commands import playbook_command
from .entries import INTENT, Change, Entry, Key, LedgerError
from .queue import Queue
from .store import Ledger

_NO_LONGER = (
    "another run changed it at the same time, so what would be sent is not what was approved, and"
    " nothing was sent. Make a new plan (--check) and have it approved."
)
_OVERTAKEN = (
    "another task began to work on it at the same time, so this one sent nothing. Run it again"
    " later."
)

_BUSY = (
    "another task is updating it, or was killed while it did so, and send: complete needs the asset"
    " that it leaves. Run this again later, or give current."
)


@dataclass(frozen=True)
class Begun:
    """A task that holds the lock of its asset; without an intent there is nothing to send."""

    recording: Recording
    planned: Planned
    intent: Change | None = None
    at: float = 0.0  # seconds, on the clock of time.monotonic

    @property
    def is_decided(self) -> bool:
        """Whether it is certain that the task sends its request, or that it sends none."""
        return self.intent is not None or self.planned.required_plan().settled

    def record(self, result: Result) -> Result:
        """Record how the task ended and return its result, with the next step if it is in doubt."""
        if self.intent is None:
            return result
        change = decisions.ending(self.intent, result, time.monotonic() - self.at)
        return self.recording.record_ending(self.planned.task, change, result)


class Recording:
    """The ledger of a task for one asset: look up, begin, finish; raises LedgerError."""

    # Whether it waits, before it plans, for another task that is working on the asset.
    _waits = True

    def __init__(
        self, ledger: Ledger, secrets: Secrets, run: str, check_mode: bool = False
    ) -> None:
        """`run` names the run of Ansible."""
        self.ledger = ledger
        self._secrets = secrets
        self._run = run
        self._check_mode = check_mode
        self._writer: Ledger | Queue = ledger
        self._shown = ledger.shown
        self._unrecorded = ""  # why an outcome could not be recorded
        self.lacks_outcome = False  # whether the ledger lacks the outcome of a request
        self.warnings: list[str] = []  # of all tasks together

    def look_up(self, tasks: list[Task]) -> list[Planned]:
        """Return the tasks, each with its plan or with the error that forbids it."""
        if not tasks:
            return []
        base_url, resource, names = _keys_of(tasks)
        entries = self.ledger.get_many(base_url, resource, names)
        new = [name for name in names if name not in entries]
        if new:
            others = self.ledger.other_services(base_url, resource, new)
            if others:
                self.warnings.append(decisions.warning_of_others(tasks[0], others))
        return [self._plan(task, entries.get(task.wanted.key)) for task in tasks]

    def _plan(self, task: Task, entry: Entry | None) -> Planned:
        """Return a task with its plan, once no other task is working on its asset.

        Check mode does not wait.
        """
        if entry and entry.state == INTENT:
            if self._check_mode and _needs_entry(task):
                why = Message(_BUSY, task.asset, since=entry.began_at)
                return Planned(task, entry=entry, error=ServicesError(why))
            if not self._check_mode:
                entry = self._left_by_others(task)
        return decisions.plan_with(task, entry, self._shown)

    def _left_by_others(self, task: Task) -> Entry | None:
        """Wait for the task that is working on an asset, and return the entry that it left.

        A list returns None at once, and tries the asset again later, unless it needs the entry for
        its plan.
        """
        key = key_of(task)
        if not self.ledger.lock(key, wait=self._waits or _needs_entry(task)):
            return None
        try:
            return self.ledger.get(key)
        finally:
            self.ledger.release(key)

    @contextmanager
    def record_intent(self, planned: Planned) -> Iterator[Begun]:
        """Record the intent and hold the asset's lock in the context; raise Overtaken or InDoubt."""
        key = key_of(planned.task)
        try:
            yield self._begin(key, planned)
        finally:
            self._writer.release(key)

    def _begin(self, key: Key, planned: Planned) -> Begun:
        begun = self._try_to_begin(key, planned)
        if not begun.is_decided:
            # The entry changed after it was read; while it is locked, it does not change again.
            begun = self._try_to_begin(key, begun.planned)
        if not begun.is_decided:
            raise Overtaken(Message(_OVERTAKEN, planned.task.asset))
        return begun

    def _try_to_begin(self, key: Key, planned: Planned) -> Begun:
        """Record the intent; if the entry has changed, plan the task anew instead."""
        body = self._secrets.recordable(planned.required_plan().body)
        asset = planned.entry.asset if planned.entry else {}
        intent = Entry(INTENT, body, asset, run=self._run)
        is_ours, entry = self._writer.begin(Change(key, planned.entry, intent))
        if is_ours:
            return Begun(self, planned, Change(key, planned.entry, entry), time.monotonic())
        return Begun(self, self._plan_anew(planned, entry))

    def _plan_anew(self, planned: Planned, entry: Entry | None) -> Planned:
        """Return a task with its plan for the changed entry; raise the error that forbids one."""
        again = decisions.plan_with(planned.task, entry, self._shown)
        again.required_plan()
        return again

    def record_ending(self, task: Task, change: Change, result: Result) -> Result:
        """Record how a task ended and return its result, with the next step if it is in doubt."""
        try:
            is_recorded = self._writer.finish(change)
        except LedgerError as error:
            self._unrecorded = error.msg
            self.lacks_outcome = True
            return decisions.unrecorded(result, error.msg, task)
        if not is_recorded:
            self.lacks_outcome = True
            problem = "another task changed the entry at the same time"
            return decisions.unrecorded(result, problem, task)
        return self.with_next_step(result, task, change.after.state if change.after else "")

    def with_next_step(self, result: Result, task: Task, state: str) -> Result:
        """Return the result, with how to settle a creation whose entry is now in this state."""
        is_creation = task.resource.operation.method == "POST"
        if not is_creation or task.wanted.force or state not in decisions.NEXT:
            return result
        message = result.msg.then(decisions.NEXT[state])
        command = playbook_command(self._shown, "in_doubt")
        return result.but(msg=message._replace(command=command))


class ListRecording(Recording):
    """The ledger of the tasks of a list, of one service and resource; used by its threads."""

    _waits = False

    def __init__(
        self,
        ledger: Ledger,
        secrets: Secrets,
        run: str,
        check_mode: bool = False,
        approved_after: int | None = None,
    ) -> None:
        """`approved_after`: the rows of the history when the approved plan was made; None: no plan."""
        super().__init__(ledger, secrets, run, check_mode)
        self._approved_after = approved_after
        self._writer = self._queue = Queue(ledger)

    def look_up(self, tasks: list[Task]) -> list[Planned]:
        """Return the tasks as Recording does; from then on threads use the ledger."""
        planned = super().look_up(tasks)
        # They wait to the end: only the main thread receives signals.
        waiting = self.ledger.database.waiting
        self.ledger.wait_like(waiting._replace(interruptible=nullcontext))
        return planned

    def _plan_anew(self, planned: Planned, entry: Entry | None) -> Planned:
        """Return a task as Recording does; raise ServicesError if its new plan is not approved."""
        again = super()._plan_anew(planned, entry)
        plan = again.required_plan()
        approved = planned.required_plan()
        is_checked = self._approved_after is not None and not plan.settled
        if is_checked and json_differences(plan.body, approved.body):
            raise ServicesError(Message(_NO_LONGER, planned.task.asset))
        return again

    def created_since_plan(self, tasks: list[Task]) -> set[str]:
        """Return the names of assets that were created or adopted after the approved plan was made."""
        if not tasks or self._approved_after is None:
            return set()
        return self.ledger.created_since(*_keys_of(tasks), self._approved_after)

    def not_listed(self, tasks: list[Task]) -> list[str]:
        """Return the names that are recorded at the same service but not in the list."""
        if not tasks:
            return []
        base_url, resource, names = _keys_of(tasks)
        where = {"base_url = ?": (base_url,), "resource = ?": (resource,)}
        listed = set(names)
        found = self.ledger.entries(where, lambda name: name not in listed)
        return [key.name for key, _entry in found]

    def show_waiting(self) -> None:
        """Show which assets wait for other tasks."""
        self._queue.show_waiting()

    def give_up(self, results: list[tuple[Task, Result]]) -> None:
        """Record that tasks which did not end in time, and can no longer send, sent nothing."""
        self._queue.give_up({key_of(task): result for task, result in results})

    @property
    def lost(self) -> str:
        """Why the list stops: an outcome could not be recorded; '' while outcomes can be recorded."""
        if self._queue.lost:
            return f"the ledger cannot be used ({self._queue.lost.msg})"
        return f"an outcome could not be recorded ({self._unrecorded})" if self._unrecorded else ""

    def close(self) -> None:
        """Close the ledger, which no thread uses any more."""
        self.ledger.close()


def _needs_entry(task: Task) -> bool:
    """Return whether a task cannot be planned without the recorded asset."""
    return task.wanted.is_complete and not task.wanted.current


def _keys_of(tasks: list[Task]) -> tuple[str, str, list[str]]:
    """Return the base_url and resource of a list's tasks, and their names."""
    key = key_of(tasks[0])
    return key.base_url, key.resource, [task.wanted.key for task in tasks]


def key_of(task: Task) -> Key:
    """Return the ledger key of the asset of a task."""
    return Key(task.settings.service, task.resource.operation.resource, task.wanted.key)
