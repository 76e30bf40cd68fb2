# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Lets the threads of a list share one ledger: one of them commits the queued writes of all."""

from __future__ import annotations

import threading
import time
from concurrent.futures import Future
from contextlib import suppress
from typing import Any, Callable, List, NamedTuple, Sequence

from ...module_utils._errors import EndOfThread, Overtaken
from ...module_utils._result import Result
from ...module_utils._task.signals import LEDGER_GRACE
from .decisions import ending
from .entries import Change, Entry, Key, Kind, LedgerError, LedgerLost
from .store import SILENT, Ledger

# Takes the requests of several jobs, returns their answers.
_Act = Callable[[List[Any]], Sequence[object]]


class _Job(NamedTuple):
    act: _Act
    asked: object
    answer: Future[Any]


class Queue:
    """Writes to a ledger that no other task uses, for any thread."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._turn = threading.Condition()
        self._is_taken = False
        self._jobs: list[_Job] = []
        self._begun: dict[Key, Change] = {}  # attempts that have not ended
        self._given_up: set[Key] = set()
        # Assets that other runs hold: the time when that was noticed, and the entry.
        self._held: dict[Key, tuple[float, Entry | None]] = {}
        self._shown: set[Key] = set()  # held assets that the user knows about
        # The jobs that are still tried, in the order in which they are processed.
        self._acts: tuple[_Act, ...] = (self._finish, self._release, self._begin, self._give_up)
        self.lost: LedgerError | None = None  # why nothing new is begun

    def begin(self, change: Change) -> tuple[bool, Entry | None]:
        """Lock the key and write the intent; return whether it was written, and the entry now.

        Raises LedgerError, or Overtaken while another run holds the lock.
        """
        answer: tuple[bool, Entry | None] | None = self._do(self._begin, change)
        if answer is None:
            raise Overtaken(f"{change.key.name} is held by another run")
        return answer

    def finish(self, change: Change) -> bool:
        """Write how an attempt ended; return False if another task changed the entry.

        Raises LedgerError.
        """
        return bool(self._do(self._finish, change))

    def release(self, key: Key) -> None:
        """Release the lock of the key."""
        with suppress(LedgerError):  # a lost ledger has released it
            self._do(self._release, key)

    def give_up(self, results: dict[Key, Result]) -> None:
        """Record the results of attempts that were begun but sent nothing.

        Later jobs for these keys do nothing. Does not wait long for the ledger.
        """
        # There cannot be another thread: they stay in doubt.
        with suppress(RuntimeError):
            thread = threading.Thread(target=self._try_to_give_up, args=[results], daemon=True)
            thread.start()
            thread.join(LEDGER_GRACE)

    def show_waiting(self) -> None:
        """Show once the assets that other tasks hold for a while; for the main thread."""
        held = {key: found for key, found in list(self._held.items()) if key not in self._shown}
        if not held:
            return
        # Of the asset that was noticed first.
        since, entry = next(iter(held.values()))
        if time.monotonic() - since >= SILENT:
            self._ledger.database.waiting.show(list(held), entry)
            self._shown.update(held)

    def _do(self, act: _Act, asked: object) -> Any:
        """Return the answer to a job, which this thread or the one before it has processed."""
        job = _Job(act, asked, Future())
        with self._turn:
            self._jobs.append(job)
            self._turn.wait_for(lambda: job.answer.done() or not self._is_taken)
            if job.answer.done():
                return job.answer.result()
            self._is_taken = True
            jobs = self._jobs
            self._jobs = []
        try:
            self._process(jobs)
        finally:
            with self._turn:
                self._is_taken = False
                self._turn.notify_all()
        return job.answer.result()

    def _process(self, jobs: list[_Job]) -> None:
        """Process jobs, those of one kind in one transaction.

        Once the ledger is lost, jobs fail at once. Outcomes are the exception, until one cannot be
        written.
        """
        try:
            for act in self._acts:
                try:
                    _transact([job for job in jobs if job.act == act], act)
                except LedgerLost as error:
                    self._lose(act, error)
                    break
        finally:  # no thread waits for ever
            problem = self.lost or LedgerError("ledger: nothing was written")
            for job in jobs:
                if not job.answer.done():
                    job.answer.set_exception(problem)

    def _lose(self, act: _Act, error: LedgerLost) -> None:
        """Try no more jobs once the ledger is lost, except outcomes after a failed beginning."""
        self._acts = (self._finish, self._give_up) if act == self._begin else ()
        self.lost = self.lost or error

    def _begin(self, changes: list[Change]) -> list[tuple[bool, Entry | None] | None]:
        """Begin attempts; the answer is None for a key that was given up, or another run holds."""
        locked = []
        for change in changes:
            if change.key in self._given_up:
                continue
            if self._ledger.lock(change.key, wait=False):
                locked.append(change)
                self._held.pop(change.key, None)
            else:
                self._note_held(change.key)
        answers: dict[Key, tuple[bool, Entry | None]] = {}
        written = self._ledger.write(locked, Kind.BEGIN) if locked else []
        for change, begun in zip(locked, written):
            if begun:
                self._begun[change.key] = begun
                answers[change.key] = True, begun.after
            else:
                answers[change.key] = False, self._ledger.get(change.key)
        return [answers.get(change.key) for change in changes]

    def _note_held(self, key: Key) -> None:
        since, _entry = self._held.get(key, (time.monotonic(), None))
        self._held[key] = since, self._ledger.get(key)

    def _finish(self, changes: list[Change]) -> list[bool]:
        """Write outcomes; the answer is False for a key that was given up."""
        wanted = [change for change in changes if change.key not in self._given_up]
        written = {change.key for change in self._ledger.write(wanted, Kind.END) if change}
        for change in changes:
            self._begun.pop(change.key, None)
        return [change.key in written for change in changes]

    def _release(self, keys: list[Key]) -> list[None]:
        for key in keys:
            self._ledger.release(key)
        return [None] * len(keys)

    def _give_up(self, asked: list[dict[Key, Result]]) -> list[None]:
        (results,) = asked
        self._given_up |= results.keys()
        endings = [
            ending(self._begun[key], result)
            for key, result in results.items()
            if key in self._begun
        ]
        self._ledger.write(endings, Kind.END)
        return [None]

    def _try_to_give_up(self, results: dict[Key, Result]) -> None:
        with EndOfThread(lambda problem: None):  # nobody waits for it
            self._do(self._give_up, results)


def _transact(jobs: list[_Job], act: _Act) -> None:
    """Run jobs in one transaction; if it fails, run each in its own, so that none fails the others.

    Raises LedgerLost.
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
