# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Adopts, settles, corrects and forgets entries, one or many in one transaction; nothing is sent.

An edit with `changed_at` applies only to an entry that has not changed since then. Nobody edits an
entry while its lease runs. A machine is recorded as present only with an id. An entry that is done
keeps every field that the edit lacks, and its id until it was forgotten. A row of ledger_info that
nobody filled in is left alone. The report of a run gives back what a ledger lacks of it, by the
revisions of its beginnings; whatever contradicts the ledger is named and left.
"""

from __future__ import annotations

from collections import Counter
from typing import Iterable, Mapping

from ...module_utils._errors import NOT_SENT, InvalidInput, LedgerError, ServicesError
from ...module_utils._list.items import Faults, merged, place_of, validated_item
from ...module_utils._resources.names import require_name
from ...module_utils._resources.planning import ENVELOPE, require_usable
from ...module_utils._resources.resources import ONLY_UPDATED, RESOURCES, VIRTUAL_MACHINE
from ...module_utils._result import Returned
from ...module_utils._secrets import Secrets, printable
from ...module_utils._task.specs import LEDGER_ENTRY, STATES
from ...module_utils._task.validation import converted
from ...module_utils._values import Asset, Params, prune
from .entries import (
    ABSENT,
    DONE,
    EDITS,
    STATES_IN_DOUBT,
    Change,
    Entry,
    HistoryRow,
    Key,
    Write,
    id_of,
    is_in_doubt,
    is_running,
    kind_of,
    noted,
    stamped,
    state_of,
    time_of,
)
from .ledger import Ledger

# Keys of an entry from ledger_info or from_csv that no edit needs.
_UNUSED = ("sent", "began_at", "by", "run", "history", "settle", "line")
# Texts of a row or a printed command that nobody filled in.
_NOT_SHOWN = {"-", "id", "address", "n/a", ABSENT, *STATES}


def edits_of(ledger: Ledger, params: Params, secrets: Secrets) -> tuple[list[Change], Returned]:
    """Return the edits that options ask for, and the result once they are written.

    Raises InvalidInput with all faults.
    """
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
    recorded = _entries_to_edit(ledger, wanted)
    edits: list[Change] = []
    problems: dict[Key, str] = {}
    for key, options in wanted.items():
        before = recorded.get(key)
        try:
            after = entry_after(key, before, options, secrets)
            edits.append(Change(Write.EDIT, key, before, after))
        except ServicesError as error:
            problems[key] = error.msg
    problems.update(_taken(ledger, edits))
    for key, problem in problems.items():
        faults.add(numbers[key], given[numbers[key]], problem)
    faults.raise_if_any()
    return [edit for edit in edits if edit.after != edit.before], _result(edits, {})


def edits_of_report(
    ledger: Ledger, rows: list[Params], secrets: Secrets
) -> tuple[list[Change], Returned]:
    """Return the edits by which a ledger gets what it lacks of a run, and the result.

    `rows`: of the report, each with resource, name, `began` (the revision of its beginning), and the
    asset if it exists, or the state if that is in doubt. What contradicts the ledger is left.
    """
    keys = [Key(row["resource"], row["name"]) for row in rows]
    recorded, histories = _entries_to_edit(ledger, keys), ledger.history(keys)
    edits: list[Change] = []
    problems: dict[Key, str] = {}
    times = Counter(keys)
    for key, row in zip(keys, rows):
        before, history = recorded.get(key), histories[key]
        try:
            if times[key] > 1:
                raise InvalidInput("the report has it twice")
            if not row["began"]:
                raise InvalidInput("the report does not say when it began: record it by its id")
            edits.append(_edit_of_row(key, before, row, history, secrets))
        except ServicesError as error:
            problems[key] = error.msg
    problems.update(_taken(ledger, edits))
    edits = [edit for edit in edits if edit.key not in problems]
    return [edit for edit in edits if edit.row or edit.after != edit.before], _result(
        edits, problems
    )


def _edit_of_row(
    key: Key, before: Entry | None, row: Params, history: list[HistoryRow], secrets: Secrets
) -> Change:
    """Return the edit of a row of a report; raise ServicesError if it contradicts the ledger.

    The ledger may lack the beginning, which is written back, or only its end.
    """
    began, asset = row["began"], row["asset"]
    is_known = any(began in (each.revision, each.began) for each in history)
    is_its_doubt = is_in_doubt(key, before) and before is not None and before.began == began
    # Running an update again is safe, and what had no effect needs only its row.
    has_effect = key.resource not in ONLY_UPDATED and bool(asset is not None or row["state"])
    after = before
    if has_effect and (before is None or (is_known and not is_its_doubt)):
        _require_not_edited(before, asset, history)
    if has_effect and asset is not None and (is_its_doubt or not is_known):
        options = {"state": "present", "asset": asset, "changed_at": None}
        after = entry_after(key, before, options, secrets)
    elif has_effect and before is None and not is_known:
        after = Entry(row["state"], {}, {}, began_at=row["at"], began=began)
    if any(each.revision == began for each in history):
        return Change(Write.EDIT, key, before, after)
    if after and before is None:
        after = after._replace(began=began)
    lost = HistoryRow(state_of(before), state_of(after), row["at"], began=began)
    return Change(Write.EDIT, key, before, after, lost, revision=began)


def _require_not_edited(
    before: Entry | None, asset: Asset | None, history: list[HistoryRow]
) -> None:
    """Raise InvalidInput if somebody has removed the entry of an asset, or recorded another id.

    Whether that was after the run cannot be known if its beginning was lost.
    """
    last = history[-1] if history else None
    # The row of an attempt without an effect, which a report gave back, has no outcome either.
    is_edit = last and last.from_state != ABSENT and not last.outcome
    if before is None and last and is_edit and last.to_state == ABSENT:
        raise InvalidInput(
            f"{printable(last.by)} recorded at {printable(last.at)} that it is absent: if it exists,"
            " record it by its id"
        )
    if asset and before and before.state == DONE and asset.get("id") != before.asset.get("id"):
        raise InvalidInput(f"the report has the id {asset.get('id')}, the ledger {id_of(before)}")


def _entries_to_edit(ledger: Ledger, keys: Iterable[Key]) -> dict[Key, Entry]:
    """Return the entries of several assets, with leases that run by the clock of the database."""
    found = ledger.find(keys).entries
    if any(map(is_running, found.values())):
        ledger.start_leases()
        found = ledger.find(keys).entries
    return found


def _result(edits: list[Change], problems: Mapping[Key, str]) -> Returned:
    """Return the result of edits; `problems`: what was left, and why."""
    changed = [edit for edit in edits if edit.after != edit.before]
    names: dict[str, list[str]] = {kind: [] for kind in EDITS}
    for edit in edits:
        names[kind_of(edit)].append(edit.key.name)
    names["left"] = [f"{key.name} ({problem})" for key, problem in problems.items()]
    return dict(
        changed=bool(changed),
        outcome=NOT_SENT,
        counts={kind: len(found) for kind, found in names.items()},
        names={kind: found for kind, found in names.items() if kind != "unchanged"},
        diff={
            "before": _shown((edit.key, edit.before) for edit in changed),
            "after": _shown((edit.key, edit.after) for edit in changed),
        },
    )


def write_edits(ledger: Ledger, edits: list[Change], run: str) -> None:
    """Write all edits or none; raise LedgerError. `run`: names the run of Ansible."""
    written = [stamped(noted(edit, run, "by ledger_entry")) for edit in edits]
    if not all(ledger.tried(lambda: ledger.write(written))):
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


def _taken(ledger: Ledger, edits: list[Change]) -> dict[Key, str]:
    """Return the faults of edits by whose id another asset is recorded."""
    changed = {edit.key: edit.after for edit in edits if edit.after != edit.before}
    return {key: f"asset: {problem}" for key, problem in taken_ids(ledger, changed).items()}


def taken_ids(ledger: Ledger, changed: Mapping[Key, Entry | None]) -> dict[Key, str]:
    """Return the faults of changed entries whose id another one of them, or another machine, has."""
    ids = {
        key: id_of(entry)
        for key, entry in changed.items()
        if entry and id_of(entry) and key.resource == VIRTUAL_MACHINE.name
    }
    owners = {identifier: key for key, identifier in reversed(ids.items())}
    recorded = ledger.with_ids(VIRTUAL_MACHINE.name, ids.values()) if ids else {}
    owners.update((each, key) for each, key in recorded.items() if key not in changed)
    return {
        key: f"its id, {identifier}, is that of {owners[identifier].name}"
        for key, identifier in ids.items()
        if owners[identifier] != key
    }


def entry_after(key: Key, before: Entry | None, options: Params, secrets: Secrets) -> Entry | None:
    """Return the entry that an edit leaves, None for none; raise ServicesError if it is forbidden."""
    state, asset = options["state"], options["asset"] or {}
    known = id_of(before) if before else ""
    if before and (state, asset) == (before.state, before.asset):
        return before  # a row of ledger_info, which may have values that no edit may
    if state in STATES_IN_DOUBT and asset.get("id") in (None, known or None):
        return before or Entry(state, {}, {})  # nobody has filled it in
    if state == ABSENT:
        after = None
        if before and asset:
            _require_same_id(before, asset)
    else:
        after = _present(key, before, _recordable(key, asset, secrets))
    if after != before:  # else it says what is recorded already
        _require_as_seen(before, options["changed_at"])
    return after


def _present(key: Key, before: Entry | None, asset: Asset) -> Entry:
    """Return the entry of an asset that exists; raise InvalidInput."""
    if before is None:
        _require_shown(key.name, RESOURCES[key.resource].key)
        return Entry(DONE, {}, {**dict.fromkeys(ENVELOPE), **asset})
    if before.state != DONE:
        sent = {name: before.sent.get(name) for name in ENVELOPE}
        return before._replace(state=DONE, asset=merged(sent, asset))
    _require_same_id(before, asset)
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
            " the ledger and at the service again, then correct this entry or take it out",
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
    envelope = RESOURCES[resource].envelope
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
