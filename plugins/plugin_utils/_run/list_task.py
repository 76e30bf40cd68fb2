# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A task for a list of assets, in the worker."""

from __future__ import annotations

from functools import partial
from typing import Callable

from ...module_utils._errors import InvalidInput
from ...module_utils._http.transport import Transport, require_libraries
from ...module_utils._list.result import RESULTS_SAY
from ...module_utils._list.sending import Place, send_all
from ...module_utils._task.signals import Signals
from ...module_utils._task.task import Context
from ...module_utils._task.validation import Options
from .._ledger.location import absolute, open_ledger
from .._ledger.queue import Queue
from .._ledger.recording import Recording
from .._screen.report import reported
from . import core, until
from .given import ledger_location, with_absolute_paths
from .process import is_orphan, require_parent
from .shared_token import keep_token

_LEDGER_ELSEWHERE = (
    "a list can use one only inside the Ansible worker (connection: local, no become): elsewhere the outcomes would be"
    " recorded only at the end, and lost with the connection. Nothing was sent. Add delegate_to: localhost and become:"
    " false, or use the module for a single asset in a loop"
)


def send(action, options: Options, in_worker: bool, signals: Signals) -> dict:
    """Return the result of the task; raise ServicesError before anything is sent."""
    params, check_mode = with_absolute_paths(action, options.valid()), action._task.check_mode
    location = ledger_location(action, params["ledger"]) if params["ledger"] else ""
    if not in_worker:
        require_libraries()
        raise InvalidInput("ledger", _LEDGER_ELSEWHERE)
    context = Context(
        check_mode=check_mode,
        secrets=options.secrets,
        connect=Transport,
        keep_token=keep_token,
        guard=require_parent,
        diff_mode=action._task.diff,
        verbosity=action._display.verbosity,
    )
    place = Place(
        no_log=action._task.no_log,
        watch=_watch(action, signals),
        say=partial(action._display.display, stderr=True),  # keeps stdout a document where a callback prints one
        next_step=lambda: _next_step(params, signals),
    )
    # The store is the list's own: threads that outlast it may still use the connection.
    store = open_ledger(location, check_mode) if location else None
    queue = Queue(store) if store and not check_mode else None
    ledger = Recording(store, options.secrets, core.run_id(), check_mode, queue) if store else None
    report = absolute(params["report"], action._loader.get_basedir()) if params["report"] and not check_mode else ""
    resource = action.spec.resource.operation.resource
    with reported(report, resource, core.run_id(), store.file if store else "", action._display.warning) as results:
        result = send_all(action.spec, params, context, place, ledger)
        results.extend(result["results"])
    return until.remember(action, result)


def _watch(action, signals: Signals) -> Callable[[], str]:
    """Return a function that says why to end now, empty to go on."""

    def watch() -> str:
        if signals.caught:
            return f"the task received {signals.name}"
        if signals.is_late:
            return f"the keyword timeout ({action._task.timeout} seconds) expired"
        return "the run of Ansible that the task belongs to has ended" if is_orphan() else ""

    return watch


def _next_step(params: dict, signals: Signals) -> str:
    """Return where to look for what is known of each item; after a signal, nobody receives the results."""
    if not signals.caught:
        return RESULTS_SAY
    if params["report"]:
        return f"The report {params['report']} says what is known of each."
    if params["ledger"]:
        return (
            "infrastructure.services.ledger_info lists what is in doubt (states: [in_doubt]). Settle that, if there"
            " is anything, then run the task again with the same ledger: it sends the rest."
        )
    return "Look on the service for those in doubt before you send the list again: without a ledger none is recorded."
