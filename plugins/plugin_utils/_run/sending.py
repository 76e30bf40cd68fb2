# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The work of the modules that send, for one asset or a list: here, or by the module on the target.

A list has a report and lines on the screen as well.
"""

from __future__ import annotations

import gc
import time
from contextlib import suppress
from functools import partial
from typing import Any, Callable, Mapping

from ...module_utils._call.client import Context
from ...module_utils._errors import InvalidInput
from ...module_utils._http.transport import is_importable, require_libraries
from ...module_utils._list.threads import carry_out_list
from ...module_utils._result import Result
from ...module_utils._task.options import settings_from
from ...module_utils._task.task import Sender, Unrecorded, carry_out
from .._ledger.entries import LedgerError
from .._ledger.location import checked_location, forget_ledgers, shown_location
from .._ledger.recording import Recording
from .._screen.approval import approved_plan
from .._screen.plan import plan_lines
from .._screen.report import Report
from .._screen.rows import rows_of
from .._screen.screen import Progress, result_lines
from .action import TaskRun
from .ansible_core import run_id, screen_width
from .role import select
from .target import Target
from .workers import is_orphan, require_parent, run_memory, show


def send(run: TaskRun, work: Callable[..., Result] = carry_out) -> Result:
    """Do the task of a module that sends; raise ServicesError before anything is sent.

    `work`: of a module for one asset, as in `run_module`.
    """
    core, spec = run.core, run.spec
    is_here = core.is_local and not core.becomes and not run.task.async_val and is_importable()
    if not (is_here or run.options.params["ledger"] or spec.names):
        return Target(run).run()
    run.options.valid()
    if spec.option and not is_here:
        require_libraries()
        raise InvalidInput(
            "ledger",
            "a list can use one only on the controller: add delegate_to: localhost and become:"
            " false",
        )
    if spec.option:
        return _send_list(run)
    sender = Sender if is_here else partial(Target, run)
    context = _context(run, interruptible=run.signals.raised)
    return work(run.options, context, partial(_open_ledger, run, None), sender)


def _context(run: TaskRun, **more: Any) -> Context:
    """Return how a task runs in this worker."""
    return Context(
        run.check_mode,
        run.options.secrets,
        run.task.no_log,
        memory=run_memory(),
        require_reader=require_parent,
        **more,
    )


def _open_ledger(run: TaskRun, approved: Mapping[str, Result] | None, service: str) -> Unrecorded:
    """Open the ledger of the task, if it has one; `approved`: the rows of the approved plan."""
    location = run.options.params["ledger"]
    if not location:
        return Unrecorded()
    ledger = run.open_ledger(location, service, run.check_mode)
    run.tell_news(ledger)
    say = partial(run.show, stderr=True)
    rows = None if approved is None else {name: row.last_row or 0 for name, row in approved.items()}
    run.recording = Recording(ledger, run.options.secrets, run_id(), rows, say, run.pause)
    return run.recording


def _send_list(run: TaskRun) -> Result:
    """Carry out a list, report it, and show on the screen what it did, or would do."""
    # What is there, and what is made, mostly outlives the list: collecting garbage finds little.
    gc.freeze()
    gc.set_threshold(10_000)
    spec, params = run.spec, run.options.params
    left_out = select(params, spec, run.core) if spec.names else ""
    service = settings_from(params, run.check_mode).base_url
    place = shown_location(checked_location(params["ledger"])) if params["ledger"] else None
    report = None
    if params["report"]:
        is_plan = run.check_mode and not run.only_checks
        report = Report(params["report"], place, run_id(), service, is_plan)
    approved = _approved(run, service, place)  # before a ledger is created
    context = _context(
        run,
        watch=partial(_watch, run, Progress(spec.sent.resource.noun, partial(show, stderr=True))),
    )
    began = time.monotonic()
    # A faulty list creates no ledger.
    open_ledger = partial(_open_ledger, run, approved)
    collected = carry_out_list(run.options, context, open_ledger, approved)
    seconds = time.monotonic() - began
    # Only a server that took over can lack rows: another file is noticed at once.
    if run.recording and run.recording.ledger.database.tried_for:
        with suppress(LedgerError):  # then the outcomes say that they could not be recorded
            run.warnings += filter(None, [run.recording.recover()])
    if collected.is_in_flight:  # threads that outlast the list go on using the ledger
        run.ledger = None
        forget_ledgers()
    if run.only_checks:
        return Result()
    if left_out:
        collected.not_listed = None
    done = collected.done() if run.task.no_log else collected.done("See above.")
    result = _show(run, report, seconds, done, left_out)
    returned = collected.returned(result)
    if spec.names and returned.failed:  # callbacks print all of a failure of the role
        return returned.but(diff=None, ansible_facts=None, results=None, not_listed=None)
    return returned


def _approved(run: TaskRun, service: str, place: str | None) -> dict[str, Result] | None:
    """Return the rows of the approved plan that have an effect, by name or id; None without one."""
    path = run.options.params["approved"]
    if not path:
        return None
    read = run.open_ledger(run.options.params["ledger"], service, read_only=True) if place else None
    return approved_plan(path, run.spec.sent.resource.name, service, place, read)


def _watch(run: TaskRun, progress: Progress, *status: Any) -> str:
    """Show the progress of a list, and return why it has to end now, '' to continue."""
    progress.show(*status)
    return _why_to_stop(run)


def _why_to_stop(run: TaskRun) -> str:
    """Return why a list has to end now, '' to continue."""
    ended = "the run of Ansible that the task belongs to has ended" if is_orphan() else ""
    return run.signals.why or ended


def _show(
    run: TaskRun, report: Report | None, seconds: float, result: Result, left_out: str
) -> Result:
    """Report the result and show it; return it, with a warning if the report cannot be written."""
    operation = run.spec.sent
    rows = rows_of(operation, result)
    where = ""
    if report:
        ledger_id, serial = "", None
        if run.recording:
            ledger_id, serial = run.recording.ledger.header.ledger_id, run.recording.serial
        warnings = [*run.warnings, *filter(None, (left_out, _why_to_stop(run)))]
        with run_memory().alone():  # another task of the run may have the same report
            problem = report.add_list(rows, warnings, ledger_id, serial)
        where = "" if problem else report.where
        result = result.but(warnings=(*result.warnings, *filter(None, [problem])))
    if run.signals.caught:
        return result
    if run.check_mode:
        lines = plan_lines(operation.resource, rows, screen_width())
    else:
        lines = result_lines(operation, rows, seconds, screen_width())
    run.show(*lines, *filter(None, (left_out and f"  {left_out}", where)))
    return result
