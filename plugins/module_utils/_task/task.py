# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The way of every task from its options to its result; a task for one asset is a list of one.

tasks = [operation.task(options, settings)]
planned = ledger.plan_all(tasks)  # waits for leases, then one read for all
results = what is kept, refused, or predicted by check mode
Loop(jobs).run()  # what is sent or adopted
and again for the assets that another task began meanwhile, planned anew
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import partial
from typing import Callable

from .._call.attempt import Call
from .._call.policy import effect_of
from .._call.sending import Settings
from .._call.tokens import Memory, Tokens
from .._errors import NOT_SENT, InvalidInput, Message, ServicesError
from .._http.transport import require_usable
from .._resources.planning import ADOPT, SEND, Task, compare, keep, predict
from .._result import Result
from .._secrets import Secrets
from .journal import NoLedger
from .loop import NOT_STARTED, Job, Loop, Watch
from .options import settings_from
from .signals import Interrupted
from .validation import Options
from .width import Width
from .work import Work

_MOST_ROUNDS = 100  # of plans, for an asset that others begin each time
_OVERTAKEN = (
    "its entry changed after it was planned, so nothing was sent. An approved plan is good for one"
    " effect on each asset: make a new plan (--check) and have it approved. Without an approved"
    " plan, another task began to work on it: run it again later."
)


@dataclass(frozen=True)
class Context:
    """How a task runs, and what differs between a worker and a target."""

    check_mode: bool
    secrets: Secrets  # including the fetched tokens
    no_log: bool = False
    memory: Memory = field(default_factory=Memory)  # of tokens
    # Raises ServicesError if nobody reads the result any more, so that nothing is sent.
    require_reader: Callable[[], None] = lambda: None
    # Returns why the task has to end now, '' to go on.
    why_to_stop: Callable[[], str] = lambda: ""


@dataclass
class Limits:
    """What bounds the tasks of a list; one task has no bounds but the reasons to stop."""

    most: int = 1  # requests at once
    longest_wait: float = math.inf  # of a Retry-After, in seconds
    watch: Watch = lambda _ended, _in_flight, _is_ending: ""
    rounds: int = _MOST_ROUNDS
    reason: str = ""  # why nothing is sent, '' if requests may be


@dataclass
class Results:
    """The results of tasks, by name or id; of those that were not started, why they were not."""

    results: dict[str, Result]
    ended: list[Result] = field(default_factory=list)  # of requests, in the order of their ends
    reason: str = ""


def carry_out(
    options: Options,
    context: Context,
    open_ledger: Callable[[str], NoLedger] = lambda _service: NoLedger(),
) -> Result:
    """Return the result of the task that options ask for; raise ServicesError before it is sent.

    `open_ledger`: gets the URL of the service.
    """
    settings = settings_from(options.valid(), context.check_mode)
    task = options.spec.sent.task(options.params, settings)
    ledger = open_ledger(settings.base_url)
    planned = ledger.plan_all([task], context.check_mode)
    if isinstance(planned[0].plan.error, InvalidInput):
        raise planned[0].plan.error
    refused = ledger.gone_back(planned)
    if refused and not context.check_mode:
        raise InvalidInput("ledger", refused)
    done = carry_out_all(planned, context, ledger, Limits())
    result = begun(done.results[task.key], done.reason, call_of(planned[0], context), context)
    return result.but(failed=True, msg=Message(refused)) if refused else result


def begun(result: Result, reason: str, call: Call, context: Context) -> Result:
    """Return the result of one task, which fails if it was not started."""
    if not result.skipped:
        return result
    text = f"{reason}. {effect_of(call.operation, NOT_SENT)}"
    failed = Result.of_error(ServicesError(Message(text, call.asset)))
    return context.secrets.scrub(failed.but(request=call.info, request_attempts=0))


def carry_out_all(tasks: list[Task], context: Context, ledger: NoLedger, limits: Limits) -> Results:
    """Return the results of planned tasks, in their order."""
    done = Results({task.key: NOT_STARTED for task in tasks})
    left = tasks
    for number in range(limits.rounds):
        try:
            planned = left if number == 0 else ledger.plan_all(left)
        except (ServicesError, Interrupted) as why:  # some may have been sent
            done.reason = str(why)
            return done
        done.reason = ledger.gone_back(planned) if number else limits.reason
        to_send = []
        for task in planned:
            if task.plan.action in (SEND, ADOPT) and not context.check_mode:
                to_send.append(task)
            else:
                done.results[task.key] = _result_without_request(task, context, done.reason)
        if done.reason:
            return done
        left = _send(to_send, context, ledger, limits, done)
        if not left or done.reason:
            break
    for task in left:
        error = ServicesError(Message(_OVERTAKEN, task.asset))
        done.results[task.key] = Result.of_error(error)
    return done


def _result_without_request(task: Task, context: Context, reason: str) -> Result:
    """Return the result of a task that sends nothing, also of one that fails.

    `reason`: why a run would not start what is to be sent, '' if it would.
    """
    try:
        is_predicted = context.check_mode and task.plan.action == SEND
        result = predict(task) if is_predicted else keep(task, context.check_mode)
        if is_predicted:
            result = result.but(request=call_of(task, context).info)
    except ServicesError as error:
        result = Result.of_error(error)
    result = context.secrets.scrub(result)
    if reason and task.plan.action in (SEND, ADOPT):
        result = result.but(skipped=True, changed=False)
    return result.but(last_row=task.last_row) if context.check_mode else result


def _send(
    tasks: list[Task], context: Context, ledger: NoLedger, limits: Limits, done: Results
) -> list[Task]:
    """Send or adopt tasks, and add their results; return those that others began meanwhile."""
    if not tasks:
        return []
    settings = tasks[0].settings
    if any(task.plan.action == SEND for task in tasks):
        require_usable(settings.connection, settings.base_url)  # for all of them at once
    jobs = [
        Job(Work(call_of(task, context), task, partial(compare, task), context.secrets))
        for task in tasks
    ]
    loop = run_loop(jobs, settings, context, ledger, limits, done.ended)
    done.reason = loop.reason
    for job in jobs:
        done.results[job.work.task.key] = job.result
    return [job.work.task for job in jobs if job.is_overtaken]


def run_loop(
    jobs: list[Job],
    settings: Settings,
    context: Context,
    ledger: NoLedger,
    limits: Limits,
    ended: list[Result],
) -> Loop:
    """Run the loop with jobs of the same settings, and return it; `ended`: the results so far."""

    def watch(ended: list[Result], in_flight: int, is_ending: bool) -> str:
        reached = limits.watch(ended, in_flight, is_ending)  # which shows the progress, too
        return context.why_to_stop() or reached

    tokens = Tokens(settings, context.memory, context.secrets.mask)
    width = Width(limits.most, limits.longest_wait)
    loop = Loop(jobs, ledger, tokens, width, watch, ended=ended)
    loop.run()
    for job in jobs if tokens.warnings else ():
        said = (*map(Message, tokens.warnings), *job.result.warnings)
        job.result = job.result.but(warnings=said)
    return loop


def call_of(task: Task, context: Context) -> Call:
    """Return the request of a planned task."""
    path_id, body = task.plan.path_id, task.plan.body or None
    return Call(
        task.operation, task.asset, task.settings, path_id, body, "", context.require_reader
    )
