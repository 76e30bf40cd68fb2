# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The writes of a list's threads: the one whose turn it is commits at once what all of them have
queued.
"""

from __future__ import annotations

import math
import threading
import time
from concurrent.futures import Future
from contextlib import suppress
from typing import Any, Callable, NamedTuple

from ...module_utils._errors import EndOfThread, Overtaken
from ...module_utils._result import Result
from ...module_utils._task.signals import LEDGER_GRACE
from .decisions import ending
from .entries import Change, Entry, Key, Kind, LedgerError, LedgerLost
from .store import SILENT, Ledger


class _Job(NamedTuple):
    act: Callable[
        [list], list
    ]  # a method of Queue: from what is asked, of several jobs, to their answers
    asked: Any
    answer: Future


class Queue:
    """Writes to a ledger that no other task uses, for any thread."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._turn = threading.Condition()
        self._is_taken = False
        self._jobs: list[_Job] = []
        self._begun: dict[Key, Change] = {}  # attempts that have not ended
        self._given_up: set[Key] = set()
        self._held: dict[
            Key, tuple[float, Entry | None]
        ] = {}  # by others: when that was noticed, and the entry
        self._acts: tuple[Callable, ...] = (
            self._finish,
            self._release,
            self._begin,
            self._give_up,
        )  # still tried
        self.lost: LedgerError | None = None  # why nothing new is begun

    def begin(self, change: Change) -> tuple[bool, Entry | None]:
        """Lock the key and write the intent; return whether it was written, and the entry as it is
        now.

        Raise LedgerError, or Overtaken while another run holds the lock.
        """
        answer = self._do(self._begin, change)
        if answer is None:
            raise Overtaken(f"{change.key.name} is held by another run")
        return answer

    def finish(self, change: Change) -> bool:
        """Write how an attempt ended; return False if another task changed the entry; raise
        LedgerError.
        """
        return self._do(self._finish, change)

    def release(self, key: Key) -> None:
        """Release the lock of the key."""
        with suppress(LedgerError):  # a lost ledger has released it
            self._do(self._release, key)

    def give_up(self, results: dict[Key, Result]) -> None:
        """Record the results of attempts that were begun but sent nothing; later jobs for these
        keys do nothing.

        Does not wait for a ledger that takes too long.
        """
        with suppress(RuntimeError):  # there cannot be another thread: they stay in doubt
            thread = threading.Thread(target=self._try_to_give_up, args=[results], daemon=True)
            thread.start()
            thread.join(LEDGER_GRACE)

    def say_waiting(self) -> None:
        """Say once which assets other tasks hold, if the first of them is held for a while; for the
        main thread.
        """
        held, now = (
            {key: at for key, at in list(self._held.items()) if at[0] < math.inf},
            time.monotonic(),
        )
        if held and now - min(since for since, _entry in held.values()) >= SILENT:
            self._ledger.say_waiting([*held], next(iter(held.values()))[1])
            self._held.update(dict.fromkeys(held, (math.inf, None)))

    def _do(self, act: Callable[[list], list], asked: Any) -> Any:
        """Return the answer to a job, which this thread or the one before it has processed; raise
        LedgerError.
        """
        job = _Job(act, asked, Future())
        with self._turn:
            self._jobs.append(job)
            self._turn.wait_for(lambda: job.answer.done() or not self._is_taken)
            if job.answer.done():
                return job.answer.result()
            self._is_taken, jobs, self._jobs = True, self._jobs, []
        try:
            self._process(jobs)
        finally:
            with self._turn:
                self._is_taken = False
                self._turn.notify_all()
        return job.answer.result()

    def _process(self, jobs: list[_Job]) -> None:
        """Process jobs; once the ledger is lost they fail at once, except for outcomes, until one
        cannot be written.
        """
        try:
            for act in self._acts:  # one transaction for each
                _transact([job for job in jobs if job.act == act], act)
        except LedgerLost as error:
            self._acts = (self._finish, self._give_up) if act == self._begin else ()
            self.lost = self.lost or error
        finally:  # whatever happened, no thread waits for ever
            for job in jobs:
                if not job.answer.done():
                    job.answer.set_exception(
                        self.lost or LedgerError("ledger: nothing was written")
                    )

    def _begin(self, changes: list[Change]) -> list[tuple[bool, Entry | None] | None]:
        """Answer None for a key that was given up, or whose lock another run holds."""
        locked = [
            change
            for change in changes
            if change.key not in self._given_up and self._ledger.lock(change.key, wait=False)
        ]
        for key in (
            change.key
            for change in changes
            if change not in locked and change.key not in self._given_up
        ):
            self._held[key] = self._held.get(key, (time.monotonic(),))[0], self._ledger.get(key)
        written = self._ledger.write(locked, Kind.BEGIN) if locked else []
        self._begun.update({change.key: change for change in written if change})
        answers = {
            change.key: (True, done.after) if done else (False, self._ledger.get(change.key))
            for change, done in zip(locked, written)
        }
        return [answers.get(change.key) for change in changes]

    def _finish(self, changes: list[Change]) -> list[bool]:
        """Answer False for a key that was given up, as if another task had changed its entry."""
        wanted = [change for change in changes if change.key not in self._given_up]
        written = {change.key for change in self._ledger.write(wanted, Kind.END) if change}
        for change in changes:
            self._begun.pop(change.key, None)
        return [change.key in written for change in changes]

    def _release(self, keys: list[Key]) -> list[None]:
        return [self._ledger.release(key) for key in keys]

    def _give_up(self, asked: list[dict[Key, Result]]) -> list[None]:
        (results,) = asked
        self._given_up |= results.keys()
        begun = [
            (self._begun[key], result) for key, result in results.items() if key in self._begun
        ]
        self._ledger.write([ending(change, result) for change, result in begun], Kind.END)
        return [None]

    def _try_to_give_up(self, results: dict[Key, Result]) -> None:
        with EndOfThread(str):  # whatever happens, nobody waits for it
            self._do(self._give_up, results)


def _transact(jobs: list[_Job], act: Callable[[list], list]) -> None:
    """Run jobs in one transaction; if it fails, run each in its own, so that one cannot fail the
    others.

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
