# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Runs ledger_move on the controller, whatever the connection of the task."""

from __future__ import annotations

from contextlib import closing, contextmanager
from typing import Iterator

from ..module_utils._errors import InvalidInput
from ..module_utils._fields import Params
from ..module_utils._result import Returned
from ..module_utils._task.specs import LEDGER_MOVE
from ..module_utils._task.validation import Options
from ..plugin_utils._ledger.location import open_ledger
from ..plugin_utils._ledger.moving import move_ledger, open_source
from ..plugin_utils._ledger.renaming import move_entries
from ..plugin_utils._ledger.store import Ledger
from ..plugin_utils._run.ansible_core import run_id
from ..plugin_utils._run.ledger_actions import LedgerAction
from ..plugin_utils._run.ledgers import (
    ledger_location,
    requiring_option,
    reused_ledger,
    show_news,
    waiting_of,
)


class ActionModule(LedgerAction):
    """Moves a ledger, or the entries of a service within it."""

    spec = LEDGER_MOVE

    def work(self, options: Options) -> Returned:
        params = options.params
        check_mode = self.keywords.check_mode
        if params["to_base_url"] is not None:
            return self._move_entries(params, check_mode)
        here = ledger_location(self, params["ledger"])
        there = ledger_location(self, params["to"], "to")
        required_by = requiring_option(self, params)
        waiting = waiting_of(self)

        def open_target(read_only: bool) -> Ledger:
            with self.signals.raised(), _by_its_name("to"):
                target = open_ledger(there, read_only, required_by, moving=True)
            target.wait_like(waiting)
            return target

        with self.signals.raised():
            source = open_source(here, check_mode)
        with closing(source):
            show_news(self, source, here, check_mode)
            source.wait_like(waiting)
            return move_ledger(source, open_target, check_mode)

    def _move_entries(self, params: Params, check_mode: bool) -> Returned:
        found = reused_ledger(self, params, read_only=True, shows_news=False)
        is_missing = not found.version  # and stays so
        ledger = reused_ledger(self, params, read_only=check_mode or is_missing)
        urls = params["base_url"], params["to_base_url"]
        return move_entries(ledger, *urls, check_mode, run_id())


@contextmanager
def _by_its_name(option: str) -> Iterator[None]:
    """Name this option in errors about the ledger that is opened."""
    try:
        yield
    except InvalidInput as error:
        raise error.renamed(lambda _ledger: option, error.effect) from None
