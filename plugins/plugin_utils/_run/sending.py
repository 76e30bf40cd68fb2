# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The work of the modules that send, for one asset or a list: here, or by the module on the target.

A list has a report and lines on the screen as well.
"""

from __future__ import annotations

import gc
import time
from functools import partial
from typing import Callable, Mapping

from ...module_utils._errors import InvalidInput, LedgerError
from ...module_utils._http.transport import is_importable
from ...module_utils._list.lists import carry_out_list
from ...module_utils._result import Result
from ...module_utils._task.journal import NoLedger
from ...module_utils._task.options import NO_LEDGER, settings_from
from ...module_utils._task.signals import Interrupted
from ...module_utils._task.task import Context, carry_out
from .._ledger.ledger import Ledger
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
    if not (run.core.is_local and not run.task.async_val and is_importable()):
        _require_no_ledger(run)
        return Target(run).run()
    run.options.valid()
    if run.spec.option:
        return _send_list(run)
    return work(run.options, _context(run), partial(_recording, run))


def _require_no_ledger(run: TaskRun) -> None:
    """Raise InvalidInput for a ledger on a target: it works in the Ansible worker alone."""
    if run.options.params["ledger"] in (None, NO_LEDGER):
        return
    advice = "install requests for the Python of Ansible"
    if run.task.async_val:
        advice = "remove async"
    elif not run.core.is_local:
        advice = "add delegate_to: localhost"
    raise InvalidInput(
        "ledger",
        "works in the Ansible worker alone, and this task would run elsewhere:"
        f" {advice}; or set ledger to none, so that each run creates another asset",
    )


def _context(run: TaskRun) -> Context:
    """Return how a task runs in this worker."""
    return Context(
        run.check_mode,
        run.options.secrets,
        run.task.no_log,
        run_memory(),
        require_parent,
        partial(_why_to_stop, run),
    )


def _ledger(run: TaskRun, service: str) -> Ledger | None:
    """Open the ledger of the task, None if it has none; `service`: its canonical base_url."""
    given = run.options.params["ledger"]
    if given in (None, NO_LEDGER):
        return None
    return run.open_ledger(given, service, writes=not run.check_mode)


def _recording(
    run: TaskRun, service: str, approved: Mapping[str, Result] | None = None
) -> NoLedger:
    """Return what records the task; `approved`: the rows of the approved plan, by name or id."""
    ledger = _ledger(run, service)
    if ledger is None:
        return NoLedger()
    say = partial(run.show, stderr=True)
    rows = None if approved is None else {name: row.last_row or 0 for name, row in approved.items()}
    return Recording(ledger, run.options.secrets, run_id(), rows, say, run.pause)


def _send_list(run: TaskRun) -> Result:
    """Carry out a list, report it, and show on the screen what it did, or would do."""
    # What is there, and what is made, mostly outlives the list: collecting garbage finds little.
    gc.freeze()
    gc.set_threshold(10_000)
    spec, params = run.spec, run.options.params
    left_out = select(params, spec, run.core) if spec.names else ""
    service = settings_from(params, run.check_mode).base_url
    ledger = _ledger(run, service)
    report = None
    if params["report"]:
        is_plan = run.check_mode and not run.only_checks
        place = ledger.where if ledger else None
        report = Report(params["report"], place, run_id(), service, is_plan)
    approved = None
    if params["approved"]:
        approved = approved_plan(params["approved"], spec.sent.resource.name, service, ledger)
    progress = Progress(spec.sent.resource.noun, partial(show, stderr=True))
    began = time.monotonic()
    recording = _recording(run, service, approved)
    collected = carry_out_list(
        run.options, _context(run), lambda _service: recording, approved, progress.show
    )
    seconds = time.monotonic() - began
    if isinstance(recording, Recording):
        try:
            run.warnings += filter(None, [recording.recover()])
        except (LedgerError, Interrupted) as error:
            collected.failure = f"At the end of the list: {error}"
        run.warn_if_back(recording.ledger)
    if run.only_checks:
        return Result()
    if left_out:
        collected.not_listed = None
    done = collected.done() if run.task.no_log else collected.done("See above.")
    result = _show(run, report, recording, seconds, done, left_out)
    returned = collected.returned(result)
    if spec.names and returned.failed:  # callbacks print all of a failure of the role
        return returned.but(diff=None, ansible_facts=None, results=None, not_listed=None)
    return returned


def _why_to_stop(run: TaskRun) -> str:
    """Return why a list has to end now, '' to continue."""
    ended = "the run of Ansible that the task belongs to has ended" if is_orphan() else ""
    return run.signals.why or ended


def _show(
    run: TaskRun,
    report: Report | None,
    recording: NoLedger,
    seconds: float,
    result: Result,
    left_out: str,
) -> Result:
    """Report the result and show it; return it, with a warning if the report cannot be written."""
    operation = run.spec.sent
    rows = rows_of(operation, result)
    where = ""
    if report:
        ledger_id, serial, refused = "", None, ""
        if isinstance(recording, Recording):
            ledger_id, serial = recording.ledger.header.ledger_id, recording.serial
            refused = recording.ledger.gone_back()
        warnings = [*run.warnings, *filter(None, (left_out, _why_to_stop(run)))]
        with run_memory().alone():  # another task of the run may have the same report
            problem = report.add_list(rows, warnings, ledger_id, serial, refused)
        where = "" if problem else report.where
        result = result.but(warnings=(*result.warnings, *filter(None, [problem])))
    if run.signals.caught:
        return result
    if run.check_mode:
        lines = [*run.warnings, *plan_lines(operation.resource, rows, screen_width())]
    else:
        lines = result_lines(operation, rows, seconds, screen_width())
    run.show(*lines, *filter(None, (left_out and f"  {left_out}", where)))
    return result
