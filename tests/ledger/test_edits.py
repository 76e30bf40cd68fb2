"""What `ledger_entry` records: adopted, settled, corrected and forgotten entries, on both databases."""

from __future__ import annotations

import itertools
import json
from tempfile import NamedTemporaryFile

import pytest
from ansible_collections.infrastructure.services.plugins.module_utils._errors import (
    LedgerError,
    ServicesError,
)
from ansible_collections.infrastructure.services.plugins.module_utils._resources.planning import (
    ENVELOPE,
)
from ansible_collections.infrastructure.services.plugins.plugin_utils._csv import entries_in
from ansible_collections.infrastructure.services.plugins.plugin_utils._ledger.entries import (
    ACCEPTED,
    DONE,
    INTENT,
    UNKNOWN,
    Entry,
    Write,
)
from ledger.conftest import SLOW_ON_POSTGRES
from ledger.entries import edited, end_leases, history, listed, put, states
from ledger.tasks import key
from support import CREATE, UPDATE
from support.ledgers import create, entry_of

KEY, ROLE = key(), key("role-0001", UPDATE)
THEN, NOW = "2026-01-02T03:04:05Z", "2026-01-02T03:04:06Z"
SENT = {"name": "web01", "attributes": {"cpu": 4, "ip": "192.0.2.1"}}
ASSET = {"id": "i-1", "name": "web01", "region": "north", "attributes": SENT["attributes"]}
RUNNING = "an intent whose lease runs"
IN_DOUBT = (INTENT, UNKNOWN, ACCEPTED)
ENTRIES = {
    "none": None,
    **{state: Entry(state, SENT, {}, changed_at=NOW) for state in IN_DOUBT},
    DONE: Entry(DONE, SENT, ASSET, changed_at=NOW),
    RUNNING: Entry(INTENT, SENT, {}, changed_at=NOW, by="ann@ctl"),
}
IDS = (None, "i-1", "i-2", "absent", "n/a", "-", "")
SEEN = {"missing": None, "right": NOW, "wrong": THEN}
FORMS = ("one entry", "a list", "CSV")
REFUSED = "refused"


def read_entries(text: str) -> list:
    """Return the entries in a CSV text."""
    with NamedTemporaryFile("w", suffix=".csv") as file:
        file.write(text)
        file.flush()
        return entries_in(file.name)


@pytest.fixture
def edit(location, opened):
    """Return a function that edits a list of entries."""
    ledger = opened(location)

    def edit(*entries: object, **options) -> dict:
        return edited(ledger, entries=[*entries], **options)

    edit.ledger, edit.location = ledger, location
    return edit


def machine(name: str = "web01", **more) -> dict:
    return {"resource": CREATE, "name": name, **more}


def adopted(name: str, **attributes) -> dict:
    return machine(name, asset={"id": f"id-{name}", "attributes": attributes})


def expected(entry: str, state: str, identifier: str | None, seen: str) -> str:
    """Return what becomes of an item, by the rules of the design: the first one that holds."""
    recorded = ASSET["id"] if entry == DONE else None
    is_seen = seen == "missing" or (seen == "right" and entry != "none")
    is_of_doubt = state in IN_DOUBT and identifier in (None, recorded)
    rules = {
        "in_doubt": is_of_doubt and entry == "none",
        "unchanged": is_of_doubt or (state, entry) == ("absent", "none"),  # nobody filled it in
        REFUSED: state == "absent" and identifier not in (None, recorded),
        "unchanged ": entry == DONE and state != "absent" and identifier == recorded,
        "refused ": entry == RUNNING or not is_seen,
        "forgotten": (state, entry) == ("absent", DONE),
        "settled_absent": state == "absent",
        "refused  ": identifier in (None, "absent", "n/a", "-", "") or entry == DONE,
        "adopted": entry == "none",
        "settled_present": True,
    }
    return next(result for result, holds in rules.items() if holds).strip()


CELLS = [
    (form, entry, state, identifier, seen)
    for form, entry, state, identifier, seen in itertools.product(
        FORMS, ENTRIES, ("present", "absent", DONE, *IN_DOUBT), IDS, SEEN
    )
    if not (form == "one entry" and state not in ("present", "absent"))
    and not (form == "CSV" and identifier == "")  # an empty cell is not given
]


@SLOW_ON_POSTGRES
@pytest.mark.parametrize("form", FORMS)
def test_each_cell(edit, form):
    ledger, wrong = edit.ledger, []
    # A cell that changes nothing leaves the entry to the next one: writing takes longest.
    ours = [cell for cell in CELLS if cell[0] == form]
    for _entry, cells in itertools.groupby(ours, lambda cell: cell[1]):
        is_there = False
        for cell, check_mode in itertools.product(list(cells), (True, False)):
            _form, entry, state, identifier, seen = cell
            if not is_there:
                before = put(ledger, KEY, ENTRIES[entry], 1000 if entry == RUNNING else 0)
                rows = len(history(ledger, KEY))
            found = _edit(ledger, form, state, identifier, SEEN[seen], check_mode)
            after, added = entry_of(ledger, KEY), len(history(ledger, KEY)) - rows
            is_there = check_mode or found in (REFUSED, "unchanged")
            said = (found, after == before, added)
            if said != (expected(*cell[1:]), is_there, not is_there):
                wrong.append((cell, check_mode, said))
            if after and after.state == DONE:  # an id, and no field lost
                assert after.asset["id"] in ("i-1", "i-2")
                assert entry != DONE or after.asset == ASSET
    assert wrong == []


def _edit(ledger, form: str, state: str, identifier, changed_at, check_mode: bool) -> str:
    """Edit in one of the forms; return what was done."""
    item = machine(state=state, changed_at=changed_at)
    if identifier is not None:
        item["asset"] = {"id": identifier}
    given = {"one entry": item, "a list": {"entries": [item]}}
    if form == "CSV":
        text = f"name,state,since,id\nweb01,{state},{changed_at or ''},{identifier or ''}\n"
        given[form] = {"entries": read_entries(text)}
    try:
        result = edited(ledger, check_mode=check_mode, **given[form])
    except ServicesError as error:
        return REFUSED if "web01" in error.msg or form == "one entry" else error.msg
    found = next(kind for kind, count in result["counts"].items() if count)
    return found if result["changed"] else "unchanged"


@pytest.mark.parametrize("check_mode", [True, False])
def test_entries_are_adopted_settled_corrected_and_forgotten_together(
    edit, monkeypatch, check_mode
):
    """In one transaction."""
    done, unknown = Entry(DONE, SENT, {"id": "id-other", "name": "other"}), ENTRIES[UNKNOWN]
    for name, entry in dict(other=done, old=done, lost=unknown, gone=unknown).items():
        put(edit.ledger, key(name), entry)
    before, writes, real = states(edit.ledger), [], edit.ledger.database.execute

    def counted(statements, kind=None):
        writes.extend(filter(None, [kind]))
        return real(statements, kind)

    monkeypatch.setattr(edit.ledger.database, "execute", counted)
    result = edit(
        adopted("new", cpu="2"),
        adopted("other", cpu=8),
        machine("lost", asset={"id": "7"}),
        machine("gone", state="absent"),
        machine("old", state="absent"),
        {"resource": UPDATE, "id": "r1", "asset": {"attributes": {"login": "yes"}}},
        check_mode=check_mode,
    )
    assert result["names"] == {
        "adopted": ["new", "r1"],
        "settled_present": ["lost"],
        "settled_absent": ["gone"],
        "corrected": ["other"],
        "forgotten": ["old"],
        "in_doubt": [],
        "left": [],
    }
    counts = {kind: len(names) for kind, names in result["names"].items()}
    assert result["counts"] == {**counts, "unchanged": 0}
    assert (result["changed"], result["outcome"]) == (True, "not_sent")
    after = dict.fromkeys(("new", "other", "lost", "r1"), DONE)
    assert {title.split()[1] for title in result["diff"]["after"]} == {*after}
    assert {title.split()[1] for title in result["diff"]["before"]} == {*before}
    assert states(edit.ledger) == (before if check_mode else after)
    assert writes == [Write.EDIT][check_mode:]


def test_an_edit_is_the_same_again_and_each_one_is_in_the_history(edit):
    put(edit.ledger, KEY, ENTRIES[UNKNOWN])
    for wanted in ({"asset": ASSET}, {"asset": ASSET}, {"state": "absent"}, {"state": "absent"}):
        edit(machine(**wanted))
    assert [
        (row.from_state, row.to_state, row.run, row.outcome, row.message, "@" in row.by)
        for row in history(edit.ledger, KEY)
    ] == [
        (UNKNOWN, DONE, "this run", "", "by ledger_entry", True),
        (DONE, "absent", "this run", "", "by ledger_entry", True),
    ]


@pytest.mark.parametrize(
    ("entry", "given", "asset", "sent"),
    [
        ("none", {"id": "i", "region": "n"}, {"region": "n", "attributes": None}, {}),
        *((state, {"id": "i", "attributes": {"ip": "::9"}}, {}, SENT) for state in IN_DOUBT),
    ],
)
def test_an_entry_has_what_is_given_then_what_was_sent_then_null(edit, entry, given, asset, sent):
    put(edit.ledger, KEY, ENTRIES[entry])
    edit(machine(asset=given))
    after = entry_of(edit.ledger, KEY)
    attributes = {"attributes": {"cpu": 4, "ip": "::9"}} if sent else {}
    nothing = dict.fromkeys(ENVELOPE)
    assert after.asset == {**nothing, "id": "i", "name": "web01", **attributes, **asset}
    assert (after.state, after.sent) == (DONE, sent)


def test_what_is_missing_is_added_to_an_entry_that_is_done(edit):
    put(edit.ledger, KEY, ENTRIES[DONE])
    for nothing in ({}, {"attributes": None, "region": None}, {"attributes": {"cpu": None}}):
        assert edit(machine(asset={"id": "i-1", **nothing}))["changed"] is False
    added = machine(asset={"id": "i-1", "tenant": "t", "attributes": {"vm_ram": "16"}})
    assert edit(added)["names"]["corrected"] == ["web01"]
    after = entry_of(edit.ledger, KEY)
    attributes = {**SENT["attributes"], "vm_ram": 16}
    assert after.asset == {**ASSET, "tenant": "t", "attributes": attributes}
    assert after.sent == {**SENT, "attributes": attributes}


TYPED = {
    KEY: (
        {"cpu": "4", "volumes": [{"name": "1", "size_gb": "2.0", "more": "x"}], "status": None},
        {"cpu": 4, "volumes": [{"name": "1", "size_gb": 2, "more": "x"}], "status": None},
        {"cpu": "many", "volumes": [{"size_gb": "big"}]},
        ("cpu: must be a number", "volumes[0].size_gb: must be a number"),
    ),
    ROLE: (
        {"login": "yes", "new": [1]},
        {"login": True, "new": [1]},
        {"login": "maybe"},
        ("login: must be true or false",),
    ),
}


@pytest.mark.parametrize("at", TYPED)
def test_attributes_are_typed_like_those_of_the_resource(edit, at):
    given, typed, wrong, problems = TYPED[at]
    item = {"resource": at.resource, "name" if at == KEY else "id": at.name}
    edit({**item, "asset": {"id": "role-0001", "attributes": given}})
    assert entry_of(edit.ledger, at).asset["attributes"] == typed
    with pytest.raises(ServicesError) as refused:
        edit({**item, "asset": {"id": "role-0001", "attributes": wrong}})
    assert all(f"asset.attributes.{problem}" in refused.value.msg for problem in problems)


def test_no_secret_is_recorded(edit):
    secret = "correct-horse-battery"
    edit(machine(asset={"id": "i-1", "attributes": {secret: f"say {secret}"}}), secret=secret)
    assert secret not in repr(entry_of(edit.ledger, KEY))


WRONG = [
    ("text", "[1]: must be a dict"),
    (machine("", asset=ASSET), "name: must not be empty"),
    (machine("a", asset={"name": "b"}), "[3] (a): asset: its name is 'b', but the entry is for a"),
    (adopted("b", cpu="many"), '[4] (b): asset.attributes.cpu: must be a number, not "many"'),
    (machine("c"), "[5] (c): state is present but all of the following are missing: asset"),
    ({"resource": UPDATE, "id": "r1", "asset": []}, "(r1): asset: "),
    (machine("d", state="gone"), "(d): state: must be one of absent, present"),
    (machine("e", state="absent", sents=1), "(e): sents: there is no such option (did you mean"),
    (adopted("ok"), "(ok): is the same entry as [0]"),
    (machine("web02", asset={"id": 0o12}), "(web02): asset.id: must be a string (write '0017'"),
    (machine("web03", asset={"id": " ID"}), "(web03): asset: its id is ' ID'. Give what the"),
    (machine("web05", asset={"id": "id-ok"}), "(web05): asset: its id, id-ok, is that of ok"),
    (machine("web\x0006", asset={"id": "6"}), "(web 06): name: has a control character"),
    (machine("web07", asset={"id": "recorded"}), "its id, recorded, is that of there"),
    (machine("web08", asset={"attributes": {"cpu": float("nan")}, "id": "8"}), "(web08), "),
    (machine("web09", asset={"id": "\ud800"}), "(web09): asset: contains a value"),
    (machine("web10", state="done"), "(web10): asset: its id is None. Give what the service"),
]


def test_all_faults_are_told_at_once_and_nothing_changes(edit):
    put(edit.ledger, key("there"), Entry(DONE, {}, {"id": "recorded"}))
    with pytest.raises(ServicesError) as error:
        edit(adopted("ok"), *(entry for entry, _fault in WRONG))
    msg = error.value.msg
    assert msg.startswith(f"entries: {len(WRONG)} invalid items: ")
    assert [fault for _entry, fault in WRONG if fault not in msg] == []
    assert states(edit.ledger) == {"there": DONE}


@pytest.mark.parametrize("identifier", ["i-1", "7", "%_\\x", 'é "x"'])
def test_an_id_that_is_recorded_for_another_name_is_refused(edit, identifier):
    edit(machine("web01", asset={"id": identifier}), machine("other", asset={"id": "x"}))
    again = machine("web02", asset={"id": identifier})
    for more in ([], [adopted("web03")]):  # one is looked for in the database, several here
        with pytest.raises(ServicesError, match=r"\(web02\): asset: its id, .* is that of web01"):
            edit(again, *more)
        with pytest.raises(ServicesError, match=r"\(web02\): asset: its id, .* is that of web01"):
            edit(again, *more, *listed(edit.ledger)["entries"])
    assert edit(machine("web01", state="absent"), again)["names"]["adopted"] == ["web02"]


def test_a_request_in_flight_is_not_edited_and_the_message_says_who_has_it_until_when(edit):
    intent = put(edit.ledger, KEY, ENTRIES[RUNNING], lease_seconds=300)
    told = r"ann@ctl may have a request in flight for it, at most until \d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ"
    for wanted in ({"state": "absent"}, {"asset": ASSET}):
        with pytest.raises(ServicesError, match=told):
            edit(adopted("other"), machine(**wanted))
    assert entry_of(edit.ledger, KEY) == intent
    end_leases(edit.location)
    assert edit(machine(state="absent"))["names"]["settled_absent"] == ["web01"]


@pytest.mark.parametrize("late", ["web00", "web02"])
def test_one_that_changes_meanwhile_leaves_all_as_they_were(edit, opened, monkeypatch, late):
    real, other = edit.ledger.write, opened(edit.location)

    def write(changes):
        put(other, key(late), ENTRIES[INTENT], 300)
        return real(changes)

    put(edit.ledger, key("web00"), ENTRIES[UNKNOWN])
    monkeypatch.setattr(edit.ledger, "write", write)
    with pytest.raises(LedgerError, match="another task changed one of these entries"):
        edit(machine("web00", state="absent"), adopted("web01"), adopted("web02"))
    assert states(edit.ledger) == {"web00": UNKNOWN, late: INTENT}
    assert history(edit.ledger, key("web00")) == []


def test_what_ledger_info_returns_can_be_given_back(edit):
    """Also a machine that came back under another name, or with an attribute of an odd type."""
    odd = {"id": "i-1", "name": "another", "attributes": {"cpu": "odd", "vm_ram": "4"}}
    put(edit.ledger, key("d"), Entry(DONE, SENT, odd))
    for name in IN_DOUBT:
        put(edit.ledger, key(name), ENTRIES[name])
    put(edit.ledger, ROLE, Entry(DONE, {"attributes": {}}, {"id": ROLE.name}))
    rows = json.loads(json.dumps(listed(edit.ledger, history=True)["entries"]))
    result = edit(*rows)
    assert (result["changed"], result["counts"]["unchanged"]) == (False, 2)
    assert sorted(result["names"]["in_doubt"]) == sorted(IN_DOUBT)
    settled = [{**each, "asset": {"id": "9"}} for each in rows if each.get("name") == UNKNOWN]
    assert edit(*settled)["names"]["settled_present"] == [UNKNOWN]


def test_the_module_edits_by_options_and_files_and_says_by_name_what_it_did(ansible, service):
    module, info = (f"infrastructure.services.{name}" for name in ("ledger_entry", "ledger_info"))
    path = create(f"{ansible.directory}/ledger.db", service.url)
    options = {"ledger": path, "entries": [adopted("web01", cpu="4"), adopted("Büro 2")]}
    file = {"ledger": path, "file": "fleet.csv", "delimiter": ";"}
    tasks = [
        {"name": "Plan", module: options, "check_mode": True},
        {"name": "Adopt", module: options},
        {"name": "Wrong", module: {**options, "entries": [machine("x")]}, "ignore_errors": True},
        {"name": "Write", info: file},
        {"name": "Forget", module: {"ledger": path, **machine("web01", state="absent")}},
        {"name": "Read", module: {**file, "delimiter": ","}, "ignore_errors": True},
        {"name": "Stale", module: file, "ignore_errors": True},
    ]
    run = ansible.tasks(json.dumps(tasks)).ok()
    result = {each["name"]: run.result(each["name"]) for each in tasks}
    changed = {name: result[name]["changed"] for name in ("Plan", "Adopt", "Forget")}
    assert changed == {"Plan": True, "Adopt": True, "Forget": True}
    assert "  adopted: web01, Büro 2" in result["Adopt"]["text"]
    assert result["Forget"]["names"]["forgotten"] == ["web01"]
    assert result["Wrong"]["outcome"] == "not_sent"
    assert "1 invalid item: [0] (x): state is present but " in result["Wrong"]["msg"]
    header, row = (ansible.directory / "fleet.csv").read_text("utf-8").splitlines()[:2]
    assert (header, row.split(";")[1]) == ("resource;name;state;since;id;address", '"""Büro 2"""')
    assert "line 1, column 1 " in result["Read"]["msg"]
    assert "line 3 (web01): changed_at: this is about" in result["Stale"]["msg"]
