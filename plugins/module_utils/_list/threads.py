# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a list adds to the way of a task: threads, which take items from the gate until it closes."""

from __future__ import annotations

import math
import os
import resource
import threading
import time
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Callable, Mapping

from .._call.client import Context
from .._call.policy import AGAIN, AttemptResult, retry_after
from .._errors import ACCEPTED, NOT_SENT, REJECTED, UNKNOWN, InvalidInput, ServicesError
from .._http.transport import require_usable
from .._resources.planning import Task
from .._result import Result
from .._task.options import settings_from
from .._task.specs import ModuleSpec
from .._task.task import GRACE, Unrecorded, interrupted, perform
from .._task.validation import Options
from .._values import Asset, Params
from .gate import Gate, Item
from .items import prepare_all, require_approved, require_plans
from .result import ListResult
from .width import NEUTRAL, OK, OVERLOADED, Width

# Seconds between checks by the main thread, the only one that receives signals.
_POLL_INTERVAL = 0.5
_SPARE_FILES = 12  # descriptors, such as those of a ledger


def send_list(
    options: Options, context: Context, open_ledger: Callable[[str], Unrecorded]
) -> Result:
    """Return the result of a list; raise ServicesError before anything is sent."""
    result = carry_out_list(options, context, open_ledger)
    return result.returned(result.done())


def carry_out_list(
    options: Options,
    context: Context,
    open_ledger: Callable[[str], Unrecorded],
    approved: Mapping[str, Result] | None = None,
) -> ListResult:
    """Return the results of a list; `approved`: the rows with the bodies that may be sent, by name or
    id, None for any.
    """
    settings = settings_from(options.valid(), context.check_mode)
    tasks = prepare_all(options, settings)
    ledger = open_ledger(settings.base_url)
    planned = ledger.plan_all(tasks, for_approval=context.check_mode)
    require_plans(options.spec, planned)
    refused = ledger.gone_back(planned)
    if refused and not context.check_mode:
        raise InvalidInput("ledger", refused)
    if approved is not None:
        require_approved(planned, approved)
    done = ListTask(options.spec, options.params, context, ledger, planned).carry_out()
    done.failure = refused
    return done


@dataclass
class ListTask:
    """Carries out the planned tasks of a list, those with a request in threads."""

    spec: ModuleSpec
    params: Params
    context: Context
    ledger: Unrecorded
    tasks: list[Task]

    def carry_out(self) -> ListResult:
        """Do all of them."""
        context, tasks = self.context, self.tasks
        self._to_send = {
            task.key: task
            for task in tasks
            if task.plan and not task.plan.settled and not context.check_mode
        }
        results = {
            task.key: self._result_of(task, context)
            for task in tasks
            if task.key not in self._to_send
        }
        # One that differs fails alone.
        self._failed = sum(result.failed and not result.differs for result in results.values())
        most = most_connections(min(self.params["concurrency"], len(self._to_send)))
        width = Width(most, self.params["retry_max_delay"])
        self._gate = gate = Gate(self._to_send, width, self._limit)
        doubtful = sum(task.error is not None for task in tasks)
        if doubtful and self.params["in_doubt"] == "stop":
            gate.stop(f"{doubtful:,} of the list in doubt ({self.spec.named('in_doubt')}: stop)")
        elif self._to_send:
            # For all items at once.
            require_usable(tasks[0].settings.connection, tasks[0].settings.base_url)
            self._began = time.monotonic()
            run_threads(gate, self._do, most, self._watch)
            with gate.lock:
                results.update(gate.ended)
                results.update((name, self._late(item)) for name, item in gate.begun.items())
        for name, one in results.items() if context.check_mode and gate.reason else ():
            results[name] = one.but(skipped=one.changed, changed=False)
        return ListResult(
            self.spec,
            self.params,
            {task.key: results.get(task.key, Result(skipped=True)) for task in tasks},
            context.no_log,
            gate.reason,
            self.ledger.not_listed(tasks) if context.check_mode else None,
            bool(gate.begun),
        )

    def _result_of(self, task: Task, context: Context) -> Result:
        """Return the result of a task, also of one that fails."""
        try:
            result = perform(task, context, self.ledger)
        except ServicesError as error:
            result = context.secrets.scrub(Result.of_error(error))
            if isinstance(error, InvalidInput):  # the same would be true of all others
                self._gate.stop(f"the {error.option} cannot be used ({error.problem})")
        if task.error:
            skips = self.params["in_doubt"] == "skip"
            result = result.but(
                plan=result.plan or "in_doubt" if context.check_mode else "",
                failed=not skips,
                warnings=(result.msg,) if skips else (),
            )
        return result.but(last_row=task.last_row) if context.check_mode else result

    def _limit(self, unknown: int, failures: int) -> str:
        """Return the limit that so many items have reached, '' if none."""
        reached = (
            ("max_unknown", unknown, "in doubt"),
            ("max_failures", self._failed + failures, "failed"),
        )
        for option, count, what in reached:
            most = self.params[option]
            if 0 < most <= count:
                return f"the list stopped after {most} {what} ({self.spec.named(option)}: {most})"
        return ""

    def _watch(self, is_ending: bool) -> str:
        """Show the progress of the list, and return why it has to end now, '' to continue."""
        gate, total = self._gate, len(self.tasks)
        with gate.lock:
            ended = list(gate.ended.values())
        settled = total - len(self._to_send)
        return self.context.watch(total, settled, ended, gate.in_flight, is_ending)

    def _late(self, item: Item) -> Result:
        """Return the result of an item that did not end: its request is in doubt."""
        task = self._to_send[item.name]
        outcome = UNKNOWN if item.attempts else NOT_SENT
        result = interrupted(task.operation, task.asset, outcome, self._gate.reason)
        return self.ledger.with_next_step(result, task, outcome)

    def _do(self, item: Item) -> Result:
        """Do one item in a thread, as a single task is done but for the gate."""
        gate = self._gate
        context = replace(
            self.context,
            wait=gate.pause,
            enter=partial(gate.enter, item),
            leave=lambda result: gate.leave(item, *feedback_of(result)),
        )
        started = time.monotonic()
        try:
            result = self._result_of(self._to_send[item.name], context)
        # threading would write it to stderr, whose lock Ansible's main thread may hold for ever.
        except BaseException as error:  # noqa: BLE001
            gate.stop(f"an unexpected {type(error).__name__} in this collection")
            return self._late(item)
        if result.status == 401:  # the token cannot be renewed, or was refused again
            gate.stop("the service does not accept the access token (status 401)")
        if item.was_refused and not item.attempts:
            return Result(skipped=True)  # reported as not started
        return result.but(
            begun_after=round(started - self._began, 3),
            seconds=round(time.monotonic() - started, 3),
        )


def run_threads(
    gate: Gate,
    do: Callable[[Item], Result],
    most: int,
    watch: Callable[[bool], str],
    threads: Any = threading,
) -> None:
    """Do items in at most `most` threads, until all have ended or the gate is closed.

    `watch`: called at every check, with whether only requests in flight are left; returns why to
    stop now, '' to continue. Requests in flight then get GRACE seconds; the items of later ones stay
    in the gate's `begun`. `threads`: the module threading, or a fake.
    """

    def work() -> None:
        while item := gate.begin():
            gate.end(item, do(item))

    gate.stop(watch(False))  # a timeout may have expired while the ledger was opened
    for number in range(most):
        try:
            threads.Thread(target=work, daemon=True).start()
        except RuntimeError:
            gate.stop("" if number else "no thread could be started")
            break
    deadline = math.inf
    try:
        while gate.clock() < deadline and not gate.wait(_POLL_INTERVAL):
            why = watch(deadline < math.inf)
            if why and deadline == math.inf:
                gate.stop(why)
                deadline = gate.clock() + GRACE
                watch(True)
    except BaseException:
        gate.stop("the task ended unexpectedly")  # threads are left
        raise


def most_connections(wanted: int) -> int:
    """Return how many of the wanted connections there are file descriptors for."""
    limit = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    free = limit - len(os.listdir("/dev/fd")) - _SPARE_FILES
    return wanted if limit == resource.RLIM_INFINITY else max(1, min(wanted, free))


def feedback_of(result: AttemptResult[Asset]) -> tuple[str, float | None]:
    """Return what an attempt shows about the capacity of the service, and its Retry-After.

    What can be tried again shows that it lacks some; a definite answer, even a refusal, that it has
    some.
    """
    event = result.event
    feedback = OK if event.effect in (ACCEPTED, REJECTED) else NEUTRAL
    if event.again("PUT") == AGAIN:
        feedback = OVERLOADED
    return feedback, retry_after(result.headers.get("Retry-After"))
