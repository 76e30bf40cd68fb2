# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Runs ledger_entry on the controller, where the ledger is, whatever the connection."""

from __future__ import annotations

from ..module_utils._errors import InvalidInput
from ..module_utils._task import entry_options
from ..module_utils._task.task import given_secrets
from ..plugin_utils._ledger.editing import edited
from ..plugin_utils._worker.action import Facts, ServicesAction
from ..plugin_utils._worker.core import run_id


class ActionModule(ServicesAction):
    """Takes the options of all modules, so that it can be in their action group, and uses its own."""

    resource = entry_options

    def _facts(self) -> Facts:
        return Facts("local", is_async=False, becomes=False, has_environment=False, has_requests=True)

    def _by_the_book(self, location, execute) -> dict:
        secrets = self._secrets | given_secrets(self._params)
        result = edited(self._open(location), self._params, self._task.check_mode, secrets, run_id())
        return {key: value for key, value in result.items() if key != "diff" or self._task.diff}

    def _here(self, recorded) -> dict:
        raise InvalidInput("ledger", "is empty")

    def _shown_params(self) -> dict:
        return {name: self._params[name] for name in entry_options.ARGUMENT_SPEC}
