# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Does for a list of assets what a single task does for one, several at once: plans all, sends, then reports."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Callable, Sequence

from .._errors import NOT_SENT, UNKNOWN, InvalidInput, RequestFailed, ServicesError
from .._resources.flow import Recorded
from .._secrets import Secrets
from .._task.shutdown import GRACE
from .._task.specs import ModuleSpec
from .._task.task import Done, Runtime, Task, interrupted, perform, presentable
from . import items
from .pace import Pace
from .paced import PacedTransport, Slots
from .result import RESULTS_SAY, Report
from .scheduler import Ended, Limits, Scheduler


class NoLedger:
    """The interface of a ledger for a list of tasks, when there is no ledger."""

    warnings: Sequence[str] = ()
    lost = ""  # why nothing can be recorded any more

    def look_up(self, tasks: list[Task]) -> list[Recorded | ServicesError | None]:
        """Return for each task what is recorded, or why nothing may be sent; raise LedgerError."""
        return [None] * len(tasks)

    def record(self, task: Task, execute: Callable[[Recorded | None], dict]) -> dict | None:
        """Run one task under the ledger, from any thread; return its result, None while another run holds the asset."""
        return execute(None)

    def give_up(self, results: list[tuple[Task, dict]]) -> None:
        """Record that these tasks, which did not end in time and can no longer send, sent nothing."""

    def not_listed(self, tasks: list[Task]) -> list[str] | None:
        """Return the names that are recorded but not in the list, None without a ledger."""
        return None

    def close(self) -> None:
        """Flush pending writes."""


@dataclass(frozen=True)
class Place:
    """What a list of tasks needs from the place where it runs, in addition to what each task needs."""

    runtime: Runtime
    diff_mode: bool = False
    verbosity: int = 0
    no_log: bool = False
    watch: Callable[[], str] = str  # why to stop now, empty to go on
    say: Callable[[str], None] | None = None  # displays a line of progress
    next_step: Callable[[], str] = lambda: RESULTS_SAY  # returns where to find what is known of each item


def perform_all(plural: ModuleSpec, params: dict, place: Place, secrets: Secrets, ledger: Any = None) -> Done:
    """Run the tasks of a list and return their combined result; raise ServicesError before anything is sent."""
    many = _Many(plural, params, place, secrets, ledger or NoLedger())
    many.plan()
    if many.to_send:
        many.send()
    not_listed = many.ledger.not_listed(many.tasks) if place.runtime.check_mode else None
    done = many.report.done(not_listed, many.ledger.warnings, place.next_step())
    if place.no_log:  # in what looks like a loop, ansible-core 2.19 hides only items marked themselves
        for item in done.result["results"]:
            item["_ansible_no_log"] = True
    return done


class _Many:
    def __init__(self, plural: ModuleSpec, params: dict, place: Place, secrets: Secrets, ledger: Any) -> None:
        params = items.with_defaults(plural, params)
        self._plural, self._params, self._place, self._secrets = plural, params, place, secrets
        self._slots = Slots()
        self._transports: list[Any] = []
        self.ledger = ledger
        self.tasks = items.prepare_all(plural, params)
        self.to_send: list[int] = []
        self.report = Report(plural, items.labels(self.tasks), params["asset_fields"])

    def plan(self) -> None:
        """Decide what to send; in check mode, and for everything else, this gives the result."""
        faults, planned = items.Faults(self._plural), {}
        recorded = self.ledger.look_up(self.tasks)
        for number, found in enumerate(recorded):
            try:
                planned[number] = self._planned(self.tasks[number], found)
            except InvalidInput as error:
                faults.add(number, self._params[self._plural.option][number], error.msg)
        faults.raise_if_any()
        self.to_send = [number for number, result in planned.items() if result is None]
        known = {number: result for number, result in planned.items() if result}
        for number, result in zip(known, self._secrets.scrub({"results": list(known.values())})["results"]):
            self.report.add(number, result)
        doubtful = sum(isinstance(found, ServicesError) for found in recorded)
        if doubtful and self._params["in_doubt"] == "stop":
            self._begin_nothing(f"the ledger has {doubtful:,} of the list in doubt (in_doubt: stop)")

    def _begin_nothing(self, reason: str) -> None:
        for number in (*self.to_send, *self.report.changed()):
            self.report.skip(number, reason)
        self.to_send = []

    def _planned(self, task: Task, found: Recorded | ServicesError | None) -> dict | None:
        """Return the result, not yet scrubbed, of a task that sends nothing; None for one that has to be sent."""
        check_mode, word = self._place.runtime.check_mode, "in_doubt"
        if isinstance(found, ServicesError):
            skipped = dict(failed=False, warnings=[found.msg]) if self._params["in_doubt"] == "skip" else {}
            result = self.report.shortened({**found.result(), **skipped})
        else:
            plan = task.plan(found)
            if not (plan.settled or check_mode):
                return None
            done = perform(task, found, self._place.runtime, self._secrets, plan)
            if not self._place.diff_mode:
                done.result.pop("diff", None)
            result, word = (
                self.report.shortened(dict(done.result, warnings=done.warnings)),
                plan.word(task.resource.operation),
            )
        return dict(result, plan=word) if check_mode else result

    def _performed(self, task: Task, recorded: Recorded | None, runtime: Runtime) -> dict:
        done = perform(task, recorded, runtime, self._secrets)
        result = presentable(done.result, self._secrets, self._place.diff_mode, self._place.verbosity)
        return dict(result, warnings=[self._secrets.scrub_message(warning) for warning in done.warnings])

    def send(self) -> None:
        """Send what has to be sent, and report how each item ended or why it was not begun."""
        params, settings = self._params, self.tasks[0].settings
        self._connect(settings.connection).close()  # reports an unusable TLS file once, not for each item
        pace = Pace(params["concurrency"], settings.retry_max_delay)
        limits = Limits(params["max_unknown"], params["max_failures"])
        count, failures = len(self.to_send), self.report.failed
        scheduler = Scheduler(count, lambda: partial(self._do, scheduler), pace, limits, failures)
        progress = self.report.progress(scheduler, self._place.say or (lambda line: None), time.monotonic)
        scheduler.run(params["concurrency"], GRACE, self._place.watch, progress)
        with scheduler.lock:  # a thread that has not sent by now gets no slot, so it never sends
            ended, attempts = dict(scheduler.ended), {index: slot.attempts for index, slot in scheduler.begun.items()}
        self._report_each(ended, attempts, scheduler.reason)
        if not attempts:
            for transport in self._transports:
                transport.close()
            self.ledger.close()

    def _report_each(self, ended: dict[int, Ended], attempts: dict[int, int], reason: str) -> None:
        """Report how each item ended; `attempts`: how many were made for each that did not end in time."""
        late = {index: self._abandoned(self.tasks[self.to_send[index]], attempts[index], reason) for index in attempts}
        not_sent = [index for index, result in late.items() if result["outcome"] == NOT_SENT]
        if not_sent:
            self.ledger.give_up([(self.tasks[self.to_send[index]], late[index]) for index in not_sent])
        for index, number in enumerate(self.to_send):
            if index in ended and "skipped" not in ended[index].result:
                self.report.add(number, ended[index].result)
            elif index in late:
                self.report.add(number, self.report.shortened(late[index]))
            else:
                self.report.skip(number, reason)

    def _do(self, scheduler: Scheduler, index: int, slot) -> Ended | None:
        self._slots.slot = slot
        task = self.tasks[self.to_send[index]]
        runtime = replace(self._place.runtime, connect=self._paced, sleep=self._slots.pause)
        started = time.monotonic()
        result = self.ledger.record(task, lambda recorded: self._performed(task, recorded, runtime))
        if self.ledger.lost:
            scheduler.stop(self.ledger.lost)
        if result:
            result = dict(result, seconds=round(time.monotonic() - started, 3))
        if result and slot.was_refused and not slot.attempts:
            result = dict(changed=False, skipped=True, outcome=NOT_SENT)
        return result and Ended(result["outcome"], result.get("failed", False), self.report.shortened(result))

    def _paced(self, settings) -> PacedTransport:
        if not hasattr(self._slots, "transport"):
            transport = self._connect(settings)
            self._transports.append(transport)
            self._slots.transport = PacedTransport(transport, self._slots)
        return self._slots.transport

    def _connect(self, settings):
        return self._place.runtime.connect(settings)

    def _abandoned(self, task: Task, attempts: int, reason: str) -> dict:
        """Return the result of an item that did not end in time."""
        error: RequestFailed = interrupted(task, UNKNOWN if attempts else NOT_SENT, ServicesError(reason))
        return error.result()
