# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The loop that sends planned tasks, one or many; it alone owns what is in flight.

Only the thread of the caller touches the width, the token, the ledger and the signals. Another
thread makes one attempt, with what it was given, and puts an answer into a queue. A job is in one
place at a time: pending, to begin (its intent is to be written), in flight, to record (its outcome
is to be written), waiting for a further attempt, or nowhere, with its result or overtaken.
"""

from __future__ import annotations

import math
import threading
import time
from collections import deque
from contextlib import suppress
from dataclasses import dataclass, field
from queue import Empty, SimpleQueue
from typing import Any, Callable

from .._call.attempt import NO_END, Cell, Lease
from .._call.policy import AttemptResult, Event
from .._call.tokens import Tokens
from .._errors import NOT_SENT, UNKNOWN, LedgerAway, LedgerError
from .._resources.planning import ADOPT
from .._result import Result
from .journal import NoLedger
from .width import NEUTRAL, OVERLOADED, Dispatch, Width
from .work import Answered, Work, feedback_of, unexpected

NOT_STARTED = Result(skipped=True)
GRACE = 10.0  # seconds for requests in flight after a reason to stop
_POLL = 0.5  # seconds between two looks at reasons to stop
_REFUSED = "the service does not accept the access token (status 401)"
_PAUSE = 0.2  # seconds between two tries of a write while the ledger is away
# Gets the results so far, how many requests are in flight, and whether the loop only waits for
# these; returns why to stop, '' to go on.
Watch = Callable[["list[Result]", int, bool], str]


@dataclass(eq=False)
class Job:
    """One task on its way."""

    work: Work
    attempts: list[AttemptResult[Any]] = field(default_factory=list)
    due: float = math.inf  # when a further attempt may be made, by the clock of the loop
    change: Any = None  # of the ledger, to be written
    lease: Lease = NO_END
    token: str = ""
    dispatch: Dispatch | None = None  # the place of the last attempt in the width
    cell: Cell | None = None  # of the attempt in flight
    lacked_room: bool = False  # whether the last attempt met overload
    result: Result = NOT_STARTED  # of the attempts so far
    is_overtaken: bool = False  # whether another task works on the asset
    started: float | None = None  # the first attempt, by the clock of the loop


@dataclass
class Loop:
    """Sends jobs until each of them has its result or was overtaken."""

    jobs: list[Job]
    journal: NoLedger
    tokens: Tokens
    width: Width
    watch: Watch
    clock: Callable[[], float] = time.monotonic  # seconds
    queue: Any = field(default_factory=SimpleQueue)
    start: Callable[..., None] = lambda work, *given: threading.Thread(
        target=work, args=given, daemon=True
    ).start()
    ended: list[Result] = field(default_factory=list)
    reason: str = ""  # why nothing further is begun

    def __post_init__(self) -> None:
        self._began = self.clock()
        self._to_begin = [job for job in self.jobs if job.work.task.plan.action == ADOPT]
        for job in self._to_begin:
            job.change = self.journal.beginning(job.work.task)
        self._pending = deque(job for job in self.jobs if job.work.task.plan.action != ADOPT)
        self._in_flight: list[Job] = []
        self._to_record: list[Job] = []
        self._waiting: list[Job] = []
        self._deadline = math.inf
        self._away_since = math.inf

    def run(self) -> None:
        """Do all jobs. An error is a reason to stop: what is in flight still gets its outcome."""
        while self._is_going():
            try:
                self._judge()
                self._end_waiting()
                self._choose()
                self._write()
                self._take()
            except Exception as error:  # noqa: BLE001 (a reason to stop)
                self._stop(unexpected(error))
        for job in self._in_flight:
            self._leave(job)
        kind = LedgerAway if self._away_since < math.inf else LedgerError
        self._give_up(kind("it did not answer in time"))

    def _is_going(self) -> bool:
        left = self._pending, self._to_begin, self._in_flight, self._to_record, self._waiting
        return any(left) and self.clock() < self._deadline

    def _take(self) -> None:
        """Take the answers that have come; wait for one until something else is due."""
        seconds = self._seconds()
        with suppress(Empty):
            while True:
                job, answer = self.queue.get(timeout=seconds)
                seconds = 0.0
                if job is None:
                    self.tokens.take(answer, self.clock())
                else:
                    self._answer(job, answer)
                    self._in_flight.remove(job)  # not before: an error would lose it

    def _seconds(self) -> float:
        """Return for how long only an answer can change anything."""
        now = self.clock()
        if self._to_begin or self._to_record:
            return _PAUSE if self._away_since < math.inf else 0.0
        due = [job.due for job in self._waiting]
        due += [now] if self._pending and self._has_room() else []
        if not (due or self._in_flight):
            return 0.0
        at = max(min(due, default=math.inf), self.tokens.due, now + self.width.seconds_left(now))
        return max(0.0, min(_POLL, at - now))

    def _answer(self, job: Job, answer: Answered) -> None:
        """Take the answer to an attempt: a further one is made, or the job ends."""
        job.cell = None
        job.attempts.append(answer.attempt)
        job.result = self._timed(job, answer.result)
        self._release(job, *feedback_of(answer.attempt))
        is_refused = answer.attempt.event is Event.UNAUTHORIZED
        if is_refused:
            self.tokens.discard(answer.token)
        if answer.wait is not None:
            job.due = self.clock() + answer.wait
        else:
            self._end(job)
            self._stop(_REFUSED if is_refused else "")
        self._record(job)  # nobody waits under a lease

    def _release(self, job: Job, feedback: str, retry_after: float | None = None) -> None:
        """Give back the place of a job in the width."""
        if job.dispatch:
            self.width.adapt(job.dispatch, feedback, self.clock(), retry_after)
        job.lacked_room = feedback == OVERLOADED

    def _end(self, job: Job) -> None:
        """End a job: no further attempt is made."""
        result = job.result
        is_undecided = job.lacked_room or result.outcome in (UNKNOWN, NOT_SENT)
        if job.dispatch and result.failed and is_undecided:
            lost_to_overload = job.lacked_room and result.outcome == UNKNOWN
            self.width.note_failed_item(job.dispatch, lost_to_overload)
        self.ended.append(result)

    def _timed(self, job: Job, result: Result) -> Result:
        """Return the result of a job with its times, in seconds."""
        if job.started is None:
            return result
        seconds = round(self.clock() - job.started, 3)
        return result.but(begun_after=round(job.started - self._began, 3), seconds=seconds)

    def _record(self, job: Job) -> None:
        """Let the outcome of a job that has begun be written; then it waits, or is done."""
        if job.change is not None:
            job.change = self.journal.outcome(job.change, job.work.task, job.result)
            self._to_record.append(job)
        elif job.due < math.inf:
            self._waiting.append(job)

    def _judge(self) -> None:
        """Look for a reason to stop."""
        self._stop(self.tokens.error)
        self._stop(self.width.stop_reason)
        try:
            self._stop(self.watch(self.ended, len(self._in_flight), bool(self.reason)))
        except Exception as error:  # noqa: BLE001 (the turn goes on)
            self._stop(unexpected(error))

    def _end_waiting(self) -> None:
        """End what waits if there is a reason to stop; what is in flight has its grace."""
        if not self.reason:
            return
        for job in self._waiting:
            job.result = job.work.not_again(job.result, self.reason)
            self.ended.append(job.result)
        self._waiting = []
        self._pending.clear()

    def _stop(self, reason: str) -> None:
        """Begin nothing further, for a reason, unless it is ''."""
        if reason:
            self.reason = self.reason or reason
            self._deadline = min(self._deadline, self.clock() + GRACE)

    def _has_room(self) -> bool:
        """Return whether a job may begin; one that waits after overload keeps its place."""
        waiting = sum(job.lacked_room for job in [*self._waiting, *self._to_record])
        return waiting + self.width.in_flight < self.width.room

    def _choose(self) -> None:
        """Choose the jobs that make an attempt once their beginning is written."""
        now = self.clock()
        if self.reason or self._away_since < math.inf:
            return
        if not (self._pending or self._waiting):
            return
        if not self.tokens.is_ready(now, self._fetch):
            return
        while self.width.seconds_left(now) <= 0:
            due = [job for job in self._waiting if job.due <= now]
            if due:
                job = due[0]
                self._waiting.remove(job)
            elif self._pending and self._has_room():
                job = self._pending.popleft()
            else:
                break
            job.due = math.inf
            job.dispatch, job.token = self.width.dispatch(), self.tokens.value
            job.change = self.journal.beginning(job.work.task)
            self._to_begin.append(job)

    def _write(self) -> None:
        """Write outcomes and beginnings in one transaction, then start what has begun."""
        jobs = [*self._to_record, *self._to_begin][: self.journal.most]
        if not jobs:
            return
        try:
            effects = self._write_once(jobs)
        except LedgerAway as error:
            self._away_since = min(self._away_since, self.clock())
            if self.clock() - self._away_since > self.journal.patience:
                self._give_up(error)
            return
        except LedgerError as error:
            self._give_up(error)
            return
        self._away_since = math.inf
        self._judge()  # the write may have taken seconds
        for job, effect in zip(jobs, effects):
            self._written(job, effect)

    def _write_once(self, jobs: list[Job]) -> list[Lease | None]:
        """Write the changes of jobs, once; raise LedgerError, also for an error of ours."""
        try:
            return self.journal.write([job.change for job in jobs])
        except LedgerError:
            raise
        except Exception as error:
            raise LedgerError(unexpected(error)) from error

    def _written(self, job: Job, effect: Lease | None) -> None:
        """Go on with a job whose change was written, or had no effect."""
        if job in self._to_record:
            self._to_record.remove(job)
            self._recorded(job, effect)
            return
        self._to_begin.remove(job)
        if effect is None:
            job.change = None
            self._release(job, NEUTRAL)
            self._overtaken(job)
        elif job.work.task.plan.action == ADOPT:
            job.result = job.work.adopted()
            self._recorded(job, effect)
            self.ended.append(job.result)
        else:
            job.lease = effect
            self._send(job)

    def _recorded(self, job: Job, effect: Lease | None) -> None:
        """Go on with a job whose outcome is written: it is done, or waits."""
        change, task = job.change, job.work.task
        job.change = None
        if job.due < math.inf:
            job.work.task = self.journal.left(change, task)
            self._waiting.append(job)
        else:
            job.result = self.journal.finished(change, task, job.result, effect is not None)

    def _overtaken(self, job: Job) -> None:
        """Leave a job to the next plan, unless an attempt may have had an effect."""
        job.is_overtaken = job.result.outcome != UNKNOWN
        if not job.is_overtaken:
            job.result = job.work.not_again(job.result, "another task began to work on it")
            self._end(job)

    def _send(self, job: Job) -> None:
        """Start the attempt of a job that has begun."""
        cell, now = Cell(), self.clock()
        if not self.reason:
            self._start(self._attempt, job, job.token, cell, tuple(job.attempts))
        if self.reason:
            self._release(job, NEUTRAL)
            job.result = job.work.not_again(job.result, self.reason)
            self._record(job)
            return
        job.cell = cell
        job.started = now if job.started is None else job.started
        self._in_flight.append(job)

    def _start(self, *given: Any) -> None:
        """Start a thread; one that cannot be started is a reason to stop."""
        try:
            self.start(*given)
        except (RuntimeError, MemoryError) as error:
            self._stop(f"no thread could be started: {error}")

    def _attempt(
        self, job: Job, token: str, cell: Cell, earlier: tuple[AttemptResult[Any], ...]
    ) -> None:
        """Make one attempt, in a thread of its own."""
        self.queue.put((job, job.work.attempt(token, job.lease, cell, earlier)))

    def _fetch(self) -> None:
        """Start to fetch a token, in a thread of its own."""
        self._start(lambda: self.queue.put((None, self.tokens.fetch())))

    def _give_up(self, error: LedgerError) -> None:
        """Begin nothing further after a write that failed; try each outcome alone, once.

        Nothing was sent for what was to begin.
        """
        if self._to_begin or self._to_record:
            self._stop(f"the ledger cannot be used ({error.problem})")
        self._away_since = math.inf
        for job in self._to_begin:
            self._release(job, NEUTRAL)
            job.change = None
            known = job.work.not_again(job.result, self.reason)
            job.result = self.journal.not_begun(job.work.task, known, error)
            self.ended.append(job.result)
        self._to_begin = []
        for job in self._to_record:
            try:
                if isinstance(error, LedgerAway):
                    raise error
                (effect,) = self._write_once([job])
                self._recorded(job, effect)
            except LedgerError as problem:
                error, task = problem, job.work.task
                job.result = self.journal.not_recorded(job.change, task, job.result, error)
        self._to_record = []

    def _leave(self, job: Job) -> None:
        """End a job whose attempt has not ended: nothing further is sent for it."""
        if job.cell:
            outcome = job.cell.abandon()
            result = job.work.interrupted(job.attempts, outcome, self.reason)
            job.result = self.journal.left_behind(job.change, job.work.task, result)
            if outcome == UNKNOWN:
                return
        self._record(job)
