# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What an edit may do: every entry x every item x one entry, a list, JSON, CSV and check mode."""

from __future__ import annotations

import itertools
import json

import pytest
from ansible_collections.infrastructure.services.plugins.module_utils._errors import ServicesError
from ansible_collections.infrastructure.services.plugins.module_utils._secrets import Secrets
from ansible_collections.infrastructure.services.plugins.module_utils._task.specs import (
    LEDGER_ENTRIES,
    LEDGER_ENTRY,
)
from ansible_collections.infrastructure.services.plugins.module_utils._task.validation import (
    validate,
)
from ansible_collections.infrastructure.services.plugins.plugin_utils._csv.reading import read_csv
from ansible_collections.infrastructure.services.plugins.plugin_utils._ledger.editing import (
    Editor,
)
from ansible_collections.infrastructure.services.plugins.plugin_utils._ledger.entries import (
    ACCEPTED,
    DONE,
    INTENT,
    UNKNOWN,
    Entry,
    Key,
)
from ledger.conftest import SLOW_ON_POSTGRES
from ledger.entries import bare, put
from support import CREATE

KEY = Key("https://s", CREATE, "web01")
THEN, NOW = "2026-01-02T03:04:05Z", "2026-01-02T03:04:06Z"
SENT = {"name": "web01", "attributes": {"cpu": 4, "ip": "192.0.2.1"}}
ASSET = {
    "id": "i-1",
    "name": "web01",
    "region": "north",
    "attributes": {"cpu": 4, "ip": "192.0.2.1"},
}
ENTRIES = {
    "none": None,
    INTENT: Entry(INTENT, SENT, {}, changed_at=NOW),
    UNKNOWN: Entry(UNKNOWN, SENT, {}, changed_at=NOW),
    ACCEPTED: Entry(ACCEPTED, SENT, {}, changed_at=NOW),
    DONE: Entry(DONE, SENT, ASSET, changed_at=NOW),
}
IN_DOUBT = (INTENT, UNKNOWN, ACCEPTED)
STATES = ("present", "absent", DONE, *IN_DOUBT)
IDS = (None, "i-1", "i-2", "absent", "n/a", "-", "")
SEEN = {"missing": None, "right": NOW, "wrong": THEN}
FORMS = ("one entry", "a list", "JSON", "CSV")
REFUSED = "refused"


# What becomes of an item, by the rules of the design: the first one that holds.
RULES = [
    (
        lambda entry, state, identifier, seen: (
            seen == "wrong" or (seen == "right" and entry == "none")
        ),
        REFUSED,
    ),
    (lambda entry, state, identifier, seen: (state, entry) == ("absent", "none"), "unchanged"),
    (
        lambda entry, state, identifier, seen: (
            state == "absent" and identifier not in (None, id_of(entry))
        ),
        REFUSED,
    ),
    (lambda entry, state, identifier, seen: (state, entry) == ("absent", DONE), "forgotten"),
    (lambda entry, state, identifier, seen: state == "absent", "settled_absent"),
    (lambda entry, state, identifier, seen: state in IN_DOUBT and entry == "none", REFUSED),
    (
        lambda entry, state, identifier, seen: (
            state in IN_DOUBT and identifier is None and state == entry
        ),
        "unchanged",
    ),
    (
        lambda entry, state, identifier, seen: identifier in (None, "absent", "n/a", "-", ""),
        REFUSED,
    ),
    (lambda entry, state, identifier, seen: entry == "none", "adopted"),
    (
        lambda entry, state, identifier, seen: entry == DONE and identifier == id_of(entry),
        "unchanged",
    ),
    (lambda entry, state, identifier, seen: entry == DONE, REFUSED),
    (lambda entry, state, identifier, seen: True, "settled_present"),
]


def expected(*cell: str | None) -> str:
    """Return what becomes of an item, given the entry, its state, its id and its changed_at."""
    return next(result for holds, result in RULES if holds(*cell))


def id_of(entry: str) -> str | None:
    return ASSET["id"] if entry == DONE else None


def item_of(state: str, identifier: str | None, changed_at: str | None) -> dict:
    item: dict = {"resource": CREATE, "base_url": KEY.base_url, "name": KEY.name, "state": state}
    if identifier is not None:
        item["asset"] = {"id": identifier}
    if changed_at:
        item["changed_at"] = changed_at
    return item


def csv_of(state: str, identifier: str | None, changed_at: str | None) -> str:
    head = "name,base_url,state,since,id"
    return f"{head}\n{KEY.name},{KEY.base_url},{state},{changed_at or ''},{identifier or ''}\n"


CELLS = [
    (form, entry, state, identifier, seen)
    for form, entry, state, identifier, seen in itertools.product(FORMS, ENTRIES, STATES, IDS, SEEN)
    if not (form == "one entry" and state not in ("present", "absent"))
    and not (form == "CSV" and identifier == "")  # an empty cell is not given
]


@SLOW_ON_POSTGRES
@pytest.mark.parametrize("form", FORMS)
def test_each_cell(location, opened, form):
    ledger, wrong = opened(location), []
    for check_mode in (True, False):
        for cell in CELLS:
            _form, entry, state, identifier, seen = cell
            if _form != form:
                continue
            restore(ledger, ENTRIES[entry])
            before, rows = ledger.get(KEY), ledger.count_history()
            found = edit(ledger, form, state, identifier, SEEN[seen], check_mode)
            after, added = ledger.get(KEY), ledger.count_history() - rows
            if found != expected(*cell[1:]):
                wrong.append((cell, check_mode, found, expected(*cell[1:])))
            is_kept = check_mode or found in (REFUSED, "unchanged")
            if (after == before) != is_kept or added != (not is_kept):
                wrong.append((cell, check_mode, "written" if is_kept else "not written"))
            if entry == DONE and after:
                assert after.asset["region"] == "north", cell
                assert after.asset["attributes"] == ASSET["attributes"], cell
            if after and after.state == DONE:
                assert after.asset["id"] in ("i-1", "i-2"), cell
    assert wrong == []


def restore(ledger, entry: Entry | None) -> None:
    """Put the entry back if a cell changed it, which few do: writing takes longest."""
    if bare(ledger.get(KEY)) != entry:
        put(ledger, KEY, entry)


def edit(
    ledger, form: str, state: str, identifier: str | None, changed_at: str | None, check_mode: bool
) -> str:
    """Edit in one of the forms; return what was done."""
    item = item_of(state, identifier, changed_at)
    try:
        if form == "one entry":
            params = validate(LEDGER_ENTRY, {"ledger": "x", **item}).valid()
            return Editor(ledger, Secrets(), check_mode).edit_entry(params)["edit"]
        items = {
            "a list": lambda: [item],
            "JSON": lambda: json.loads(
                json.dumps([{**item, "sent": SENT, "by": "me", "options": {}}])
            ),
            "CSV": lambda: read_csv(csv_of(state, identifier, changed_at), entries=True),
        }[form]()
        params = validate(LEDGER_ENTRIES, {"ledger": "x", "entries": items}).valid()
        counts = Editor(ledger, Secrets(), check_mode).edit_entries(params)["counts"]
    except ServicesError as error:
        return REFUSED if KEY.name in error.msg or form == "one entry" else error.msg
    return next(kind for kind, count in counts.items() if count and kind != "in_doubt")


def test_a_file_that_is_used_twice_changes_nothing_that_is_newer(location, opened):
    """Filled in with `absent`, then the machine was created: the second use would have it created
    again.
    """
    ledger = opened(location)
    put(ledger, KEY, ENTRIES[UNKNOWN])
    file = csv_of("absent", None, ledger.get(KEY).changed_at)

    def settle() -> dict:
        params = validate(
            LEDGER_ENTRIES, {"ledger": "x", "entries": read_csv(file, entries=True)}
        ).valid()
        return Editor(ledger, Secrets()).edit_entries(params)

    assert settle()["names"]["settled_absent"] == ["web01"]
    for newer in (ENTRIES[DONE], ENTRIES[UNKNOWN], None):
        put(ledger, KEY, newer and newer._replace(changed_at="2026-01-02T03:05:00Z"))
        before = ledger.get(KEY)
        with pytest.raises(
            ServicesError, match=r"line 2 \(web01\): changed_at: this is about the entry of 2026"
        ):
            settle()
        assert ledger.get(KEY) == before


@pytest.mark.parametrize(
    "given",
    [
        {"id": "i-1"},
        {"id": "i-1", "attributes": {}},
        {"id": "i-1", "attributes": None, "region": None},
        {"id": "i-1", "attributes": {"cpu": None}},
        {"id": "i-1", "attributes": {"cpu": 4}},
    ],
    ids=str,
)
def test_an_entry_that_is_done_loses_no_field(location, opened, given):
    ledger = opened(location)
    put(ledger, KEY, ENTRIES[DONE])
    item = {**item_of("present", None, None), "asset": given}
    params = validate(LEDGER_ENTRIES, {"ledger": "x", "entries": [item]}).valid()
    assert Editor(ledger, Secrets()).edit_entries(params)["changed"] is False
    assert ledger.get(KEY).asset == ASSET


def test_what_is_missing_is_added_to_an_entry_that_is_done(location, opened):
    ledger = opened(location)
    put(ledger, KEY, ENTRIES[DONE])
    given = {"id": "i-1", "tenant": "t", "attributes": {"vm_ram": "16"}}
    item = {**item_of("present", None, None), "asset": given}
    params = validate(LEDGER_ENTRIES, {"ledger": "x", "entries": [item]}).valid()
    assert Editor(ledger, Secrets()).edit_entries(params)["names"]["corrected"] == ["web01"]
    after = ledger.get(KEY)
    assert after.asset == {
        **ASSET,
        "tenant": "t",
        "attributes": {**ASSET["attributes"], "vm_ram": 16},
    }
    assert after.sent == {**SENT, "attributes": {**SENT["attributes"], "vm_ram": 16}}


def test_a_list_of_wishes_adopts_nothing(location, opened):
    """Given to settle by mistake, it would have a fleet that is never created."""
    ledger = opened(location)
    wishes = read_csv("name,cpu\nweb01,4\nweb02,8\n", entries=True)
    params = validate(
        LEDGER_ENTRIES, {"ledger": "x", "base_url": KEY.base_url, "entries": wishes}
    ).valid()
    told = r"2 items are invalid: line 2 \(web01\), line 3 \(web02\).* its id is missing"
    with pytest.raises(ServicesError, match=told):
        Editor(ledger, Secrets()).edit_entries(params)
    assert ledger.entries({}, bool) == []
