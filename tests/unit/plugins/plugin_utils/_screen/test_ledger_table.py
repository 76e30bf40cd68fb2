"""What people see of a ledger."""

from __future__ import annotations

from ansible_collections.infrastructure.services.plugins.plugin_utils._ledger.listing import row_of
from ansible_collections.infrastructure.services.plugins.plugin_utils._screen.ledger_table import (
    edit_lines,
    ledger_lines,
    written_lines,
)

MACHINE, ROLE = "compute_virtual_machine", "cassandra_application_role"
IP = "192.0.2.10"


def machine(name: str, state: str = "done", attributes: object = None, **more) -> dict:
    """An entry as ledger_info returns it."""
    entry = {
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


def listed(*entries: dict, ledger: str = "/l.db", in_flight: list[dict] = ()) -> dict:
    """A result of ledger_info."""
    states = [entry["state"] for entry in entries]
    counts = {state: states.count(state) for state in states}
    return {"counts": counts, "ledger": ledger, "in_flight": in_flight}


def lines(*entries: dict, **more: object) -> list[str]:
    rows = [*map(row_of, entries)]
    return ledger_lines(rows, listed(*entries, **more), "in doubt", ["write", "record"], 60)


def test_a_table_has_a_heading_for_each_kind_of_asset():
    whole = machine(
        "web01", attributes={"ip": "old", "team": "web"}, asset={"attributes": {"ip": IP}}
    )
    assert lines(role("r1"), whole, machine("web02-longer")) == [
        "/l.db: 3 done",
        "NAME          STATE  SINCE (UTC)       ADDRESS     TEAM  ID",
        ROLE,
        "              done   2026-01-02 03:04                    r1",
        MACHINE,
        "web01         done   2026-01-02 03:04  192.0.2.10  web",
        "web02-longer  done   2026-01-02 03:04",
    ]


def test_a_row_that_is_too_wide_continues_on_the_next_line():
    found = lines(machine("web01-in-a-far-away-place", asset={"id": "vm-1"}))
    assert found[1:] == [
        "NAME                       STATE  SINCE (UTC)       ADDRESS",
        "    TEAM  ID",
        MACHINE,
        "web01-in-a-far-away-place  done   2026-01-02 03:04",
        "    vm-1",
    ]


def test_no_entries_are_said_to_be_none():
    assert lines() == ["Nothing that matches is in doubt in /l.db."]


def test_each_machine_in_doubt_comes_with_its_commands():
    found = lines(machine("web01", "unknown"), machine("web02"), machine("web03", "accepted"))
    how, steps = " ".join(found[-7:-4]), found[-4:]
    assert how.startswith("Look for each machine on the service, and look again later")
    assert steps == ["record web01", "remove web01", "record web03", "remove web03"]
    assert not any("flight" in line for line in found)


def test_the_commands_of_three_machines_are_shown_and_how_to_settle_more():
    found = lines(*(machine(f"web{number:02}", "unknown") for number in range(4)))
    assert len([line for line in found if line.startswith("record ")]) == 3
    assert found[-4:] == [
        "To settle all of them at once, write a file, fill in an id or the state absent,",
        "and record it:",
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
        asset={"id": EVIL},
        changed_at=EVIL,
        settle=[],
    )
    found = lines(odd, {**odd, "resource": f"{MACHINE}{EVIL}"})
    running = {**odd, "by": EVIL, "began_at": EVIL, "lease_until": 1}
    found += lines(ledger=f"/{EVIL}.db", in_flight=[running])
    assert len(found) > 8
    assert [line for line in found if not line.isprintable()] == []


def test_the_edits_of_a_list_are_counted_and_named():
    """What is left in doubt is counted apart from what is unchanged for good."""
    counts = {"adopted": 1, "settled_present": 2, "corrected": 0, "unchanged": 4, "in_doubt": 1}
    names = {"adopted": ["a"], "settled_present": ["b", "c\n"], "corrected": [], "in_doubt": ["d"]}
    assert edit_lines(counts, names, is_plan=False) == [
        "ledger entries: 1 adopted, 2 settled as present, 4 unchanged, 1 left in doubt",
        "  adopted: a",
        "  settled as present: b, c ",
        "  left in doubt: d",
    ]


def test_a_file_with_doubts_comes_with_the_command_that_records_it():
    settle = "ansible-playbook infrastructure.services.settle -e file=a.csv"
    assert written_lines("a.csv", [{}, {}], settle) == ["Entries for a.csv: 2"]
    written = written_lines("a.csv", [{}, {"settle": []}], settle)
    assert (written[0], written[-1]) == ("Entries for a.csv: 2", settle)
    assert written[1].startswith("In doubt: 1. Fill in the id of each machine that exists")
