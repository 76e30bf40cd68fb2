# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A ledger that moves: at no moment can both be used, wherever the move is cut off, and nothing is
lost.
"""

from __future__ import annotations

import functools
import itertools
import json
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from ansible_collections.infrastructure.services.plugins.module_utils._errors import InvalidInput
from ansible_collections.infrastructure.services.plugins.plugin_utils._ledger import sqlite
from ansible_collections.infrastructure.services.plugins.plugin_utils._ledger.entries import (
    ABSENT,
    DONE,
    INTENT,
    STATES,
    Change,
    Ended,
    Entry,
    Key,
    Kind,
    LedgerError,
    Waiting,
)
from ansible_collections.infrastructure.services.plugins.plugin_utils._ledger.location import (
    open_ledger,
)
from ansible_collections.infrastructure.services.plugins.plugin_utils._ledger.moving import (
    move_ledger,
    open_source,
)
from ansible_collections.infrastructure.services.plugins.plugin_utils._ledger.postgresql import (
    PostgresDatabase,
)
from ansible_collections.infrastructure.services.plugins.plugin_utils._ledger.store import Ledger
from ledger.entries import begin, finish, history, put, write
from support.databases import schema_in
from support.waiting import until

KEY = Key("https://s", "compute_virtual_machine", "web01")
AT = "2026-01-02T03:04:05Z"
ENTRY = Entry(
    DONE, {"name": "web01"}, {"id": "1", "name": "ä€ \\ %"}, AT, AT, "me@here", "run-1", "ab"
)
ENDED = Ended(ABSENT, DONE, AT, "me@here", "run-1", "accepted", 201, "ä€ \\ % fine", 1.5, "ab")
MANY = 130  # more than two pages
COMMIT = 4  # the number of the write that commits a move
HOW = ("file to file", "file to server", "server to file", "server to server")
SLOW_BETWEEN_SERVERS = pytest.mark.parametrize(
    "places", [*HOW[:3], pytest.param(HOW[3], marks=pytest.mark.matrix)], indirect=True
)


class Cut(BaseException):
    """The process is killed."""


@pytest.fixture(params=HOW)
def places(request, tmp_path: Path) -> tuple[str, str]:
    def place(kind: str, name: str) -> str:
        return (
            str(tmp_path / name)
            if kind == "file"
            else schema_in(request.getfixturevalue("postgres_server"))
        )

    source, _to, target = request.param.split()
    return place(source, "old.db"), place(target, "new.db")


@pytest.fixture
def fresh(places, request, tmp_path, opened) -> Callable[[], tuple[str, str]]:
    """Make a ledger with entries in every state, of the same kind as the first one; return it, and
    a new place.
    """
    numbers = itertools.count(1)

    def place(like: str) -> str:
        if like.startswith("postgresql:"):
            return schema_in(request.getfixturevalue("postgres_server"))
        return str(tmp_path / f"fresh{next(numbers)}.db")

    def make() -> tuple[str, str]:
        source, target = map(place, places)
        fill(opened(source), 4)
        return source, target

    return make


@pytest.fixture
def filled(places, opened) -> tuple[str, str]:
    """A ledger with entries in every state, and some that are in doubt since their process died."""
    ledger = opened(places[0])
    fill(ledger, MANY)
    ledger.close()
    return places


@pytest.fixture
def unlocked(monkeypatch) -> None:
    """Behind a pooler: nobody waits for anybody."""
    monkeypatch.setattr(sqlite, "set_lock", lambda descriptor, number, how: True)
    monkeypatch.setattr(PostgresDatabase, "lock", lambda self, number, wait: True)
    monkeypatch.setattr(PostgresDatabase, "unlock", lambda self, number: None)


def fill(ledger: Ledger, count: int) -> None:
    changes = []
    for number in range(count):
        entry = ENTRY._replace(state=STATES[number % len(STATES)])
        key = KEY._replace(name=f"web{number:03}", base_url=f"https://s{number % 3}")
        changes.append(Change(key, None, entry, ENDED._replace(message=f"{number} %")))
    assert None not in ledger.write(changes, Kind.BEGIN)


@dataclass
class Fault:
    """What happens at one of the writes of a move, counted from 1."""

    cut: int = 0  # the process is killed at this write, or the write fails with `error`
    after: bool = False  # after the write has had its effect
    error: LedgerError | None = None
    at: int = 0  # before this write something else happens
    does: Callable[[], None] = lambda: None
    writes: int = 0  # so far

    def around(self, write: Callable) -> Callable:
        """Return a function that writes, with the fault."""

        def faulty(statements, kind):
            self.writes += 1
            if self.writes == self.at:
                self.does()
            is_dead = bool(self.cut) and not self.error and self.writes > self.cut
            if is_dead or (self.writes == self.cut and not self.after):
                raise self.error or Cut
            done = write(statements, kind)
            if self.writes == self.cut:
                raise self.error or Cut
            return done

        return faulty


def move(
    source: str,
    target: str,
    check_mode: bool = False,
    interruptible: Callable | None = None,
    **fault: Any,
) -> dict:
    """Move a ledger; `fault`: fields of a Fault."""
    opened: list[Ledger] = []
    happening = Fault(**fault)

    def watched(ledger: Ledger) -> Ledger:
        ledger.database.write = happening.around(ledger.database.write)
        if interruptible:
            ledger.wait_like(Waiting(interruptible))
        opened.append(ledger)
        return ledger

    def open_target(read_only: bool) -> Ledger:
        return watched(open_ledger(target, read_only, moving=True))

    try:
        return move_ledger(watched(open_source(source, check_mode)), open_target, check_mode)
    finally:
        for ledger in opened:
            ledger.database.__dict__.pop("write", None)
            ledger.close()


def content(location: str) -> list:
    """Return all entries and the whole history of a ledger that can be used."""
    ledger = open_ledger(location)
    try:
        return [ledger.entries({}, bool), history(ledger)]
    finally:
        ledger.close()


def usable(*locations: str) -> list[bool]:
    return [_can_be_used(location) for location in locations]


def _can_be_used(location: str) -> bool:
    try:
        ledger = open_ledger(location, read_only=True)
    except LedgerError:
        return False
    try:
        return ledger.entries({}, bool) != []
    finally:
        ledger.close()


def test_all_entries_and_the_whole_history_move_as_they_are(filled):
    before = content(filled[0])
    assert len(before[0]) == len(before[1]) == MANY
    assert move(*filled, check_mode=True)["changed"]
    assert usable(*filled) == [True, False]
    result = move(*filled)
    assert (result["changed"], result["counts"]) == (True, {"entries": MANY, "history": MANY})
    assert content(filled[1]) == before
    again = move(*filled)
    assert (again["changed"], again["counts"]) == (False, result["counts"])


def test_the_old_ledger_is_refused_with_the_name_of_the_new_one(filled, opened):
    known = opened(filled[0])
    entry = known.get(KEY._replace(name="web001", base_url="https://s1"))
    to = move(*filled)["to"]
    uses: list[Callable[[], object]] = [
        lambda: open_ledger(filled[0]),
        lambda: open_ledger(filled[0], read_only=True),
        lambda: known.get(KEY),
        lambda: known.entries({}, bool),
        lambda: begin(known, KEY, ENTRY._replace(state=INTENT), None),
        lambda: write(
            known, Change(KEY._replace(name="web001", base_url="https://s1"), entry, None)
        ),
    ]
    for use in uses:
        with pytest.raises(LedgerError, match="was moved to ") as refused:
            use()
        assert to in str(refused.value)
        assert "postgres:@" not in str(refused.value)


@SLOW_BETWEEN_SERVERS
@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
def test_a_move_that_is_cut_off_is_completed_and_never_can_both_be_used(fresh, after):
    for number in itertools.count(1):
        source, target = fresh()
        before = content(source)
        was_cut = False
        try:
            move(source, target, cut=number, after=after)
        except Cut:
            was_cut = True
            assert usable(source, target) != [True, True]
            assert not is_empty_and_in_use(target)
            move(source, target)
        assert usable(source, target) == [False, True]
        assert content(target) == before
        if not was_cut:
            break
    assert number == 6


@SLOW_BETWEEN_SERVERS
@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
def test_a_write_that_fails_leaves_one_in_use_and_running_it_again_completes_the_move(fresh, after):
    """As on a full disk, or when the server ends a session: the source is not closed for ever."""
    for number in range(1, COMMIT + 2):
        source, target = fresh()
        before = content(source)
        try:
            move(source, target, cut=number, after=after, error=LedgerError("disk full"))
        except LedgerError:
            now = usable(source, target)
            assert now != [True, True]
            assert now[0] or number > COMMIT - after, number
            assert not is_empty_and_in_use(target)
        move(source, target)
        assert content(target) == before
        assert usable(source, target) == [False, True]


@pytest.mark.parametrize("place", ["the same place", "another place"])
def test_two_moves_without_locks_end_in_one_place_wherever_one_overtakes_the_other(
    fresh, unlocked, tmp_path, place
):
    """As through a pooler: the second move runs as a whole before each write of the first one."""
    for number in itertools.count(1):
        source, target = fresh()
        other = target if place == "the same place" else f"{tmp_path}/{number}.elsewhere.db"
        before, said = content(source), []

        overtake = functools.partial(_add_attempt, said, source, other)

        said.append(attempt(source, target, at=number, does=overtake))
        places = [source, *dict.fromkeys((target, other))]
        assert usable(*places).count(True) == 1, (number, said)
        assert not any(map(is_empty_and_in_use, places[1:]))
        used = places[usable(*places).index(True)]
        assert content(used) == before
        if used == source:
            move(source, target)
            assert usable(*places)[:2] == [False, True]
        if len(said) == 1:
            break
    assert number == 6


def test_a_move_whose_last_step_another_one_takes_is_complete(filled, unlocked):
    before = content(filled[0])
    assert move(*filled, at=COMMIT + 1, does=lambda: move(*filled))["changed"]
    assert usable(*filled) == [False, True]
    assert content(filled[1]) == before


def test_a_move_whose_target_has_gone_on_meanwhile_says_where_it_is(filled, unlocked, tmp_path):
    before, third = content(filled[0]), str(tmp_path / "third.db")

    def go_on() -> None:
        move(*filled)
        move(filled[1], third)

    said = attempt(*filled, at=COMMIT + 1, does=go_on)
    assert f"was moved to {third}, which is the ledger now" in said
    assert content(third) == before


def test_four_moves_at_once_end_in_one_place(fresh, unlocked):
    """As one task on four hosts, through a pooler."""
    for _round in range(5):
        source, target = fresh()
        before = content(source)
        movers = [Thread(target=attempt, args=(source, target)) for _number in range(4)]
        for mover in movers:
            mover.start()
        for mover in movers:
            mover.join(60)
        assert usable(source, target) != [True, True]
        move(source, target)
        assert usable(source, target) == [False, True]
        assert content(target) == before


def test_a_ledger_goes_on_to_new_places_and_never_back(filled, fresh):
    first, second = filled
    third = fresh()[1]
    move(first, second)
    before = content(second)
    with pytest.raises(LedgerError, match="was moved to"):
        move(second, first)
    assert usable(first, second) == [False, True]
    move(second, third)
    assert content(third) == before
    for source in (first, second):
        for target in (first, second, third):
            if (source, target) != (second, third):
                with pytest.raises(LedgerError, match="was moved to"):
                    move(source, target)
    assert move(second, third)["changed"] is False
    assert usable(first, second, third) == [False, False, True]


def test_a_target_that_is_a_ledger_already_is_refused_and_nothing_changes(filled, opened):
    put(opened(filled[1]), KEY, ENTRY)
    before = [content(location) for location in filled]
    for check_mode in (True, False):
        with pytest.raises(LedgerError, match="is another ledger already, "):
            move(*filled, check_mode=check_mode)
        assert [content(location) for location in filled] == before
    assert usable(*filled) == [True, True]


def test_a_refused_move_leaves_nothing_at_the_new_place(places, filled, opened, tmp_path):
    """Neither a file nor a table that a task with ledger_create: false would take for a ledger."""
    third = str(tmp_path / "third.db")
    move(*filled)
    with pytest.raises(LedgerError, match="was moved to"):
        move(filled[0], third)
    assert not Path(third).exists()
    with pytest.raises(InvalidInput, match="ledger_create"):
        open_ledger(third, required_by="ledger_create")


def test_a_ledger_is_not_moved_to_itself_under_another_name(filled, tmp_path):
    if filled[0].startswith("postgresql:"):
        same = f"{filled[0]}&application_name=other"
    else:
        same = str(tmp_path / "copy.db")
        shutil.copy(filled[0], same)
    for check_mode in (True, False):
        with pytest.raises(LedgerError, match="itself under another name, or a copy of it"):
            move(filled[0], same, check_mode=check_mode)
    assert usable(filled[0]) == [True]
    with pytest.raises(Cut):
        move(*filled, cut=2)
    with pytest.raises(LedgerError, match="itself under another name"):
        move(filled[0], same)
    assert usable(filled[0]) == [True]


def test_a_move_that_cannot_be_completed_is_replaced_by_one_to_another_place(fresh):
    for cut in range(2, COMMIT + 1):
        source, gone = fresh()
        _other, target = fresh()
        before = content(source)
        with pytest.raises(Cut):
            move(source, gone, cut=cut)
        move(source, target)
        assert content(target) == before
        assert usable(source, gone, target) == [False, False, True]


def test_a_ledger_keeps_its_id_when_it_moves(filled, opened):
    ledger_id = opened(filled[0]).ledger_id
    assert len(ledger_id) == 32
    assert move(*filled)["ledger_id"] == ledger_id
    assert opened(filled[1]).ledger_id == ledger_id


def test_a_move_that_is_interrupted_while_it_waits_leaves_the_source_in_use(filled, opened):
    run = opened(filled[0])
    begin(run, KEY, ENTRY._replace(state=INTENT), None)
    assert run.lock(KEY, wait=True)
    with pytest.raises(Cut):
        move(*filled, interruptible=Interrupted)
    assert usable(*filled) == [True, False]
    run.release(KEY)
    move(*filled)
    assert usable(*filled) == [False, True]


class Interrupted:
    """Stands for the block in which a wait may be interrupted: it is, at once."""

    def __enter__(self) -> None:
        raise Cut

    def __exit__(self, *_details: object) -> None:
        """Nothing was entered."""


def _add_attempt(said: list[str], source: str, target: str) -> None:
    said.append(attempt(source, target))


def attempt(source: str, target: str, at: int = 0, does: Callable[[], None] = lambda: None) -> str:
    """Try to move a ledger; return why that failed, empty if it did not."""
    try:
        move(source, target, at=at, does=does)
    except LedgerError as error:
        return error.msg
    return ""


def is_empty_and_in_use(location: str) -> bool:
    ledger = open_ledger(location, read_only=True, moving=True)
    try:
        return ledger.mark().state == "in use" and ledger.entries({}, bool) == []
    finally:
        ledger.close()


def test_a_request_in_flight_is_waited_for_and_none_begins(filled, opened):
    run = opened(filled[0])
    in_flight = begin(run, KEY, ENTRY._replace(state=INTENT), None)
    assert run.lock(KEY, wait=True)
    mover = Thread(target=move, args=filled)
    mover.start()
    until(lambda: _is_marked(run))
    with pytest.raises(LedgerError, match="is being moved to"):
        begin(run, KEY._replace(name="late"), ENTRY._replace(state=INTENT), None)
    assert finish(run, KEY, in_flight, in_flight._replace(state=DONE), ENDED)
    run.release(KEY)
    mover.join(30)
    assert opened(filled[1]).get(KEY).state == DONE
    assert opened(filled[1]).get(KEY._replace(name="late")) is None


def _is_marked(ledger: Ledger) -> bool:
    return ledger.mark().state == "moving"


def test_two_moves_at_once_end_in_one_place(filled, opened):
    before, results = content(filled[0]), []
    movers = [
        Thread(target=lambda: results.append(move(*filled)["changed"])) for _number in range(2)
    ]
    for mover in movers:
        mover.start()
    for mover in movers:
        mover.join(60)
    assert sorted(results) == [False, True]
    assert content(filled[1]) == before


def test_moves_to_two_places_end_in_one(filled, tmp_path):
    elsewhere, before, told = str(tmp_path / "elsewhere.db"), content(filled[0]), []

    def try_to(target: str) -> None:
        try:
            move(filled[0], target)
        except LedgerError as error:
            told.append(error.msg)

    movers = [Thread(target=try_to, args=[target]) for target in (filled[1], elsewhere)]
    for mover in movers:
        mover.start()
    for mover in movers:
        mover.join(60)
    assert len(told) == 1
    there = usable(filled[1], elsewhere)
    assert sorted(there) == [False, True]
    assert content((filled[1], elsewhere)[there.index(True)]) == before
    assert usable(filled[0]) == [False]


def test_nothing_moves_from_where_there_is_no_ledger(places, tmp_path):
    with pytest.raises(LedgerError, match=r"no ledger at .* yet\. Check the location"):
        move(*places)
    assert list(tmp_path.glob("*.db*")) == []


@pytest.mark.parametrize(
    "places",
    [
        "file to server",
        *(pytest.param(how, marks=pytest.mark.matrix) for how in HOW if how != "file to server"),
    ],
    indirect=True,
)
def test_the_playbook_moves_a_ledger_and_says_where_it_is(ansible_once, places, opened):
    """Without the options of a service, since nothing is sent; the password of a URL is shown
    nowhere.
    """
    put(opened(places[0]), KEY, ENTRY)
    to = places[1].replace("postgres:@", "postgres:hidden-word@")
    command = [
        "infrastructure.services.move_ledger",
        "-e",
        f"ledger={places[0]}",
        "-e",
        json.dumps({"to": to}),
    ]
    environment = {"INFRASTRUCTURE_SERVICES_BASE_URL": None}
    planned = ansible_once.playbook(*command, "--check", **environment).ok()
    assert planned.result("Move it")["changed"]
    run = ansible_once.playbook(*command, **environment).ok()
    assert run.result("Move it")["counts"] == {"entries": 1, "history": 0}
    assert "would be the ledger; its entries: 1" in planned.output
    assert "is now the ledger; its entries: 1" in run.output
    assert "hidden-word" not in planned.output + run.output
    assert usable(*places) == [False, True]


@pytest.mark.stress
def test_a_hundred_thousand_entries_move(places, opened):
    ledger = opened(places[0])
    for start in range(0, 100_000, 10_000):
        keys = [KEY._replace(name=f"web{number}") for number in range(start, start + 10_000)]
        ledger.write([Change(key, None, ENTRY, ENDED) for key in keys], Kind.BEGIN)
    ledger.close()
    assert move(*places)["counts"] == {"entries": 100_000, "history": 100_000}
    assert len(opened(places[1]).entries({}, bool)) == 100_000
