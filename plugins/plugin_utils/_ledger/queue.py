# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The writes of a list's threads: one thread owns the ledger and commits everything in its queue at once."""

from __future__ import annotations

import queue
import threading
import time
from concurrent.futures import Future, wait
from typing import Any, Callable, Iterator, NamedTuple

from ...module_utils._errors import EndOfThread, Overtaken
from ...module_utils._task.signals import LEDGER_GRACE
from .decisions import ending
from .entries import Change, Entry, Key, LedgerError, LedgerLost
from .store import LOSS_GRACE, Ledger


class _Job(NamedTuple):
    act: Callable[[list], list]  # a method of Queue: from what is asked, of several jobs, to their answers
    asked: Any
    answer: Future


class Queue:
    """Writes to a ledger that no other task uses, for any thread."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._jobs: queue.SimpleQueue[_Job | None] = queue.SimpleQueue()
        self._taken: list[_Job | None] = []  # by the thread; None: it is to end
        self._begun: dict[Key, Change] = {}  # attempts that have not ended
        self._given_up: set[Key] = set()
        self._closed = threading.Event()
        self.lost: LedgerError | None = None  # why nothing new is begun
        self._lost_at = 0.0
        self._thread = threading.Thread(target=self._run, daemon=True)
        try:
            self._thread.start()
        except RuntimeError as error:  # the system cannot start another thread
            raise LedgerError(f"ledger: {ledger.where} cannot be written to: {error}") from None

    def begin(self, change: Change) -> tuple[bool, Entry | None]:
        """Lock the key and write the intent; return whether it was written, and the entry as it is now.

        Raise LedgerError, or Overtaken while another run holds the lock.
        """
        answer = self._put(self._begin, change).result()
        if answer is None:
            raise Overtaken(f"{change.key.name} is held by another run")
        return answer

    def finish(self, change: Change) -> bool:
        """Write how an attempt ended; return False if another task changed the entry; raise LedgerError."""
        return self._put(self._finish, change).result()

    def release(self, key: Key) -> None:
        """Release the lock of the key; does not wait."""
        self._put(self._release, key)

    def give_up(self, results: dict[Key, dict]) -> None:
        """Record the results of attempts that were begun but sent nothing; later jobs for these keys do nothing.

        Does not wait for a ledger that takes too long.
        """
        wait([self._put(self._give_up, results)], LEDGER_GRACE)

    def close(self) -> None:
        """Write what is queued, and close the ledger."""
        self._jobs.put(None)
        self._thread.join()
        self._ledger.close()

    def _put(self, act: Callable[[list], list], asked: Any) -> Future:
        job = _Job(act, asked, Future())
        self._jobs.put(job)
        if self._closed.is_set():
            self._refuse([job])
        return job.answer

    def _run(self) -> None:
        with EndOfThread(self._end):
            while None not in self._taken:
                self._taken = [self._jobs.get(), *self._queued()]
                self._process([job for job in self._taken if job])

    def _queued(self) -> Iterator[_Job | None]:
        while not self._jobs.empty():
            yield self._jobs.get_nowait()

    def _end(self, crash: str) -> None:
        """Refuse what is left and what is still to come; `crash`: what ended the thread, empty if it was closed."""
        if crash:
            self.lost = self.lost or LedgerError(f"ledger: {self._ledger.where} is no longer written to: {crash}")
        self._closed.set()
        self._refuse([job for job in (*self._taken, *self._queued()) if job])

    def _refuse(self, jobs: list[_Job]) -> None:
        for job in jobs:
            if not job.answer.done():
                error = self.lost or LedgerError(f"ledger: {self._ledger.where} is no longer written to")
                job.answer.set_exception(error)

    def _process(self, jobs: list[_Job]) -> None:
        """Process jobs; once the ledger is lost they fail at once, except that outcomes are still tried for a while."""
        started = time.monotonic()
        is_late = self.lost and started - self._lost_at > LOSS_GRACE
        try:
            outcomes = (self._finish, self._give_up)
            self._write([job for job in jobs if not self.lost or (job.act in outcomes and not is_late)])
        except LedgerLost as error:
            self._lost_at = self._lost_at if self.lost else started
            self.lost = self.lost or error
        if self.lost:
            self._refuse(jobs)

    def _write(self, jobs: list[_Job]) -> None:
        """Write jobs, those of one kind in one transaction; raise LedgerLost."""
        for act in (self._finish, self._release, self._begin, self._give_up):
            _transact([job for job in jobs if job.act == act], act)

    def _begin(self, changes: list[Change]) -> list[tuple[bool, Entry | None] | None]:
        """Answer None for a key that was given up, or whose lock another run holds."""
        free = [
            change for change in changes
            if change.key not in self._given_up and self._ledger.lock(change.key, wait=False)
        ]
        written = self._ledger.write(free, durable=True) if free else []
        self._begun.update({change.key: change for change in written if change})
        answers = {
            change.key: (True, done.after) if done else (False, self._ledger.get(change.key))
            for change, done in zip(free, written)
        }
        return [answers.get(change.key) for change in changes]

    def _finish(self, changes: list[Change]) -> list[bool]:
        """Answer False for a key that was given up, as if another task had changed its entry."""
        wanted = [change for change in changes if change.key not in self._given_up]
        written = {change.key for change in self._ledger.write(wanted, durable=False) if change}
        for change in changes:
            self._begun.pop(change.key, None)
        return [change.key in written for change in changes]

    def _release(self, keys: list[Key]) -> list[None]:
        return [self._ledger.release(key) for key in keys]

    def _give_up(self, asked: list[dict[Key, dict]]) -> list[None]:
        (results,) = asked
        self._given_up |= results.keys()
        begun = [(self._begun[key], result) for key, result in results.items() if key in self._begun]
        self._ledger.write([ending(change, result) for change, result in begun], durable=False)
        return [None]


def _transact(jobs: list[_Job], act: Callable[[list], list]) -> None:
    """Run jobs in one transaction; if it fails, run each in its own, so that one cannot fail the others.

    Raise LedgerLost.
    """
    if not jobs:
        return
    try:
        answers = act([job.asked for job in jobs])
    except LedgerLost:
        raise
    except LedgerError as error:
        if len(jobs) == 1:
            jobs[0].answer.set_exception(error)
        else:
            for job in jobs:
                _transact([job], act)
        return
    for job, answer in zip(jobs, answers):
        job.answer.set_result(answer)
