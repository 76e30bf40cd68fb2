# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What people see of a ledger."""

from __future__ import annotations

from ansible_collections.infrastructure.services.plugins.plugin_utils._screen.ledger_table import (
    edit_lines,
    ledger_lines,
    nothing_found,
    written_lines,
)

MACHINE, ROLE = "compute_virtual_machine", "cassandra_application_role"
IP, URL = "192.0.2.10", "https://infrastructure.example.com"


def machine(name: str, state: str = "done", attributes: object = None, **more) -> dict:
    """An entry as ledger_info returns it."""
    entry = {
        "base_url": URL,
        "resource": MACHINE,
        "name": name,
        "state": state,
        "sent": {"attributes": attributes},
        "asset": None,
        "changed_at": "2026-01-02T03:04:05Z",
        **more,
    }
    return entry if state == "done" else {"settle": [f"record {name}", f"remove {name}"], **entry}


def role(name: str, state: str = "done") -> dict:
    """An entry of a role."""
    found = {"id" if key == "name" else key: value for key, value in machine(name, state).items()}
    return {**found, "resource": ROLE, **({"settle": []} if state != "done" else {})}


def lines(*entries: dict) -> list[str]:
    states = [entry["state"] for entry in entries]
    counts = {state: states.count(state) for state in ("intent", "done", "accepted", "unknown")}
    return ledger_lines(
        {"entries": list(entries), "counts": counts, "ledger": "/l.db"}, ["write", "record"]
    )


def test_a_table_has_a_heading_for_each_kind_of_asset():
    whole = machine(
        "web01", attributes={"ip": "old", "team": "web"}, asset={"attributes": {"ip": IP}}
    )
    assert lines(role("r1"), whole, machine("web02-longer")) == [
        "/l.db: 3 done",
        "NAME          STATE  SINCE (UTC)       ADDRESS     TEAM  ID",
        f"{ROLE} at {URL}",
        "r1            done   2026-01-02 03:04",
        f"{MACHINE} at {URL}",
        "web01         done   2026-01-02 03:04  192.0.2.10  web",
        "web02-longer  done   2026-01-02 03:04",
    ]


def test_a_table_fits_80_columns():
    wide = machine(
        "db-production-01", "accepted", attributes={"ip": "255.255.255.255", "team": "stores"}
    )
    assert max(map(len, lines(wide)[1:4])) <= 80


def test_no_entries_are_said_to_be_none():
    assert nothing_found("/l.db", {"names": ["a"]}, {}) == "Nothing is recorded in /l.db."
    assert (
        nothing_found("/l.db", {"states": ["in_doubt"]}, {"done": 4})
        == "Nothing is in doubt in /l.db."
    )
    told = nothing_found(
        "/l.db", {"states": ["in_doubt"], "names": ["a*", "b\n"]}, {"done": 4_000, "unknown": 1}
    )
    assert told == (
        "No entry of /l.db matches states: in_doubt; names: a*, b . Without these filters there are 4,000 done,"
        " 1 unknown."
    )


def test_a_filter_of_one_value_is_told_as_it_was_given():
    told = nothing_found("/l.db", {"resource": MACHINE}, {"done": 1})
    assert told == (
        f"No entry of /l.db matches resource: {MACHINE}. Without these filters there are 1 done."
    )


def test_odd_values_do_not_break_the_table():
    odd = machine("a\n\x1b[1mb", attributes={"ip": 4, "team": ["x"]})
    assert (
        lines(odd, machine("c", attributes="text"))[3]
        == "a  [1mb  done   2026-01-02 03:04  4        ['x']"
    )


def test_each_machine_in_doubt_comes_with_its_commands():
    found = lines(machine("web01", "unknown"), machine("web02"), machine("web03", "accepted"))
    assert found[-11:] == [
        "Look for each machine on the service.",
        "web01 was sent with no attributes.",
        "If web01 is there, record it, with its id at the end:",
        "record web01",
        "If it is not there, remove its entry, and the next run creates it:",
        "remove web01",
        "web03 was sent with no attributes.",
        "The service accepted web03: record it, with its id at the end:",
        "record web03",
        "If somebody has removed it, remove its entry, and the next run creates it:",
        "remove web03",
    ]
    assert not any("flight" in line for line in found)


def test_a_request_in_flight_is_pointed_out():
    assert any("may still be in flight" in line for line in lines(machine("web01", "intent")))


def test_a_name_that_no_command_line_can_hold_is_told_apart():
    odd = machine("a b", "unknown", settle=[])
    assert (
        lines(odd)[-1]
        == "a b cannot be put on a command line: use a task of infrastructure.services.ledger_entry."
    )


def test_a_role_in_doubt_is_run_again():
    found = lines(role("r1", "unknown"))
    assert found[4:] == ["A Cassandra role needs no settling: run its task again, which is safe."]


def test_what_was_sent_is_said_of_a_machine_in_doubt():
    found = lines(
        machine(
            "web01", "unknown", attributes={"cpu": 4, "team": "web", "volumes": [{"size_gb": 250}]}
        )
    )
    assert "web01 was sent with cpu 4, team web, volumes 250." in found


def test_the_commands_of_five_machines_are_shown_and_how_to_settle_more():
    found = lines(*(machine(f"web{number:02}", "unknown") for number in range(13)))
    assert len([line for line in found if line.startswith("record ")]) == 5
    assert found[-3:] == [
        "To settle all of them at once, write a file, fill in an id or the state absent, and record it:",
        "write",
        "record",
    ]


EVIL = "\x1b[2J\x1b]0;title\x07\u202e\n"


def test_nothing_that_somebody_wrote_into_a_shared_ledger_controls_the_terminal():
    """Each column of the database, and the place of the ledger itself."""
    odd = machine(
        EVIL,
        EVIL,
        attributes={"ip": EVIL, "team": EVIL, EVIL: EVIL},
        base_url=f"https://s/{EVIL}",
        asset={"id": EVIL},
        changed_at=EVIL,
        settle=[],
    )
    found = lines(odd, {**odd, "resource": f"{MACHINE}{EVIL}"})
    found += ledger_lines({"entries": [odd], "counts": {"done": 1}, "ledger": f"/{EVIL}.db"}, [])
    found += ledger_lines({"entries": [], "counts": {}, "ledger": f"/{EVIL}.db"}, [])
    assert len(found) > 8
    assert [line for line in found if not line.isprintable()] == []


def test_one_entry_is_one_entry():
    lost = machine("lost", "unknown", settle=["a command"])
    head, fill_in, command = written_lines("/doubt.csv", [lost], "settle it")
    assert head == "1 entry was written to /doubt.csv"
    assert fill_in.startswith("In doubt: 1. Fill in the id ")
    assert command == "settle it"
    assert written_lines("/all.csv", [machine("a"), machine("b")], "") == [
        "2 entries were written to /all.csv"
    ]


def test_the_edits_of_a_list_are_counted_and_named():
    """What stays in doubt is counted apart from what is unchanged for good."""
    counts = {"adopted": 1, "settled_present": 2, "corrected": 0, "unchanged": 5, "in_doubt": 40}
    names = {"adopted": ["a"], "settled_present": ["b", "c\n"], "corrected": [], "in_doubt": ["d"]}
    assert edit_lines(counts, names, is_plan=False) == [
        "ledger entries: 1 adopted, 2 settled as present, 4 unchanged, 1 left in doubt; 40 still in doubt",
        "  adopted: a",
        "  settled as present: b, c ",
        "  left in doubt: d",
    ]


def test_no_edits_are_an_empty_list():
    assert edit_lines({"unchanged": 0, "in_doubt": 3}, {}, is_plan=True) == [
        "ledger entries in check mode: the list is empty; 3 still in doubt"
    ]
