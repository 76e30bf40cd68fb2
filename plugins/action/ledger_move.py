# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Runs ledger_move on the controller, whatever the connection of the task."""

from __future__ import annotations

from contextlib import closing

from ..module_utils._errors import InvalidInput
from ..module_utils._http.urls import service_url
from ..module_utils._result import Returned
from ..module_utils._task.specs import LEDGER_MOVE
from ..plugin_utils._ledger.entries import LedgerError
from ..plugin_utils._ledger.ledger import Ledger
from ..plugin_utils._ledger.location import checked_location, open_database
from ..plugin_utils._ledger.moving import move_ledger, set_base_url
from ..plugin_utils._run.action import Action, TaskRun


class ActionModule(Action):
    """Moves a ledger, or gives it the new URL of its service."""

    spec = LEDGER_MOVE

    @staticmethod
    def work(run: TaskRun) -> Returned:
        params, check_mode = run.options.valid(), run.check_mode
        with closing(_opened(run, "ledger")) as source:
            if source.is_new:
                raise LedgerError(f"no ledger at {source.where} yet. Check the location")
            if params["to_base_url"] is not None:
                url = service_url("to_base_url", params["to_base_url"])
                result = set_base_url(source, url, check_mode)
            else:
                with closing(_opened(run, "to")) as target:
                    result = move_ledger(source, target, check_mode)
            if result["changed"]:  # else the new place may have rows that this one lacks
                run.tell_news(source)
        return result


def _opened(run: TaskRun, option: str) -> Ledger:
    """Open the ledger of an option, whatever its state; the caller closes it."""
    location = checked_location(run.options.params[option], option)
    try:
        with run.signals.raised():
            return Ledger(open_database(location), is_moving=True)
    except LedgerError as error:
        raise InvalidInput(option, error.problem) from None
