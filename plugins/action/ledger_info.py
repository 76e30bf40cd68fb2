# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Runs ledger_info on the controller, where the ledger is, whatever the connection."""

from __future__ import annotations

from ..module_utils._task.signals import Signals
from ..module_utils._task.specs import LEDGER_INFO
from ..module_utils._task.validation import Options
from ..plugin_utils._csv.entry_files import require_new_file, write_entries
from ..plugin_utils._ledger.commands import settle_command, settle_commands
from ..plugin_utils._ledger.listing import listed
from ..plugin_utils._run.action import Action
from ..plugin_utils._run.given import file_of_playbook, opened_ledger, variable
from ..plugin_utils._run.process import show_lines
from ..plugin_utils._screen.ledger_table import ledger_lines, nothing_found, written_lines

_SHOWS = "__shows_table"  # the variable with which the playbook show_ledger has the table shown, not its JSON

_FILTERS = ("base_url", "resource", "names", "states", "changed_since", "run")


class ActionModule(Action):
    """Takes the options of all modules, so that it can be in their action group, and uses its own."""

    spec = LEDGER_INFO

    def work(self, options: Options, signals: Signals) -> dict:
        params, file = options.params, file_of_playbook(self)
        if file:
            require_new_file(file)
        ledger = opened_ledger(self, params, signals, read_only=True)
        result = listed(ledger, params)
        settle = settle_commands(ledger)
        if not result["entries"]:
            filters = {name: params[name] for name in _FILTERS if params[name]}
            lines = [nothing_found(result["ledger"], filters, ledger.count_states())]
        else:
            lines = ledger_lines(result, settle)
        if not result["exists"]:
            return dict(result, text=lines)
        if file and not self._task.check_mode:
            write_entries(file, result["entries"])
            lines = written_lines(file, result["entries"], settle_command(ledger, file))
        if variable(self, _SHOWS):
            show_lines(lines, stderr=False)
        return dict(result, text=lines, **({"file": file} if file else {}))
