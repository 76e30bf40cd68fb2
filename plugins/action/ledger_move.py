# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Runs ledger_move on the controller, where the ledger is, whatever the connection."""

from __future__ import annotations

from contextlib import closing
from functools import partial

from ..module_utils._task.signals import Signals
from ..module_utils._task.specs import LEDGER_MOVE
from ..module_utils._task.validation import Options
from ..plugin_utils._ledger.location import open_ledger
from ..plugin_utils._ledger.moving import moved, opened_source
from ..plugin_utils._run.action import Action
from ..plugin_utils._run.given import ledger_at, ledger_location


class ActionModule(Action):
    """Takes the options of all modules, so that it can be in their action group, and uses its own."""

    spec = LEDGER_MOVE

    def work(self, options: Options, signals: Signals) -> dict:
        params, check_mode = options.params, self._task.check_mode
        here, there = ledger_location(self, params["ledger"]), ledger_location(self, params["to"], "to")
        with signals.raised():
            source = opened_source(here, check_mode)
        opener = partial(open_ledger, moving=True)
        with closing(source), closing(ledger_at(self, there, params, signals, check_mode, opener)) as target:
            source.database.interruptible = target.database.interruptible = signals.raised
            source.say_waiting = target.say_waiting
            return moved(source, target, check_mode)
