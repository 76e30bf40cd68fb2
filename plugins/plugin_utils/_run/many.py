# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Runs a module for a list inside the Ansible worker where that is safe, else on the target."""

from __future__ import annotations

import signal
from dataclasses import replace
from functools import partial
from typing import ContextManager

from ...module_utils._errors import InvalidInput, listing
from ...module_utils._http.transport import Transport, require_libraries
from ...module_utils._list.result import RESULTS_SAY
from ...module_utils._list.sending import Place, perform_all
from ...module_utils._resources.flow import kept_in
from ...module_utils._task.shutdown import recorded_signals
from ...module_utils._task.specs import ModuleSpec
from ...module_utils._task.task import Runtime
from ...module_utils._task.validation import Options
from .._ledger.location import absolute
from .._ledger.many import LedgerOfMany
from .._ledger.store import Ledger
from .._screen.report import reported
from . import core
from .action import ServicesAction, warned
from .checked import NOT_WITH_ASYNC
from .parent import is_orphan, require_parent
from .shared_token import keep_token


class PluralAction(ServicesAction):
    """The action plugin of a module for a list."""

    plural: ModuleSpec

    def _run_valid(self, options: Options, in_worker: bool) -> dict:
        options.valid()
        self._require_worker(in_worker)
        params, secrets = {**options.params, **self._absolute_paths(options.params)}, options.secrets
        check_mode = self._task.check_mode
        opened = self.open_ledger(params["ledger"]) if params["ledger"] else None
        ledger = opened and LedgerOfMany(opened, secrets, core.run_id(), check_mode)
        if opened and not params["force"]:
            self.plural = replace(self.plural, resource=kept_in(self.plural.resource, opened.in_doubt_command))
        report = self._report("" if check_mode else params["report"], opened)
        # The keyword timeout would lose all results.
        with recorded_signals(signal.SIGALRM) as alarms, report as results:
            runtime = Runtime(check_mode, Transport, keep_token, require_parent)
            say = partial(self._display.display, stderr=True)  # keeps stdout a document where a callback prints one
            next_step = partial(self._next_step, params)
            shown = self._task.diff, self._display.verbosity, self._task.no_log
            place = Place(runtime, *shown, self._watch(alarms), say, next_step)
            done = perform_all(self.plural, params, place, secrets, ledger)
            results.extend(done.result["results"])
        return self._remembered(core.untrusted(warned(done.result, secrets, done.warnings)))

    def _require_worker(self, in_worker: bool) -> None:
        """Raise InvalidInput if a list with a ledger would not run in the worker."""
        if self._task.async_val:
            raise InvalidInput("ledger", f"{NOT_WITH_ASYNC}: the task itself sends several at once (concurrency)")
        if not in_worker:
            require_libraries()
            raise InvalidInput(
                "ledger",
                "a list can use one only inside the Ansible worker (connection: local, no become): elsewhere the"
                " outcomes would be recorded only at the end, and lost with the connection. Nothing was sent. Add"
                " delegate_to: localhost and become: false, or use the module for a single asset in a loop",
            )

    def _asset(self, arguments: dict) -> str:
        items = arguments.get(self.plural.option)
        keys = [str(item.get(self.plural.key)) for item in items or () if isinstance(item, dict)]
        return f"{self.resource.operation.noun}s {listing(keys)}"

    def _report(self, path: str | None, ledger: Ledger | None) -> ContextManager[list[dict]]:
        path, ledger_file = absolute(path, self._loader.get_basedir()) if path else "", ledger.file if ledger else ""
        resource = self.plural.resource.operation.resource
        return reported(path, resource, core.run_id(), ledger_file, self._display.warning)

    def _next_step(self, params: dict) -> str:
        """Return where to look for what is known of each item; after a signal, nobody receives the results."""
        if not self.signals.caught:
            return RESULTS_SAY
        if params["report"]:
            return f"The report {params['report']} says what is known of each."
        if params["ledger"]:
            return (
                "infrastructure.services.ledger_info lists what is in doubt (states: [in_doubt]). Settle that, if there"
                " is anything, then run the task again with the same ledger: it sends the rest."
            )
        return (
            "Look on the service for those in doubt before you send the list again: without a ledger none is recorded."
        )

    def _watch(self, alarms: list[int]):
        """Return a function that says why to end now, empty to go on."""

        def watch() -> str:
            if self.signals.caught:
                return f"the task received {signal.Signals(self.signals.caught[0]).name}"
            if alarms:
                return f"the keyword timeout ({self._task.timeout} seconds) expired"
            return "the run of Ansible that the task belongs to has ended" if is_orphan() else ""

        return watch
