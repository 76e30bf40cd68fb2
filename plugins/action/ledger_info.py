# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Runs ledger_info on the controller, where the ledger is, whatever the connection."""

from __future__ import annotations

from ..module_utils._task.signals import Signals
from ..module_utils._task.specs import IN_DOUBT, LEDGER_INFO
from ..module_utils._task.validation import Options
from ..plugin_utils._ledger.commands import settle_commands
from ..plugin_utils._ledger.listing import listed
from ..plugin_utils._run.action import Action
from ..plugin_utils._run.given import file_of_playbook, opened_ledger, variable
from ..plugin_utils._run.process import show_lines
from ..plugin_utils._screen.screen import ledger_lines

_SHOWS = "__shows_table"  # the variable with which the playbook show_ledger has the table shown, not its JSON


class ActionModule(Action):
    """Takes the options of all modules, so that it can be in their action group, and uses its own."""

    spec = LEDGER_INFO

    def work(self, options: Options, signals: Signals) -> dict:
        file = file_of_playbook(self)
        ledger = opened_ledger(self, options.params, signals, read_only=True)
        result = listed(ledger, options.params)
        what = "in doubt" if options.params["states"] == [IN_DOUBT] else "recorded"
        lines = ledger_lines(result, settle_commands(ledger), what)
        if variable(self, _SHOWS) and result["exists"]:
            show_lines(lines, stderr=False)
        return dict(result, text=lines, **({"file": file} if file else {}))
