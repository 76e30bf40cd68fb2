# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Tasks that send requests, from options to result: in the worker where that is safe, else on the
target.
"""

from __future__ import annotations

import time
from contextlib import closing
from functools import partial
from typing import Any

from ...module_utils._errors import NOT_SENT, REJECTED, InvalidInput
from ...module_utils._http.transport import Transport, requests, require_libraries
from ...module_utils._http.urls import canonical_url
from ...module_utils._list.sending import send_all
from ...module_utils._secrets import printable
from ...module_utils._task.options import settings_from
from ...module_utils._task.signals import Signals
from ...module_utils._task.task import Context, Planned, carry_out, perform, prepare
from ...module_utils._task.validation import Options
from .._ledger.location import open_ledger, shown_location
from .._ledger.queue import Queue
from .._ledger.recording import Recording
from .._ledger.store import Ledger
from .._screen.approval import ApprovedPlan, approved_plan
from .._screen.assets import assets_of
from .._screen.plan import plan_lines
from .._screen.report import AboutList, Report
from .._screen.screen import Progress, result_lines
from .cache import cached_transport, shared_token
from .given import (
    ledger_at,
    ledger_given,
    ledger_location,
    only_checks,
    opened_ledger,
    options_given,
    with_absolute_paths,
)
from .process import is_orphan, require_parent, run_id, say, show_lines
from .target import Target, is_here

_DETAILS = (
    "ansible_facts",
    "results",
    "not_listed",
    "diff",
)  # which the screen, the report and the ledger have
_LEDGER_ELSEWHERE = (
    "a list can use one only on the controller: add delegate_to: localhost and become: false"
)


def in_worker(action) -> bool:
    """Whether a task is done in this process: where its module would run anyway, and as the same
    user.
    """
    is_elsewhere = not is_here(action) or action.becomes or action._task.async_val
    return requests is not None and not is_elsewhere


def hand_over(action, signals: Signals) -> dict | None:
    """Return the result of the module if all of the task is for the target, None if not; raise
    InvalidInput.
    """
    if in_worker(action) or ledger_given(action) != "":
        return None
    return action.remember(Target(action, options_given(action), signals).run())


def send(action, options: Options, signals: Signals) -> dict:
    """Do the task of a module for one asset, and return its result; raise ServicesError before
    anything is sent.
    """
    params, check_mode = with_absolute_paths(action, options.params), action._task.check_mode
    task = prepare(action.spec.resource, params, check_mode)
    sleep = partial(_sleep, action, signals, f"{task.resource.operation.noun} {task.wanted.key}")
    context = _context(
        action, options, connect=cached_transport, interruptible=signals.raised, sleep=sleep
    )
    target = None if in_worker(action) else Target(action, options.given, signals)

    def send_once(planned: Planned) -> dict:
        return action.remember(target.send(planned) if target else perform(planned, context))

    if not params["ledger"]:
        return carry_out(task.planned(), context, send_once)
    ledger = opened_ledger(action, params, signals, check_mode)
    recording = Recording(ledger, options.secrets, run_id(), check_mode)
    (planned,) = recording.look_up([task])
    result = carry_out(planned, context, send_once, recording)
    if recording.warnings:
        result = dict(result, warnings=[*recording.warnings, *result.get("warnings", ())])
    return result


def send_list(action, options: Options, signals: Signals) -> dict:
    """Do the task of a module for a list, and return its result; raise ServicesError before
    anything is sent.
    """
    params, check_mode = with_absolute_paths(action, options.params), action._task.check_mode
    location = ledger_location(action, params["ledger"]) if params["ledger"] else ""
    if not in_worker(action):
        require_libraries()
        raise InvalidInput("ledger", _LEDGER_ELSEWHERE)
    service = canonical_url(settings_from(params, check_mode).base_url)
    report = _report(action, params, location, service)
    approved = _approved(action, params, service)
    if approved:
        _require_ledger_of(approved, location)
    # The ledger is the list's own: threads that outlast it may still use the connection.
    ledger = ledger_at(action, location, params, signals, check_mode) if location else None
    context = _context(
        action,
        options,
        connect=Transport,
        approved=approved.bodies if approved else None,
        watch=partial(_why_to_stop, action, signals),
        progress=Progress(action.spec.resource.operation.noun, partial(say, signals)),
    )
    queue = Queue(ledger) if ledger and not check_mode else None
    after = approved.history_rows if approved else None
    recording = (
        Recording(ledger, options.secrets, run_id(), check_mode, queue, after) if ledger else None
    )
    history_rows = ledger.count_history() if ledger and report else 0
    began, result = time.monotonic(), send_all(action.spec, params, context, recording)
    if only_checks(action):
        return dict(changed=False, outcome=NOT_SENT)
    done = result.done(_next_step(params, signals))
    about = _about(ledger, recording, history_rows)
    about = about._replace(interrupted=_why_to_stop(action, signals) or None)
    _tell(action, report, time.monotonic() - began, signals, done, about)
    returned = result.returned(done, params["results"])
    if action.spec.names and returned.get("failed"):
        returned = _without_details(returned)
    if _may_go_on(queue and recording, params, done["results"]):
        return returned
    return action.remember(returned)


def _may_go_on(recording: Recording | None, params: dict, items: list[dict]) -> bool:
    """Whether a further attempt of `until` sends what certainly did not happen; the ledger keeps
    the rest from it.

    `recording`: None without a ledger that this attempt wrote to.
    """
    knows_all = recording and not recording.lost and not params["force"]
    not_done = (
        "skipped" in item or (item["failed"] and item["outcome"] in (NOT_SENT, REJECTED))
        for item in items
    )
    return bool(knows_all) and any(not_done)


def _sleep(action, signals: Signals, asset: str, seconds: float) -> None:
    """Wait before a further attempt, and say so if that takes a second or more."""
    if seconds >= 1 and not action._task.no_log:
        say(signals, printable(f"{asset}: waiting {seconds:,.0f} s before a further attempt"))
    time.sleep(seconds)


def _report(action, params: dict, location: str, service: str) -> Report | None:
    """Return the report of a list, None if none is wanted; raise InvalidInput."""
    if not params["report"]:
        return None
    is_plan = action._task.check_mode and not only_checks(action)
    return Report(params["report"], location, run_id(), service, is_plan)


def _about(ledger: Ledger | None, recording: Recording | None, history_rows: int) -> AboutList:
    """Return what the report says of a whole list and its ledger."""
    if not ledger or not recording:
        return AboutList()
    warnings = [ledger.used_elsewhere, *recording.warnings]
    return AboutList(ledger.ledger_id or None, history_rows, tuple(filter(None, warnings)))


def _require_ledger_of(plan: ApprovedPlan, location: str) -> None:
    """Raise InvalidInput, before a ledger is made, unless the plan that was approved was made
    against this one.
    """
    if not location:
        plan.require_ledger(None, None)
        return
    with closing(open_ledger(location, read_only=True)) as ledger:
        plan.require_ledger(shown_location(location), ledger.ledger_id or None)


def _approved(action, params: dict, service: str) -> ApprovedPlan | None:
    """Return the plan that was approved, None if none had to be; raise InvalidInput."""
    if not params["approved"]:
        return None
    return approved_plan(params["approved"], action.spec.resource.operation.resource, service)


def _tell(
    action,
    report: Report | None,
    seconds: float,
    signals: Signals,
    result: dict,
    about: AboutList,
) -> None:
    """Report the whole result of a list, and say on the screen what it did, or would do."""
    operation, width = action.spec.resource.operation, action._display.columns
    assets = assets_of(operation, result)
    problem = report.add(operation, assets, about) if report else ""
    if problem:
        result["warnings"].append(problem)
    if action._task.no_log or signals.caught:
        return
    is_plan, where = action._task.check_mode, [report.where] if report and not problem else []
    lines = (
        plan_lines(operation, assets, width)
        if is_plan
        else result_lines(operation, assets, seconds, width)
    )
    show_lines([*lines, *where])


def _without_details(result: dict) -> dict:
    """Return a failed result as the role returns it, of which callbacks print all."""
    return {name: value for name, value in result.items() if name not in _DETAILS}


def _context(action, options: Options, **more: Any) -> Context:
    """Return what a task needs from this process; `more`: fields of it."""
    return Context(
        check_mode=action._task.check_mode,
        secrets=options.secrets,
        token_source=shared_token,
        guard=require_parent,
        diff_mode=action._task.diff,
        no_log=action._task.no_log,
        **more,
    )


def _why_to_stop(action, signals: Signals) -> str:
    """Return why to end a list now, empty to go on."""
    if signals.caught:
        return f"the task received {signals.name}"
    if signals.is_late:
        return f"the keyword timeout ({action._task.timeout} seconds) expired"
    return "the run of Ansible that the task belongs to has ended" if is_orphan() else ""


def _next_step(params: dict, signals: Signals) -> str:
    """Return where to look for what is known of each item; after a signal, nobody receives the
    results.
    """
    if not signals.caught:
        return "See above."
    known = (
        f"The report {params['report']} says what is known of each. " if params["report"] else ""
    )
    if params["ledger"]:
        in_doubt = (
            "The playbook infrastructure.services.in_doubt lists what is in doubt, with commands."
        )
        return f"{known}{in_doubt} Then run it again, which goes on."
    return f"{known}Look on the service for those in doubt before you send the list again: no ledger knows them."
