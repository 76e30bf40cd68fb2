# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Does for a list of assets what a single task does for one, several at once: plans all, sends,
then reports.
"""

from __future__ import annotations

import time
from dataclasses import replace
from functools import partial
from typing import Any

from .._call.policy import Event, meaning
from .._errors import NOT_SENT, UNKNOWN, InvalidInput, Overtaken, ServicesError
from .._result import Result
from .._task.signals import GRACE
from .._task.specs import ModuleSpec
from .._task.task import Context, Planned, carry_out, interrupted, perform
from .items import Faults, prepare_all, require_approved, with_defaults
from .pace import Pace
from .paced import Connections, PacedTransport, most_connections
from .result import ListResult
from .scheduler import Scheduler, Slot


def send_all(spec: ModuleSpec, params: dict, context: Context, ledger: Any = None) -> ListResult:
    """Run the tasks of a list and return what became of them; raise ServicesError before anything
    is sent.

    `ledger`: a Recording; it is closed, unless threads are left that may still use it.
    """
    is_over = True
    try:
        params = with_defaults(spec, params)
        planned = _planned(spec, params, context.check_mode, ledger)
        if context.approved is not None:
            require_approved(planned, context.approved, context.secrets, ledger)
        labels = [each.task.wanted.key for each in planned]
        result = ListResult(spec, labels, params["asset_fields"], context.no_log)
        to_send = _add_settled(spec, planned, params, context, result)
        if to_send:
            is_over = _Sending(spec, planned, to_send, params, context, ledger).send(result)
        if ledger:
            result.warnings = ledger.warnings
            result.not_listed = (
                ledger.not_listed([each.task for each in planned]) if context.check_mode else None
            )
    finally:
        if ledger and is_over:
            ledger.close()
    return result


def _planned(spec: ModuleSpec, params: dict, check_mode: bool, ledger: Any) -> list[Planned]:
    """Return the tasks of a list with their plans; raise InvalidInput with the faults of all."""
    tasks, faults = prepare_all(spec, params, check_mode), Faults(spec)
    planned = ledger.look_up(tasks) if ledger else [task.planned() for task in tasks]
    for number, each in enumerate(planned):
        if isinstance(each.error, InvalidInput):
            faults.add(number, params[spec.option][number], each.error.msg)
    faults.raise_if_any()
    return planned


def _add_settled(
    spec: ModuleSpec, planned: list[Planned], params: dict, context: Context, result: ListResult
) -> list[int]:
    """Add the results of the tasks that send nothing, in check mode of all; return the numbers of
    the others.
    """
    to_send = []
    for number, each in enumerate(planned):
        if each.error or each.plan.settled or context.check_mode:
            result.add(number, _without_request(each, params["in_doubt"], context))
        else:
            to_send.append(number)
    doubtful = sum(each.error is not None for each in planned)
    if doubtful and params["in_doubt"] == "stop":
        are = "is" if doubtful == 1 else "are"
        reason = f"{doubtful:,} of the list {are} in doubt ({spec.named('in_doubt')}: stop)"
        for number in (*to_send, *result.changed()):
            result.skip(number, reason)
        to_send = []
    return to_send


def _without_request(planned: Planned, in_doubt: str, context: Context) -> Result:
    """Return the result of a task that sends nothing; `in_doubt`: the option."""
    if planned.error:
        result = context.secrets.scrub(Result.of_error(planned.error))
        if in_doubt == "skip":
            result = replace(result, failed=False, warnings=(result.msg,))
        return replace(result, plan="in_doubt") if context.check_mode else result
    result = perform(planned, context)
    if not context.check_mode:
        return result
    return replace(result, **context.secrets.scrub_data(planned.plan.details()))


class _Sending:
    """Sends what has to be sent, from several threads."""

    def __init__(
        self,
        spec: ModuleSpec,
        planned: list[Planned],
        to_send: list[int],
        params: dict,
        context: Context,
        ledger: Any,
    ) -> None:
        self._planned, self._numbers = [planned[number] for number in to_send], to_send
        self._spec, self._params, self._context, self._ledger = spec, params, context, ledger

    def send(self, result: ListResult) -> bool:
        """Add to the result how each item ended or why it was not begun; return whether all threads
        have ended.
        """
        params, settings = self._params, self._planned[0].task.settings
        self._connections = Connections(partial(self._context.connect, settings.connection))
        most = most_connections(params["concurrency"])
        pace, self._began = Pace(most, settings.retry_max_delay), time.monotonic()
        limits = {name: params[name] for name in ("max_unknown", "max_failures")}
        self._scheduler = scheduler = Scheduler(
            len(self._numbers), self._do, pace, failures=result.failed, **limits
        )
        scheduler.named = self._spec.named
        settled = result.added

        def progress() -> None:
            ended = list(scheduler.ended.values())
            in_flight = sum(
                slot.attempts > 0 and not slot.feedback for slot in list(scheduler.begun.values())
            )
            if self._ledger:
                self._ledger.say_waiting()
            self._context.progress(result.total, settled, ended, in_flight, scheduler.is_ending)

        if (
            reason := self._context.watch()
        ):  # already, as when a timeout expires while the ledger is opened
            scheduler.stop(reason)
        scheduler.run(most, GRACE, self._context.watch, progress)
        with scheduler.lock:  # a thread that has not sent by now gets no slot, so it never sends
            ended, attempts = (
                dict(scheduler.ended),
                {index: slot.attempts for index, slot in scheduler.begun.items()},
            )
        self._add_each(result, ended, attempts, scheduler.reason)
        if not attempts:
            self._connections.close()
        return not attempts

    def _add_each(
        self, result: ListResult, ended: dict[int, Result], attempts: dict[int, int], reason: str
    ) -> None:
        """Add how each item ended; `attempts`: how many were made for each that did not end in
        time.
        """
        late = {index: self._abandoned(index, made, reason) for index, made in attempts.items()}
        not_sent = [index for index, each in late.items() if each.outcome == NOT_SENT]
        if not_sent and self._ledger:
            self._ledger.give_up([(self._planned[index].task, late[index]) for index in not_sent])
        for index, number in enumerate(self._numbers):
            if index in late:
                result.add(number, late[index])
            elif index in ended and not ended[index].skipped:
                result.add(number, ended[index])
            else:
                result.skip(number, reason)

    def _abandoned(self, index: int, attempts: int, reason: str) -> Result:
        """Return the result of an item that did not end in time."""
        task, outcome = self._planned[index].task, UNKNOWN if attempts else NOT_SENT
        result = Result.of_error(interrupted(task, outcome, ServicesError(reason)))
        return self._ledger.with_next_step(result, task, outcome) if self._ledger else result

    def _do(self, index: int, slot: Slot) -> Result | None:
        """Do one item in a thread of the scheduler; return None while another run holds its asset."""
        paced = PacedTransport(self._connections, slot)
        context = replace(self._context, connect=lambda settings: paced, sleep=slot.pause)
        started = time.monotonic()
        try:
            result = carry_out(
                self._planned[index], context, partial(perform, context=context), self._ledger
            )
        except Overtaken:
            return None
        except ServicesError as error:
            result = context.secrets.scrub(Result.of_error(error))
        if self._ledger and self._ledger.lost:
            self._scheduler.stop(self._ledger.lost)
        event, _reason = meaning(result.status or 0)
        if event == Event.UNAUTHORIZED:  # cannot be renewed, or was refused again
            self._scheduler.stop(
                f"the service does not accept the access token (status {result.status})"
            )
        if slot.was_refused and not slot.attempts:
            result = Result(skipped=True)
        return replace(
            result,
            begun_after=round(started - self._began, 3),
            seconds=round(time.monotonic() - started, 3),
            waits=tuple(
                (round(began - self._began, 3), round(seconds, 3)) for began, seconds in slot.waits
            ),
        )
