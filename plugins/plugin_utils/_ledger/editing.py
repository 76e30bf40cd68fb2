# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Adopts, corrects and forgets one entry of the ledger; nothing is sent."""

from __future__ import annotations

from contextlib import nullcontext

from ...module_utils._errors import NOT_SENT, InvalidInput
from ...module_utils._http import strict_json
from ...module_utils._http.urls import canonical_url, checked_url
from ...module_utils._resources import KEYS
from ...module_utils._resources.flow import ENVELOPE
from ...module_utils._secrets import Secrets, without_placeholders
from .entries import ABSENT, DONE, INTENT, Change, Ended, Entry, Key, LedgerError
from .store import Ledger


def edited(ledger: Ledger, params: dict, check_mode: bool, secrets: Secrets, run: str = "") -> dict:
    """Bring one entry into the wanted state and return the task's result; raise InvalidInput or LedgerError.

    Waits for a task that is working on the asset, except in check mode. What is wanted was decided from the entry as it
    was before, so one that changes meanwhile is left as it is. `run` names the ansible run.
    """
    key = _key(params)
    asset = _asset(params, secrets)
    seen = ledger.get(key)
    with nullcontext() if check_mode else ledger.hold(key):
        before = ledger.get(key)
        after = _after(before, asset)
        if before != after and not check_mode:
            change = Change(key, before, after and after._replace(by="", run=run), _ended(before, after, run))
            if seen != before or not (written := ledger.write([change], durable=True)[0]):
                raise _changed(key, ledger.get(key))
            after = written.after
    missing = [_missing(ledger, key)] if before is after is None else []
    return dict(_result(key, before, after), changed=before != after, **({"warnings": missing} if missing else {}))


def _changed(key: Key, now: Entry | None) -> LedgerError:
    """Return the refusal to change an entry that another task changed meanwhile."""
    state = now.state if now else ABSENT
    who = "another task began to work on it" if state == INTENT else "the task that was working on it finished"
    return LedgerError(
        f"{key.resource} {key.name}: {who} meanwhile, and its entry is now {state}. Nothing was changed. Look at it"
        " again with infrastructure.services.ledger_info before you run this task again"
    )


def _missing(ledger: Ledger, key: Key) -> str:
    """Return the warning for an entry that is to be forgotten but does not exist."""
    message = (
        f"{key.resource} {key.name}: no entry of this name for {key.base_url} in {ledger.where}; nothing was removed."
    )
    others = ledger.entries({"resource = ?": (key.resource,)}, lambda name: name == key.name)
    return f"{message} There is one for {', '.join(other.base_url for other, _entry in others)}." if others else message


def _key(params: dict) -> Key:
    """Return the key that the modules use for the asset; `http://` is allowed, since nothing is sent."""
    option = KEYS[params["resource"]]
    if not (params[option] or "").strip():
        raise InvalidInput(option, "must not be empty")
    base_url = canonical_url(checked_url("base_url", params["base_url"], allow_http=True))
    return Key(base_url, params["resource"], params[option])


def _asset(params: dict, secrets: Secrets) -> dict | None:
    """Return the asset with every field of an envelope, None if the entry is to be forgotten; raise InvalidInput."""
    asset, option = params["asset"], KEYS[params["resource"]]
    if params["state"] == ABSENT:
        if asset is not None:
            raise InvalidInput("asset", "cannot be combined with state: absent")
        return None
    if not asset or not isinstance(asset.get("attributes"), (dict, type(None))):
        raise InvalidInput("asset", "must be the envelope of the asset, with attributes (a dict)")
    strict_json.encode(asset, "asset")
    if asset.get(option, params[option]) != params[option]:
        raise InvalidInput("asset", f"its {option} is {asset[option]!r}, but the entry is for {params[option]}")
    if not str(asset.get("id", "id")).strip():
        raise InvalidInput("asset", "its id is empty; give the id that the service shows")
    whole = {**dict.fromkeys(ENVELOPE), option: params[option], **asset}
    return without_placeholders(secrets.scrub({"asset": whole})["asset"])


def _after(before: Entry | None, asset: dict | None) -> Entry | None:
    """Return the wanted entry, None for no entry.

    `sent` is kept when the asset is confirmed, or corrected without its attributes.
    """
    if asset is None or (before and (before.state, before.asset) == (DONE, asset)):
        return asset and before
    adopted = {"name": asset["name"], "attributes": asset["attributes"] or {}}
    if before is None:
        return Entry(DONE, adopted, asset)
    is_other = before.state == DONE and asset["attributes"] is not None
    return before._replace(state=DONE, sent=adopted if is_other else before.sent, asset=asset, changed_at="")


def _ended(before: Entry | None, after: Entry | None, run: str) -> Ended:
    from_state, to_state = (entry.state if entry else ABSENT for entry in (before, after))
    return Ended(from_state, to_state, run=run, outcome=NOT_SENT, message="by ledger_entry")


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
