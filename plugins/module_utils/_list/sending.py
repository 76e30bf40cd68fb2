# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Carries out the tasks of a list: plans all of them, sends their requests from several threads."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from functools import partial
from typing import Mapping

from .._call.place import ListStatus
from .._call.policy import Event, meaning
from .._errors import NOT_SENT, UNKNOWN, InvalidInput, Overtaken, ServicesError
from .._fields import Asset, Params
from .._result import Result
from .._task.signals import GRACE
from .._task.specs import ModuleSpec
from .._task.task import Context, ListRecorder, Planned, Task, carry_out, interrupted, perform
from .congestion import CongestionControl
from .gate import Gate, Item, Limits
from .item_transport import Connections, ItemPlace, most_connections
from .items import Faults, prepare_all, require_approved, with_defaults
from .result import ListResult
from .scheduler import Scheduler


def send_all(spec: ModuleSpec, params: Params, context: Context) -> Result:
    """Do a list without a ledger and return its result.

    Raises ServicesError before anything is sent.
    """
    params = with_defaults(spec, params)
    tasks = prepare_all(spec, params, context.check_mode)
    collected = ListTask(spec, params, context).carry_out(tasks)
    return collected.returned(collected.done(), params["results"])


@dataclass(frozen=True)
class ListTask:
    """A task with a list of tasks, each for one asset."""

    spec: ModuleSpec
    params: Params  # with `defaults` merged into each item
    context: Context
    ledger: ListRecorder | None = None

    def carry_out(
        self, tasks: list[Task], approved: Mapping[str, Asset] | None = None
    ) -> ListResult:
        """Do prepared tasks and return their results; raise ServicesError before anything is sent.

        `approved`: the bodies that may be sent, by name or id, None for any. The ledger is closed,
        unless threads are left that may still use it.
        """
        ledger = self.ledger
        sending = None
        try:
            planned = self._plan_all(tasks)
            if approved is not None:
                require_approved(planned, approved, self.context.secrets, ledger)
            result = self._empty_result(planned)
            to_send = self._add_settled(planned, result)
            if to_send:
                sending = self._start([planned[number] for number in to_send], result.failed)
                ended = sending.run_threads(result.total, result.added)
                for index, number in enumerate(to_send):
                    if index in ended:
                        result.add(number, ended[index])
                    else:
                        result.skip(number, sending.gate.reason)
            if ledger:
                result.warnings = ledger.warnings
            if ledger and self.context.check_mode:
                result.not_listed = ledger.not_listed([each.task for each in planned])
        finally:
            if ledger and not (sending and sending.is_in_flight):
                ledger.close()
        return result

    def _plan_all(self, tasks: list[Task]) -> list[Planned]:
        """Return the tasks with their plans; raise InvalidInput with the faults of all."""
        faults = Faults(self.spec)
        items = self.params[self.spec.option]
        planned = self.ledger.look_up(tasks) if self.ledger else [task.planned() for task in tasks]
        for number, each in enumerate(planned):
            if isinstance(each.error, InvalidInput):
                faults.add(number, items[number], each.error.msg)
        faults.raise_if_any()
        return planned

    def _empty_result(self, planned: list[Planned]) -> ListResult:
        labels = [each.task.wanted.key for each in planned]
        return ListResult(self.spec, labels, self.params["asset_fields"], self.context.no_log)

    def _add_settled(self, planned: list[Planned], result: ListResult) -> list[int]:
        """Add the results of the tasks that send nothing, in check mode of all tasks.

        Return the numbers of the others.
        """
        in_doubt = self.params["in_doubt"]
        to_send = []
        for number, each in enumerate(planned):
            if each.plan and not each.plan.settled and not self.context.check_mode:
                to_send.append(number)
            else:
                result.add(number, _without_request(each, in_doubt, self.context))
        doubtful = sum(each.error is not None for each in planned)
        if not doubtful or in_doubt != "stop":
            return to_send
        are = "is" if doubtful == 1 else "are"
        option = self.spec.named("in_doubt")
        reason = f"{doubtful:,} of the list {are} in doubt ({option}: stop)"
        for number in (*to_send, *result.changed()):
            result.skip(number, reason)
        return []

    def _start(self, planned: list[Planned], failed: int) -> _Sending:
        """Return what sends the requests of some tasks; `failed`: how many others have failed."""
        params = self.params
        limits = Limits(params["max_unknown"], params["max_failures"], failed, self.spec.named)
        return _Sending(planned, params["concurrency"], limits, self.context, self.ledger)


def _without_request(planned: Planned, in_doubt: str, context: Context) -> Result:
    """Return the result of a task that sends nothing; `in_doubt`: the option."""
    if planned.error:
        result = context.secrets.scrub(Result.of_error(planned.error))
        if in_doubt == "skip":
            result = result.but(failed=False, warnings=(result.msg,))
        return result.but(plan="in_doubt") if context.check_mode else result
    result = perform(planned, context)
    if planned.plan and context.check_mode:
        return result.but(**context.secrets.scrub_data(planned.plan.details()))
    return result


class _Sending:
    """Sends the requests of a list from several threads."""

    def __init__(
        self,
        planned: list[Planned],
        concurrency: int,
        limits: Limits,
        context: Context,
        ledger: ListRecorder | None,
    ) -> None:
        settings = planned[0].task.settings
        # Whether threads are running that may still be sending.
        self.is_in_flight = False
        self._planned = planned
        self._context = context
        self._ledger = ledger
        self._connections = Connections(context.place, settings.connection)
        self._most = most_connections(concurrency)
        control = CongestionControl(self._most, settings.retry_max_delay)
        self.gate = Gate(len(planned), control, limits)
        self._began = time.monotonic()

    def run_threads(self, total: int, settled: int) -> dict[int, Result]:
        """Send the requests and return the results by index; an item without one was not begun.

        `total`, `settled`: how many items the whole list has, and how many of them send nothing.
        """
        scheduler = Scheduler(self.gate, self._do)
        why_to_stop = self._context.place.why_to_stop
        # A timeout may have expired while the ledger was opened.
        reason = why_to_stop()
        if reason:
            self.gate.stop(reason)
        show_progress = partial(self._show_progress, scheduler, total, settled)
        self.is_in_flight = True
        try:
            scheduler.run(self._most, GRACE, why_to_stop, show_progress)
        finally:  # after an unexpected error, threads are left
            self.gate.stop("the task ended unexpectedly")
        return self._collect_results()

    def _show_progress(self, scheduler: Scheduler, total: int, settled: int) -> None:
        """Show the progress of the list."""
        if self._ledger:
            self._ledger.show_waiting()
        results = [item.result for item in list(self.gate.ended) if item.result]
        in_flight = sum(item.is_in_flight for item in list(self.gate.begun.values()))
        status = ListStatus(total, settled, results, in_flight, scheduler.is_ending)
        self._context.place.show_progress(status)

    def _collect_results(self) -> dict[int, Result]:
        """Return the results of the items that were begun; the gate is closed by now."""
        with self.gate.lock:
            ended = list(self.gate.ended)
            late = list(self.gate.begun.values())
        self.is_in_flight = bool(late)
        if not late:
            self._connections.close()
        results = {
            item.number: item.result for item in ended if item.result and not item.result.skipped
        }
        results.update({item.number: self._late_result(item) for item in late})
        # Closed, the gate never lets them send.
        unsent = [item.number for item in late if not item.attempts]
        if unsent and self._ledger:
            self._ledger.give_up([(self._planned[each].task, results[each]) for each in unsent])
        return results

    def _late_result(self, item: Item) -> Result:
        """Return the result of an item that did not end in time: its request is in doubt."""
        task = self._planned[item.number].task
        outcome = UNKNOWN if item.attempts else NOT_SENT
        result = Result.of_error(interrupted(task, outcome, ServicesError(self.gate.reason)))
        return self._ledger.with_next_step(result, task, outcome) if self._ledger else result

    def _do(self, item: Item) -> Result | None:
        """Do one item in a thread; return None while another run holds its asset."""
        started = time.monotonic()
        try:
            result = self._carry_out(item)
        except Overtaken:
            return None
        self._stop_if_useless(result)
        if item.was_refused and not item.attempts:
            return Result(skipped=True)  # reported as not started
        waits = [(began - self._began, seconds) for began, seconds in item.waits]
        return result.but(
            begun_after=round(started - self._began, 3),
            seconds=round(time.monotonic() - started, 3),
            waits=tuple((round(began, 3), round(seconds, 3)) for began, seconds in waits),
        )

    def _carry_out(self, item: Item) -> Result:
        """Carry out the task of an item as a single task does; raise Overtaken."""
        place = ItemPlace(self._context.place, self._connections, self.gate, item)
        context = replace(self._context, place=place)
        try:
            return carry_out(self._planned[item.number], context, self._ledger)
        except Overtaken:
            raise
        except ServicesError as error:
            return context.secrets.scrub(Result.of_error(error))

    def _stop_if_useless(self, result: Result) -> None:
        """Close the gate if the ledger is lost, or the token is refused for good."""
        if self._ledger and self._ledger.lost:
            self.gate.stop(self._ledger.lost)
        event, _reason = meaning(result.status or 0)
        # The token cannot be renewed, or was refused again.
        if event == Event.UNAUTHORIZED:
            status = f"status {result.status}"
            self.gate.stop(f"the service does not accept the access token ({status})")
