# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Runs ledger_move on the controller, whatever the connection of the task."""

from __future__ import annotations

from contextlib import closing

from ..module_utils._http.urls import service_url
from ..module_utils._result import Returned
from ..module_utils._task.specs import LEDGER_MOVE
from ..plugin_utils._ledger.ledger import Database, Ledger
from ..plugin_utils._ledger.location import open_database
from ..plugin_utils._ledger.moving import move_ledger, set_base_url
from ..plugin_utils._run.action import Action, TaskRun


class ActionModule(Action):
    """Moves a ledger, or gives it the new URL of its service."""

    spec = LEDGER_MOVE

    @staticmethod
    def work(run: TaskRun) -> Returned:
        params, check_mode = run.options.valid(), run.check_mode
        with closing(_opened(run, "ledger")) as database, run.signals.raised():
            source = Ledger(database, run.seen, is_moving=True)
            source.find([])
            run.warn_if_back(source)
            if params["to_base_url"] is not None:
                url = service_url("to_base_url", params["to_base_url"])
                return set_base_url(source, url, check_mode)
            with closing(_opened(run, "to")) as place:
                return move_ledger(source, place, run.seen, check_mode)


def _opened(run: TaskRun, option: str) -> Database:
    """Open the database of an option; the caller closes it."""
    return open_database(run.options.params[option], option)
