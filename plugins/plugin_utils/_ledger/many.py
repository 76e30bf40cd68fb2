# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The ledger for a list of tasks: one read for all of them, and writes from several threads."""

from __future__ import annotations

from functools import partial
from typing import Callable

from ...module_utils._errors import ServicesError
from ...module_utils._resources.flow import Recorded
from ...module_utils._secrets import Secrets
from ...module_utils._task.task import Task
from .entries import DONE, INTENT, Entry, Key
from .group_commit import GroupCommitLedger, KeyLocked
from .recording import Overtaken, decide, ending, key_of, moved, record
from .store import Ledger


class LedgerOfMany:
    """The ledger for a list of tasks; it decides as for a single task."""

    def __init__(self, ledger: Ledger, secrets: Secrets, run: str, check_mode: bool) -> None:
        """`run`: names the run of Ansible."""
        self._ledger, self._secrets, self._run, self._check_mode = ledger, secrets, run, check_mode
        self._writer: GroupCommitLedger | None = None
        self.warnings: list[str] = []  # of the list as a whole

    def look_up(self, tasks: list[Task]) -> list[Recorded | ServicesError | None]:
        """Return for each task what is recorded, or why nothing may be sent; raise LedgerError."""
        keys = [key_of(task) for task in tasks]
        base_url, resource, _name = keys[0] if keys else Key("", "", "")
        entries = self._ledger.get_many(base_url, resource, [key.name for key in keys])
        self.warnings += _forced(tasks, entries)
        held = set() if self._check_mode else {key for key in keys if self._is_held(key, entries)}
        found = [
            None if key in held else self._found(entries.get(key.name), key, task) for key, task in zip(keys, tasks)
        ]
        self._look_elsewhere([(key, task) for key, task in zip(keys, tasks) if key.name not in entries])
        if not self._check_mode:
            read = {key: entries.get(key.name) for key in keys}
            certain = {key: entry for key, entry in read.items() if not (entry and entry.state == INTENT)}
            self._writer = GroupCommitLedger(self._ledger, certain)
        return found

    def _look_elsewhere(self, new: list[tuple[Key, Task]]) -> None:
        """Add a warning about the first asset that is recorded at another base_url, and the number of the others."""
        names = [key.name for key, _task in new]
        places = self._ledger.elsewhere(*new[0][0][:2], names) if new else {}
        found = [(key, task) for key, task in new if key.name in places]
        others = len(found) - 1
        more = f" The same is true of {others:,} other{'s' if others > 1 else ''}." if others > 0 else ""
        self.warnings += [f"{moved(key, task, places[key.name])}{more}" for key, task in found[:1]]

    def _is_held(self, key: Key, entries: dict[str, Entry | None]) -> bool:
        """Whether another run holds the lock of an asset; if not, refresh its entry in `entries`."""
        if key.name not in entries or entries[key.name].state != INTENT:
            return False
        if not self._ledger.lock(key.number(), wait=False):
            return True
        try:
            entries[key.name] = self._ledger.get(key)
        finally:
            self._ledger.unlock(key.number())
        return False

    def _found(self, entry: Entry | None, key: Key, task: Task) -> Recorded | ServicesError | None:
        try:
            return decide(entry, key, task)
        except ServicesError as error:
            return error

    def record(self, task: Task, execute: Callable[[Recorded | None], dict]) -> dict | None:
        """Run one task under the ledger and return its result, None while another run holds its asset."""
        try:
            return record(self._writer, task, self._secrets, self._run, execute)
        except (KeyLocked, Overtaken):
            return None
        except ServicesError as error:
            return self._secrets.scrub(error.result())

    def give_up(self, results: list[tuple[Task, dict]]) -> None:
        """Record that these tasks, which did not end in time and can no longer send, sent nothing."""
        if self._writer:
            self._writer.give_up({key_of(task): partial(ending, result=result) for task, result in results})

    @property
    def lost(self) -> str:
        """Why nothing can be recorded any more, empty while it can."""
        error = self._writer and self._writer.lost
        return f"the ledger does not answer ({error.msg})" if error else ""

    def not_listed(self, tasks: list[Task]) -> list[str]:
        """Return the names of the assets that are recorded at the same service but not in the list."""
        if not tasks:
            return []
        base_url, resource, _name = key_of(tasks[0])
        where, listed = {"base_url = ?": (base_url,), "resource = ?": (resource,)}, {task.wanted.key for task in tasks}
        return [key.name for key, _entry in self._ledger.entries(where, lambda name: name not in listed)]

    def close(self) -> None:
        """Write what is queued."""
        if self._writer:
            self._writer.close()


def _forced(tasks: list[Task], entries: dict[str, Entry]) -> list[str]:
    """Return a warning that says how many recorded assets `force` sends again."""
    again = sum(task.wanted.force and entry.state == DONE for task in tasks if (entry := entries.get(task.wanted.key)))
    if not again:
        return []
    operation = tasks[0].resource.operation
    of_list = f"{again:,} of its {len(tasks):,} {operation.noun}s are recorded in the ledger as {operation.done}"
    return [f"force: true applies to the whole list: {of_list}, and each is {operation.done} again."]
