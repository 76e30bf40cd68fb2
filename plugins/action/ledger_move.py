# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Runs ledger_move on the controller, where the ledger is, whatever the connection."""

from __future__ import annotations

from contextlib import closing

from ..module_utils._task.signals import Signals
from ..module_utils._task.specs import LEDGER_MOVE
from ..module_utils._task.validation import Options
from ..plugin_utils._ledger.location import open_ledger
from ..plugin_utils._ledger.moving import move_ledger, open_source
from ..plugin_utils._ledger.store import Ledger
from ..plugin_utils._run.action import Action
from ..plugin_utils._run.given import ledger_location
from ..plugin_utils._run.process import say
from ..plugin_utils._screen.screen import waiting_line


class ActionModule(Action):
    """Takes the options of all modules, so that it can be in their action group, and uses its own."""

    spec = LEDGER_MOVE

    def work(self, options: Options, signals: Signals) -> dict:
        params, check_mode = options.params, self._task.check_mode
        here, there = (
            ledger_location(self, params["ledger"]),
            ledger_location(self, params["to"], "to"),
        )
        required_by = "" if params["ledger_create"] else "ledger_create"
        with signals.raised():
            source = open_source(here, check_mode)

        def open_target(read_only: bool) -> Ledger:
            with signals.raised():
                target = open_ledger(there, read_only, required_by, moving=True)
            target.database.interruptible = signals.raised
            return target

        with closing(source):
            source.database.interruptible = signals.raised
            if not self._task.no_log:
                source.say_waiting = lambda keys, entry: say(signals, waiting_line(keys, entry))
            return move_ledger(source, open_target, check_mode)
