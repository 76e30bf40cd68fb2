# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Runs ledger_info on the controller, where the ledger is, whatever the connection."""

from __future__ import annotations

from ..module_utils._errors import InvalidInput, ServicesError
from ..module_utils._task.specs import LEDGER_INFO
from ..plugin_utils._ledger.listing import listed
from ..plugin_utils._run.checked import CheckedAction
from ..plugin_utils._run.core import untrusted


class ActionModule(CheckedAction):
    """Takes the options of all modules, so that it can be in their action group, and uses its own."""

    spec = LEDGER_INFO

    def _run(self) -> dict:
        options = self.validated()
        try:
            if not options.valid()["ledger"]:
                raise InvalidInput("ledger", "is empty")
            result = listed(self.open_ledger(options.params["ledger"], read_only=True), options.params)
        except ServicesError as error:
            result = options.secrets.scrub(error.result())
        return self.with_invocation(untrusted(result), options)
