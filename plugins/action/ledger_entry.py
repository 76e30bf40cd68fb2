# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Runs ledger_entry on the controller, whatever the connection of the task."""

from __future__ import annotations

from ..module_utils._http.urls import service_url
from ..module_utils._result import Returned
from ..module_utils._task.specs import LEDGER_ENTRY
from ..plugin_utils._csv import entries_in
from ..plugin_utils._ledger.editing import edits_of, edits_of_report, write_edits
from ..plugin_utils._run.action import Action, TaskRun
from ..plugin_utils._run.ansible_core import run_id
from ..plugin_utils._screen.ledger_table import edit_lines
from ..plugin_utils._screen.report import rows_to_settle


class ActionModule(Action):
    """Edits one entry, or a list of entries."""

    spec = LEDGER_ENTRY

    @staticmethod
    def work(run: TaskRun) -> Returned:
        params, secrets = run.options.valid(), run.options.secrets
        service = service_url("base_url", params["base_url"]) if params["base_url"] else ""
        ledger = run.open_ledger(params["ledger"], service, writes=not run.check_mode)
        entries = params["entries"]
        if params["file"]:
            entries = entries_in(params["file"], params["delimiter"])
        if params["file"] and not isinstance(entries, list):
            edits, result = edits_of_report(ledger, rows_to_settle(entries, ledger), secrets)
        else:
            edits, result = edits_of(ledger, {**params, "entries": entries}, secrets)
        if edits and not run.check_mode:
            write_edits(ledger, edits, run_id())
        run.warn_if_back(ledger)
        result["text"] = edit_lines(result["counts"], result["names"], run.check_mode)
        if params["resource"] is None:
            run.show(*result["text"])
        return result
