# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A task that sends requests, from its options to its result: in the worker where that is safe, else on the target."""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

from ...module_utils._errors import ServicesError
from ...module_utils._http.transport import requests
from ...module_utils._task.signals import Interrupted, Signals
from ...module_utils._task.task import Context, Planned, carry_out, perform, prepare
from ...module_utils._task.validation import Options
from .._ledger.recording import Recording
from . import core, list_task, until
from .given import ledger_given, ledger_location, options_given, validated, with_absolute_paths, with_invocation
from .kept import kept_ledger, kept_transport
from .process import require_parent
from .shared_token import keep_token
from .target import Target


class Conditions(NamedTuple):
    """What decides where a task runs."""

    connection: str
    is_async: bool
    becomes: bool
    has_requests: bool


def runs_in_worker(conditions: Conditions) -> bool:
    """Whether the module would run on the worker's host anyway, as the same user."""
    return (
        conditions.connection == "local" and conditions.has_requests and not (conditions.is_async or conditions.becomes)
    )


def send(action, signals: Signals) -> dict:
    """Do the work of a module that sends requests, for one asset or for a list of them."""
    task = action._task
    conditions = Conditions(action._connection.transport, bool(task.async_val), action.becomes, requests is not None)
    in_worker = runs_in_worker(conditions)
    if not in_worker and ledger_given(action) == "":
        return until.remember(action, Target(action, options_given(action), signals).run())
    options = validated(action)
    try:
        require_parent()
        result = (list_task.send if action.spec.option else _send_one)(action, options, in_worker, signals)
    except ServicesError as error:
        result = options.secrets.scrub(error.result())
    weak = () if action.module_was_started else options.secrets.warnings()  # else the module has warned
    warnings = [*weak, *result.pop("warnings", ())]
    result = dict(result, warnings=warnings) if warnings else result
    return with_invocation(action, core.untrusted(result), options) if in_worker else result


def _send_one(action, options: Options, in_worker: bool, signals: Signals) -> dict:
    """Return the result of a task for one asset; raise ServicesError before anything is sent."""
    params, check_mode = with_absolute_paths(action, options.valid()), action._task.check_mode
    task = prepare(action.spec.resource, params)
    context = Context(
        check_mode=check_mode,
        secrets=options.secrets,
        connect=kept_transport,
        keep_token=keep_token,
        guard=require_parent,
        interruptible=signals.raised,
        interrupts=(core.TIMEOUT, Interrupted, MemoryError),
        diff_mode=action._task.diff,
        verbosity=action._display.verbosity,
    )
    send_here = partial(perform, context=context)
    send = send_here if in_worker else Target(action, options.given, signals).send

    def send_once(planned: Planned) -> dict:
        return until.remember(action, send(planned))

    if not params["ledger"]:
        return carry_out(task.planned(), context, send_once)
    store = kept_ledger(ledger_location(action, params["ledger"]), check_mode)
    store.interruptible = signals.raised
    ledger = Recording(store, options.secrets, core.run_id(), check_mode)
    (planned,) = ledger.look_up([task])
    result = carry_out(planned, context, send_once, ledger)
    return dict(result, warnings=[*ledger.warnings, *result.get("warnings", ())])
