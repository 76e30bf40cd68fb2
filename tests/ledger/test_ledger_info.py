# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What `ledger_info` lists, on both databases, and how fast."""

from __future__ import annotations

import json
import shlex
import time
from fnmatch import fnmatchcase

import pytest
from ansible_collections.infrastructure.services.plugins.module_utils._errors import InvalidInput
from ansible_collections.infrastructure.services.plugins.module_utils._secrets import Secrets
from ansible_collections.infrastructure.services.plugins.module_utils._task.specs import LEDGER_INFO
from ansible_collections.infrastructure.services.plugins.module_utils._task.validation import (
    validate,
)
from ansible_collections.infrastructure.services.plugins.plugin_utils._ledger.editing import (
    Editor,
)
from ansible_collections.infrastructure.services.plugins.plugin_utils._ledger.entries import (
    ABSENT,
    ACCEPTED,
    DONE,
    INTENT,
    STATES,
    UNKNOWN,
    Change,
    Ended,
    Entry,
    Key,
    Kind,
)
from ansible_collections.infrastructure.services.plugins.plugin_utils._ledger.listing import (
    list_entries,
)
from ledger.entries import put, write
from support import CREATE, UPDATE

MODULE = "infrastructure.services.ledger_info"
URL = "https://s"
OLD, NEW = "2026-01-01T00:00:00Z", "2026-06-01T00:00:00Z"
ENTRY = Entry(DONE, {"name": "x"}, {"id": "1"}, OLD, OLD, "me@here", "run-1", "ab")
FLEET = {
    Key(URL, CREATE, "web01"): ENTRY,
    Key(URL, CREATE, "web02"): ENTRY._replace(state=UNKNOWN, asset={}, changed_at=NEW, trace_id=""),
    Key(URL, CREATE, "app01"): ENTRY._replace(state=INTENT, asset={}),
    Key(URL, UPDATE, "role-1"): ENTRY._replace(state=ACCEPTED, changed_at=NEW, run="run-2"),
    Key("https://t", CREATE, "web01"): ENTRY,
}


@pytest.fixture
def info(location, opened):
    """Return a function that runs the module's task on a ledger with some entries."""
    ledger = opened(location)
    for key, entry in FLEET.items():
        put(ledger, key, entry)

    def info(**options) -> dict:
        least = {"ledger": "x", "base_url": None}
        return list_entries(
            opened(location, read_only=True), validate(LEDGER_INFO, {**least, **options}).valid()
        )

    info.ledger = ledger
    return info


@pytest.mark.parametrize(
    ("options", "names"),
    [
        ({}, "role-1 app01 web01 web02 web01"),
        ({"base_url": "HTTPS://S.:443/"}, "role-1 app01 web01 web02"),
        ({"base_url": "https://none"}, ""),
        ({"resource": UPDATE}, "role-1"),
        ({"names": ["web*"]}, "web01 web02 web01"),
        ({"names": ["*02", "role-?"]}, "role-1 web02"),
        ({"names": "*02, role-?"}, "role-1 web02"),
        ({"states": "intent, accepted"}, "role-1 app01"),
        ({"names": ["WEB*", "we"]}, ""),
        ({"states": ["done"]}, "web01 web01"),
        ({"states": ["in_doubt"]}, "role-1 app01 web02"),
        ({"states": ["in_doubt", "done"]}, "role-1 app01 web01 web02 web01"),
        ({"states": ["intent", "accepted"]}, "role-1 app01"),
        ({"changed_since": "2026-06-01"}, ""),
        ({"changed_since": "2026-06-01T02:00:00+02:00"}, "role-1 web02"),
        ({"run": "run-1"}, "app01 web01 web02 web01"),
        ({"run": "run-2", "states": ["in_doubt"]}, "role-1"),
        ({"run": "run"}, ""),
        ({"names": ["web*"], "states": ["in_doubt"], "resource": CREATE, "base_url": URL}, "web02"),
    ],
    ids=str,
)
def test_filters_narrow_the_list(info, options, names):
    if options.get("changed_since") == "2026-06-01":
        options = {"changed_since": "2026-06-01T00:00:01Z"}
    result = info(**options)
    assert [entry.get("name", entry.get("id")) for entry in result["entries"]] == names.split()
    assert sum(result["counts"].values()) == len(result["entries"])
    assert set(result["counts"]) == set(STATES)
    assert (result["changed"], result["outcome"]) == (False, "not_sent")


def test_an_entry_shows_everything_that_is_known(info):
    (done, doubtful) = info(names=["web*"], base_url=URL)["entries"]
    same = {"base_url": URL, "resource": CREATE, "sent": {"name": "x"}}
    same.update(began_at=OLD, by="me@here", run="run-1")
    names = [
        {"name": name, "options": {"name": name, "attributes": {}}} for name in ("web01", "web02")
    ]
    assert done == {
        **same,
        **names[0],
        "state": "done",
        "asset": {"id": "1"},
        "changed_at": OLD,
        "trace_id": "ab",
    }
    assert doubtful == {
        **same,
        **names[1],
        "state": "unknown",
        "asset": None,
        "changed_at": NEW,
        "trace_id": None,
        "settle": doubtful["settle"],
    }
    (role,) = info(resource=UPDATE)["entries"]
    assert (role["id"], "name" in role) == ("role-1", False)


@pytest.mark.parametrize(
    ("name", "state", "commands"),
    [
        ("web02", UNKNOWN, 2),
        ("web02", ACCEPTED, 2),
        ("web02", INTENT, 2),
        ("web02", DONE, None),
        ("\u00e9-1.b", UNKNOWN, 2),
        *(
            (name, UNKNOWN, 0)
            for name in ("a b", "it's", 'a"', "a=b", "{{ a }}", "$a", "a;b", "a\nb", "a&b", "a`b`")
        ),
    ],
)
def test_the_commands_that_settle_a_machine(info, name, state, commands):
    put(info.ledger, Key("https://u", CREATE, name), ENTRY._replace(state=state))
    (entry,) = info(base_url="https://u")["entries"]
    if commands is None:
        assert "settle" not in entry
        return
    shown = info.ledger.database.shown
    start = f"ledger={shown} " if info.ledger.file else ""
    variable = "" if info.ledger.file else f"INFRASTRUCTURE_SERVICES_LEDGER={shlex.quote(shown)} "
    command = (
        f"{variable}ansible localhost -m infrastructure.services.ledger_entry -a '{start}resource={CREATE}"
        f" base_url=https://u name={name} "
    )
    assert entry["settle"] == [f"{command}asset=id='", f"{command}state=absent'"][:commands]


def test_a_ledger_whose_path_is_not_plain_goes_into_the_environment(tmp_path, opened):
    ledger = opened(str(tmp_path / "it's ours.db"))
    put(ledger, Key(URL, CREATE, "web01"), FLEET[Key(URL, CREATE, "web02")])
    (entry,) = list_entries(ledger, validate(LEDGER_INFO, {"ledger": "x"}).valid())["entries"]
    for command in entry["settle"]:
        variable, *_words, arguments = shlex.split(command)
        assert variable == f"INFRASTRUCTURE_SERVICES_LEDGER={ledger.where}"
        assert arguments.startswith("resource=")


def test_a_role_in_doubt_has_no_commands(info):
    (role,) = info(resource=UPDATE)["entries"]
    assert role["settle"] == []


@pytest.mark.parametrize(
    ("state", "body"),
    [(DONE, {"name": "one", "description": "two"}), (ACCEPTED, {"description": "two"})],
)
def test_the_options_of_a_role_are_all_that_is_known_to_be_there(info, state, body):
    asset = {"id": "role-2", "name": "one", "description": "two", "region": None}
    put(info.ledger, Key(URL, UPDATE, "role-2"), Entry(state, {"description": "two"}, asset))
    (entry,) = info(names=["role-2"])["entries"]
    assert entry["options"] == {"id": "role-2", "body": body}


def test_history_is_returned_when_requested(info):
    key = Key(URL, CREATE, "web02")
    ended = Ended(ABSENT, UNKNOWN, NEW, "me@here", "run-1", "unknown", 504, "lost", 1.5, "")
    write(info.ledger, Change(key, info.ledger.get(key), FLEET[key], ended))
    found = {
        entry["name"]: entry["history"]
        for entry in info(resource=CREATE, base_url=URL, history=True)["entries"]
    }
    assert found == {"app01": [], "web01": [], "web02": [{**ended._asdict(), "trace_id": None}]}


@pytest.mark.parametrize("asset", [{"id": "9"}, {"id": "9", "attributes": {"cpu": 4}}])
def test_an_entry_that_is_listed_can_be_given_back(info, asset):
    """Also that of an asset that was adopted by its id alone."""
    key = {
        "ledger": "x",
        "base_url": URL,
        "resource": CREATE,
        "name": "web09",
        "state": "present",
        "changed_at": None,
    }
    Editor(info.ledger, Secrets()).edit_entry({**key, "asset": asset})
    (entry,) = info(names=["web09"])["entries"]
    again = Editor(info.ledger, Secrets()).edit_entry({**key, "asset": entry["asset"]})
    assert (again["changed"], again["asset"]) == (False, entry["asset"])


ODD = (
    "web01",
    "a%b",
    "a_b",
    "a\\b",
    "axb",
    "A",
    "a",
    "\u00e91",
    "[x]",
    "x",
    "a]b",
    "*",
    "?",
    "100%",
    "_",
    "it's",
)
GLOBS = (
    *ODD,
    "w*",
    "*01",
    "??",
    "[ab]",
    "[!a]",
    "[]x]",
    "[[]x]",
    "a[%_]b",
    "a[!x]b",
    "\u00e9*",
    "*%*",
    "*_*",
    "\\*",
    "[",
    "a[",
)


@pytest.mark.parametrize("glob", GLOBS)
def test_globs_find_what_they_match_whatever_the_database_makes_of_their_characters(info, glob):
    for name in ODD:
        put(info.ledger, Key("https://odd", CREATE, name), ENTRY)
    found = {
        entry["name"]
        for entry in info(base_url="https://odd", names=["no-such-name", glob])["entries"]
    }
    assert found == {name for name in ODD if fnmatchcase(name, glob)}


def test_many_names_are_found(info):
    names = [f"none{number}" for number in range(2000)]
    assert [entry["name"] for entry in info(base_url=URL, names=[*names, "web0?"])["entries"]] == [
        "web01",
        "web02",
    ]


def test_an_invalid_filter_is_refused(info):
    with pytest.raises(InvalidInput, match=r"^base_url: "):
        info(base_url="s")


@pytest.mark.parametrize("options", [{"states": ["in_doubt"]}, {"names": ["app*"]}], ids=str)
def test_entries_that_do_not_match_are_not_read(info, options):
    """However many there are: here their content, of which most of a ledger consists, is not even
    JSON.
    """
    info.ledger.database.execute(
        "UPDATE infrastructure_services_entry SET sent = 'x' WHERE state = 'done'"
    )
    assert "app01" in {entry.get("name") for entry in info(**options)["entries"]}


@pytest.mark.stress
def test_a_hundred_thousand_entries_are_filtered_in_under_a_second(tmp_path, opened):
    path = str(tmp_path / "ledger.db")
    ledger = opened(path)
    body = {"name": "x" * 100, "attributes": {"text": "y" * 300}}
    states = {7: UNKNOWN}
    ledger.write(
        [
            Change(
                Key(URL, CREATE, f"web{number:06}"),
                None,
                Entry(states.get(number, DONE), body, {**body, "id": "1"}),
            )
            for number in range(100_000)
        ],
        Kind.BEGIN,
    )
    nothing = {
        "base_url": None,
        "resource": None,
        "names": None,
        "changed_since": None,
        "run": None,
        "history": False,
    }
    for filters, count in (
        ({"states": ["in_doubt"]}, 1),
        ({"states": None, "names": ["web0000*"]}, 100),
    ):
        started = time.process_time()
        result = list_entries(opened(path, read_only=True), {**nothing, **filters})
        assert time.process_time() - started < 1
        assert len(result["entries"]) == count


def test_the_module_reads_the_given_ledger_and_creates_no_file(ansible):
    def files() -> dict:
        return {file: file.read_bytes() for file in ansible.directory.glob("*.db*")}

    def run(*tasks: dict):
        play = {
            "hosts": "localhost",
            "gather_facts": False,
            "tasks": [
                {"name": f"task {number}", "ignore_errors": True, **task}
                for number, task in enumerate(tasks)
            ],
        }
        done = ansible.playbook(json.dumps([play]) + "\n").ok()
        return [done.result(task["name"]) for task in play["tasks"]]

    none, _created = run(
        {MODULE: {"ledger": "none.db"}},
        {
            "infrastructure.services.compute_virtual_machine": {
                "name": "web01",
                "ledger": "ledger.db",
            }
        },
    )
    assert none["entries"] == []
    before = files()
    assert {file.name for file in before} == {"ledger.db", "ledger.db.lock"}
    found, failed = run(
        {MODULE: {"ledger": "ledger.db", "names": ["web*"], "history": True}},
        {MODULE: {"ledger": ""}},
    )
    assert [row["to_state"] for entry in found["entries"] for row in entry["history"]] == ["done"]
    assert files() == before
    assert (failed["failed"], failed["outcome"]) == (True, "not_sent")
