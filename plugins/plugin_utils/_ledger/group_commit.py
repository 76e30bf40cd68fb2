# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A ledger for many threads: one thread owns the connection and commits everything in its queue at once."""

from __future__ import annotations

import queue
import threading
import time
from concurrent.futures import Future, wait
from contextlib import contextmanager
from typing import Any, Callable, Iterator, NamedTuple

from ...module_utils._errors import ServicesError
from ...module_utils._task.shutdown import LEDGER_GRACE
from .entries import Change, Ended, Entry, Key, LedgerError, LedgerLost
from .store import Ledger

LOOK, BEGIN, FINISH, UNLOCK, GIVE_UP = "look", "begin", "finish", "unlock", "give up"
_LOSS_GRACE = 10.0  # seconds after the loss of the ledger during which outcomes are still worth an attempt to write


class KeyLocked(ServicesError):
    """Another run holds the lock of the asset."""


class _Job(NamedTuple):
    kind: str
    change: Any  # a Change; for GIVE_UP, a function per key that ends its attempt
    answer: Future


class GroupCommitLedger:
    """What `recording.record` uses of a ledger, for any thread; raises KeyLocked instead of waiting for a lock."""

    def __init__(self, ledger: Ledger, known: dict[Key, Entry | None]) -> None:
        """`known`: entries that were read just now; each is used once, then read anew."""
        self._ledger, self._known = ledger, known
        self._jobs: queue.SimpleQueue[_Job | None] = queue.SimpleQueue()
        self._locked: set[Key] = set()  # used by the writer thread only
        self._begun: dict[Key, tuple[Entry | None, Entry]] = {}  # unfinished attempts: the entry before, and the intent
        self._given_up: set[Key] = set()
        self._closed = threading.Event()
        self.lost: LedgerError | None = None  # why nothing new is begun
        self._lost_at = 0.0
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    @contextmanager
    def hold(self, key: Key) -> Iterator[None]:
        """Release, at the end, the lock that `get` or `begin` took."""
        try:
            yield
        finally:
            self._put(UNLOCK, Change(key, None, None))

    def get(self, key: Key) -> Entry | None:
        """Return the entry of the key, None if there is none; raise LedgerError or KeyLocked."""
        if key in self._known:
            return self._known.pop(key)
        return self._answer(LOOK, Change(key, None, None))

    def begin(self, key: Key, intent: Entry, before: Entry | None) -> Entry | None:
        """Write an intent as Ledger.begin does; raise LedgerError or KeyLocked."""
        return self._answer(BEGIN, Change(key, before, intent))

    def finish(self, key: Key, begun: Entry, after: Entry | None, ended: Ended) -> bool:
        """Write how an attempt ended as Ledger.finish does; raise LedgerError."""
        return self._answer(FINISH, Change(key, begun, after, ended))

    def give_up(self, endings: dict[Key, Callable[[Entry | None, Entry], tuple[Entry | None, Ended]]]) -> None:
        """Record the end of attempts that were begun but sent nothing; later jobs for these keys do nothing.

        Each ending receives the entry before and the intent. Does not wait for a ledger that takes too long.
        """
        wait([self._put(GIVE_UP, endings)], LEDGER_GRACE)

    def elsewhere(self, _base_url: str, _resource: str, _names: list[str]) -> dict[str, list[str]]:
        """Return nothing: for a list, `LedgerOfMany.look_up` has already asked this."""
        return {}

    def close(self) -> None:
        """Write what is queued; the ledger itself stays open."""
        self._jobs.put(None)
        self._thread.join()

    def _put(self, kind: str, change: Change) -> Future:
        job = _Job(kind, change, Future())
        self._jobs.put(job)
        if self._closed.is_set():
            self._refuse([job])
        return job.answer

    def _answer(self, kind: str, change: Change) -> Any:
        answer = self._put(kind, change).result()
        if answer is KeyLocked:
            raise KeyLocked(f"{change.key.name} is held by another run")
        return answer

    def _run(self) -> None:
        jobs: list[_Job | None] = []
        try:
            while None not in jobs:
                jobs = [self._jobs.get()]
                while not self._jobs.empty():
                    jobs.append(self._jobs.get_nowait())
                self._process([job for job in jobs if job])
        finally:
            self._closed.set()
            while not self._jobs.empty():
                jobs.append(self._jobs.get_nowait())
            self._refuse([job for job in jobs if job])

    def _refuse(self, jobs: list[_Job]) -> None:
        for job in jobs:
            if not job.answer.done():
                error = self.lost or LedgerError(f"ledger: {self._ledger.where} is no longer written to")
                job.answer.set_exception(error)

    def _process(self, jobs: list[_Job]) -> None:
        """Process jobs; once the ledger is lost they fail at once, except that outcomes are still tried for a while."""
        started = time.monotonic()
        is_late = self.lost and started - self._lost_at > _LOSS_GRACE
        try:
            self._dispatch([job for job in jobs if not self.lost or (job.kind in (FINISH, GIVE_UP) and not is_late)])
        except LedgerLost as error:
            self._lost_at = self._lost_at if self.lost else started
            self.lost = self.lost or error
        if self.lost:
            self._refuse(jobs)

    def _dispatch(self, jobs: list[_Job]) -> None:
        by_kind = {kind: [job for job in jobs if job.kind == kind] for kind in (FINISH, UNLOCK, LOOK, BEGIN, GIVE_UP)}
        _transact(self._wanted(by_kind[FINISH]), self._finish)
        for job in by_kind[UNLOCK]:
            if job.change.key in self._locked:
                self._locked.remove(job.change.key)
                self._ledger.unlock(job.change.key.number())
        for job in self._free(by_kind[LOOK]):
            _transact([job], lambda changes: [self._ledger.get(changes[0].key)])
        _transact(self._free(self._wanted(by_kind[BEGIN])), self._begin)
        for job in by_kind[GIVE_UP]:
            _transact([job], self._give_up)

    def _wanted(self, jobs: list[_Job]) -> list[_Job]:
        """Return the jobs whose keys were not given up; answer the others as if another task had changed the entry."""
        for job in jobs:
            if job.change.key in self._given_up:
                job.answer.set_result(None)
        return [job for job in jobs if not job.answer.done()]

    def _begin(self, changes: list[Change]) -> list[Entry | None]:
        entries = self._ledger.begin_many(changes)
        self._begun.update({change.key: (change.before, entry) for change, entry in zip(changes, entries) if entry})
        return entries

    def _finish(self, changes: list[Change]) -> list[bool]:
        written = self._ledger.finish_many(changes)
        for change in changes:
            self._begun.pop(change.key, None)
        return written

    def _give_up(self, every: list[dict[Key, Callable]]) -> list[None]:
        (endings,) = every
        self._given_up |= endings.keys()
        begun = {key: self._begun[key] for key in endings if key in self._begun}
        self._finish([Change(key, entry, *endings[key](before, entry)) for key, (before, entry) in begun.items()])
        return [None]

    def _free(self, jobs: list[_Job]) -> list[_Job]:
        """Lock the keys of jobs; return the jobs that got their lock, and answer the others with KeyLocked."""
        free = []
        for job in jobs:
            try:
                if job.change.key in self._locked or self._ledger.lock(job.change.key.number(), wait=False):
                    self._locked.add(job.change.key)
                    free.append(job)
                else:
                    job.answer.set_result(KeyLocked)
            except LedgerLost:
                raise
            except LedgerError as error:
                job.answer.set_exception(error)
        return free


def _transact(jobs: list[_Job], act: Callable[[list[Change]], list]) -> None:
    """Run jobs in one transaction; if it fails, run each in its own, so that one cannot fail the others.

    Raise LedgerLost.
    """
    if not jobs:
        return
    try:
        answers = act([job.change for job in jobs])
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
