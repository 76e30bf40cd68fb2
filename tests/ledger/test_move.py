# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A ledger that moves: at no moment can both be used, wherever the move is cut off, and nothing is lost."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from threading import Thread

import pytest
from ansible_collections.infrastructure.services.plugins.plugin_utils._ledger.entries import (
    ABSENT,
    DONE,
    INTENT,
    STATES,
    Change,
    Ended,
    Entry,
    Key,
    LedgerError,
)
from ansible_collections.infrastructure.services.plugins.plugin_utils._ledger.location import open_ledger
from ansible_collections.infrastructure.services.plugins.plugin_utils._ledger.moving import moved, opened_source
from ansible_collections.infrastructure.services.plugins.plugin_utils._ledger.store import Ledger
from ledger.entries import begin, finish, history, put, write
from support.databases import schema_in
from support.waiting import until

KEY = Key("https://s", "compute_virtual_machine", "web01")
AT = "2026-01-02T03:04:05Z"
ENTRY = Entry(DONE, {"name": "web01"}, {"id": "1", "name": "ä€ \\ %"}, AT, AT, "me@here", "run-1", "ab")
ENDED = Ended(ABSENT, DONE, AT, "me@here", "run-1", "accepted", 201, "ä€ \\ % fine", 1.5, "ab")
MANY = 130  # more than two pages


class Cut(BaseException):
    """The process is killed."""


@pytest.fixture(params=["file to file", "file to server", "server to file", "server to server"])
def places(request, tmp_path: Path) -> tuple[str, str]:
    def place(kind: str, name: str) -> str:
        return str(tmp_path / name) if kind == "file" else schema_in(request.getfixturevalue("postgres_server"))

    source, _to, target = request.param.split()
    return place(source, "old.db"), place(target, "new.db")


@pytest.fixture
def filled(places, opened) -> tuple[str, str]:
    """A ledger with entries in every state, and some that are in doubt since their process died."""
    ledger = opened(places[0])
    for number in range(MANY):
        entry = ENTRY._replace(state=STATES[number % len(STATES)])
        key = KEY._replace(name=f"web{number:03}", base_url=f"https://s{number % 3}")
        write(ledger, Change(key, None, entry, ENDED._replace(message=f"{number} %")))
    ledger.close()
    return places


def move(source: str, target: str, check_mode: bool = False, cut: int | None = None, after: bool = False) -> dict:
    """Move a ledger; killed at one of its writes, before or after it has had its effect."""
    writes = 0

    def counted(ledger: Ledger) -> Ledger:
        write = ledger.database.write

        def cut_off(statements, durable, whole=False):
            nonlocal writes
            writes += 1
            if writes == cut and not after:
                raise Cut
            done = write(statements, durable, whole)
            if writes == cut:
                raise Cut
            return done

        ledger.database.write = cut_off
        return ledger

    old, new = counted(opened_source(source, check_mode)), None
    try:
        new = counted(open_ledger(target, check_mode, moving=True))
        return moved(old, new, check_mode)
    finally:
        for ledger in (old, new):
            if ledger:
                del ledger.database.write
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
        ledger = open_ledger(location)
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
        lambda: write(known, Change(KEY._replace(name="web001", base_url="https://s1"), entry, None)),
    ]
    for use in uses:
        with pytest.raises(LedgerError, match="was moved to ") as refused:
            use()
        assert to in str(refused.value)
        assert "postgres:@" not in str(refused.value)


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
def test_a_move_that_is_cut_off_is_completed_and_never_can_both_be_used(filled, after):
    before, number = content(filled[0]), 0
    open_ledger(filled[1]).close()  # so that making it is not one of the writes
    while True:
        number += 1
        try:
            move(*filled, cut=number, after=after)
        except Cut:
            now = usable(*filled)
            assert now != [True, True]
            if now == [False, False]:
                with pytest.raises(LedgerError):  # also to those who believe what the old one says: it is not empty
                    open_ledger(filled[1])
            move(*filled)
            assert content(filled[1]) == before
            assert usable(*filled) == [False, True]
            filled = filled[1], filled[0]  # and back
            continue
        break
    assert number in (5, 6)
    assert content(filled[1]) == before


def test_a_ledger_moves_back_with_what_was_recorded_meanwhile(filled, opened):
    for source, target in (filled, filled[::-1]) * 2:
        move(source, target)
        ledger = opened(target)
        put(ledger, KEY._replace(name=f"new{len(ledger.entries({}, bool))}"), ENTRY)
        now = content(target)
        ledger.close()
    assert len(now[0]) == MANY + 4
    assert len(now[1]) == MANY


def test_a_target_that_contradicts_changes_nothing_and_is_told_by_name(filled, opened):
    same, other = (KEY._replace(name=f"web00{number}", base_url=f"https://s{number}") for number in (1, 2))
    target = opened(filled[1])
    put(target, same, ENTRY._replace(state=STATES[1], by="somebody"))
    put(target, other, ENTRY._replace(asset={"id": "another"}))
    target.close()
    before = [content(location) for location in filled]
    for check_mode in (True, False):
        with pytest.raises(LedgerError, match=r"contradicts .* about web002\. Nothing was moved"):
            move(*filled, check_mode=check_mode)
        assert [content(location) for location in filled] == before
    target = opened(filled[1])
    put(target, other, None)
    move(*filled)
    assert len(target.entries({}, bool)) == MANY


def test_a_contradiction_that_comes_up_meanwhile_is_undone(filled, opened, monkeypatch):
    target = opened(filled[1])
    real = Ledger.lock

    def late(ledger: Ledger, key: Key, wait: bool) -> bool:
        monkeypatch.setattr(Ledger, "lock", real)
        return real(ledger, key, wait)

    other = KEY._replace(name="web001", base_url="https://s1")
    put(target, other, ENTRY._replace(state=STATES[1]))
    old, new = opened_source(filled[0], False), open_ledger(filled[1], moving=True)
    mark = old.database.write

    def change_first(statements, durable, whole=False):
        old.database.write = mark
        done = mark(statements, durable, whole)  # the mark of the source
        changed = open_ledger(filled[0], moving=True)
        entry = changed.get(other)
        assert changed.write([Change(other, entry, entry._replace(asset={"id": "another"}))], durable=False) != [None]
        changed.close()
        return done

    old.database.write = change_first
    with pytest.raises(LedgerError, match="contradicts"):
        moved(old, new, False)
    old.close()
    new.close()
    assert usable(*filled) == [True, True]  # as before


@pytest.mark.parametrize("cut", [1, 2, 3], ids=["target marked", "source marked", "source closed"])
def test_a_move_that_was_cut_off_is_undone_if_the_ledgers_contradict_since(filled, opened, cut):
    """Neither could be used any more otherwise, not even to settle what contradicts."""
    other = KEY._replace(name="web001", base_url="https://s1")
    target = opened(filled[1])
    put(target, other, ENTRY._replace(state=STATES[1]))
    target.close()
    before = content(filled[0])
    with pytest.raises(Cut):
        move(*filled, cut=cut, after=True)
    target = open_ledger(filled[1], moving=True)
    entry = target.get(other)
    assert target.write([Change(other, entry, entry._replace(asset={"id": "another"}))], durable=False) != [None]
    target.close()
    with pytest.raises(LedgerError, match="contradicts"):
        move(*filled)
    assert usable(*filled) == [True, True]
    assert content(filled[0]) == before


def test_a_request_in_flight_is_waited_for_and_none_begins(filled, opened):
    run = opened(filled[0])
    in_flight = begin(run, KEY, ENTRY._replace(state=INTENT), None)
    assert run.lock(KEY, wait=True)
    mover = Thread(target=move, args=filled)
    mover.start()
    until(lambda: _is_marked(run))
    with pytest.raises(LedgerError, match="was moved to"):
        begin(run, KEY._replace(name="late"), ENTRY._replace(state=INTENT), None)
    assert finish(run, KEY, in_flight, in_flight._replace(state=DONE), ENDED)
    run.release(KEY)
    mover.join(30)
    assert opened(filled[1]).get(KEY).state == DONE
    assert opened(filled[1]).get(KEY._replace(name="late")) is None


def _is_marked(ledger: Ledger) -> bool:
    return ledger.mark().moved == "to"


def test_two_moves_at_once_end_in_one_place(filled, opened):
    before, results = content(filled[0]), []
    movers = [Thread(target=lambda: results.append(move(*filled)["changed"])) for _number in range(2)]
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


def test_a_ledger_that_moved_elsewhere_moves_no_further(filled, tmp_path):
    move(*filled)
    with pytest.raises(LedgerError, match="was moved to"):
        move(filled[0], str(tmp_path / "third.db"))
    with pytest.raises(LedgerError, match="is where it is already"):
        move(filled[1], filled[1])
    third = str(tmp_path / "third.db")
    move(filled[1], third)
    with pytest.raises(LedgerError, match="was moved to"):  # not from the third one
        move(third, filled[0])
    assert usable(filled[0], filled[1], third) == [False, False, True]


def test_nothing_moves_from_where_there_is_no_ledger(places, tmp_path):
    with pytest.raises(LedgerError, match=r"no ledger at .* yet, so nothing was moved"):
        move(*places)
    assert list(tmp_path.glob("*.db*")) == []


def test_the_playbook_moves_a_ledger_and_says_where_it_is(ansible_once, places, opened):
    """Without the options of a service, since nothing is sent; the password of a URL is shown nowhere."""
    put(opened(places[0]), KEY, ENTRY)
    to = places[1].replace("postgres:@", "postgres:hidden-word@")
    command = ["infrastructure.services.move_ledger", "-e", f"ledger={places[0]}", "-e", json.dumps({"to": to})]
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
        ledger.write([Change(key, None, ENTRY, ENDED) for key in keys], durable=True)
    ledger.close()
    assert move(*places)["counts"] == {"entries": 100_000, "history": 100_000}
    assert len(opened(places[1]).entries({}, bool)) == 100_000
