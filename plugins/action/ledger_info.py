# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Runs ledger_info on the controller, whatever the connection of the task."""

from __future__ import annotations

from ..module_utils._fields import Params
from ..module_utils._result import Returned
from ..module_utils._task.options import LEDGER_VARIABLE
from ..module_utils._task.specs import LEDGER_INFO
from ..module_utils._task.validation import Options
from ..plugin_utils._csv.entry_files import require_new_file, write_entries
from ..plugin_utils._ledger.commands import settle_command, settle_commands
from ..plugin_utils._ledger.listing import list_entries
from ..plugin_utils._ledger.store import Ledger
from ..plugin_utils._run.ledger_actions import LedgerAction
from ..plugin_utils._run.ledgers import reused_ledger
from ..plugin_utils._run.role import DELIMITER, SHOWS_TABLE
from ..plugin_utils._screen.ledger_table import ledger_lines, nothing_found, written_lines

_FILTERS = ("base_url", "resource", "names", "states", "changed_since", "run")


class ActionModule(LedgerAction):
    """Lists entries."""

    spec = LEDGER_INFO

    def work(self, options: Options) -> Returned:
        file = self.file_of_playbook()
        if file:
            require_new_file(file)
        ledger = reused_ledger(self, options.params, read_only=True)
        result = list_entries(ledger, options.params)
        result["text"] = _lines(ledger, result, options.params)
        if not result["exists"]:
            return result
        if file:
            result["file"] = file
            if not self.keywords.check_mode:
                entries = result["entries"]
                write_entries(file, entries, self.variable(DELIMITER) or ",")
                result["text"] = written_lines(file, entries, settle_command(ledger.shown, file))
        if self.variable(SHOWS_TABLE):
            self.show(result["text"])
        return result


def _lines(ledger: Ledger, result: Returned, params: Params) -> list[str]:
    """Return the entries as a table, or the line about there being none."""
    entries = result["entries"]
    if not entries:
        filters = {name: params[name] for name in _FILTERS if params[name]}
        return [nothing_found(ledger.where, filters, ledger.count_states())]
    lines = ledger_lines(result, settle_commands(ledger.shown))
    if not ledger.shown and any("settle" in entry for entry in entries):
        lines.append(f"The commands take the ledger from {LEDGER_VARIABLE}.")
    return lines
