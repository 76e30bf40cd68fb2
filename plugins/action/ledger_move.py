# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Runs ledger_move on the controller, whatever the connection of the task."""

from __future__ import annotations

from contextlib import closing
from functools import partial

from ..module_utils._http.urls import service_url
from ..module_utils._result import Returned
from ..module_utils._task.specs import LEDGER_MOVE
from ..plugin_utils._ledger.entries import LedgerError
from ..plugin_utils._ledger.location import checked_location
from ..plugin_utils._ledger.moving import move_ledger, set_base_url
from ..plugin_utils._ledger.sql import MOVED
from ..plugin_utils._run.action import Action, TaskRun


class ActionModule(Action):
    """Moves a ledger, or gives it the new URL of its service."""

    spec = LEDGER_MOVE

    @staticmethod
    def work(run: TaskRun) -> Returned:
        params = run.options.valid()
        given, check_mode = params["ledger"], run.check_mode
        with closing(run.open_ledger(given, "", is_moving=True)) as source:
            if source.is_new:
                raise LedgerError(f"no ledger at {source.where} yet. Check the location")
            is_older = run.lacks_rows(source)
            if source.header.state != MOVED:  # the other one has rows that this one lacks
                run.tell_news(source)
            if params["to_base_url"] is not None:
                url = service_url("to_base_url", params["to_base_url"])
                return set_base_url(source, url, check_mode)
            to = checked_location(params["to"], "to")
            open_target = partial(run.open_ledger, to, is_moving=True)
            return move_ledger(source, open_target, check_mode, is_older)
