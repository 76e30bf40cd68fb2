# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Runs ledger_create on the controller, whatever the connection of the task."""

from __future__ import annotations

from contextlib import closing

from ..module_utils._http.urls import service_url
from ..module_utils._result import Returned
from ..module_utils._task.specs import LEDGER_CREATE
from ..plugin_utils._ledger.location import open_database
from ..plugin_utils._ledger.moving import create
from ..plugin_utils._run.action import Action, TaskRun


class ActionModule(Action):
    """Creates an empty ledger for one service."""

    spec = LEDGER_CREATE

    @staticmethod
    def work(run: TaskRun) -> Returned:
        params = run.options.valid()
        url = service_url("base_url", params["base_url"])
        with closing(open_database(params["ledger"])) as place, run.signals.raised():
            return create(place, url, params["replaces"] or "", run.seen, run.check_mode)
