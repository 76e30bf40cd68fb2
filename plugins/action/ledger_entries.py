# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Runs ledger_entries on the controller, whatever the connection of the task."""

from __future__ import annotations

from ..module_utils._fields import Params
from ..module_utils._result import Returned
from ..module_utils._task.specs import LEDGER_ENTRIES
from ..module_utils._task.validation import Options
from ..plugin_utils._csv.entry_files import entries_in
from ..plugin_utils._ledger.editing import Editor
from ..plugin_utils._run.ledger_actions import EditingAction
from ..plugin_utils._run.role import DELIMITER
from ..plugin_utils._screen.ledger_table import edit_lines
from ..plugin_utils._screen.recovered import entries_in_reports


class ActionModule(EditingAction):
    """Edits many entries."""

    spec = LEDGER_ENTRIES

    def options_given(self) -> Params:
        """Return the options; some playbooks take the entries from files."""
        given = super().options_given()
        reports = self.reports_of_playbook()
        file = self.file_of_playbook()
        if reports:
            return dict(given, entries=entries_in_reports(reports))
        if file:
            delimiter = self.variable(DELIMITER) or ""
            return dict(given, entries=entries_in(file, delimiter))
        return given

    def edit(self, editor: Editor, params: Params) -> Returned:
        return editor.edit_entries(params, only_adds=bool(self.reports_of_playbook()))

    def work(self, options: Options) -> Returned:
        result = super().work(options)
        self.show(edit_lines(result["counts"], result["names"], self.keywords.check_mode))
        return result
