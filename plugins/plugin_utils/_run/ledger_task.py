# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The tasks that read or edit the ledger itself; nothing is sent."""

from __future__ import annotations

from ...module_utils._errors import InvalidInput, ServicesError
from ...module_utils._secrets import Secrets
from ...module_utils._task.signals import Signals
from .._ledger.editing import edited
from .._ledger.entries import ABSENT
from .._ledger.listing import listed
from .._ledger.store import Ledger
from . import core
from .given import ledger_location, validated, with_invocation
from .kept import kept_ledger


def list_entries(action, signals: Signals) -> dict:
    """Do the work of ledger_info."""
    options = validated(action)
    try:
        result = listed(_opened(action, options.valid(), signals, read_only=True), options.params)
    except ServicesError as error:
        result = options.secrets.scrub(error.result())
    return with_invocation(action, core.untrusted(result), options)


def edit_entry(action, signals: Signals) -> dict:
    """Do the work of ledger_entry."""
    options = validated(action)
    try:
        result = _edited(action, options.valid(), options.secrets, signals)
    except ServicesError as error:
        result = options.secrets.scrub(error.result())
    if not action._task.diff:
        result.pop("diff", None)
    return with_invocation(action, result, options)


def _edited(action, params: dict, secrets: Secrets, signals: Signals) -> dict:
    """Return the result; no ledger is created in order to forget an entry."""
    check_mode = action._task.check_mode
    if check_mode or params["state"] == ABSENT:
        reader = _opened(action, params, signals, read_only=True)
        if check_mode or not reader.version:
            return edited(reader, params, True, secrets)
    return edited(_opened(action, params, signals), params, False, secrets, core.run_id())


def _opened(action, params: dict, signals: Signals, read_only: bool = False) -> Ledger:
    if not params["ledger"]:
        raise InvalidInput("ledger", "is empty")
    ledger = kept_ledger(ledger_location(action, params["ledger"]), read_only)
    ledger.interruptible = signals.raised
    return ledger
