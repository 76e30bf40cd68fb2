# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Runs ledger_info on the controller, whatever the connection of the task."""

from __future__ import annotations

from ..module_utils._task.options import LEDGER_VARIABLE
from ..module_utils._task.specs import LEDGER_INFO
from ..module_utils._task.validation import Options
from ..plugin_utils._csv.entry_files import require_new_file, write_entries
from ..plugin_utils._ledger.commands import needs_variable, settle_command, settle_commands
from ..plugin_utils._ledger.listing import list_entries
from ..plugin_utils._run.ansible_core import Returned
from ..plugin_utils._run.display import show_lines
from ..plugin_utils._run.ledger_actions import LedgerAction
from ..plugin_utils._run.ledgers import reused_ledger
from ..plugin_utils._run.role import DELIMITER, SHOWS_TABLE
from ..plugin_utils._screen.ledger_table import ledger_lines, nothing_found, written_lines

_FILTERS = ("base_url", "resource", "names", "states", "changed_since", "run")


class ActionModule(LedgerAction):
    """Lists entries."""

    spec = LEDGER_INFO

    def work(self, options: Options) -> Returned:
        params = options.params
        file = self.file_of_playbook()
        if file:
            require_new_file(file)
        ledger = reused_ledger(self, params, read_only=True)
        result = list_entries(ledger, params)
        settle = settle_commands(ledger)
        if not result["entries"]:
            filters = {name: params[name] for name in _FILTERS if params[name]}
            lines = [nothing_found(result["ledger"], filters, ledger.count_states())]
        else:
            lines = ledger_lines(result, settle)
            if needs_variable(ledger) and any("settle" in entry for entry in result["entries"]):
                lines.append(f"The commands take the ledger from {LEDGER_VARIABLE}.")
        if not result["exists"]:
            return dict(result, text=lines)
        if file and not self.keywords.check_mode:
            write_entries(file, result["entries"], self.variable(DELIMITER) or ",")
            lines = written_lines(file, result["entries"], settle_command(ledger, file))
        if self.variable(SHOWS_TABLE):
            show_lines(lines)
        return dict(result, text=lines, **({"file": file} if file else {}))
