# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What becomes of one entry of the ledger that is adopted, corrected or forgotten."""

from __future__ import annotations

from typing import NamedTuple

from ...module_utils._errors import ACCEPTED, UNKNOWN, InvalidInput, ServicesError
from ...module_utils._http import strict_json
from ...module_utils._http.urls import canonical_url, checked_url
from ...module_utils._resources import KEYS, RESOURCES
from ...module_utils._resources.flow import ENVELOPE
from ...module_utils._secrets import Secrets, without_placeholders
from ...module_utils._task.validation import converted
from .entries import ABSENT, DONE, INTENT, Entry, Key


class Edit(NamedTuple):
    """What becomes of an entry; None: there is none. `taken`: the fields of the asset that are from what was sent."""

    key: Key
    before: Entry | None
    after: Entry | None
    taken: tuple[str, ...] = ()


def wanted_key(params: dict) -> Key:
    """Return the key that the modules use for the asset; `http://` is allowed, since nothing is sent."""
    option = KEYS[params["resource"]]
    if not (params[option] or "").strip():
        raise InvalidInput(option, "must not be empty")
    if params["base_url"] is None:  # of an entry of a list
        raise InvalidInput("base_url", "is needed, here or for all entries")
    base_url = canonical_url(checked_url("base_url", params["base_url"], allow_http=True))
    return Key(base_url, params["resource"], params[option])


def edit_of(key: Key, params: dict, before: Entry | None, secrets: Secrets) -> Edit:
    """Return what becomes of an entry, given the options of ledger_entry; raise ServicesError.

    `sent` is kept when the asset is confirmed, or corrected without its attributes. What the asset leaves out is taken
    from it when the asset is confirmed, be it for the second time.
    """
    if params["state"] != ABSENT and _is_recorded(key, params["state"], params["asset"], before):
        return Edit(key, before, before)
    if params["state"] == ABSENT:
        _require_recorded(params["asset"], before)
        return Edit(key, before, None)
    asset = _typed(key, _given(key, params, secrets))
    adopted = {"name": asset.get("name"), "attributes": asset.get("attributes") or {}}
    if before is None:
        _require_visible(KEYS[key.resource], key.name)
        return Edit(key, None, Entry(DONE, adopted, _whole(asset)))
    left_out = _left_out(asset, before.sent)
    confirmed = _whole({**asset, **left_out})
    if before.state != DONE:
        attributes = left_out.pop("attributes", {}).keys() - (asset.get("attributes") or {})
        taken = (*left_out, *(f"attributes.{name}" for name in sorted(attributes)))
        return Edit(key, before, before._replace(state=DONE, asset=confirmed, changed_at=""), taken)
    if before.asset in (_whole(asset), confirmed):
        return Edit(key, before, before)
    sent = before.sent if asset.get("attributes") is None else adopted
    return Edit(key, before, before._replace(sent=sent, asset=_whole(asset), changed_at=""))


def _is_recorded(key: Key, state: str, asset: dict | None, before: Entry | None) -> bool:
    """Whether an entry is given as it is recorded; raise InvalidInput for one in doubt that is recorded otherwise."""
    found = before.state if before else ABSENT
    if asset is None and state in (INTENT, ACCEPTED, UNKNOWN):
        if found != state:
            raise InvalidInput("asset", f"is needed, or state: absent: the entry is {found}, not {state}")
        return True
    return bool(asset) and found == DONE and before.asset in (asset, _whole({KEYS[key.resource]: key.name, **asset}))


def _require_recorded(asset: dict | None, before: Entry | None) -> None:
    """Raise InvalidInput if an asset is given with an entry to forget, and is not the one that the entry has.

    Whoever gives an id says that the asset is there; without its entry, the next run would create it again.
    """
    known = (before.asset or {}).get("id") if before else None
    if asset and before and str(asset.get("id")) != str(known):
        recorded = f"recorded with {known!r}" if known else f"{before.state}, without an id"
        raise InvalidInput("asset", f"its id is {asset.get('id')!r}, and the state is absent, but the entry is"
                           f" {recorded}: give the id if the asset is there, the state absent if it is not")


def _given(key: Key, params: dict, secrets: Secrets) -> dict:
    """Return the asset of an entry; raise InvalidInput."""
    asset, option = params["asset"], KEYS[key.resource]
    if not asset or not isinstance(asset.get("attributes"), (dict, type(None))):
        raise InvalidInput("asset", "must be the envelope of the asset, with attributes (a dict)")
    strict_json.encode(asset, "asset")
    if asset.get(option, key.name) != key.name:
        raise InvalidInput("asset", f"its {option} is {asset[option]!r}, but the entry is for {key.name}")
    _require_visible("asset: its id", str(asset.get("id", "id")))
    return without_placeholders(secrets.scrub({"asset": {option: key.name, **asset}})["asset"])


def _require_visible(what: str, text: str) -> None:
    """Raise InvalidInput for an empty text, and for what is hard to see and probably not meant, as in a CSV file."""
    if not text or text != text.strip() or not text.isprintable():
        raise InvalidInput(f"{what} is {text!r}", "give what the service shows, without blanks around it")


def _typed(key: Key, asset: dict) -> dict:
    """Return the asset with the attributes in the types of the resource; raise ServicesError.

    Unknown attributes and nulls stay as they are.
    """
    if not asset.get("attributes"):
        return asset
    problems: list[str] = []
    option = dict(type="dict", options=RESOURCES[key.resource].attributes)
    typed = converted(option, asset["attributes"], "attributes", "asset.attributes", problems, is_open=True)
    if problems:
        raise ServicesError("; ".join(problems))
    return {**asset, "attributes": typed}


def _left_out(asset: dict, sent: dict) -> dict:
    """Return the fields of what was sent that the asset does not have; its attributes are those of both."""
    given, known = asset.get("attributes", {}), sent.get("attributes")
    missing = [name for name in ENVELOPE if name not in asset and name != "attributes"]
    found = {name: sent[name] for name in missing if sent.get(name) is not None}
    if isinstance(given, dict) and isinstance(known, dict) and known.keys() - given:
        found["attributes"] = {**known, **given}
    return found


def _whole(asset: dict) -> dict:
    return {**dict.fromkeys(ENVELOPE), **asset}
