# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Runs ledger_info on the controller, where the ledger is, whatever the connection."""

from __future__ import annotations

from ..module_utils._errors import InvalidInput
from ..module_utils._task import info_options
from ..plugin_utils._ledger.listing import listed
from ..plugin_utils._ledger.location import located, open_ledger
from ..plugin_utils._worker.action import Facts, ServicesAction


class ActionModule(ServicesAction):
    """Takes the options of all modules, so that it can be in their action group, and uses its own."""

    resource = info_options

    def _facts(self) -> Facts:
        return Facts("local", is_async=False, becomes=False, has_environment=False, has_requests=True)

    def _by_the_book(self, location, execute) -> dict:
        given = self._task.args.get("ledger") is not None
        ledger = open_ledger(located(location, self._loader.get_basedir(), from_environment=not given), read_only=True)
        try:
            return listed(ledger, self._params)
        finally:
            ledger.close()

    def _here(self, recorded) -> dict:
        raise InvalidInput("ledger", "is empty")

    def _shown_params(self) -> dict:
        return {name: self._params[name] for name in info_options.ARGUMENT_SPEC}
