# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Runs a task under the ledger: look up what is recorded, record the intent, send, record the
outcome.
"""

from __future__ import annotations

import time
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, Iterator, NamedTuple

from ...module_utils._errors import Message, Overtaken, ServicesError
from ...module_utils._fields import as_json
from ...module_utils._http.urls import canonical_url
from ...module_utils._result import Result
from ...module_utils._secrets import Secrets, without_placeholders
from ...module_utils._task.task import Planned, Task
from . import decisions
from .commands import playbook_command
from .entries import INTENT, Change, Entry, Key, LedgerError
from .store import Ledger

_NO_LONGER = (
    "another run changed it at the same time, so what would be sent is not what was approved, and nothing was sent."
    " Make a new plan (--check) and have it approved."
)


class Begun(NamedTuple):
    """A task whose intent is recorded; without one if there is nothing to send after all."""

    planned: Planned
    intent: Change | None = None
    at: float = 0.0  # seconds, on the clock of time.monotonic


class Recording:
    """What the tasks of one service and resource do with the ledger: look up, begin, finish; raises
    LedgerError.
    """

    def __init__(
        self,
        ledger: Ledger,
        secrets: Secrets,
        run: str,
        check_mode: bool = False,
        queue: Any = None,
        approved_after: int | None = None,
    ) -> None:
        """`run`: names the run of Ansible; `queue`: writes for the threads of a list, None for a
        single task.

        `approved_after`: how many rows the history had when the plan was made that was approved;
        None if any body may be sent.
        """
        self._approved_after = approved_after
        self._ledger, self._secrets, self._run, self._check_mode = ledger, secrets, run, check_mode
        self._is_list, self._writer = queue is not None, queue or ledger
        self._command = playbook_command(ledger, "in_doubt")
        self._unrecorded = ""  # why an outcome could not be recorded
        self.warnings: list[str] = []  # of all tasks together

    def look_up(self, tasks: list[Task]) -> list[Planned]:
        """Return the tasks with their plans, or with why they send nothing."""
        keys = [key_of(task) for task in tasks]
        entries = self._ledger.get_many(*keys[0][:2], [key.name for key in keys]) if keys else {}
        new = [key.name for key in keys if key.name not in entries]
        if new and (found := self._ledger.other_services(*keys[0][:2], new)):
            self.warnings.append(decisions.warning_of_others(tasks[0], found))
        current = [self._current(key, entries.get(key.name)) for key in keys]
        return [
            decisions.planned(task, entry, self._command) for task, entry in zip(tasks, current)
        ]

    def _current(self, key: Key, entry: Entry | None) -> Entry | None:
        """Return an entry as the task that works on it leaves it; a list does not wait, and begins
        the asset later.
        """
        if self._check_mode or entry is None or entry.state != INTENT:
            return entry
        if not self._ledger.lock(key, wait=not self._is_list):
            return None
        try:
            return self._ledger.get(key)
        finally:
            self._ledger.release(key)

    @contextmanager
    def begun(self, planned: Planned) -> Iterator[Begun]:
        """Record the intent and hold the lock of the asset within the context; raise Overtaken or
        InDoubt.
        """
        key = key_of(planned.task)
        try:
            yield self._begin(key, planned)
        finally:
            self._writer.release(key)

    def _begin(self, key: Key, planned: Planned) -> Begun:
        for _attempt in range(
            2
        ):  # the entry may have changed since it was read, but does not while it is locked
            sent = without_placeholders(self._secrets.scrub_data(planned.plan.body))
            intent = Entry(
                INTENT, sent, planned.entry.asset if planned.entry else {}, run=self._run
            )
            is_ours, entry = self._writer.begin(Change(key, planned.entry, intent))
            if is_ours:
                return Begun(planned, Change(key, planned.entry, entry), time.monotonic())
            entry = (
                entry if self._is_list else self._current(key, entry)
            )  # threads use the ledger by its queue only
            body, planned = planned.plan.body, decisions.planned(planned.task, entry, self._command)
            if planned.error:
                raise planned.error
            if planned.plan.settled:
                return Begun(planned)
            if self._approved_after is not None and as_json(planned.plan.body) != as_json(body):
                raise ServicesError(
                    Message(_NO_LONGER, f"{planned.task.resource.operation.noun} {key.name}")
                )
        why = "another task began to work on it at the same time, so this one sent nothing. Run it again later."
        raise Overtaken(Message(why, f"{planned.task.resource.operation.noun} {key.name}"))

    def finish(self, begun: Begun, result: Result) -> Result:
        """Record how a task ended and return its result, with what to do next where the asset is in
        doubt.
        """
        task, change = (
            begun.planned.task,
            decisions.ending(begun.intent, result, time.monotonic() - begun.at),
        )
        try:
            problem = (
                ""
                if self._writer.finish(change)
                else "another task changed the entry at the same time"
            )
        except LedgerError as error:
            problem = self._unrecorded = error.msg
        if problem:
            return decisions.unrecorded(result, problem, task)
        return self.with_next_step(result, task, change.after.state if change.after else None)

    def with_next_step(self, result: Result, task: Task, state: str | None) -> Result:
        """Return the result, with how to settle a creation whose entry is now in this state."""
        if (
            task.resource.operation.method != "POST"
            or task.wanted.force
            or state not in decisions.NEXT
        ):
            return result
        said = result.msg.then(decisions.NEXT[state])._replace(command=self._command)
        return replace(result, msg=said)

    def created_since_plan(self, tasks: list[Task]) -> set[str]:
        """Return the names of assets that were created or adopted since the plan was made that was
        approved.
        """
        if not tasks or self._approved_after is None:
            return set()
        base_url, resource, _name = key_of(tasks[0])
        names = [task.wanted.key for task in tasks]
        return self._ledger.created_since(base_url, resource, names, self._approved_after)

    def say_waiting(self) -> None:
        """Say which assets of a list wait for other tasks."""
        if self._is_list:
            self._writer.say_waiting()

    def close(self) -> None:
        """Close the ledger of a list, which no thread uses any more."""
        self._ledger.close()

    def give_up(self, results: list[tuple[Task, Result]]) -> None:
        """Record that these tasks of a list, which did not end in time and can no longer send, sent
        nothing.
        """
        self._writer.give_up({key_of(task): result for task, result in results})

    @property
    def lost(self) -> str:
        """Why no more assets of a list are begun: their outcomes could not be recorded either;
        empty while they can.
        """
        if self._writer.lost:
            return f"the ledger cannot be used ({self._writer.lost.msg})"
        return f"an outcome could not be recorded ({self._unrecorded})" if self._unrecorded else ""

    def not_listed(self, tasks: list[Task]) -> list[str]:
        """Return the names of the assets that are recorded at the same service but not in the list."""
        if not tasks:
            return []
        base_url, resource, _name = key_of(tasks[0])
        where, listed = (
            {"base_url = ?": (base_url,), "resource = ?": (resource,)},
            {task.wanted.key for task in tasks},
        )
        return [
            key.name for key, _entry in self._ledger.entries(where, lambda name: name not in listed)
        ]


def key_of(task: Task) -> Key:
    """Return the ledger's key for the asset of a task."""
    return Key(
        canonical_url(task.settings.base_url), task.resource.operation.resource, task.wanted.key
    )
