# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Runs ledger_move on the controller, whatever the connection of the task."""

from __future__ import annotations

from contextlib import closing

from ..module_utils._task.specs import LEDGER_MOVE
from ..module_utils._task.validation import Options
from ..plugin_utils._ledger.location import open_ledger
from ..plugin_utils._ledger.moving import move_ledger, open_source
from ..plugin_utils._ledger.store import Ledger
from ..plugin_utils._run.ansible_core import Returned
from ..plugin_utils._run.ledger_actions import LedgerAction
from ..plugin_utils._run.ledgers import ledger_location, show_waiting


class ActionModule(LedgerAction):
    """Moves a ledger."""

    spec = LEDGER_MOVE

    def work(self, options: Options) -> Returned:
        params, check_mode = options.params, self.keywords.check_mode
        here = ledger_location(self, params["ledger"])
        there = ledger_location(self, params["to"], "to")
        required_by = "" if params["ledger_create"] else "ledger_create"
        with self.signals.raised():
            source = open_source(here, check_mode)

        def open_target(read_only: bool) -> Ledger:
            with self.signals.raised():
                target = open_ledger(there, read_only, required_by, moving=True)
            target.database.interruptible = self.signals.raised
            return target

        with closing(source):
            source.database.interruptible = self.signals.raised
            show_waiting(self, source)
            return move_ledger(source, open_target, check_mode)
