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

from ...module_utils._errors import NOT_SENT, ServicesError
from ...module_utils._list.items import Faults, merged, place_of, validated_item
from ...module_utils._resources.planning import ENVELOPE, require_name
from ...module_utils._resources.resources import RESOURCES
from ...module_utils._result import Returned
from ...module_utils._secrets import Secrets, printable
from ...module_utils._task.specs import IN_DOUBT, LEDGER_ENTRY
from ...module_utils._values import Asset, Params, prune
from .checks import (
    recordable,
    require_as_seen,
    require_same_id,
    require_shown,
    taken_ids,
)
from .entries import (
    ABSENT,
    DONE,
    STATES_IN_DOUBT,
    Change,
    Entry,
    HistoryRow,
    Key,
    LedgerError,
    Write,
    noted,
    stamped,
    state_of,
)
from .ledger import Ledger

LEFT = "left"
# The kinds of edits.
KINDS = (
    "adopted",
    "settled_present",
    "settled_absent",
    "corrected",
    "forgotten",
    "unchanged",
    IN_DOUBT,
    LEFT,
)
# Keys of an entry from ledger_info or from_csv that no edit needs.
_UNUSED = ("sent", "began_at", "by", "run", "history", "settle", "line")


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
    names: dict[str, list[str]] = {kind: [] for kind in KINDS}
    for edit in edits:
        names[_kind(edit)].append(edit.key.name)
    names[LEFT] = [f"{key.name} ({problem})" for key, problem in problems.items()]
    return changed, dict(
        changed=bool(changed),
        outcome=NOT_SENT,
        counts={kind: len(found) for kind, found in names.items()},
        names={kind: found for kind, found in names.items() if kind != "unchanged"},
        diff={
            "before": {_title(edit): _shown(edit.before) for edit in changed if edit.before},
            "after": {_title(edit): _shown(edit.after) for edit in changed if edit.after},
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


def _title(edit: Change) -> str:
    return printable(" ".join(edit.key))


def _shown(entry: Entry) -> Params:
    """Return the parts of an entry that a diff shows."""
    shown: Params = prune(dict(state=entry.state, sent=entry.sent, asset=entry.asset))
    return shown


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
    for resource in RESOURCES:
        names = [key.name for key in wanted if key.resource == resource]
        recorded = ledger.find(resource, names).entries
        rows = ledger.history(resource, names) if reported_at else {}
        for key in (Key(resource, name) for name in names):
            before, options = recorded.get(key.name), wanted[key]
            after: Entry | None
            try:
                if reported_at and options["state"] in STATES_IN_DOUBT:
                    after = before or Entry(options["state"], {}, {}, began_at=reported_at)
                else:
                    after = entry_after(key, before, options, secrets)
                if after != before:
                    _require_nothing_later(rows.get(key.name, []), reported_at)
                edits[key] = Change(Write.EDIT, key, before, after)
            except ServicesError as error:
                problems[key] = error.msg
    changed = {key: edit.after for key, edit in edits.items() if edit.after != edit.before}
    for key, problem in taken_ids(ledger, changed).items():
        problems[key] = f"asset: {problem}"
    return [edits[key] for key in wanted if key in edits and key not in problems], problems


def _require_nothing_later(rows: list[HistoryRow], reported_at: str) -> None:
    """Raise ServicesError if an asset changed after the run of a report."""
    for row in rows:
        if row.at > reported_at:
            raise ServicesError(f"it became {row.to_state} at {row.at}, after that run")


def entry_after(key: Key, before: Entry | None, options: Params, secrets: Secrets) -> Entry | None:
    """Return the entry that an edit leaves, None for none; raise ServicesError if it is forbidden."""
    state, changed_at = options["state"], options["changed_at"]
    asset: Asset = options["asset"] or {}
    is_seen = before and changed_at in (None, before.changed_at)
    if before and is_seen and state == before.state and asset == before.asset:
        return before  # a row of a listing that nobody changed
    require_as_seen(before, changed_at)
    if state != ABSENT:
        asset = recordable(key, asset, secrets)
    if before and asset and (state == ABSENT or before.state == DONE):
        require_same_id(before, asset)
    if state == ABSENT:
        return None
    if before is None:
        require_shown(RESOURCES[key.resource].key, key.name)
        return Entry(DONE, {}, {**dict.fromkeys(ENVELOPE), **asset})
    if before.state != DONE:
        sent = {name: before.sent.get(name) for name in ENVELOPE}
        return before._replace(state=DONE, asset=merged(sent, asset))
    return _corrected(before, asset)


def _corrected(before: Entry, asset: Asset) -> Entry:
    """Return an entry that is done with the given fields of its asset; it loses none."""
    corrected = merged(before.asset, {**asset, "id": before.asset.get("id") or asset["id"]})
    if corrected == before.asset:
        return before
    sent = merged(before.sent, {"attributes": asset.get("attributes")}) if before.sent else {}
    return before._replace(sent=sent, asset=corrected)


def _kind(edit: Change) -> str:
    """Return what an edit does to its entry."""
    if edit.before == edit.after:
        return IN_DOUBT if state_of(edit.after) in STATES_IN_DOUBT else "unchanged"
    if edit.before is None:
        return "adopted" if state_of(edit.after) == DONE else IN_DOUBT
    if edit.before.state == DONE:
        return "corrected" if edit.after else "forgotten"
    return "settled_present" if edit.after else "settled_absent"
