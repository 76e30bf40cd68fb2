# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Adopts, settles, corrects and forgets entries, one or many in one transaction; nothing is sent.

An edit with `changed_at` applies only to an entry that has not changed since then. Nobody edits an
entry while its lease runs. A machine is recorded as present only with an id. An entry that is done
keeps every field that the edit lacks, and its id until it was forgotten. A row of ledger_info that
nobody changed is left alone, whatever is in it. What the report of a run says is recorded where the
ledger has nothing or a doubt; the rest is named and left.
"""

from __future__ import annotations

from typing import Iterable, Mapping

from ...module_utils._errors import NOT_SENT, InvalidInput, ServicesError
from ...module_utils._list.items import Faults, merged, place_of, validated_item
from ...module_utils._resources.names import require_name
from ...module_utils._resources.planning import ENVELOPE, require_usable
from ...module_utils._resources.resources import RESOURCES, VIRTUAL_MACHINE
from ...module_utils._result import Returned
from ...module_utils._secrets import Secrets, printable
from ...module_utils._task.specs import LEDGER_ENTRY
from ...module_utils._task.validation import converted
from ...module_utils._values import DICT, TEXT, Asset, Params, fields, prune
from .entries import (
    ABSENT,
    DONE,
    EDITS,
    STATES,
    STATES_IN_DOUBT,
    Change,
    Entry,
    Key,
    LedgerError,
    Write,
    is_running,
    kind_of,
    noted,
    stamped,
    time_of,
)
from .ledger import Ledger

# Keys of an entry from ledger_info or from_csv that no edit needs.
_UNUSED = ("sent", "began_at", "by", "run", "history", "settle", "line")
# Texts of a row or a printed command that nobody filled in.
_NOT_SHOWN = {"-", "id", "address", "n/a", ABSENT, *STATES}


def edits_of(ledger: Ledger, params: Params, secrets: Secrets) -> tuple[list[Change], Returned]:
    """Return the edits that change something, and the result once they are written.

    `params`: the options, and for the entries of a report `reported_at`, when its run ended. Raises
    ServicesError.
    """
    reported_at = params.get("reported_at", "")
    given = params["entries"]
    faults = Faults(LEDGER_ENTRY, is_list=given is not None)
    if given is None:
        given = [{name: params[name] for name in LEDGER_ENTRY.item_options}]
    numbers: dict[Key, int] = {}
    wanted: dict[Key, Params] = {}
    for number, item in enumerate(given):
        try:
            key, options = _wanted(item)
        except ServicesError as error:
            faults.add(number, item, error.msg)
            continue
        same = numbers.setdefault(key, number)
        if same != number:
            faults.add(number, item, f"is the same entry as {place_of(same, given[same])}")
        wanted[key] = options
    edits, problems = _edits(ledger, wanted, secrets, reported_at)
    for key, problem in problems.items() if not reported_at else ():
        faults.add(numbers[key], given[numbers[key]], problem)
    faults.raise_if_any()
    changed = [edit for edit in edits if edit.after != edit.before]
    names: dict[str, list[str]] = {kind: [] for kind in EDITS}
    for edit in edits:
        names[kind_of(edit)].append(edit.key.name)
    names["left"] = [f"{key.name} ({problem})" for key, problem in problems.items()]
    return changed, dict(
        changed=bool(changed),
        outcome=NOT_SENT,
        counts={kind: len(found) for kind, found in names.items()},
        names={kind: found for kind, found in names.items() if kind != "unchanged"},
        diff={
            "before": _shown((edit.key, edit.before) for edit in changed),
            "after": _shown((edit.key, edit.after) for edit in changed),
        },
    )


def write_edits(ledger: Ledger, edits: list[Change], run: str, reported_at: str = "") -> None:
    """Write all edits or none; raise LedgerError.

    What a report says was so when its run ended, so the report of a later run still counts. `run`
    names the run of Ansible.
    """
    written = [stamped(noted(edit, run, "by ledger_entry", reported_at)) for edit in edits]
    if not all(ledger.write(written)):
        ledger.refresh()
        raise LedgerError(
            f"{ledger.where}: another task changed one of these entries at the same time, so"
            " nothing was recorded. Look at them again with infrastructure.services.ledger_info"
            " before you run this again"
        )


def _shown(entries: Iterable[tuple[Key, Entry | None]]) -> Params:
    """Return what a diff shows of entries."""
    return {
        printable(" ".join(key)): prune(dict(state=entry.state, sent=entry.sent, asset=entry.asset))
        for key, entry in entries
        if entry
    }


def _wanted(item: object) -> tuple[Key, Params]:
    """Return the key of an item and its options; raise ServicesError if they are not valid."""
    if isinstance(item, dict):
        item = {name: value for name, value in item.items() if name not in _UNUSED}
    options = validated_item(LEDGER_ENTRY, item)
    option = RESOURCES[options["resource"]].key
    name = options[option] or ""
    require_name(option, name)
    return Key(options["resource"], name), options


def _edits(
    ledger: Ledger, wanted: dict[Key, Params], secrets: Secrets, reported_at: str
) -> tuple[list[Change], dict[Key, str]]:
    """Return the edits that options ask for, and why others are not valid or forbidden."""
    edits: dict[Key, Change] = {}
    problems: dict[Key, str] = {}
    changed: dict[Key, Entry | None] = {}
    recorded = ledger.find(wanted).entries
    rows = ledger.history(wanted) if reported_at else {}
    for key, options in wanted.items():
        before = after = recorded.get(key)
        later = [row for row in rows.get(key, ()) if row.at > reported_at]
        try:
            if not (reported_at and options["state"] in STATES_IN_DOUBT):
                after = entry_after(key, before, options, secrets)
            elif before is None:
                after = Entry(options["state"], {}, {}, began_at=reported_at)
        except ServicesError as error:
            problems[key] = error.msg
        edits[key] = Change(Write.EDIT, key, before, after)
        if after != before and later:
            problems[key] = f"it became {later[0].to_state} at {later[0].at}, after that run"
        elif after != before:
            changed[key] = after
    for key, problem in taken_ids(ledger, changed).items():
        problems[key] = f"asset: {problem}"
    return [edit for key, edit in edits.items() if key not in problems], problems


def taken_ids(ledger: Ledger, changed: Mapping[Key, Entry | None]) -> dict[Key, str]:
    """Return the faults of changed entries whose id another one of them, or another machine, has."""
    ids = {
        key: str(entry.asset["id"])
        for key, entry in changed.items()
        if entry and entry.asset and key.resource == VIRTUAL_MACHINE.name
    }
    others = ledger.entries("resource = ?", (VIRTUAL_MACHINE.name,)) if ids else ()
    owners = {identifier: key for key, identifier in reversed(ids.items())}
    owners.update((str(entry.asset.get("id")), key) for key, entry in others if key not in changed)
    return {
        key: f"its id, {identifier}, is that of {owners[identifier].name}"
        for key, identifier in ids.items()
        if owners[identifier] != key
    }


def entry_after(key: Key, before: Entry | None, options: Params, secrets: Secrets) -> Entry | None:
    """Return the entry that an edit leaves, None for none; raise ServicesError if it is forbidden."""
    state, changed_at = options["state"], options["changed_at"]
    asset: Asset = options["asset"] or {}
    is_seen = before and changed_at in (None, before.changed_at)
    if before and is_seen and state == before.state and asset == before.asset:
        return before  # a row of a listing that nobody changed
    _require_as_seen(before, changed_at)
    if state != ABSENT:
        asset = _recordable(key, asset, secrets)
    if before and asset and (state == ABSENT or before.state == DONE):
        _require_same_id(before, asset)
    if state == ABSENT:
        return None
    if before is None:
        _require_shown(key.name, RESOURCES[key.resource].key)
        return Entry(DONE, {}, {**dict.fromkeys(ENVELOPE), **asset})
    if before.state != DONE:
        sent = {name: before.sent.get(name) for name in ENVELOPE}
        return before._replace(state=DONE, asset=merged(sent, asset))
    corrected = merged(before.asset, {**asset, "id": before.asset.get("id") or asset["id"]})
    if corrected == before.asset:
        return before
    sent = merged(before.sent, {"attributes": asset.get("attributes")}) if before.sent else {}
    return before._replace(sent=sent, asset=corrected)


def _require_as_seen(before: Entry | None, changed_at: str | None) -> None:
    """Raise InvalidInput if a lease runs, or the entry changed since somebody looked at it."""
    if before and is_running(before):
        raise InvalidInput(
            "state",
            f"{printable(before.by)} may have a request in flight for it, at most until"
            f" {time_of(before.lease_until)}. Look at the service and at the ledger after that",
        )
    if changed_at and not (before and before.changed_at == changed_at):
        raise InvalidInput(
            "changed_at",
            f"this is about the entry of {changed_at}, which has changed since, or is gone. Look at"
            " the ledger again, or leave out changed_at (in CSV the column since) if this is to"
            " apply whatever happened since",
        )


def _require_same_id(before: Entry, asset: Asset) -> None:
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


def _recordable(key: Key, asset: Asset, secrets: Secrets) -> Asset:
    """Return the asset of an edit, checked and without secrets; raise ServicesError."""
    resource, name = key
    option = RESOURCES[resource].key
    asset = {option: name, **asset}
    require_usable({"asset": asset}, ["asset"])
    attributes = dict(type=DICT, options=RESOURCES[resource].attributes)
    envelope = dict(type=DICT, options={**fields(TEXT, "id", "name"), "attributes": attributes})
    recorded: Asset = converted(envelope, secrets.recordable(asset), "asset", is_open=True)
    if recorded.get(option) != name:
        raise InvalidInput(
            "asset", f"its {option} is {asset[option]!r}, but the entry is for {name}"
        )
    address = (recorded.get("attributes") or {}).get("ip")
    _require_shown(recorded.get("id"), "id")
    if address is not None:
        _require_shown(address, "attributes.ip")
    return recorded


def _require_shown(value: str | None, field: str) -> None:
    """Raise InvalidInput for a value that no service shows, such as that of a printed command."""
    if value is None or value.strip().lower() in _NOT_SHOWN:
        raise InvalidInput(
            "asset",
            f"its {field} is {value!r}. Give what the service shows; if the asset is not there, the"
            " state is absent",
        )
    require_name(f"asset.{field}", value)
