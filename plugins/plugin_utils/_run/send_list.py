# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Tasks that send a list of requests, with a report and lines on the screen."""

from __future__ import annotations

import time
from contextlib import closing
from functools import partial
from typing import Iterable

from ...module_utils._call.place import ListStatus
from ...module_utils._errors import NOT_SENT, REJECTED, InvalidInput
from ...module_utils._fields import Params
from ...module_utils._http.transport import require_libraries
from ...module_utils._list.items import prepare_all, with_defaults
from ...module_utils._list.result import ListResult
from ...module_utils._list.sending import ListTask
from ...module_utils._result import DETAIL, Result
from ...module_utils._task.options import settings_from
from ...module_utils._task.validation import Options
from .._ledger.location import open_ledger, shown_location
from .._ledger.recording import ListRecording
from .._screen.approval import ApprovedPlan, approved_plan
from .._screen.assets import assets_of
from .._screen.plan import plan_lines
from .._screen.report import AboutList, Report
from .._screen.screen import Progress, result_lines
from .action import Action
from .ansible_core import run_id
from .display import say
from .ledgers import ledger_location, open_own_ledger
from .only import Only
from .send_one import SendingAction, Worker
from .worker import is_orphan

_LEDGER_ELSEWHERE = (
    "a list can use one only on the controller: add delegate_to: localhost and become: false"
)


class SendingListAction(SendingAction):
    """Sends the requests of a module for a list; gives the same result as the module."""

    def work(self, options: Options) -> Result:
        check_mode = self.keywords.check_mode
        params = self.with_absolute_paths(options.params)
        location = ledger_location(self, params["ledger"]) if params["ledger"] else ""
        self._require_controller()
        only = Only(self)
        params[self.spec.option] = only.selected(params[self.spec.option])
        service = settings_from(params, check_mode).service
        report = self._report(params, location, service)
        approved = self._approved_plan(params, location, service)
        params = with_defaults(self.spec, params)
        # A faulty list creates no ledger.
        tasks = prepare_all(self.spec, params, check_mode)
        recording = self._open_recording(options, params, location, approved) if location else None
        history = recording.ledger.history_end() if recording and report else (0, "")
        place = ListPlace(self)
        task = ListTask(self.spec, params, self.context(options, place), recording)
        began = time.monotonic()
        collected = task.carry_out(tasks, approved.bodies if approved else None)
        if self.only_checks:
            return Result()
        collected.not_listed = only.without_left_out(collected.not_listed)
        result = collected.done(self._next_step(params))
        about = _about_list(recording, history, place.why_to_stop())
        about = about._replace(is_forced=params["force"])
        result = self._show(report, time.monotonic() - began, result, about, only.lines())
        return self._returned(params, collected, result, recording)

    def _require_controller(self) -> None:
        """Raise InvalidInput or MissingLibrary for a list that would be sent elsewhere."""
        if not self.runs_here:
            require_libraries()
            raise InvalidInput("ledger", _LEDGER_ELSEWHERE)

    def _report(self, params: Params, location: str, service: str) -> Report | None:
        """Return the report of the list, None if the task has none; raise InvalidInput."""
        if not params["report"]:
            return None
        is_plan = self.keywords.check_mode and not self.only_checks
        return Report(params["report"], location, run_id(), service, is_plan)

    def _approved_plan(self, params: Params, location: str, service: str) -> ApprovedPlan | None:
        """Return the approved plan, None if the task has none.

        Raise InvalidInput, before a ledger is created, for a plan that was made against another
        one.
        """
        if not params["approved"]:
            return None
        plan = approved_plan(params["approved"], self.spec.sent.operation.resource, service)
        if not location:
            plan.require_ledger(None, None)
            return plan
        with closing(open_ledger(location, read_only=True)) as ledger:
            plan.require_ledger(shown_location(location), ledger.ledger_id or None)
            plan.require_history(ledger)
        return plan

    def _open_recording(
        self, options: Options, params: Params, location: str, approved: ApprovedPlan | None
    ) -> ListRecording:
        """Open a ledger for this list alone, because its threads may outlive it."""
        check_mode = self.keywords.check_mode
        ledger = open_own_ledger(self, params, location, check_mode)
        after = approved.history_rows if approved else None
        return ListRecording(ledger, options.secrets, run_id(), check_mode, after)

    def _show(
        self,
        report: Report | None,
        seconds: float,
        result: Result,
        about: AboutList,
        notes: list[str],
    ) -> Result:
        """Report the result, and show on the screen what the list did, or would do.

        Return the result, with a warning if the report cannot be written. `notes`: about the whole
        list.
        """
        operation = self.spec.sent.operation
        width = self.screen_width
        assets = assets_of(operation, result)
        about = about._replace(warnings=(*about.warnings, *notes))
        problem = report.add_list(operation, assets, about) if report else ""
        if problem:
            result = result.but(warnings=(*result.warnings, problem))
        if self.signals.caught:
            return result
        if self.keywords.check_mode:
            lines = plan_lines(operation, assets, width)
        else:
            lines = result_lines(operation, assets, seconds, width)
        where = [report.where] if report and not problem else []
        self.show([*lines, *(f"  {note}" for note in notes), *where])
        return result

    def _returned(
        self,
        params: Params,
        collected: ListResult,
        result: Result,
        recording: ListRecording | None,
    ) -> Result:
        """Return what Ansible gets of the result; `until` repeats nothing that may have happened."""
        returned = collected.returned(result, params["results"])
        if self.spec.names and returned.failed:
            returned = returned.without(DETAIL)  # callbacks print all of it
        has_sent = not self.keywords.check_mode
        if recording and has_sent and _may_go_on(recording, params, result.results or ()):
            return returned
        return self.remember(returned)

    def _next_step(self, params: Params) -> str:
        """Return where each item is explained; after a signal, nobody receives the results."""
        if not self.signals.caught:
            return "See above."
        known = ""
        if params["report"]:
            known = f"The report {params['report']} lists the known effect of each. "
        if params["ledger"]:
            in_doubt = (
                "The playbook infrastructure.services.in_doubt lists what is in"
                " doubt, with commands."
            )
            return f"{known}{in_doubt} Then run it again, which goes on."
        return (
            f"{known}Look on the service for those in doubt before you send the"
            " list again: no ledger knows them."
        )


class ListPlace(Worker):
    """The worker for a list."""

    def __init__(self, action: Action) -> None:
        super().__init__(action)
        noun = action.spec.sent.operation.noun
        self._progress = Progress(noun, partial(say, action.signals))

    def show_progress(self, status: ListStatus) -> None:
        self._progress.show(status, self._action.signals.by_ctrl_c)

    def why_to_stop(self) -> str:
        signals = self._action.signals
        if signals.caught:
            return f"the task received {signals.name}"
        if signals.is_late:
            return f"the keyword timeout ({self._action.keywords.timeout} seconds) expired"
        return "the run of Ansible that the task belongs to has ended" if is_orphan() else ""


def _may_go_on(recording: ListRecording, params: Params, items: Iterable[Result]) -> bool:
    """Return whether a further attempt of `until` has requests that certainly did not happen.

    The ledger keeps it from sending the others.
    """
    if recording.lost or recording.lacks_outcome or params["force"]:
        return False
    for item in items:
        if item.skipped:
            return True
        if item.failed and item.outcome in (NOT_SENT, REJECTED):
            return True
    return False


def _about_list(
    recording: ListRecording | None, history: tuple[int, str], interrupted: str
) -> AboutList:
    """Return the facts about the whole list and its ledger for the report."""
    rows, end = history
    about = AboutList(history_rows=rows, history_end=end, interrupted=interrupted or None)
    if not recording:
        return about
    ledger = recording.ledger
    warnings = filter(None, (ledger.place_warning, *recording.warnings))
    return about._replace(ledger_id=ledger.ledger_id or None, warnings=tuple(warnings))
