# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The way of every task from its options to its result: `carry_out`.

A task is a list of one: a list adds threads, limits and a gate (`_list/threads`), the controller
adds the ledger (`_ledger/recording`).
"""

from __future__ import annotations

import gc
import os
import signal
from contextlib import contextmanager
from functools import partial
from types import FrameType
from typing import Any, Callable, Iterator

from .._call.client import MARGIN, NO_END, Client, Context, Lease
from .._call.policy import Operation, effect_of
from .._errors import (
    NOT_SENT,
    REJECTED,
    InvalidInput,
    Message,
    Overtaken,
    ServicesError,
)
from .._resources.planning import Task, apply_plan
from .._result import Result
from .options import settings_from
from .validation import Options

GRACE = 10.0  # seconds for requests in flight after a signal
_MOST_PLANS = 100  # of a task that others overtake each time
_PAUSE = 0.1  # seconds between them
# The last one is of the keyword `timeout`.
_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGALRM)
_UNCHECKED = (
    "validate_certs is false: anyone between here and the service can"
    " read the token and change what is sent."
)


class Unrecorded:
    """What a ledger does for tasks, without one; every method raises ServicesError."""

    def plan_all(self, tasks: list[Task], for_approval: bool = False) -> list[Task]:
        """Wait for other tasks, and return these with their plans, or the errors that forbid them."""
        return [task.planned() for task in tasks]

    def gone_back(self, tasks: list[Task]) -> str:
        """Return why none of these planned tasks may be sent, '' if they may."""
        return ""

    def adopt(self, task: Task, result: Result) -> Result:
        """Record an asset that exists, and return the result; raise Overtaken if another task did."""
        return result

    def begin(self, task: Task, seconds: float) -> Lease:
        """Record the intent with a lease of some seconds; raise Overtaken if another task did."""
        return NO_END

    def finish(self, intent: Any, result: Result) -> Result:
        """Record how a task ended and return its result, with the next step if it is in doubt.

        `intent`: what `begin` has returned.
        """
        return result

    def with_next_step(self, result: Result, task: Task, state: str) -> Result:
        """Return the result, with how to settle a creation whose entry is now in this state."""
        return result

    def not_listed(self, tasks: list[Task]) -> list[str] | None:
        """Return the names that are recorded but not in the list, None without a ledger."""
        return None


class Sender:
    """Sends the request of one planned task."""

    def __init__(self, task: Task, context: Context) -> None:
        self.task = task
        self._context = context
        self._client = Client(task.operation, task.asset, task.settings, context)

    def ready(self) -> bool:
        """Prepare all that may take time; return False if the request cannot be sent."""
        with self._context.interruptible():
            return self._context.check_mode or self._client.ready()

    def send(self, lease: Lease = NO_END) -> Result:
        """Apply the plan and return the result as users see it, also of an error or interrupt."""
        return result_of(partial(apply_plan, self.task, self._client, lease), self._client)


def result_of(act: Callable[[], Result], client: Client) -> Result:
    """Return the result of an act as users see it, also of an error or interrupt.

    `act`: may send one request by the client.
    """
    context = client.context
    result: Result | None = None
    try:
        with context.interruptible():
            result = act()
    except ServicesError as error:
        result = Result.of_error(error)
    except (Interrupted, MemoryError) as error:
        why = str(error) or type(error).__name__
        result = result or interrupted(client.operation, client.asset, client.outcome, why)
    unchecked = [] if client.settings.connection.validate_certs else [_UNCHECKED]
    said = map(Message, (*unchecked, *client.warnings))
    result = result.but(warnings=(*said, *result.warnings))
    if client.shown:
        result = result.but(request=client.shown, request_attempts=client.attempts)
    if result.outcome == REJECTED:
        result = result.but(body=client.shown["body"])
    return context.secrets.scrub(result)


def carry_out(
    options: Options,
    context: Context,
    open_ledger: Callable[[str], Unrecorded] = lambda _service: Unrecorded(),
) -> Result:
    """Return the result of the task that options ask for; raise ServicesError before it is sent.

    `open_ledger`: gets the URL of the service. A list is carried out in the same way
    (`carry_out_list`).
    """
    settings = settings_from(options.valid(), context.check_mode)
    task = options.spec.sent.task(options.params, settings)
    ledger = open_ledger(settings.base_url)
    overtaken = Overtaken("")
    for _plan in range(_MOST_PLANS):
        (planned,) = ledger.plan_all([task], for_approval=context.check_mode)
        refused = ledger.gone_back([planned])
        if refused and not context.check_mode:
            raise InvalidInput("ledger", refused)
        try:
            result = perform(planned, context, ledger)
        except Overtaken as error:
            overtaken = error
            context.wait(_PAUSE)
        else:
            return result.but(failed=True, msg=Message(refused)) if refused else result
    raise overtaken


def perform(task: Task, context: Context, ledger: Unrecorded) -> Result:
    """Do a planned task and return its result; raise ServicesError before it is sent."""
    plan = task.required_plan()
    sending = Sender(task, context)
    if plan.settled or plan.adopted or context.check_mode:
        result = sending.send()
        if plan.adopted and not (context.check_mode or result.failed):
            return ledger.adopt(task, result)
        return result
    if not sending.ready():  # the token, before the intent
        return sending.send()
    intent = ledger.begin(task, task.settings.timeout + MARGIN)
    return ledger.finish(intent, sending.send(intent))


def interrupted(operation: Operation, asset: str, outcome: str, why: str) -> Result:
    """Return the result of a task that was interrupted from outside."""
    text = f"the task was interrupted ({why}). {effect_of(operation, outcome)}"
    return Result.of_error(ServicesError(Message(text, asset), outcome))


class Interrupted(BaseException):
    """A signal, or the keyword `timeout`, interrupted the task."""

    def failure(self) -> ServicesError:
        """Return the failure of a task that had not sent anything."""
        msg = f"The task was interrupted ({self}) before it sent anything. Run it again."
        return ServicesError(msg, NOT_SENT)


class Signals:
    """The signals that came within `deferred`."""

    def __init__(self) -> None:
        self.caught: list[int] = []  # those that terminate a process
        self.why = ""  # why the task has to end, '' if it does not have to
        self._raises = False

    def terminate(self) -> None:
        """Terminate the process by the signal that came to do so."""
        os.kill(os.getpid(), self.caught[0])

    def note(self, number: int, _frame: FrameType | None) -> None:
        """Handle a signal: remember it, and raise within `raised`."""
        why = "the keyword timeout expired"
        if number != signal.SIGALRM:
            self.caught.append(number)
            why = f"signal {signal.Signals(number).name}"
        self.why = self.why or why
        self._raise()

    def _raise(self) -> None:
        if self._raises and self.why:
            self._raises = False
            raise Interrupted(self.why)

    @contextmanager
    def raised(self) -> Iterator[None]:
        """Raise Interrupted within the context, once; also for an earlier signal.

        Everywhere else a task goes on: a write to the ledger that is cut off could not be reported
        truthfully. No garbage is collected meanwhile: Python drops what a handler raises in a
        finalizer, and ansible-core has such.
        """
        is_collecting = gc.isenabled()
        try:
            gc.disable()
            self._raises = True
            self._raise()
            yield
        finally:
            self._raises = False
            if is_collecting:
                gc.enable()


@contextmanager
def deferred() -> Iterator[Signals]:
    """Defer the signals that terminate a process or a task."""
    signals = Signals()
    # Under nohup, SIGHUP has no effect.
    heeded = [number for number in _SIGNALS if signal.getsignal(number) is not signal.SIG_IGN]
    before = {number: signal.signal(number, signals.note) for number in heeded}
    try:
        yield signals
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
