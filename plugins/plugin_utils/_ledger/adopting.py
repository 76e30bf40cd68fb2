# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What an edit may do to one entry of the ledger: the same for ledger_entry, ledger_entries and
files.

Whoever looked at an entry decides about that entry: a `changed_at` that is given must be that of
the entry now. A machine is recorded as present only with an id. An entry that is done keeps every
field that the edit does not have, and its id is replaced only after the entry was forgotten.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from ...module_utils._errors import ACCEPTED, UNKNOWN, InvalidInput, ServicesError
from ...module_utils._http import strict_json
from ...module_utils._http.urls import canonical_url, checked_url
from ...module_utils._resources import KEYS, RESOURCES
from ...module_utils._resources.flow import ENVELOPE
from ...module_utils._secrets import Secrets, without_placeholders
from ...module_utils._task.validation import converted
from .entries import ABSENT, DONE, INTENT, PRESENT, STATES, Entry, Key

# What an edit does, as results name it.
ADOPTED, CORRECTED, FORGOTTEN, UNCHANGED = "adopted", "corrected", "forgotten", "unchanged"
SETTLED_PRESENT, SETTLED_ABSENT = "settled_present", "settled_absent"
KINDS = (ADOPTED, SETTLED_PRESENT, SETTLED_ABSENT, CORRECTED, FORGOTTEN, UNCHANGED)

_IN_DOUBT = (INTENT, ACCEPTED, UNKNOWN)
_STATE_WORDS = {ABSENT, PRESENT, *STATES}  # which belong in the column of the state
_PLACEHOLDERS = {"n/a", "na", "none", "null", "nil", "tbd", "todo"}


class Edit(NamedTuple):
    """One entry before and after (None: there is no entry)."""

    key: Key
    before: Entry | None
    after: Entry | None
    kind: str
    taken: tuple[str, ...] = ()  # the fields of the asset that are taken from what was sent


def wanted_key(params: dict) -> Key:
    """Return the key that the modules use for the asset; `http://` is allowed, since nothing is
    sent.
    """
    option = KEYS[params["resource"]]
    if not (params[option] or "").strip():
        raise InvalidInput(option, "must not be empty")
    if "\0" in params[option]:  # PostgreSQL could not record it
        raise InvalidInput(option, "contains a NUL character")
    if params["base_url"] is None:  # of an entry of a list
        raise InvalidInput("base_url", "is needed, here or for all entries")
    base_url = canonical_url(checked_url("base_url", params["base_url"], allow_http=True))
    return Key(base_url, params["resource"], params[option])


def edit_of(key: Key, params: dict, before: Entry | None, secrets: Secrets) -> Edit:
    """Return what the options of ledger_entry do to an entry; raise ServicesError for what they may
    not do.
    """
    state, asset = params["state"], params["asset"]
    _require_as_seen(params["changed_at"], before)
    if state == ABSENT:
        return _forget(key, asset, before)
    if _is_recorded(key, state, asset, before):
        return Edit(key, before, before, UNCHANGED)
    given = _typed(key, _given(key, params, secrets))
    _require_id(key, given)
    if before is None:
        return _adopt(key, given)
    if before.state == DONE:
        return _correct(key, given, before)
    return _confirm(key, given, before)


def _require_as_seen(changed_at: str | None, before: Entry | None) -> None:
    """Raise InvalidInput if the entry is not the one that was looked at."""
    if changed_at is None or (before and before.changed_at == changed_at):
        return
    now = f"was changed at {before.changed_at} and is {before.state}" if before else "is gone"
    raise InvalidInput(
        "changed_at",
        f"this is about the entry of {changed_at}, which {now}. Look at the ledger again, or leave out changed_at"
        " (in CSV the column since) if this is to apply whatever happened since",
    )


def _is_recorded(key: Key, state: str, asset: dict | None, before: Entry | None) -> bool:
    """Return whether the item says what is recorded; raise InvalidInput if it states a doubt that
    is not recorded.
    """
    is_same = asset is None or (before is not None and _is_asset_of(key, asset, before))
    if state not in _IN_DOUBT:
        return asset is not None and before is not None and before.state == DONE and is_same
    if before is None:
        raise InvalidInput(
            "state",
            f"is {state}, but there is no entry. To adopt it, give its id and the state present",
        )
    if is_same and before.state != state:
        raise InvalidInput(
            "state", f"is {state}, but the entry is {before.state}. Look at the ledger again"
        )
    return is_same


def _is_asset_of(key: Key, asset: dict, entry: Entry) -> bool:
    return entry.asset in (asset, _whole({KEYS[key.resource]: key.name, **asset}))


def _forget(key: Key, asset: dict | None, before: Entry | None) -> Edit:
    """Return the edit that removes an entry; raise InvalidInput if another id is given with it.

    Whoever gives an id says that the asset is there; without its entry, the next run would create
    it again.
    """
    if before is None:
        return Edit(key, None, None, UNCHANGED)
    known = before.asset.get("id")
    if asset and str(asset.get("id")) != str(known):
        recorded = f"recorded with {known!r}" if known else f"{before.state}, without an id"
        raise InvalidInput(
            "asset",
            f"its id is {asset.get('id')!r}, and the state is absent, but the entry is {recorded}: give the id if the"
            " asset is there, the state absent if it is not",
        )
    return Edit(key, before, None, FORGOTTEN if before.state == DONE else SETTLED_ABSENT)


def _adopt(key: Key, asset: dict) -> Edit:
    _require_visible(KEYS[key.resource], key.name)
    return Edit(key, None, Entry(DONE, _sent_of(asset), _whole(asset)), ADOPTED)


def _confirm(key: Key, asset: dict, before: Entry) -> Edit:
    """Return the edit that settles a doubt; fields that the asset lacks are taken from what was
    sent.
    """
    missing = _missing(asset, before.sent)
    names = {name for name in missing if name != "attributes"}
    attributes = missing.get("attributes", {}).keys() - (asset.get("attributes") or {}).keys()
    taken = (*sorted(names), *(f"attributes.{name}" for name in sorted(attributes)))
    confirmed = _whole({**asset, **missing})
    after = before._replace(state=DONE, asset=confirmed, changed_at="")
    return Edit(key, before, after, SETTLED_PRESENT, taken)


def _correct(key: Key, asset: dict, before: Entry) -> Edit:
    """Return the edit that changes fields of an entry that is done; it keeps all others."""
    known = before.asset.get("id")
    if known and str(asset["id"]) != str(known):
        raise InvalidInput(
            "asset",
            f"its id is {asset['id']!r}, but {known!r} is recorded. If that one is gone, forget the entry first"
            " (state: absent)",
        )
    corrected = _merged(before.asset, {**asset, "id": known} if known else asset)
    if corrected == before.asset:
        return Edit(key, before, before, UNCHANGED)
    sent = _merged(before.sent, _sent_of(asset)) if asset.get("attributes") else before.sent
    after = before._replace(sent=sent, asset=corrected, changed_at="")
    return Edit(key, before, after, CORRECTED)


def _merged(below: Any, above: Any) -> Any:
    """Return `above` laid over `below`; what `above` lacks or has as null is kept, at any depth."""
    if not isinstance(below, dict) or not isinstance(above, dict):
        return below if above is None else above
    return {**below, **{name: _merged(below.get(name), value) for name, value in above.items()}}


def _sent_of(asset: dict) -> dict:
    """Return the body that would have created the asset."""
    return {"name": asset.get("name"), "attributes": asset.get("attributes") or {}}


def _missing(asset: dict, sent: dict) -> dict:
    """Return the fields of what was sent that the asset does not have; its attributes are those of
    both.
    """
    given, known = asset.get("attributes", {}), sent.get("attributes")
    names = [name for name in ENVELOPE if name not in asset and name != "attributes"]
    found = {name: sent[name] for name in names if sent.get(name) is not None}
    if isinstance(given, dict) and isinstance(known, dict) and known.keys() - given.keys():
        found["attributes"] = {**known, **given}
    return found


def _whole(asset: dict) -> dict:
    return {**dict.fromkeys(ENVELOPE), **asset}


def _given(key: Key, params: dict, secrets: Secrets) -> dict:
    """Return the asset of an entry; raise InvalidInput."""
    asset, option = params["asset"], KEYS[key.resource]
    if not asset or not isinstance(asset.get("attributes"), (dict, type(None))):
        raise InvalidInput("asset", "must be the envelope of the asset, with attributes (a dict)")
    strict_json.encode(asset, "asset")
    if asset.get(option, key.name) != key.name:
        raise InvalidInput(
            "asset", f"its {option} is {asset[option]!r}, but the entry is for {key.name}"
        )
    return without_placeholders(secrets.scrub({"asset": {option: key.name, **asset}})["asset"])


def _require_id(key: Key, asset: dict) -> None:
    """Raise InvalidInput unless the asset has an id that the service may have given it."""
    found = asset.get("id")
    if found is None and KEYS[key.resource] != "id":
        raise InvalidInput(
            "asset",
            "its id is missing. A machine is recorded as present only with the id that the service shows; if it is"
            " not there, the state is absent",
        )
    text = str(found)
    _require_visible("asset: its id", text)
    if text.lower() in _STATE_WORDS:
        raise InvalidInput("asset", f"its id is {text!r}, which is a state. Give it as the state")
    if text.lower() in _PLACEHOLDERS or not any(letter.isalnum() for letter in text):
        raise InvalidInput(
            "asset", f"its id is {text!r}, which is no id. Give the id that the service shows"
        )


def _require_visible(what: str, text: str) -> None:
    """Raise InvalidInput for an empty text, and for what is hard to see and probably not meant, as
    in a CSV file.
    """
    if not text or text != text.strip() or not text.isprintable():
        raise InvalidInput(
            f"{what} is {text!r}", "give what the service shows, without blanks around it"
        )


def _typed(key: Key, asset: dict) -> dict:
    """Return the asset with the attributes in the types of the resource; raise ServicesError.

    Unknown attributes and nulls stay as they are.
    """
    if not asset.get("attributes"):
        return asset
    problems: list[str] = []
    option = dict(type="dict", options=RESOURCES[key.resource].attributes)
    attributes = converted(
        option, asset["attributes"], "attributes", "asset.attributes", problems, is_open=True
    )
    if problems:
        raise ServicesError("; ".join(problems))
    return {**asset, "attributes": attributes}
