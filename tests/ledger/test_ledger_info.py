"""What `ledger_info` lists, and the commands that it prints, on both databases."""

from __future__ import annotations

import json
import shlex
import time
from fnmatch import fnmatchcase

import pytest
from ansible_collections.infrastructure.services.plugins.module_utils._errors import ServicesError
from ansible_collections.infrastructure.services.plugins.plugin_utils._ledger.entries import (
    ACCEPTED,
    DONE,
    INTENT,
    STATES,
    UNKNOWN,
    Entry,
)
from ledger.entries import end_leases, execute, listed, put, put_all
from ledger.tasks import key, task
from support import CREATE, UPDATE

OLD, NEW = "2026-01-01T00:00:00Z", "2026-06-01T00:00:00Z"
ENTRY = Entry(DONE, {"name": "x"}, {"id": "1"}, OLD, OLD, "me@here", "run-1")
FLEET = {
    key("web01"): ENTRY,
    key("web02"): ENTRY._replace(state=UNKNOWN, asset={}, changed_at=NEW),
    key("app01"): ENTRY._replace(state=INTENT, asset={}),
    key("role-1", UPDATE): ENTRY._replace(state=ACCEPTED, changed_at=NEW, run="run-2"),
}


@pytest.fixture
def info(location, opened, service):
    """Return a function that lists a ledger with some entries."""
    ledger = opened(location, base_url=service.url)
    put_all(ledger, FLEET)

    def info(**options) -> dict:
        return listed(opened(location), **options)

    info.ledger, info.location = ledger, location
    return info


def names_of(entries: list[dict]) -> list[str]:
    return [entry.get("name", entry.get("id")) for entry in entries]


@pytest.mark.parametrize(
    ("options", "names"),
    [
        ({}, "role-1 app01 web01 web02"),
        ({"resource": UPDATE}, "role-1"),
        ({"names": ["*02", "role-?"]}, "role-1 web02"),
        ({"names": "*02, role-?"}, "role-1 web02"),
        ({"names": ["WEB*", "we"]}, ""),
        ({"states": ["done"]}, "web01"),
        ({"states": ["in_doubt"]}, "app01 web02"),
        ({"states": ["in_doubt", "done"]}, "app01 web01 web02"),
        ({"states": "intent, accepted"}, "role-1 app01"),
        ({"changed_since": "2026-06-01T00:00:01Z"}, ""),
        ({"changed_since": "2026-06-01T02:00:00+02:00"}, "role-1 web02"),
        ({"run": "run-2", "states": ["in_doubt"]}, ""),
        ({"run": "run"}, ""),
        ({"names": ["web*"], "states": ["in_doubt"], "resource": CREATE}, "web02"),
    ],
    ids=str,
)
def test_filters_narrow_the_list(info, options, names):
    result = info(**options)
    assert names_of(result["entries"]) == names.split()
    assert sum(result["counts"].values()) == len(result["entries"])
    assert set(result["counts"]) == set(STATES)
    assert (result["changed"], result["outcome"]) == (False, "not_sent")
    if "names" not in options:
        summary = info(**options, summary=True)
        assert not {"entries", "in_flight", "text"} & set(summary)
        same = ("counts", "oldest_in_doubt", "serial", "ledger_id")
        assert [summary[name] for name in same] == [result[name] for name in same]


@pytest.mark.parametrize(
    "option", [{"names": ["web*"]}, {"history": True}, {"file": "/x.csv"}, {"table": True}], ids=str
)
def test_a_summary_has_no_entries_to_choose_or_write(info, option):
    with pytest.raises(ServicesError, match=f"exclusive: summary.{next(iter(option))}"):
        info(**option, summary=True)


def test_an_entry_shows_everything_that_is_known(info):
    done, doubtful = info(names=["web*"])["entries"]
    same = {"resource": CREATE, "sent": {"name": "x"}, "began_at": OLD, "by": "me@here"}
    same.update(run="run-1")
    assert done == {
        **same,
        "name": "web01",
        "state": DONE,
        "asset": {"id": "1"},
        "changed_at": OLD,
    }
    assert doubtful == {
        **same,
        "name": "web02",
        "state": UNKNOWN,
        "asset": None,
        "changed_at": NEW,
        "settle": doubtful["settle"],
    }


def test_what_is_in_flight_is_named_and_neither_in_doubt_nor_to_be_settled(info):
    """Nobody may look at the service, see nothing, and settle what arrives a moment later."""
    before = int(time.time())
    put(info.ledger, key("app01"), FLEET[key("app01")], lease_seconds=180)
    result = info(states=["in_doubt"])
    assert names_of(result["entries"]) == ["web02"]
    (running,) = result["in_flight"]
    assert (running["name"], running["by"]) == ("app01", "me@here")
    assert before + 178 <= running["lease_until"] <= time.time() + 182
    assert info(states=["in_doubt"], summary=True)["counts"] == result["counts"]
    assert info(summary=True)["oldest_in_doubt"] == result["oldest_in_doubt"]
    assert info(names=["app01"])["entries"] == []
    end_leases(info.location)
    result = info(states=["in_doubt"])
    assert (names_of(result["entries"]), result["in_flight"]) == (["app01", "web02"], [])


def test_the_ledger_its_service_and_its_last_row_are_named(info, service):
    result = info()
    assert (result["base_url"], result["serial"]) == (service.url, 0)
    assert len(result["ledger_id"]) == 32
    task(info.location, base_url=service.url, name="first")
    assert (info()["serial"], info()["ledger_id"]) == (2, result["ledger_id"])


@pytest.mark.parametrize(
    ("name", "state", "commands"),
    [
        ("web02", UNKNOWN, 2),
        ("web02", ACCEPTED, 2),
        ("web02", INTENT, 2),
        ("web02", DONE, None),
        *(
            (name, UNKNOWN, 2)
            for name in ("é-1.b", "a b", "it's", 'a"', "a=b", "$a", "a;b", "a`b`")
        ),
        ("{{ a }}", UNKNOWN, 0),
    ],
)
def test_the_commands_that_settle_a_machine_are_quoted_once(info, name, state, commands):
    put(info.ledger, key(name), ENTRY._replace(state=state))
    (entry,) = info(names=[name])["entries"]
    if commands is None:
        assert "settle" not in entry
        return
    assert len(entry["settle"]) == commands
    for command, rest in zip(
        entry["settle"],
        ({"asset": {"id": "ID", "attributes": {"ip": "ADDRESS"}}}, {"state": "absent"}),
    ):
        *words, option, arguments = shlex.split(command)
        assert (words[:2], option) == (["ansible", "localhost"], "-a")
        assert json.loads(arguments) == {
            "ledger": info.location,
            "resource": CREATE,
            "name": name,
            "changed_at": entry["changed_at"],
            **rest,
        }


def test_a_role_of_unknown_outcome_is_not_in_doubt(info):
    """Running it again is safe."""
    (role,) = info(resource=UPDATE)["entries"]
    assert (role["state"], "settle" in role) == (ACCEPTED, False)


def test_history_is_returned_when_requested(info, service):
    task(info.location, base_url=service.url, name="first")
    found = {
        entry["name"]: entry["history"] for entry in info(resource=CREATE, history=True)["entries"]
    }
    begun, row = found.pop("first")
    assert found == {"app01": [], "web01": [], "web02": []}
    assert (begun["to_state"], begun["outcome"], begun["revision"]) == (INTENT, "", row["began"])
    assert (row["from_state"], row["to_state"], row["outcome"]) == ("absent", DONE, ACCEPTED)
    assert (row["status"], row["run"], row["seconds"] > 0) == (201, "run-of-the-tests", True)


ODD = (
    *["web01", "a%b", "a_b", "axb", "A", "a", "é1", "[x]", "x", "a]b", "*", "?", "100%", "_"],
    "a\\b",
)
GLOBS = (
    *ODD,
    *["w*", "*01", "??", "[ab]", "[!a]", "[]x]", "[[]x]", "a[%_]b", "é*", "*%*", "["],
    "\\*",
)


def test_globs_find_what_they_match_whatever_the_database_makes_of_their_characters(info):
    put_all(info.ledger, dict.fromkeys(FLEET))
    put_all(info.ledger, {key(name): ENTRY for name in ODD})
    for glob in GLOBS:
        found = set(names_of(info(names=["no-such-name", glob])["entries"]))
        assert found == {name for name in ODD if fnmatchcase(name, glob)}, glob
    many = [f"none{number}" for number in range(2000)]
    assert names_of(info(names=[*many, "web0?"])["entries"]) == ["web01"]


def test_entries_that_the_database_can_tell_do_not_match_are_not_read(info):
    """Their content, of which most of a ledger consists, is here not even JSON."""
    execute(
        info.location, "UPDATE infrastructure_services_entry SET sent = 'x' WHERE state = 'done'"
    )
    assert "app01" in names_of(info(states=["in_doubt"])["entries"])
