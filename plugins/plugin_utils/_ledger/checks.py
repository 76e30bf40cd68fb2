# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What an edit of an entry must not do, and the asset that it may record."""

from __future__ import annotations

import re
from typing import Mapping

from ...module_utils._errors import InvalidInput
from ...module_utils._resources.resources import RESOURCES, VIRTUAL_MACHINE
from ...module_utils._secrets import Secrets, printable
from ...module_utils._task.validation import converted
from ...module_utils._values import DICT, Asset, encode
from .entries import (
    ABSENT,
    DONE,
    STATES,
    Entry,
    Key,
    is_running,
    time_of,
)
from .ledger import Ledger

# Texts of a row or a printed command that nobody filled in.
_NOT_SHOWN = {"id", "address", "n/a", ABSENT, *STATES}


def taken_ids(ledger: Ledger, changed: Mapping[Key, Entry | None]) -> dict[Key, str]:
    """Return the faults of changed entries whose id another one of them, or another machine, has."""
    faults: dict[Key, str] = {}
    by_id: dict[str, Key] = {}
    for key, entry in changed.items():
        if entry and entry.asset and key.resource == VIRTUAL_MACHINE.name:
            same = by_id.setdefault(str(entry.asset["id"]), key)
            if same != key:
                faults[key] = f"its id is also given for {same.name}"
    others = ledger.entries("resource = ?", (VIRTUAL_MACHINE.name,)) if by_id else ()
    for found, entry in others:
        identifier = str(entry.asset.get("id"))
        if identifier in by_id and found not in changed:
            faults[by_id[identifier]] = f"its id, {identifier}, is recorded for {found.name}"
    return faults


def require_as_seen(before: Entry | None, changed_at: str | None) -> None:
    """Raise InvalidInput if a lease runs, or the entry changed since somebody looked at it."""
    if before and is_running(before):
        raise InvalidInput(
            "state",
            f"{printable(before.by)} may have a request in flight for it, at most until"
            f" {time_of(before.lease_until)}. Look at the service and at the ledger after that",
        )
    if changed_at is None or (before and before.changed_at == changed_at):
        return
    now = f"was changed at {before.changed_at} and is {before.state}" if before else "is gone"
    raise InvalidInput(
        "changed_at",
        f"this is about the entry of {changed_at}, which {now}. Look at the ledger again, or leave"
        " out changed_at (in CSV the column since) if this is to apply whatever happened since",
    )


def require_same_id(before: Entry, asset: Asset) -> None:
    """Raise InvalidInput for an entry to remove or correct with another id than the recorded one.

    An id shows that the asset exists; without its entry, the next run would create it again.
    """
    given, known = asset.get("id"), before.asset.get("id")
    if str(given) != str(known) and (known or before.state != DONE):
        raise InvalidInput(
            "asset",
            f"its id is {given!r}, but {known or 'no id'} is recorded. If the asset is there, give"
            " this id and the state present; if the recorded one is gone, forget the entry first"
            " (state: absent, without an asset)",
        )


def recordable(key: Key, asset: Asset, secrets: Secrets) -> Asset:
    """Return the asset of an edit, checked and without secrets; raise ServicesError."""
    resource, name = key
    option = RESOURCES[resource].key
    if not asset:
        raise InvalidInput("asset", "is needed: the envelope of the asset, as the service shows it")
    asset = {option: name, **asset}
    encode(asset, "asset")
    if asset[option] != name:
        raise InvalidInput(
            "asset", f"its {option} is {asset[option]!r}, but the entry is for {name}"
        )
    recorded: Asset = secrets.recordable(asset)
    if recorded.get("attributes") is not None:
        recorded["attributes"] = converted(
            dict(type=DICT, options=RESOURCES[resource].attributes),
            recorded["attributes"],
            "asset.attributes",
            is_open=True,
        )
    if recorded.get("id") is None:
        raise InvalidInput(
            "asset",
            "its id is missing. A machine is recorded as present only with the id that the service"
            " shows; if it is not there, the state is absent",
        )
    address = (recorded.get("attributes") or {}).get("ip")
    require_shown("asset", recorded["id"], "its id ")
    if address is not None:
        require_shown("asset.attributes.ip", address)
    return recorded


def require_shown(option: str, value: object, part: str = "") -> None:
    """Raise InvalidInput for a value that no service shows, such as that of a printed command."""
    text = str(value)
    is_no_text = not isinstance(value, (str, int)) or isinstance(value, bool)
    is_empty = text.lower() in _NOT_SHOWN or not re.search(r"\w", text)
    if is_no_text or is_empty or text != text.strip() or not text.isprintable():
        raise InvalidInput(
            option, f"{part}is {text!r}: give what the service shows, without blanks around it"
        )
