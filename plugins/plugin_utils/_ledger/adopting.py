# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Decides how an edit changes one entry: the same for ledger_entry, ledger_entries and files.

An edit with `changed_at` applies only to an entry that has not changed since then. A machine is
recorded as present only with an id. An entry that is done keeps every field that the edit lacks.
Its id is replaced only after the entry was forgotten.
"""

from __future__ import annotations

from typing import NamedTuple

from ...module_utils._errors import ACCEPTED, InvalidInput, ServicesError
from ...module_utils._fields import Asset, Params
from ...module_utils._http import strict_json
from ...module_utils._http.urls import recorded_url
from ...module_utils._list.items import merged
from ...module_utils._resources import KEYS, RESOURCES
from ...module_utils._resources.planning import ENVELOPE, require_name
from ...module_utils._secrets import Secrets
from ...module_utils._task.validation import converted
from .entries import ABSENT, DONE, PRESENT, STATES, STATES_IN_DOUBT, Entry, Key

# The kinds of edits, as results name them.
ADOPTED, CORRECTED, FORGOTTEN, UNCHANGED = "adopted", "corrected", "forgotten", "unchanged"
SETTLED_PRESENT, SETTLED_ABSENT = "settled_present", "settled_absent"
KINDS = (ADOPTED, SETTLED_PRESENT, SETTLED_ABSENT, CORRECTED, FORGOTTEN, UNCHANGED)
# Only of an item that only adds.
RECORDED_IN_DOUBT, LEFT_OUT = "recorded_in_doubt", "left_out"

BY_EDIT = "by ledger_entry"  # the message of an edit in the history

_STATE_WORDS = (ABSENT, PRESENT, *STATES)
_PLACEHOLDERS = ("n/a", "na", "none", "null", "nil", "tbd", "todo")


class Item(NamedTuple):
    """The requested edit of one entry."""

    number: int  # its place in the list
    given: object  # the item of the list, by which messages name it
    key: Key
    state: str  # absent, present, or in a list the state of an entry
    asset: Asset | None
    # Of the entry that somebody looked at, or the end of the run whose report has the item.
    changed_at: str | None
    # Leaves an existing entry unchanged; records a doubt as one.
    only_adds: bool = False

    @property
    def asset_id(self) -> str:
        """The id of the asset, '' if none is given."""
        return str((self.asset or {}).get("id") or "")


class Edit(NamedTuple):
    """One entry before and after (None: there is no entry)."""

    key: Key
    before: Entry | None
    after: Entry | None
    kind: str
    taken: tuple[str, ...] = ()  # fields of the asset that come from the body
    reason: str = ""  # why an item that only adds has not the requested effect

    @property
    def has_effect(self) -> bool:
        return self.kind not in (UNCHANGED, LEFT_OUT)


def item_of(number: int, given: object, options: Params) -> Item:
    """Return an item from the valid options of ledger_entry; raise InvalidInput."""
    key = _entry_key(options)
    return Item(number, given, key, options["state"], options["asset"], options["changed_at"])


def _entry_key(options: Params) -> Key:
    """Return the key of the entry that options name; raise InvalidInput."""
    option = KEYS[options["resource"]]
    name = options[option] or ""
    require_name(option, name)
    if options["base_url"] is None:  # of an item of a list
        raise InvalidInput("base_url", "is needed, here or for all entries")
    base_url = recorded_url("base_url", options["base_url"])
    return Key(base_url, options["resource"], name)


def edit_of(item: Item, before: Entry | None, secrets: Secrets) -> Edit:
    """Return the edit of an entry that an item asks for; raise ServicesError if it is forbidden."""
    if item.only_adds:
        return _add(item, before, secrets)
    _require_as_seen(item, before)
    if item.state == ABSENT:
        return _forget(item, before)
    if _is_recorded(item, before):
        return Edit(item.key, before, before, UNCHANGED)
    asset = _asset_to_record(item, secrets)
    if before is None:
        _require_visible(KEYS[item.key.resource], item.key.name)
        return _adopt(item.key, asset)
    if before.state == DONE:
        return _correct(item.key, asset, before)
    return _confirm(item.key, asset, before)


def _add(item: Item, before: Entry | None, secrets: Secrets) -> Edit:
    """Return the edit that leaves an entry unchanged, or adds one; raise ServicesError.

    No person typed the item: any name is right, and an asset that cannot be recorded is in doubt.
    """
    if before:
        return Edit(item.key, before, before, UNCHANGED)
    state = item.state
    reason = ""
    if state not in STATES_IN_DOUBT:
        try:
            return _adopt(item.key, _asset_to_record(item, secrets))
        except InvalidInput as error:
            state = ACCEPTED
            reason = f"recorded as in doubt, since {error.problem}."
    sent = item.given.get("sent") if isinstance(item.given, dict) else None
    return Edit(item.key, None, Entry(state, sent or {}, {}), RECORDED_IN_DOUBT, reason=reason)


def _require_as_seen(item: Item, before: Entry | None) -> None:
    """Raise InvalidInput if the entry has changed since somebody looked at it."""
    if item.changed_at is None or (before and before.changed_at == item.changed_at):
        return
    now = f"was changed at {before.changed_at} and is {before.state}" if before else "is gone"
    raise InvalidInput(
        "changed_at",
        f"this is about the entry of {item.changed_at}, which {now}. Look at the ledger again, or"
        " leave out changed_at (in CSV the column since) if this is to apply whatever happened"
        " since",
    )


def _is_recorded(item: Item, before: Entry | None) -> bool:
    """Return whether an item repeats its entry; raise InvalidInput as `_repeats_doubt` does."""
    if item.state in STATES_IN_DOUBT:
        return _repeats_doubt(item, before)
    return before is not None and before.state == DONE and _is_asset_of(before, item)


def _repeats_doubt(item: Item, before: Entry | None) -> bool:
    """Return whether an item in doubt repeats its entry; one with an asset settles it.

    Raise InvalidInput if there is no entry, or if it is in another state.
    """
    if before is None:
        raise InvalidInput(
            "state",
            f"is {item.state}, but there is no entry. To adopt it, give its id and the state"
            " present",
        )
    if item.asset is not None and not _is_asset_of(before, item):
        return False
    if before.state != item.state:
        raise InvalidInput(
            "state",
            f"is {item.state}, but the entry is {before.state}. Look at the ledger again",
        )
    return True


def _is_asset_of(entry: Entry, item: Item) -> bool:
    if item.asset is None:
        return False
    named = {KEYS[item.key.resource]: item.key.name, **item.asset}
    return entry.asset in (item.asset, _whole(named))


def _forget(item: Item, before: Entry | None) -> Edit:
    """Return the edit that removes an entry; raise InvalidInput for an item with another id.

    An id shows that the asset exists; without its entry, the next run would create it again.
    """
    if before is None:
        return Edit(item.key, None, None, UNCHANGED)
    given = (item.asset or {}).get("id")
    known = before.asset.get("id")
    if item.asset and str(given) != str(known):
        recorded = f"recorded with {known!r}" if known else f"{before.state}, without an id"
        raise InvalidInput(
            "asset",
            f"its id is {given!r}, and the state is absent, but the entry is {recorded}: give the"
            " id if the asset is there, the state absent if it is not",
        )
    return Edit(item.key, before, None, FORGOTTEN if before.state == DONE else SETTLED_ABSENT)


def _adopt(key: Key, asset: Asset) -> Edit:
    return Edit(key, None, Entry(DONE, _body_of(asset), _whole(asset)), ADOPTED)


def _confirm(key: Key, asset: Asset, before: Entry) -> Edit:
    """Return the edit that settles a doubt; missing fields of the asset come from the body."""
    confirmed = dict(asset)
    taken = []
    for name in sorted(ENVELOPE):
        if name not in asset and name != "attributes" and before.sent.get(name) is not None:
            confirmed[name] = before.sent[name]
            taken.append(name)
    sent = before.sent.get("attributes") or {}
    given = asset.get("attributes", {})
    if isinstance(sent, dict) and isinstance(given, dict):
        missing = sorted(sent.keys() - given.keys())
        if missing:
            confirmed["attributes"] = {**sent, **given}
            taken += [f"attributes.{name}" for name in missing]
    after = before._replace(state=DONE, asset=_whole(confirmed), changed_at="")
    return Edit(key, before, after, SETTLED_PRESENT, tuple(taken))


def _correct(key: Key, asset: Asset, before: Entry) -> Edit:
    """Return the edit that changes fields of an entry that is done; it keeps all others."""
    known = before.asset.get("id")
    if known and str(asset["id"]) != str(known):
        raise InvalidInput(
            "asset",
            f"its id is {asset['id']!r}, but {known!r} is recorded. If that one is gone, forget the"
            " entry first (state: absent)",
        )
    corrected = merged(before.asset, {**asset, "id": known} if known else asset, "asset")
    if corrected == before.asset:
        return Edit(key, before, before, UNCHANGED)
    sent = merged(before.sent, _body_of(asset), "sent") if asset.get("attributes") else before.sent
    after = before._replace(sent=sent, asset=corrected, changed_at="")
    return Edit(key, before, after, CORRECTED)


def _body_of(asset: Asset) -> Asset:
    """Return the body that would have created the asset."""
    return {"name": asset.get("name"), "attributes": asset.get("attributes") or {}}


def _whole(asset: Asset) -> Asset:
    """Return the asset with null for each field that it lacks."""
    return {**dict.fromkeys(ENVELOPE), **asset}


def _asset_to_record(item: Item, secrets: Secrets) -> Asset:
    """Return the asset of an item, checked and without secrets; raise ServicesError."""
    asset = item.asset
    name = item.key.name
    option = KEYS[item.key.resource]
    if not asset or not isinstance(asset.get("attributes"), (dict, type(None))):
        raise InvalidInput("asset", "must be the envelope of the asset, with attributes (a dict)")
    strict_json.encode(asset, "asset")
    found = asset.get(option, name)
    if found != name:
        raise InvalidInput("asset", f"its {option} is {found!r}, but the entry is for {name}")
    recorded = secrets.recordable({option: name, **asset})
    recorded = _with_types(item.key.resource, recorded)
    if recorded.get("id") is None and option != "id":
        raise InvalidInput(
            "asset",
            "its id is missing. A machine is recorded as present only with the id that the service"
            " shows; if it is not there, the state is absent",
        )
    _require_usable_id(str(recorded.get("id")))
    return recorded


def _with_types(resource: str, asset: Asset) -> Asset:
    """Return the asset with its known attributes in their types; raise ServicesError."""
    if not asset.get("attributes"):
        return asset
    name = "attributes"
    given = asset["attributes"]
    option = dict(type="dict", options=RESOURCES[resource].attributes)
    attributes, problems = converted(option, given, name, f"asset.{name}", is_open=True)
    if problems:
        raise ServicesError("; ".join(problems))
    return {**asset, "attributes": attributes}


def _require_usable_id(text: str) -> None:
    """Raise InvalidInput for an id that the service cannot have given."""
    _require_visible("asset", text, "its id ")
    if text.lower() in _STATE_WORDS:
        raise InvalidInput("asset", f"its id is {text!r}, which is a state. Give it as the state")
    if text.lower() in _PLACEHOLDERS or not any(letter.isalnum() for letter in text):
        raise InvalidInput(
            "asset", f"its id is {text!r}, which is no id. Give the id that the service shows"
        )


def _require_visible(option: str, text: str, part: str = "") -> None:
    """Raise InvalidInput for an empty text, and for invisible characters or blanks around it."""
    if not text or text != text.strip() or not text.isprintable():
        problem = f"{part}is {text!r}: give what the service shows, without blanks around it"
        raise InvalidInput(option, problem)
