# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Actions on the ledger alone: they run on the controller, whatever the connection of the task."""

from __future__ import annotations

from ...module_utils._fields import Params
from ...module_utils._result import Returned
from ...module_utils._task.validation import Options
from .._ledger.editing import Editor
from .._ledger.location import absolute
from .action import Action
from .ansible_core import run_id
from .ledgers import reused_ledger
from .role import FILE, REPORTS


class LedgerAction(Action):
    """Accepts the options of all modules, so that it can be in their action group."""

    def file_of_playbook(self) -> str:
        """Return the absolute path of the file given to a playbook, '' if none is.

        The playbook cannot make it absolute: no lookup knows the working directory, and no filter
        knows the directory of the playbook. Raise InvalidInput.
        """
        given = self.variable(FILE)
        return absolute("file", str(given), self.playbook_directory) if given else ""

    def reports_of_playbook(self) -> list[str]:
        """Return the absolute paths of the reports given to a playbook; raise InvalidInput."""
        paths = self.list_variable(REPORTS, "report")
        return [absolute("report", path, self.playbook_directory) for path in paths]


class EditingAction(LedgerAction):
    """Edits entries of the ledger."""

    def edit(self, editor: Editor, params: Params) -> Returned:
        """Edit entries and return the result; raise ServicesError."""
        raise NotImplementedError

    def work(self, options: Options) -> Returned:
        """Create a missing ledger only for an edit that adds something."""
        params = options.params
        if not self.keywords.check_mode:
            found = reused_ledger(self, params, read_only=True, shows_news=False)
            trial = Editor(found, options.secrets, check_mode=True)
            if found.version or self.edit(trial, params)["changed"]:
                ledger = reused_ledger(self, params, read_only=False)
                return self.edit(Editor(ledger, options.secrets, run=run_id()), params)
        ledger = reused_ledger(self, params, read_only=True)
        return self.edit(Editor(ledger, options.secrets, check_mode=True), params)
