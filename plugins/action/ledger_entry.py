# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Runs ledger_entry on the controller, where the ledger is, whatever the connection."""

from __future__ import annotations

from ..module_utils._task.signals import Signals
from ..module_utils._task.specs import LEDGER_ENTRY
from ..module_utils._task.validation import Options
from ..plugin_utils._ledger.editing import edit_entry
from ..plugin_utils._ledger.store import Ledger
from ..plugin_utils._run.action import Action
from ..plugin_utils._run.given import edit_ledger
from ..plugin_utils._run.process import run_id


class ActionModule(Action):
    """Takes the options of all modules, so that it can be in their action group, and uses its own."""

    spec = LEDGER_ENTRY

    def work(self, options: Options, signals: Signals) -> dict:
        params = options.params

        def edit(ledger: Ledger, check_mode: bool) -> dict:
            return edit_entry(ledger, params, check_mode, options.secrets, run_id())

        return edit_ledger(self, params, signals, edit)
