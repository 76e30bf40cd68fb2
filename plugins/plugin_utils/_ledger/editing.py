# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Adopts, corrects and forgets entries of the ledger, one or many in one transaction; nothing is
sent.
"""

from __future__ import annotations

from contextlib import ExitStack
from typing import Any, Callable, Iterable

from ...module_utils._errors import NOT_SENT, ServicesError, listing
from ...module_utils._fields import as_json, dotted
from ...module_utils._list.items import Faults, validated_item
from ...module_utils._resources import KEYS
from ...module_utils._secrets import Secrets
from ...module_utils._task.specs import LEDGER_ENTRIES, LEDGER_ENTRY
from .adopting import KINDS, SETTLED_ABSENT, SETTLED_PRESENT, UNCHANGED, Edit, edit_of, wanted_key
from .entries import ABSENT, INTENT, PRESENT, Change, Ended, Entry, Key, Kind, LedgerError
from .store import Ledger
from .tables import like

# What ledger_info and from_csv say of an entry, and no edit needs.
_UNUSED = {"sent", "options", "began_at", "by", "run", "trace_id", "history", "settle", "line"}


def edited(ledger: Ledger, params: dict, check_mode: bool, secrets: Secrets, run: str = "") -> dict:
    """Bring one entry into the wanted state and return the result of ledger_entry; raise
    ServicesError.
    """
    (edit,) = edits = edit_all(ledger, {0: params}, Faults(LEDGER_ENTRY), check_mode, secrets, run)
    title, after = f"ledger entry of {edit.key.resource} {edit.key.name}", edit.after
    return dict(
        changed=edit.before != after,
        outcome=NOT_SENT,
        asset=(after.asset or None) if after else None,
        edit=edit.kind,
        entry_state=after.state if after else ABSENT,
        sent=after.sent if after else None,
        changed_at=after.changed_at if after else None,
        diff=dict(
            before=_shown(edit.before), after=_shown(after), before_header=title, after_header=title
        ),
        **_warnings(edits, ledger),
    )


def edited_list(
    ledger: Ledger, params: dict, check_mode: bool, secrets: Secrets, run: str = ""
) -> dict:
    """Bring a list of entries into the wanted states and return the result of ledger_entries; raise
    ServicesError.
    """
    items, faults = dict(enumerate(params["entries"])), Faults(LEDGER_ENTRIES)
    wanted = _each(items, lambda number: _options(items[number], params["base_url"]), faults)
    edits = edit_all(ledger, wanted, faults, check_mode, secrets, run)
    changed = [edit for edit in edits if edit.before != edit.after]
    names = [f"{edit.key.resource} {edit.key.name} at {edit.key.base_url}" for edit in changed]
    sides = zip(*map(_differing, changed)) if changed else ((), ())
    before, after = ({name: text for name, text in zip(names, side) if text} for side in sides)
    return dict(
        changed=bool(changed),
        outcome=NOT_SENT,
        counts={
            **{kind: len(_names(edits, kind)) for kind in KINDS},
            "in_doubt": _left_in_doubt(ledger, edits, check_mode),
        },
        names={kind: _names(edits, kind) for kind in KINDS if kind != UNCHANGED},
        diff=dict(before=before, after=after),
        **_warnings(edits, ledger),
    )


def _options(item: Any, base_url: str | None) -> dict:
    """Return the options of ledger_entry for an item, which may be what ledger_info returns; raise
    ServicesError.
    """
    if not isinstance(item, dict):
        return validated_item(LEDGER_ENTRIES, item)
    given = {
        name: value for name, value in item.items() if name not in _UNUSED and value is not None
    }
    options = validated_item(LEDGER_ENTRIES, {"base_url": base_url, **given})
    return (
        {**options, "line": item["line"]} if "line" in item else options
    )  # by which a fault is told


def _names(edits: list[Edit], kind: str) -> list[str]:
    return [edit.key.name for edit in edits if edit.kind == kind]


def _left_in_doubt(ledger: Ledger, edits: list[Edit], check_mode: bool) -> int:
    """Return how many entries of the ledger are in doubt afterwards."""
    settled = sum(edit.kind in (SETTLED_PRESENT, SETTLED_ABSENT) for edit in edits)
    return ledger.count_in_doubt() - (settled if check_mode else 0)


def _differing(edit: Edit) -> tuple[str, str]:
    """Return what differs in an entry before and after, each on one line, empty where there is
    none.
    """
    shown = [_shown(entry) for entry in (edit.before, edit.after)]
    if edit.before is None:
        del shown[1]["sent"]  # made of the asset
    before, after = map(as_json, shown)
    other = [
        path
        for path in {**before, **after}
        if path and before.get(path, "null") != after.get(path, "null")
    ]
    sides = [
        [f"{dotted(path)} {side[path]}" for path in other if side.get(path, "null") != "null"]
        for side in (before, after)
    ]
    return tuple(", ".join(side) for side in sides)


def _shown(entry: Entry | None) -> dict:
    return dict(state=entry.state, sent=entry.sent, asset=entry.asset) if entry else {}


def edit_all(
    ledger: Ledger,
    wanted: dict[int, dict],
    faults: Faults,
    check_mode: bool,
    secrets: Secrets,
    run: str,
) -> list[Edit]:
    """Bring all entries into the wanted states, or none; raise InvalidInput or LedgerError.

    `wanted`: the options of ledger_entry for each, by number; `faults`: what is wrong with others;
    `run` names the ansible run. Waits for tasks that are working on an asset, except in check mode.
    What is wanted was decided from the entries as they were before, so one that changes meanwhile
    is a LedgerError.
    """
    keys = _each(wanted, lambda number: wanted_key(wanted[number]), faults)
    _add_repeated(wanted, keys, faults)
    _add_taken(ledger, wanted, keys, faults)
    seen = _read(ledger, dict.fromkeys(keys.values()))
    edits = _edits(wanted, keys, seen, secrets, faults)
    if check_mode:
        return edits
    with ExitStack() as held:
        # In the same order everywhere, so that two tasks do not wait for each other.
        for key in (
            in_flight := sorted(
                key for key, entry in seen.items() if entry and entry.state == INTENT
            )
        ):
            held.callback(ledger.release, key)
            ledger.lock(key, wait=True)
        if in_flight:
            edits = _edits(wanted, keys, {**seen, **_read(ledger, in_flight)}, secrets, faults)
        changed = [edit for edit in edits if edit.before != edit.after]
        for edit in changed:
            if seen[edit.key] != edit.before:
                raise _changed(edit.key, edit.before)
        written = _written(ledger, changed, run)
    return [edit._replace(after=written.get(edit.key, edit.after)) for edit in edits]


def _add_repeated(wanted: dict[int, dict], keys: dict[int, Key], faults: Faults) -> None:
    """Add the faults of entries that are for one key, or that have one id."""
    first: dict[tuple, int] = {}
    for number, key in keys.items():
        identifier = *key[:2], "id", str((wanted[number]["asset"] or {}).get("id") or "")
        if first.setdefault(key, number) != number:
            faults.add(number, wanted[number], f"is the same entry as [{first[key]}]")
        elif (
            wanted[number]["state"] == PRESENT
            and identifier[-1]
            and first.setdefault(identifier, number) != number
        ):
            faults.add(
                number,
                wanted[number],
                f"asset: its id is that of {keys[first[identifier]].name}, too",
            )


def _add_taken(
    ledger: Ledger, wanted: dict[int, dict], keys: dict[int, Key], faults: Faults
) -> None:
    """Add the faults of assets whose id is recorded for another name."""
    given: dict[tuple, dict[str, int]] = {}
    for number, key in keys.items():
        identifier = str((wanted[number]["asset"] or {}).get("id") or "")
        if identifier and wanted[number]["state"] != ABSENT and KEYS[key.resource] != "id":
            given.setdefault(key[:2], {})[identifier] = number
    for group, numbers in given.items():
        where, edited = {"base_url = ?": group[:1], "resource = ?": group[1:]}, set(keys.values())
        if (
            len(numbers) == 1
        ):  # what may have it, since a loop would read all of a large ledger each time
            where["asset LIKE ?"] = (like(*numbers),)
        for key, entry in ledger.entries(where, bool):
            number = numbers.get(str(entry.asset.get("id")))
            if number is not None and key not in edited:
                faults.add(
                    number,
                    wanted[number],
                    f"asset: its id, {entry.asset['id']}, is recorded for {key.name}",
                )


def _each(items: dict[int, Any], function: Callable[[int], Any], faults: Faults) -> dict[int, Any]:
    """Return what the function makes of the number of each item; what it raises becomes a fault."""
    done = {}
    for number, item in items.items():
        try:
            done[number] = function(number)
        except ServicesError as error:
            faults.add(number, item, error.msg)
    return done


def _read(ledger: Ledger, keys: Iterable[Key]) -> dict[Key, Entry | None]:
    """Return the entry of each key."""
    names: dict[tuple[str, str], list[str]] = {}
    for key in keys:
        names.setdefault(key[:2], []).append(key.name)
    found = {group: ledger.get_many(*group, some) for group, some in names.items()}
    return {
        Key(*group, name): found[group].get(name) for group, some in names.items() for name in some
    }


def _edits(wanted: dict, keys: dict, entries: dict, secrets: Secrets, faults: Faults) -> list[Edit]:
    """Return what becomes of the entries; raise InvalidInput."""

    def edit(number: int) -> Edit:
        return edit_of(keys[number], wanted[number], entries[keys[number]], secrets)

    edits = _each({number: wanted[number] for number in keys}, edit, faults)
    faults.raise_if_any()
    return list(edits.values())


def _written(ledger: Ledger, edits: list[Edit], run: str) -> dict[Key, Entry | None]:
    """Write all of these, or none, and return the entries as they are now; raise LedgerError."""
    changes = []
    for key, before, after, *_rest in edits:
        from_state, to_state = (entry.state if entry else ABSENT for entry in (before, after))
        ended = Ended(from_state, to_state, run=run, outcome=NOT_SENT, message="by ledger_entry")
        changes.append(Change(key, before, after and after._replace(by="", run=run), ended))
    written = ledger.write(changes, Kind.EDIT) if changes else []
    if None in written:
        now = _read(ledger, (change.key for change in changes))
        raise _changed(
            *next((key, now[key]) for key, before, *_rest in edits if now[key] != before)
        )
    return {change.key: change.after for change in written}


def _changed(key: Key, now: Entry | None) -> LedgerError:
    """Return the refusal to change an entry that another task changed meanwhile."""
    state = now.state if now else ABSENT
    who = (
        "another task began to work on it"
        if state == INTENT
        else "the task that was working on it finished"
    )
    return LedgerError(
        f"{key.resource} {key.name}: {who} meanwhile, and its entry is now {state}, so nothing was changed. Look at"
        " it again with infrastructure.services.ledger_info before you run this task again"
    )


def _warnings(edits: list[Edit], ledger: Ledger) -> dict[str, list[str]]:
    """Return warnings: what was taken from what was sent, and the entries to forget that do not
    exist.
    """
    told: dict[tuple[str, str], list[str]] = {}
    missing: dict[tuple[str, str], list[str]] = {}
    for key, before, after, _kind, taken in edits:
        if taken:
            told.setdefault((key.resource, ", ".join(taken)), []).append(key.name)
        elif before is after is None:
            missing.setdefault((key.resource, key.base_url), []).append(key.name)
    warnings = [
        f"{resource} {listing(names)}: {taken} recorded as sent, since asset has no such field."
        for (resource, taken), names in told.items()
    ]
    warnings += [
        f"{resource} {listing(names)}: no entry of this name for {base_url} in {ledger.where}; nothing was removed."
        for (resource, base_url), names in missing.items()
    ]
    return {"warnings": warnings} if warnings else {}
