# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Runs ledger_entries on the controller, where the ledger is, whatever the connection."""

from __future__ import annotations

from ..module_utils._task.signals import Signals
from ..module_utils._task.specs import LEDGER_ENTRIES
from ..module_utils._task.validation import Options
from ..plugin_utils._csv.entry_files import entries_in
from ..plugin_utils._ledger.editing import edit_entries
from ..plugin_utils._ledger.store import Ledger
from ..plugin_utils._run.action import Action
from ..plugin_utils._run.given import edit_ledger, file_of_playbook
from ..plugin_utils._run.process import run_id, show_lines
from ..plugin_utils._screen.ledger_table import edit_lines


class ActionModule(Action):
    """Takes the options of all modules, so that it can be in their action group, and uses its own."""

    spec = LEDGER_ENTRIES

    def given(self) -> dict:
        """Return the options; the entries are those of a file for the playbook `settle`."""
        file = file_of_playbook(self)
        return dict(super().given(), entries=entries_in(file)) if file else super().given()

    def work(self, options: Options, signals: Signals) -> dict:
        params = options.params

        def edit(ledger: Ledger, check_mode: bool) -> dict:
            return edit_entries(ledger, params, check_mode, options.secrets, run_id())

        result = edit_ledger(self, params, signals, edit)
        show_lines(edit_lines(result["counts"], result["names"], self._task.check_mode))
        return result
