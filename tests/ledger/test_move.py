"""A ledger that moves: never can both be used, wherever the move is cut off, and nothing is lost."""

from __future__ import annotations

import itertools
import json
import shutil
from collections.abc import Callable
from contextlib import ExitStack, closing

import pytest
from ansible_collections.infrastructure.services.plugins.module_utils._errors import LedgerError
from ansible_collections.infrastructure.services.plugins.plugin_utils._ledger import sql
from ansible_collections.infrastructure.services.plugins.plugin_utils._ledger.entries import (
    ACCEPTED,
    DONE,
    INTENT,
    UNKNOWN,
    Entry,
)
from ansible_collections.infrastructure.services.plugins.plugin_utils._ledger.location import (
    open_database,
)
from ledger.entries import end_leases, execute, put, put_all
from ledger.tasks import key, moved, task
from support.databases import schema_in
from support.ledgers import SERVICE, opened

AT = "2026-01-02T03:04:05Z"
ENTRY = Entry(DONE, {"name": "web01"}, {"id": "1", "name": "ä€ \\ %"}, AT, AT, "me@here", "run-1")
MANY = 130  # more than two pages
HOW = ("file to file", "file to server", "server to file", "server to server")


@pytest.fixture
def place(request, tmp_path) -> Callable[[str], str]:
    """Return a function that returns a new place of a kind."""
    numbers = itertools.count(1)

    def place(kind: str) -> str:
        if kind == "file":
            return str(tmp_path / f"{next(numbers)}.db")
        return schema_in(request.getfixturevalue("postgres_server"))

    return place


@pytest.fixture(params=HOW)
def places(request, place) -> tuple[str, str]:
    source, _to, target = request.param.split()
    return place(source), place(target)


def fill(location: str, count: int = 3) -> None:
    """Make a ledger of a service, with entries in three states and a history."""
    with opened(location) as ledger:
        states = itertools.cycle([DONE, UNKNOWN, ACCEPTED])
        put_all(
            ledger, {key(f"web{n:03}"): ENTRY._replace(state=next(states)) for n in range(count)}
        )
    values = (
        "'r', 'web000', 'absent', 'done', '%s', 'me', 'run', 'accepted', 201, 'ä \\ %%', 1.5" % AT
    )
    rows = ", ".join(f"({number + 1}, {values}, {number}, 7)" for number in range(count))
    columns = sql.COPIED[sql.HISTORY]
    execute(location, f"INSERT INTO infrastructure_services_history ({columns}) VALUES {rows}")


def content(location: str) -> list[list[tuple]]:
    """Return all rows of a ledger, as another program reads them."""
    return [
        sorted(execute(location, f"SELECT * FROM infrastructure_services_{table}"), key=repr)
        for table in ("entry", "history")
    ]


def states_of(*locations: str) -> list[str]:
    """Return the state of each ledger, '' where there is none."""
    found = []
    for location in locations:
        with closing(open_database(location)) as database:
            is_there = database.has_tables()
        rows = is_there and execute(location, "SELECT state FROM infrastructure_services_ledger")
        found.append(rows[0][0] if rows else "")
    return found


def test_all_entries_and_the_whole_history_move_as_they_are(places, service):
    source, target = places
    fill(source, MANY)
    before = content(source)
    assert moved(source, target, check_mode=True)["changed"]
    assert states_of(*places) == ["in use", ""]
    result = moved(source, target)
    assert result["changed"]
    assert content(target) == content(source) == before
    assert not moved(source, target)["changed"]
    assert states_of(*places) == ["filled", "in use"]
    for check_mode in (False, True):
        refused = task(source, base_url=SERVICE, check_mode=check_mode)
        assert f"was moved to {result['to']}" in refused["msg"]
        assert "postgres:@" not in refused["msg"]


@pytest.mark.parametrize("when", ["before", "after"])
def test_a_move_that_is_killed_at_any_step_is_completed_by_running_it_again(
    places, place, fork, when
):
    kinds = ["server" if "://" in each else "file" for each in places]
    for number in itertools.count(1):
        source, target = map(place, kinds)
        fill(source)
        before = content(source)
        with fork("move", source, target, number, when) as process:
            was_killed = process.result() == {}
        now = states_of(source, target)
        assert now in (
            ["in use", ""],
            ["in use", "filling"],
            ["moved", "filling"],
            ["filled", "filling"],
            ["filled", "in use"],
        )
        for location, state in zip((source, target), now):
            if state not in ("in use", ""):
                assert task(location, base_url=SERVICE)["outcome"] == "not_sent"
        assert moved(source, target)["changed"] == (now != ["filled", "in use"])
        assert states_of(source, target) == ["filled", "in use"]
        assert content(target) == before
        if not was_killed:
            break
    assert number == 7  # reserve, close, entries, history, filled, open


def test_a_move_goes_on_to_new_places_and_never_back(places, place):
    first, second = places
    third = place("file")
    fill(first)
    moved(first, second)
    before = content(second)
    with pytest.raises(LedgerError, match=r"was moved to|is a ledger already"):
        moved(second, first)
    moved(second, third)
    assert content(third) == before
    for source, target in itertools.product((first, second), (first, second, third)):
        if (source, target) == (second, third):
            assert moved(source, target)["changed"] is False
        else:
            with pytest.raises(LedgerError, match=r"was moved to|is a ledger already"):
                moved(source, target)
    assert states_of(first, second, third) == ["filled", "filled", "in use"]


@pytest.mark.parametrize("check_mode", [True, False])
def test_a_place_where_something_else_is_is_refused_and_nothing_changes(places, place, check_mode):
    source, other = places
    fill(source)
    fill(other, 1)
    with pytest.raises(LedgerError, match="is a ledger already, "):
        moved(source, other, check_mode)
    with pytest.raises(LedgerError, match="is a ledger already, "):
        moved(source, source, check_mode)
    if source.startswith("/"):
        copy = shutil.copy(source, place("file"))
        with pytest.raises(LedgerError, match="is a ledger already, "):
            moved(source, copy, check_mode)
    assert states_of(*places) == ["in use", "in use"]


def test_what_may_be_in_flight_is_named_and_nothing_is_left_in_its_way(places, opened):
    """Neither where it is, nor at the new place, which no task may take for a ledger."""
    source, target = places
    fill(source)
    put(opened(source), key("busy"), ENTRY._replace(state=INTENT), lease_seconds=300)
    for _time in range(2):
        with pytest.raises(LedgerError, match="requests that may be in flight: busy"):
            moved(source, target)
        end_leases(source)
    assert states_of(*places) == ["in use", ""]
    put(opened(source), key("busy"), None)
    assert moved(source, target)["changed"]


def test_a_reservation_is_for_one_ledger_and_may_be_given_up(places, place, fork):
    source, gone = places
    other, target = place("file"), place("file")
    fill(source)
    fill(other)
    with fork("move", source, gone, 2, "before") as process:
        assert process.result() == {}
    assert states_of(source, gone) == ["in use", "filling"]
    with pytest.raises(LedgerError, match="is reserved for the ledger "):
        moved(other, gone)
    moved(source, target)  # to another place
    with pytest.raises(LedgerError, match=r"was moved to|is a ledger already"):
        moved(source, gone)
    assert states_of(source, gone, target) == ["filled", "filling", "in use"]


def test_two_moves_at_once_put_one_ledger_in_use(places, place, fork):
    """To two places, of which the first to close decides, and to one place, by whoever is faster."""
    source, target = places
    third = place("server" if "://" in target else "file")
    fill(source)
    before = content(source)
    targets = [target, third, target, third]
    with ExitStack() as stack:
        processes = [stack.enter_context(fork("move", source, each)) for each in targets]
        said = [process.result() for process in processes]
    now = dict(zip((target, third), states_of(target, third)))
    (used,) = [each for each, state in now.items() if state == "in use"]
    assert states_of(source) == ["filled"]
    assert content(used) == before
    for each, result in zip(targets, said):
        assert each == used or result["failed"]
    assert moved(source, used)["changed"] is False


@pytest.mark.parametrize(
    "places",
    [
        "file to server",
        *(pytest.param(how, marks=pytest.mark.matrix) for how in HOW if how != "file to server"),
    ],
    indirect=True,
)
def test_the_playbook_moves_a_ledger_and_says_where_it_is(ansible, places):
    """Without the options of a service, since nothing is sent; no password is shown."""
    fill(places[0])
    to = places[1].replace("postgres:@", "postgres:hidden-word@")
    command = ["infrastructure.services.move_ledger", "-e", json.dumps({"to": to})]
    environment = {
        "INFRASTRUCTURE_SERVICES_BASE_URL": None,
        "INFRASTRUCTURE_SERVICES_LEDGER": places[0],
    }
    planned = ansible.playbook(*command, "--check", **environment).ok()
    assert planned.result("Move it")["changed"]
    run = ansible.playbook(*command, **environment).ok()
    assert "hidden-word" not in planned.output + run.output
    assert states_of(*places) == ["filled", "in use"]
    later = {"resource": "compute_virtual_machine", "name": "later", "asset": {"id": "later"}}
    arguments = json.dumps({"ledger": places[1], **later})
    ansible.adhoc("infrastructure.services.ledger_entry", arguments, **environment).ok()
    again = ansible.playbook(*command, **environment).ok()
    assert not again.result("Move it")["changed"]
    assert "gone back in time" not in again.output
    arguments = json.dumps({"ledger": places[1], "to_base_url": "https://new.example.com"})
    ansible.adhoc("infrastructure.services.ledger_move", arguments, **environment).ok()
    with opened(places[1]) as ledger:
        assert ledger.header.base_url == "https://new.example.com"
    for table in ("ledger", "entry", "history"):  # the new one is lost
        execute(places[1], f"DROP TABLE infrastructure_services_{table}")
    refused = " ".join(ansible.playbook(*command, **environment).output.split())
    assert "was moved to" in refused
    assert "Restore that one from its backup" in refused
    assert states_of(*places) == ["filled", ""]
