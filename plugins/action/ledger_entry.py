# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Runs ledger_entry on the controller, whatever the connection of the task."""

from __future__ import annotations

from ..module_utils._errors import InvalidInput
from ..module_utils._http.urls import service_url
from ..module_utils._result import Returned
from ..module_utils._task.specs import LEDGER_ENTRY
from ..plugin_utils._csv import entries_in
from ..plugin_utils._ledger.editing import edits_of, write_edits
from ..plugin_utils._run.action import Action, TaskRun
from ..plugin_utils._run.ansible_core import run_id
from ..plugin_utils._screen.ledger_table import edit_lines
from ..plugin_utils._screen.report import options_of_report


class ActionModule(Action):
    """Edits one entry, or a list of entries."""

    spec = LEDGER_ENTRY

    @staticmethod
    def work(run: TaskRun) -> Returned:
        params = run.options.valid()
        if params["file"]:
            found = entries_in(params["file"], params["delimiter"])
            known = {"entries": found} if isinstance(found, list) else options_of_report(found)
            params = {**params, **known}
        url, secrets, check_mode = params["base_url"], run.options.secrets, run.check_mode
        service = service_url("base_url", url) if url else ""
        ledger = run.open_ledger(params["ledger"], service, read_only=True)
        reported = params.get("service", "")
        service = ledger.header.base_url or service or reported
        if reported not in ("", service):
            raise InvalidInput(
                "file", f"is the report of a run for {reported}, and the ledger is for {service}"
            )
        edits, result = edits_of(ledger, params, secrets)
        if edits and ledger.is_new and not service:
            raise InvalidInput(
                "base_url", "is needed for a new ledger, since a ledger belongs to one service"
            )
        # Only an edit that adds something creates a missing ledger.
        if edits and not check_mode:
            ledger = run.open_ledger(params["ledger"], service)
            write_edits(ledger, edits, run_id(), params.get("reported_at", ""))
        run.tell_news(ledger)
        result["text"] = edit_lines(result["counts"], result["names"], check_mode)
        if params["entries"] is not None:
            run.show(*result["text"])
        return result
