# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Shows, adopts, corrects and forgets one entry of the ledger; nothing is sent."""

from __future__ import annotations

from contextlib import nullcontext

from ...module_utils._errors import NOT_SENT, InvalidInput
from ...module_utils._http import strict_json
from ...module_utils._http.urls import canonical_url, checked_url
from ...module_utils._resources.flow import ENVELOPE
from ...module_utils._secrets import scrub
from ...module_utils._task.entry_options import KEYS
from .store import DONE, Entry, Key, Ledger

ABSENT = "absent"


def edited(ledger: Ledger, params: dict, check_mode: bool, secrets: set[str]) -> dict:
    """Bring one entry into the wanted state and return the task's result; raise InvalidInput or LedgerError.

    Waits for a task that is at work on the asset, except in check mode.
    """
    key = _key(params)
    wanted = scrub(_envelope(params), secrets) if params["asset"] is not None else None
    with nullcontext() if check_mode else ledger.hold(key):
        before = ledger.get(key)
        after = _after(params, key, before, wanted)
        changed = after != before
        if changed and not check_mode:
            _write(ledger, key, after)
            after = ledger.get(key)
    return dict(_result(key, before, after), changed=changed, warnings=_doubts(params))


def _key(params: dict) -> Key:
    """Return the key under which the modules file the asset; `http://` is fine, since nothing is sent."""
    option = KEYS[params["resource"]]
    if not params[option].strip():
        raise InvalidInput(option, "must not be empty")
    base_url = canonical_url(checked_url("base_url", params["base_url"], allow_http=True))
    return Key(base_url, params["resource"], params[option])


def _envelope(params: dict) -> dict:
    """Return the asset with every field of an envelope; raise InvalidInput."""
    asset, option = params["asset"], KEYS[params["resource"]]
    if params["state"] == ABSENT:
        raise InvalidInput("asset", "does not go with state: absent")
    if not asset or not isinstance(asset.get("attributes", {}), dict):
        raise InvalidInput("asset", "must be the envelope of the asset, with attributes (a dict)")
    strict_json.encode(asset, "asset")
    return {**dict.fromkeys(ENVELOPE), option: params[option], **asset}


def _after(params: dict, key: Key, before: Entry | None, asset: dict | None) -> Entry | None:
    """Return the entry as it is to be, None for none; raise InvalidInput when there is nothing to show."""
    if params["state"] == ABSENT:
        return None
    if asset is not None:
        if before and (before.state, before.asset) == (DONE, asset):
            return before
        adopted = {"name": asset["name"], "attributes": asset["attributes"] or {}}
        return Entry(DONE, before.sent if before and before.state != DONE else adopted, asset)
    if before is None:
        raise InvalidInput("asset", f"the ledger has no entry for {key.resource} {key.name} of {key.base_url}")
    return before


def _write(ledger: Ledger, key: Key, entry: Entry | None) -> None:
    if entry:
        ledger.put(key, entry)
    else:
        ledger.delete(key)


def _doubts(params: dict) -> list[str]:
    """Return a warning when the asset has another name or id than the one it is filed under."""
    option = KEYS[params["resource"]]
    given = (params["asset"] or {}).get(option, params[option])
    return [] if given == params[option] else [f"asset.{option} is {given}, but {option} is {params[option]}."]


def _result(key: Key, before: Entry | None, after: Entry | None) -> dict:
    title = f"ledger entry of {key.resource} {key.name}"
    return dict(
        outcome=NOT_SENT,
        asset=(after.asset or None) if after else None,
        entry_state=after.state if after else ABSENT,
        sent=after.sent if after else None,
        changed_at=after.changed_at if after else None,
        diff=dict(before=_shown(before), after=_shown(after), before_header=title, after_header=title),
    )


def _shown(entry: Entry | None) -> dict:
    return dict(state=entry.state, sent=entry.sent, asset=entry.asset) if entry else {}
