# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Adopts, corrects and forgets entries, one or many in one transaction; nothing is sent."""

from __future__ import annotations

from collections import defaultdict
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Iterable

from ...module_utils._errors import NOT_SENT, ServicesError, listing
from ...module_utils._fields import Params, json_differences
from ...module_utils._list.items import Faults, place_of, validated_item
from ...module_utils._resources import KEYS
from ...module_utils._result import Returned
from ...module_utils._secrets import Secrets, printable
from ...module_utils._task.specs import LEDGER_ENTRIES, LEDGER_ENTRY
from .adding import without_contradicted
from .adopting import (
    BY_EDIT,
    KINDS,
    RECORDED_IN_DOUBT,
    SETTLED_ABSENT,
    SETTLED_PRESENT,
    UNCHANGED,
    Edit,
    Item,
    edit_of,
    item_of,
)
from .entries import (
    ABSENT,
    DONE,
    INTENT,
    STATES_IN_DOUBT,
    Change,
    Ended,
    Entry,
    Key,
    Kind,
    LedgerError,
)
from .store import Ledger
from .tables import like

# Keys of an entry from ledger_info or from_csv that no edit needs.
_UNUSED = {"sent", "options", "began_at", "by", "run", "trace_id", "history", "settle", "line"}


@dataclass(frozen=True)
class Editor:
    """Edits a ledger for one task; in check mode nothing is written."""

    ledger: Ledger
    secrets: Secrets
    check_mode: bool = False
    run: str = ""  # of Ansible

    def edit_entry(self, params: Params) -> Returned:
        """Edit one entry and return the result of ledger_entry; raise ServicesError."""
        item = item_of(0, params, params)
        (edit,) = self._edit_all([item], Faults(LEDGER_ENTRY))
        after = edit.after
        title = printable(f"ledger entry of {edit.key.resource} {edit.key.name}")
        return dict(
            changed=edit.has_effect,
            outcome=NOT_SENT,
            asset=(after.asset or None) if after else None,
            edit=edit.kind,
            entry_state=_state_of(after),
            sent=after.sent if after else None,
            changed_at=after.changed_at if after else None,
            diff=dict(
                before=_compared(edit.before),
                after=_compared(after),
                before_header=title,
                after_header=title,
            ),
            **_warnings([edit], self.ledger),
        )

    def edit_entries(self, params: Params, only_adds: bool = False) -> Returned:
        """Edit a list of entries and return the result of ledger_entries; raise ServicesError.

        `only_adds`: as in Item.
        """
        faults = Faults(LEDGER_ENTRIES)
        items = [item._replace(only_adds=only_adds) for item in _items(params, faults)]
        edits = self._edit_all(items, faults)
        names: dict[str, list[str]] = {kind: [] for kind in KINDS}
        for edit in edits:
            names.setdefault(edit.kind, []).append(edit.key.name)
        counts = {kind: len(found) for kind, found in names.items()}
        counts["in_doubt"] = self.ledger.count_in_doubt()
        if self.check_mode:
            counts["in_doubt"] -= counts[SETTLED_PRESENT] + counts[SETTLED_ABSENT]
            counts["in_doubt"] += counts.get(RECORDED_IN_DOUBT, 0)
        del names[UNCHANGED]
        names["in_doubt"] = [edit.key.name for edit in edits if _is_left_in_doubt(edit)]
        return dict(
            changed=any(edit.has_effect for edit in edits),
            outcome=NOT_SENT,
            counts=counts,
            names=names,
            diff=_diff_of_list(edits),
            **_warnings(edits, self.ledger),
        )

    def _edit_all(self, items: list[Item], faults: Faults) -> list[Edit]:
        """Edit all entries, or none; raise InvalidInput with all faults, or LedgerError.

        Waits for tasks that are working on an asset, except in check mode. The user asked for the
        edits of the entries as they were before that wait, so a change during it is a LedgerError.
        """
        ledger = self.ledger
        for base_url in {item.key.base_url for item in items}:
            ledger.require_same_url(base_url)
        typed = [item for item in items if not item.only_adds]
        _add_repeated(typed, faults)
        _add_taken(ledger, typed, faults)
        before = _entries_of(ledger, [item.key for item in items])
        edits = self._decide(items, before, faults)
        if self.check_mode:
            return edits
        in_flight = sorted(key for key, entry in before.items() if _state_of(entry) == INTENT)
        with ExitStack() as locks:
            # In the same order everywhere, so that two tasks do not wait for each other.
            for key in in_flight:
                locks.callback(ledger.release, key)
                ledger.lock(key, wait=True)
            if in_flight:
                now = {**before, **_entries_of(ledger, in_flight)}
                edits = self._decide(items, now, faults)
                for edit in edits:
                    if edit.has_effect and edit.before != before[edit.key]:
                        raise _overtaken(edit.key, before[edit.key], edit.before)
            return self._write(edits)

    def _decide(
        self, items: list[Item], entries: dict[Key, Entry | None], faults: Faults
    ) -> list[Edit]:
        """Return the edit of each entry; raise InvalidInput with all faults."""
        edits = []
        for item in items:
            try:
                edits.append(edit_of(item, entries[item.key], self.secrets))
            except ServicesError as error:
                faults.add(item.number, item.given, error.msg)
        faults.raise_if_any()
        return without_contradicted(self.ledger, items, edits)

    def _write(self, edits: list[Edit]) -> list[Edit]:
        """Write all edits, or none; return them as they were written; raise LedgerError."""
        changes = [_change_of(edit, self.run) for edit in edits if edit.has_effect]
        if not changes:
            return edits
        entries: dict[Key, Entry | None] = {}
        for change, written in zip(changes, self.ledger.write(changes, Kind.EDIT)):
            if written is None:
                now = self.ledger.get(change.key)
                raise _overtaken(change.key, change.before, now)
            entries[change.key] = written.after
        return [edit._replace(after=entries.get(edit.key, edit.after)) for edit in edits]


def _is_left_in_doubt(edit: Edit) -> bool:
    return edit.kind == UNCHANGED and _state_of(edit.after) in STATES_IN_DOUBT


def _items(params: Params, faults: Faults) -> list[Item]:
    """Return the valid items of a list; adds the faults of the others."""
    items = []
    for number, given in enumerate(params["entries"]):
        try:
            items.append(item_of(number, given, _options(given, params["base_url"])))
        except ServicesError as error:
            faults.add(number, given, error.msg)
    return items


def _options(given: object, base_url: str | None) -> Params:
    """Return the options of an item, which may be one of ledger_info; raise ServicesError."""
    if isinstance(given, dict):
        used = {"base_url": base_url}
        for name, value in given.items():
            if name not in _UNUSED and value is not None:
                used[name] = value
        return validated_item(LEDGER_ENTRIES, used)
    return validated_item(LEDGER_ENTRIES, given)


def _add_repeated(items: list[Item], faults: Faults) -> None:
    """Add the faults of items that are for one entry, or that give one id to two."""
    by_key: dict[Key, Item] = {}
    by_id: dict[tuple[str, str, str], Item] = {}
    for item in items:
        same_key = by_key.setdefault(item.key, item)
        if same_key is not item:
            same = place_of(same_key.number, same_key.given)
            faults.add(item.number, item.given, f"is the same entry as {same}")
        # Nobody fills in the id of an item in state done: it is a row of a listing.
        elif item.asset_id and item.state not in (ABSENT, DONE):
            same_id = by_id.setdefault((*item.key[:2], item.asset_id), item)
            if same_id is not item:
                fault = f"asset: its id is also given for {same_id.key.name}"
                faults.add(item.number, item.given, fault)


def _add_taken(ledger: Ledger, items: list[Item], faults: Faults) -> None:
    """Add the faults of items whose id is recorded for another name."""
    groups: dict[tuple[str, str], dict[str, Item]] = defaultdict(dict)
    for item in items:
        if item.asset_id and item.state != ABSENT and KEYS[item.key.resource] != "id":
            groups[item.key.base_url, item.key.resource][item.asset_id] = item
    edited = {item.key for item in items}
    for (base_url, resource), by_id in groups.items():
        where = {"base_url = ?": (base_url,), "resource = ?": (resource,)}
        if len(by_id) == 1:  # a loop would read all of a large ledger each time
            where["asset LIKE ?"] = (like(*by_id),)
        for key, entry in ledger.entries(where):
            taken = by_id.get(str(entry.asset.get("id")))
            if taken and key not in edited:
                fault = f"asset: its id, {entry.asset['id']}, is recorded for {key.name}"
                faults.add(taken.number, taken.given, fault)


def _entries_of(ledger: Ledger, keys: Iterable[Key]) -> dict[Key, Entry | None]:
    """Return the entry of each key."""
    names: dict[tuple[str, str], list[str]] = defaultdict(list)
    entries: dict[Key, Entry | None] = dict.fromkeys(keys)
    for key in entries:
        names[key.base_url, key.resource].append(key.name)
    for (base_url, resource), some in names.items():
        for name, entry in ledger.get_many(base_url, resource, some).items():
            entries[Key(base_url, resource, name)] = entry
    return entries


def _change_of(edit: Edit, run: str) -> Change:
    ended = Ended(
        _state_of(edit.before),
        _state_of(edit.after),
        run=run,
        outcome=NOT_SENT,
        message=BY_EDIT,
    )
    after = edit.after._replace(by="", run=run) if edit.after else None
    return Change(edit.key, edit.before, after, ended)


def _overtaken(key: Key, before: Entry | None, now: Entry | None) -> LedgerError:
    """Return the error that another task has changed the entry since it was read."""
    state = _state_of(now)
    who = "another task changed it"
    if state == INTENT:
        who = "another task began to work on it"
    elif _state_of(before) == INTENT:
        who = "the task that was working on it finished"
    return LedgerError(
        f"{key.resource} {printable(key.name)}: {who} meanwhile, and its entry is now {state}. Look"
        " at it again with infrastructure.services.ledger_info before you run this task again"
    )


def _state_of(entry: Entry | None) -> str:
    return entry.state if entry else ABSENT


def _compared(entry: Entry | None) -> dict[str, object]:
    return dict(state=entry.state, sent=entry.sent, asset=entry.asset) if entry else {}


def _diff_of_list(edits: list[Edit]) -> dict[str, dict[str, str]]:
    """Return the fields that changed, a line for each entry that had or has some."""
    diff: dict[str, dict[str, str]] = {"before": {}, "after": {}}
    for edit in edits:
        before = _compared(edit.before)
        after = _compared(edit.after)
        if edit.before is None:
            after.pop("sent", None)  # made of the asset
        changed = json_differences(before or None, after or None, absent="null")
        for side, value in (("before", 1), ("after", 2)):
            fields = [f"{each[0]} {each[value]}" for each in changed if each[value] != "null"]
            if fields:
                name = f"{edit.key.resource} {edit.key.name} at {edit.key.base_url}"
                diff[side][name] = ", ".join(fields)
    return diff


def _warnings(edits: list[Edit], ledger: Ledger) -> dict[str, list[str]]:
    """Return warnings about edits whose effect may surprise."""
    told: dict[tuple[str, str], list[str]] = defaultdict(list)
    for edit in edits:
        about = edit.reason
        if edit.taken:
            about = f"{', '.join(edit.taken)} recorded as sent, since asset has no such field."
        elif not about and edit.before is None and edit.after is None:
            where = f"{edit.key.base_url} in {ledger.where}"
            about = f"no entry of this name for {where}; nothing was removed."
        if about:
            told[edit.key.resource, about].append(edit.key.name)
    warnings = [
        printable(f"{resource} {listing(names)}: {what}")
        for (resource, what), names in told.items()
    ]
    return {"warnings": warnings} if warnings else {}
