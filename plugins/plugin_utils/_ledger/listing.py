# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Lists the entries of the ledger, above all those in doubt; nothing is changed."""

from __future__ import annotations

import fnmatch
import re
from itertools import groupby
from typing import Any, Callable

from ...module_utils._errors import NOT_SENT
from ...module_utils._fields import prune
from ...module_utils._http.urls import canonical_url, checked_url
from ...module_utils._resources import KEYS
from ...module_utils._resources.virtual_machine import VIRTUAL_MACHINE
from ...module_utils._task.specs import IN_DOUBT
from .commands import settling
from .entries import DONE, STATES, Entry, Key
from .store import Ledger
from .tables import like

_MOST_GLOBS = 100  # in one statement; SQLite takes no expression deeper than 1,000


def listed(ledger: Ledger, params: dict) -> dict[str, Any]:
    """Return the task's result: the entries that match the filters, and how many are in each state.

    Raises InvalidInput or LedgerError.
    """
    found = ledger.entries(_filters(params), _named(params["names"]))
    entries = [{**_shown(key, entry), **settling(ledger, key, entry)} for key, entry in found]
    if params["history"]:
        history = _history(ledger, [key for key, _entry in found])
        entries = [
            dict(shown, history=history.get(key, []))
            for shown, (key, _entry) in zip(entries, found)
        ]
    counts = {state: sum(entry.state == state for _key, entry in found) for state in STATES}
    return dict(
        changed=False,
        outcome=NOT_SENT,
        entries=entries,
        counts=counts,
        ledger=ledger.where,
        ledger_id=ledger.ledger_id or None,
        exists=not ledger.is_new,
    )


def _history(ledger: Ledger, keys: list[Key]) -> dict[Key, list[dict]]:
    """Return how the attempts of the assets ended, as it is shown."""
    found = {}
    for group, some in groupby(keys, lambda key: key[:2]):
        for name, rows in ledger.history(*group, [key.name for key in some]).items():
            found[Key(*group, name)] = [
                dict(ended._asdict(), trace_id=ended.trace_id or None) for ended in rows
            ]
    return found


def _filters(params: dict) -> dict[str, tuple]:
    where, states = {}, set(params["states"] or ())
    if params["base_url"]:
        base_url = checked_url("base_url", params["base_url"], allow_http=True)
        where["base_url = ?"] = (canonical_url(base_url),)
    if params["resource"]:
        where["resource = ?"] = (params["resource"],)
    if IN_DOUBT in states:
        states = states - {IN_DOUBT} | {*STATES} - {DONE}
    if states:
        where[f"state IN ({', '.join('?' * len(states))})"] = tuple(states)
    if params["run"]:
        where["run = ?"] = (params["run"],)
    globs = params["names"] or ()
    if globs and len(globs) <= _MOST_GLOBS:  # what may match; `_named` decides
        where[f"({' OR '.join(['name LIKE ?'] * len(globs))})"] = tuple(
            like(glob.partition("[")[0]) for glob in globs
        )
    if params["changed_since"]:
        where["changed_at >= ?"] = (params["changed_since"],)
    return where


def _named(globs: list[str] | None) -> Callable[[str], object]:
    """Return a function that says whether a name matches one of the globs; without globs, every
    name does.
    """
    return re.compile("|".join(map(fnmatch.translate, globs))).match if globs else lambda name: True


def _shown(key: Key, entry: Entry) -> dict[str, Any]:
    option = KEYS.get(key.resource, "name")
    shown = {
        "base_url": key.base_url,
        "resource": key.resource,
        option: key.name,
        **entry._asdict(),
    }
    del shown["revision"]
    return dict(
        shown,
        asset=entry.asset or None,
        trace_id=entry.trace_id or None,
        options=_options(key, entry),
    )


def _options(key: Key, entry: Entry) -> dict[str, Any]:
    """Return the options with which the asset's module would find nothing to change."""
    if key.resource != VIRTUAL_MACHINE.operation.resource:
        same = {name: value for name, value in prune(entry.asset).items() if name != "id"}
        return {"id": key.name, "body": same if entry.state == DONE and same else entry.sent}
    sent, typed = entry.sent.get("attributes") or {}, VIRTUAL_MACHINE.attributes
    extra = {name: value for name, value in sent.items() if name not in typed}
    given = {
        "name": key.name,
        "attributes": {name: value for name, value in sent.items() if name in typed},
    }
    return {**given, "extra_attributes": extra} if extra else given
