# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Runs ledger_entry on the controller, where the ledger is, whatever the connection."""

from __future__ import annotations

from ..module_utils._errors import InvalidInput, ServicesError
from ..module_utils._task.specs import LEDGER_ENTRY
from ..module_utils._task.validation import Options
from ..plugin_utils._ledger.editing import edited
from ..plugin_utils._ledger.entries import ABSENT
from ..plugin_utils._run.checked import CheckedAction
from ..plugin_utils._run.core import run_id


class ActionModule(CheckedAction):
    """Takes the options of all modules, so that it can be in their action group, and uses its own."""

    spec = LEDGER_ENTRY

    def _run(self) -> dict:
        options = self.validated()
        try:
            if not options.valid()["ledger"]:
                raise InvalidInput("ledger", "is empty")
            result = self._edited(options)
        except ServicesError as error:
            result = options.secrets.scrub(error.result())
        result = {key: value for key, value in result.items() if key != "diff" or self._task.diff}
        return self.with_invocation(result, options)

    def _edited(self, options: Options) -> dict:
        """Return the result; no ledger is created in order to forget an entry."""
        params, check_mode = options.params, self._task.check_mode
        if check_mode or params["state"] == ABSENT:
            reader = self.open_ledger(params["ledger"], read_only=True)
            if check_mode or not reader.version:
                return edited(reader, params, True, options.secrets)
        return edited(self.open_ledger(params["ledger"]), params, False, options.secrets, run_id())
