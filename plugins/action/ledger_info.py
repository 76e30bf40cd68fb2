# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Runs ledger_info on the controller, whatever the connection of the task."""

from __future__ import annotations

import sys

from ..module_utils._result import Returned
from ..module_utils._task.specs import IN_DOUBT, LEDGER_INFO
from ..plugin_utils._ledger.listing import (
    list_entries,
    require_new_file,
    settle_command,
    settle_commands,
    write_rows,
)
from ..plugin_utils._run.action import Action, TaskRun
from ..plugin_utils._run.ansible_core import IS_TERMINAL, screen_width
from ..plugin_utils._screen.ledger_table import ledger_lines, written_lines


class ActionModule(Action):
    """Lists entries."""

    spec = LEDGER_INFO

    @staticmethod
    def work(run: TaskRun) -> Returned:
        params = run.options.valid()
        file, delimiter = params["file"], params["delimiter"]
        if file:
            require_new_file(file)
        ledger = run.open_ledger(params["ledger"])
        result = list_entries(ledger, params)
        run.warn_if_back(ledger)
        if not (file or params["table"]):
            return result
        rows = result.pop("entries")
        if file:
            result["file"] = file
            if not run.check_mode:
                write_rows(file, rows, delimiter)
            lines = written_lines(file, rows, settle_command(ledger.shown, file))
        else:
            what = "in doubt" if params["states"] == [IN_DOUBT] else "recorded"
            by_file = settle_commands(ledger.shown)
            width = screen_width() if IS_TERMINAL else sys.maxsize  # each row on one line
            lines = ledger_lines(rows, result, what, by_file, width)
        if params["table"]:
            run.show(*lines)
        return result
