# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Lists the entries of the ledger, above all those in doubt; changes nothing."""

from __future__ import annotations

import fnmatch
import re
from itertools import groupby
from typing import Any

from ...module_utils._errors import NOT_SENT
from ...module_utils._fields import Params, prune
from ...module_utils._http.urls import recorded_url
from ...module_utils._resources import KEYS
from ...module_utils._resources.virtual_machine import VIRTUAL_MACHINE
from ...module_utils._result import Returned
from ...module_utils._task.specs import IN_DOUBT
from .commands import settling
from .entries import DONE, STATES, STATES_IN_DOUBT, Entry, Key
from .store import Ledger


def list_entries(ledger: Ledger, params: Params) -> Returned:
    """Return the result of ledger_info: the entries that match the filters, and counts by state.

    Raises InvalidInput or LedgerError.
    """
    name = re.compile("|".join(map(fnmatch.translate, params["names"] or ["*"])))
    found = ledger.entries(_filters(params), lambda text: name.match(text) is not None)
    history = _history(ledger, [key for key, _entry in found]) if params["history"] else {}
    counts = dict.fromkeys(STATES, 0)
    entries = []
    for key, entry in found:
        counts[entry.state] += 1
        entries.append({**_listed(key, entry), **settling(ledger.shown, key, entry)})
        if params["history"]:
            entries[-1]["history"] = history.get(key, [])
    return dict(
        changed=False,
        outcome=NOT_SENT,
        entries=entries,
        counts=counts,
        ledger=ledger.where,
        ledger_id=ledger.ledger_id or None,
        exists=not ledger.is_new,
    )


def _history(ledger: Ledger, keys: list[Key]) -> dict[Key, list[dict[str, Any]]]:
    """Return how the attempts of the assets ended; `keys` are sorted."""
    shown = {}
    for (base_url, resource), group in groupby(keys, lambda key: (key.base_url, key.resource)):
        history = ledger.history(base_url, resource, [key.name for key in group])
        for name, rows in history.items():
            key = Key(base_url, resource, name)
            shown[key] = [dict(row._asdict(), trace_id=row.trace_id or None) for row in rows]
    return shown


def _filters(params: Params) -> dict[str, tuple[str, ...]]:
    """Return the SQL conditions of the filters, with their values."""
    where: dict[str, tuple[str, ...]] = {}
    if params["base_url"]:
        where["base_url = ?"] = (recorded_url("base_url", params["base_url"]),)
    if params["resource"]:
        where["resource = ?"] = (params["resource"],)
    states = set(params["states"] or ())
    if IN_DOUBT in states:
        states.remove(IN_DOUBT)
        states.update(STATES_IN_DOUBT)
    if states:
        where[f"state IN ({', '.join('?' * len(states))})"] = tuple(states)
    if params["run"]:
        where["run = ?"] = (params["run"],)
    if params["changed_since"]:
        where["changed_at >= ?"] = (params["changed_since"],)
    return where


def _listed(key: Key, entry: Entry) -> dict[str, Any]:
    """Return an entry as results show it."""
    option = KEYS.get(key.resource, "name")
    shown: dict[str, Any] = {"base_url": key.base_url, "resource": key.resource, option: key.name}
    shown.update(entry._asdict(), asset=entry.asset or None, trace_id=entry.trace_id or None)
    del shown["revision"]
    return dict(shown, options=_options(key, entry))


def _options(key: Key, entry: Entry) -> Params:
    """Return the options with which the asset's module would find nothing to change."""
    if key.resource != VIRTUAL_MACHINE.operation.resource:
        asset = {name: value for name, value in entry.asset.items() if name != "id"}
        same = prune(asset) if entry.state == DONE else None
        return {"id": key.name, "body": same or entry.sent}
    options: Params = {"name": key.name, "attributes": {}}
    for name, value in (entry.sent.get("attributes") or {}).items():
        option = "attributes" if name in VIRTUAL_MACHINE.attributes else "extra_attributes"
        options.setdefault(option, {})[name] = value
    return options
