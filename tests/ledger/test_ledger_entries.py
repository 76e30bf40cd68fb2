# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What `ledger_entries` does to many entries at once: on both databases."""

from __future__ import annotations

import csv
import json

import pytest
from ansible_collections.infrastructure.services.plugins.module_utils._errors import ServicesError
from ansible_collections.infrastructure.services.plugins.module_utils._secrets import Secrets
from ansible_collections.infrastructure.services.plugins.module_utils._task.specs import (
    LEDGER_ENTRIES,
    LEDGER_INFO,
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
    LedgerError,
)
from ansible_collections.infrastructure.services.plugins.plugin_utils._ledger.listing import (
    list_entries,
)
from ledger.conftest import SLOW_ON_POSTGRES
from ledger.entries import history, put
from support import CREATE, UPDATE

MODULE = "infrastructure.services.ledger_entries"
URL = "https://s"
SENT = {"name": "web01", "attributes": {"cpu": 4}}
ASSET = {"id": "1", "name": "web01", "attributes": {"cpu": 4}}


def machine(name: str, **more) -> dict:
    return {"resource": CREATE, "name": name, **more}


def adopted(name: str, **attributes) -> dict:
    return machine(name, asset={"id": f"id-{name}", "attributes": attributes})


@pytest.fixture
def edit(location, opened):
    """Return a function that runs the module's task on a list."""
    ledger = opened(location)

    def edit(*entries: object, check_mode: bool = False, **options) -> dict:
        given = {"ledger": "x", "base_url": URL, "entries": list(entries), **options}
        editor = Editor(ledger, Secrets(), check_mode, "this run")
        return editor.edit_entries(validate(LEDGER_ENTRIES, given).valid())

    edit.ledger, edit.location = ledger, location
    return edit


def test_what_is_hard_to_see_in_a_csv_is_refused(edit):
    """A name with a blank at its end would be another machine, which the list of the fleet does not
    have.
    """
    with pytest.raises(ServicesError) as refused:
        edit(
            machine("web01 ", asset={"id": "1"}),
            machine("\ufeffweb02", asset={"id": "2"}),
            machine("web03", asset={"id": " id-3"}),
            adopted("web04"),
            machine("web05", asset={"id": "id-web04"}),
        )
    for problem in (
        "name: is 'web01 ': give what the service shows",
        "name: is '\\ufeffweb02'",
        "asset: its id is ' id-3'",
        "[4] (web05): asset: its id is also given for web04",
    ):
        assert problem in refused.value.msg
    assert states(edit) == {}
    put(edit.ledger, Key(URL, CREATE, "web01 "), Entry(UNKNOWN, {"name": "web01 "}, {}))
    settled = edit(machine("web01 ", asset={"id": "1"}))  # a machine of this name was created
    assert settled["counts"]["settled_present"] == 1


@pytest.mark.parametrize(
    ("identifier", "said"),
    [
        ("present", "which is a state. Give it as the state"),
        ("Unknown", "which is a state. Give it as the state"),
        ("N/A", "which is no id. Give the id that the service shows"),
        ("--", "which is no id. Give the id that the service shows"),
    ],
)
def test_a_word_in_place_of_an_id_is_refused(edit, identifier, said):
    with pytest.raises(ServicesError) as refused:
        edit(machine("web01", asset={"id": identifier}))
    assert f"[0] (web01): asset: its id is '{identifier}', {said}" in refused.value.msg
    assert states(edit) == {}


def test_one_id_is_not_filled_in_for_two_machines_in_doubt(edit):
    """As when a row of the file of `in_doubt` was copied, whose state stays as it was."""
    for name in ("web01", "web02"):
        put(edit.ledger, Key(URL, CREATE, name), Entry(UNKNOWN, {**SENT, "name": name}, {}))
    rows = [machine(name, state=UNKNOWN, asset={"id": "i-1"}) for name in ("web01", "web02")]
    with pytest.raises(
        ServicesError, match=r"\[1\] \(web02\): asset: its id is also given for web01"
    ):
        edit(*rows)
    assert states(edit) == {"web01": UNKNOWN, "web02": UNKNOWN}


@pytest.mark.parametrize("identifier", ["i-1", 7, "%_\\x", 'é "x"'])
def test_an_id_that_is_recorded_for_another_name_is_refused(edit, identifier):
    edit(machine("web01", asset={"id": identifier}), machine("other", asset={"id": "x"}))
    for more in ([], [adopted("web03")]):  # one is looked for in the database, several here
        told = r"\[0\] \(web02\): asset: its id, .*, is recorded for web01"
        with pytest.raises(ServicesError, match=told) as refused:
            edit(machine("web02", asset={"id": str(identifier)}), *more)
        assert str(identifier) in refused.value.msg
        assert states(edit).keys() == {"web01", "other"}
    assert (
        edit(machine("web01", state="absent"), machine("web02", asset={"id": identifier}))[
            "counts"
        ]["adopted"]
        == 1
    )


def states(edit) -> dict[str, str]:
    """The state of each entry by name."""
    return {key.name: entry.state for key, entry in edit.ledger.entries({}, lambda name: True)}


@pytest.mark.parametrize("check_mode", [True, False])
def test_entries_are_adopted_corrected_and_forgotten_together(edit, check_mode):
    for name, state in (("same", DONE), ("other", DONE), ("lost", UNKNOWN), ("gone", UNKNOWN)):
        put(edit.ledger, Key(URL, CREATE, name), Entry(state, {**SENT, "name": name}, {}))
    edit(adopted("same", cpu=4))
    before = states(edit)
    result = edit(
        adopted("new", cpu="2"),
        adopted("same", cpu=4),
        adopted("other", cpu=8),
        machine("lost", asset={"id": "7"}),
        machine("gone", state="absent"),
        {"resource": UPDATE, "id": "r1", "asset": {"attributes": {"login": "yes"}}},
        adopted("same") | {"base_url": "https://t/"},
        check_mode=check_mode,
    )
    assert result["counts"] == {
        "adopted": 3,
        "settled_present": 1,
        "settled_absent": 1,
        "corrected": 1,
        "forgotten": 0,
        "unchanged": 1,
        "in_doubt": 0,
    }
    assert result["names"] == {
        "adopted": ["new", "r1", "same"],
        "settled_present": ["lost"],
        "settled_absent": ["gone"],
        "corrected": ["other"],
        "forgotten": [],
        "in_doubt": [],
    }
    assert (result["changed"], result["outcome"]) == (True, "not_sent")
    assert result["warnings"] == [
        f"{CREATE} lost: attributes.cpu recorded as sent, since asset has no such field."
    ]
    told = {f"{CREATE} {name} at {URL}" for name in ("new", "other", "lost", "gone")}
    told |= {f"{UPDATE} r1 at {URL}", f"{CREATE} same at https://t"}
    assert result["diff"]["before"].keys() | result["diff"]["after"].keys() == told
    assert f"{CREATE} gone at {URL}" not in result["diff"]["after"]
    assert f"{CREATE} new at {URL}" not in result["diff"]["before"]
    assert result["diff"]["after"][f"{CREATE} new at {URL}"] == (
        'state "done", asset.id "id-new", asset.name "new", asset.attributes.cpu 2'
    )
    assert result["diff"]["after"][f"{CREATE} other at {URL}"] == (
        'sent.attributes.cpu 8, asset.name "other", asset.id "id-other", asset.attributes.cpu 8'
    )
    after = dict.fromkeys(("new", "same", "other", "lost", "r1"), DONE)
    assert states(edit) == (before if check_mode else after)


def test_again_nothing_changes(edit):
    entries = [adopted("web01", cpu="4"), adopted("web02", cpu=4)]
    assert edit(*entries)["counts"]["adopted"] == 2
    again = edit(*entries)
    assert (again["changed"], again["counts"]["unchanged"], again["diff"]) == (
        False,
        2,
        {"before": {}, "after": {}},
    )


def test_what_ledger_info_returns_can_be_given_back(edit):
    put(
        edit.ledger,
        Key(URL, CREATE, "web01"),
        Entry(DONE, SENT, {**ASSET, "attributes": {"cpu": "odd"}}),
    )
    for name, state in (("a", INTENT), ("b", ACCEPTED), ("c", UNKNOWN)):
        put(edit.ledger, Key("https://t", CREATE, name), Entry(state, SENT, {}))
    put(edit.ledger, Key(URL, UPDATE, "r1"), Entry(DONE, {"attributes": {}}, {"id": "r1"}))
    before = states(edit)

    def info() -> list[dict]:
        return list_entries(
            edit.ledger, validate(LEDGER_INFO, {"ledger": "x", "history": True}).valid()
        )["entries"]

    result = edit(*info(), base_url=None)
    assert (result["changed"], result["counts"]["unchanged"]) == (False, 5)
    assert states(edit) == before
    assert edit({**info()[-1], "state": "absent"}, check_mode=True)["counts"]["settled_absent"] == 1
    settled = [
        {**entry, "asset": {"id": "9"}}
        for entry in info()
        if entry["name" if "name" in entry else "id"] == "c"
    ]
    assert edit(*settled)["counts"]["settled_present"] == 1
    assert states(edit)["c"] == DONE


@pytest.mark.parametrize("entry", [None, Entry(UNKNOWN, SENT, {}), Entry(DONE, SENT, ASSET)])
def test_an_entry_that_is_no_longer_in_doubt_as_it_was_listed_needs_an_asset(edit, entry):
    put(edit.ledger, Key(URL, CREATE, "web01"), entry)
    with pytest.raises(ServicesError) as error:
        edit(machine("web01", state=ACCEPTED))
    found = f"the entry is {entry.state}" if entry else "there is no entry"
    assert f"state: is accepted, but {found}" in error.value.msg


@pytest.mark.parametrize(
    ("entry", "is_refused"),
    [
        (Entry(UNKNOWN, SENT, {}), True),
        (Entry(ACCEPTED, SENT, {}), True),
        (Entry(DONE, SENT, {"id": "8"}), True),
        (Entry(DONE, SENT, {"id": "7"}), False),
        (Entry(DONE, SENT, {"id": 7}), False),
        (None, False),
    ],
    ids=str,
)
def test_what_has_an_id_is_forgotten_only_if_it_is_recorded_with_it(edit, entry, is_refused):
    """A row of a file that says both that a machine is there and that it is not would create it
    again.
    """
    put(edit.ledger, Key(URL, CREATE, "web01"), entry)
    before = states(edit)
    wanted = [
        *read_csv("name,state,id\nweb01,absent,7\n", entries=True),
        machine("web02", asset={"id": "2"}),
    ]
    if is_refused:
        with pytest.raises(
            ServicesError, match=r"line 2 \(web01\): asset: its id is '7', and the state is absent"
        ):
            edit(*wanted)
        assert states(edit) == before
    else:
        edit(*wanted)
        assert states(edit) == {"web02": DONE}


WRONG = [
    ("text", "[1]: must be a dict"),
    (machine("", asset=ASSET), "name: must not be empty"),
    (machine("a", asset={"name": "b"}), "[3] (a): asset: its name is 'b', but the entry is for a"),
    (adopted("b", cpu="many"), '[4] (b): asset.attributes.cpu: must be a number, not "many"'),
    (machine("c"), "[5] (c): asset: is needed with state: present"),
    ({"resource": UPDATE, "id": "r1", "asset": []}, "(r1): asset: "),
    (machine("d", state="gone"), "(d): state: must be one of absent, present"),
    (machine("e", state="absent", sents=1), "(e): sents: there is no such option (did you mean"),
    (adopted("ok"), "(ok): is the same entry as [0]"),
    (adopted("f") | {"base_url": "s"}, "(f): base_url: "),
]


def test_all_faults_are_told_at_once_and_nothing_changes(edit):
    with pytest.raises(ServicesError) as error:
        edit(adopted("ok"), *(entry for entry, _fault in WRONG))
    msg = error.value.msg
    assert msg.startswith(f"entries: {len(WRONG)} items are invalid: ")
    assert [fault for _entry, fault in WRONG if fault not in msg] == []
    assert states(edit) == {}


def test_a_base_url_is_needed_somewhere(edit):
    with pytest.raises(ServicesError, match=r"\[0\] \(web01\): base_url: "):
        edit(adopted("web01"), base_url=None)


@pytest.mark.parametrize("late", ["web00", "web02"])
def test_one_that_changes_meanwhile_leaves_all_as_they_were(edit, opened, monkeypatch, late):
    real, other = edit.ledger.write, opened(edit.location)

    def write(changes, kind):
        put(other, Key(URL, CREATE, late), Entry(INTENT, SENT, {}))
        return real(changes, kind)

    put(edit.ledger, Key(URL, CREATE, "web00"), Entry(UNKNOWN, SENT, {}))
    monkeypatch.setattr(edit.ledger, "write", write)
    with pytest.raises(LedgerError, match=f"{late}: another task began to work on it meanwhile"):
        edit(machine("web00", state="absent"), adopted("web01"), adopted("web02"))
    assert states(edit) == {"web00": UNKNOWN, late: INTENT}
    assert [row for key, row in history(edit.ledger) if row.message == "by ledger_entry"] == []


def test_control_characters_of_a_name_do_not_reach_the_screen(edit, opened, monkeypatch):
    real, other = edit.ledger.write, opened(edit.location)

    def write(changes, kind):
        put(other, changes[0].key, Entry(INTENT, SENT, {}))
        return real(changes, kind)

    put(edit.ledger, Key(URL, CREATE, "a\x1b[31m"), Entry(UNKNOWN, SENT, {}))
    monkeypatch.setattr(edit.ledger, "write", write)
    with pytest.raises(LedgerError, match=r"a \[31m: another task began to work on it"):
        edit(machine("a\x1b[31m", state="absent"))


@SLOW_ON_POSTGRES
def test_ten_thousand_from_a_csv_are_one_transaction(edit, tmp_path, monkeypatch):
    columns = ("name", "id", "cpu", "ip", "team")
    with (tmp_path / "machines.csv").open("w", newline="") as file:
        rows = (
            (f"vm{number:05}", f"id-{number}", "4", "192.0.2.1", "web") for number in range(10_000)
        )
        csv.writer(file).writerows([columns, *rows])
    with (tmp_path / "machines.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    entries = [adopted(row["name"], cpu=row["cpu"], ip=row["ip"], team=row["team"]) for row in rows]
    writes, real = [], edit.ledger.database.write
    monkeypatch.setattr(
        edit.ledger.database, "write", lambda *given: writes.append(given) or real(*given)
    )
    assert edit(*entries)["counts"]["adopted"] == 10_000
    assert edit(*entries)["counts"]["unchanged"] == 10_000
    assert len(writes) == 1
    assert edit.ledger.get(Key(URL, CREATE, "vm09999")).asset["attributes"]["cpu"] == 4


def test_the_module_works_on_the_given_ledger(ansible):
    options = {"ledger": "ledger.db", "base_url": URL, "entries": [adopted("web01", cpu="4")]}
    tasks = [
        {"name": "Plan", MODULE: options, "check_mode": True, "diff": True},
        {"name": "Adopt", MODULE: options},
        {
            "name": "None",
            MODULE: {**options, "ledger": "none.db", "entries": [machine("web01", state="absent")]},
        },
        {"name": "Wrong", MODULE: {**options, "entries": [machine("x")]}, "ignore_errors": True},
    ]
    run = ansible.playbook(
        json.dumps([{"hosts": "localhost", "gather_facts": False, "tasks": tasks}]) + "\n"
    )
    assert [run.result(name)["changed"] for name in ("Plan", "Adopt", "None", "Wrong")] == [
        True,
        True,
        False,
        False,
    ]
    assert set(run.result("Plan")["diff"]["after"]) == {f"{CREATE} web01 at {URL}"}
    assert "diff" not in run.result("Adopt")
    assert not (ansible.directory / "none.db").exists()
    wrong = run.result("Wrong")
    assert (wrong["outcome"], "invalid: [0] (x): asset: " in wrong["msg"]) == ("not_sent", True)


@pytest.mark.parametrize("state", ["present", "absent"])
def test_a_name_with_a_nul_is_refused_by_its_item(edit, state):
    asset = {"asset": {"id": "1"}} if state == "present" else {}
    with pytest.raises(ServicesError) as refused:
        edit(adopted("web01"), machine("web\x0002", state=state, **asset))
    assert "[1] (web 02): name: contains a NUL character" in refused.value.msg
    assert edit.ledger.get(Key(URL, CREATE, "web01")) is None


def test_an_item_with_two_faults_is_one_item_and_its_name_is_printable(edit):
    edit(adopted("web01"))
    wrong = machine("web\x1b02", asset={"id": "id-web01", "name": "web01"})
    with pytest.raises(ServicesError) as refused:
        edit(wrong)
    msg = refused.value.msg
    assert msg.startswith("entries: 1 item is invalid: [0] (web 02): asset: its id, id-web01, is ")
    assert "but the entry is for web 02." in msg
