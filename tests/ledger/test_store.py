# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The ledger itself: the same tests on SQLite and on PostgreSQL."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import struct
import time

import pytest
from ansible_collections.infrastructure.services.plugins.plugin_utils._ledger import tables
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
)
from ansible_collections.infrastructure.services.plugins.plugin_utils._ledger.location import (
    open_ledger,
)
from ansible_collections.infrastructure.services.plugins.plugin_utils._ledger.store import (
    lock_number,
)
from ledger.conftest import SLOW_ON_POSTGRES
from ledger.entries import bare, begin, finish, history, put, write
from support.waiting import until, waiting

KEY = Key("https://s", "compute_virtual_machine", "web01")
OTHER = KEY._replace(name="web02")
AT = "2026-01-02T03:04:05Z"
ENTRY = Entry(
    DONE,
    {"name": "web01"},
    {"id": "1", "attributes": {"ip": "192.0.2.1"}},
    AT,
    AT,
    "me@here",
    "run-1",
    "ab",
)
BEGUN = Entry(INTENT, {"name": "web01"}, {})
ENDED = Ended(ABSENT, DONE, AT, "me@here", "run-1", "accepted", 201, "ä€ \\ fine", 1.5, "ab")


def test_what_was_written_is_read_when_the_ledger_is_reopened(location, opened):
    first = opened(location)
    for state in (*STATES, "a state that a later version may add"):
        put(first, KEY, ENTRY._replace(state=state))
        assert bare(opened(location).get(KEY)) == ENTRY._replace(state=state)


def test_a_deleted_entry_is_gone(location, opened):
    first = opened(location)
    put(first, KEY, ENTRY)
    put(first, OTHER, ENTRY)
    put(first, KEY, None)
    assert (opened(location).get(KEY), bare(opened(location).get(OTHER))) == (None, ENTRY)


def test_when_two_begin_an_entry_only_the_first_succeeds(location, opened):
    """With or without a lock, and with or without an existing entry."""
    one, other = opened(location), opened(location)
    first = begin(one, KEY, BEGUN, None)
    assert bare(first).state == INTENT
    assert begin(other, KEY, BEGUN, None) is None
    assert one.get(KEY) == first
    again = begin(other, KEY, BEGUN, first)
    assert again.revision != first.revision
    assert begin(one, KEY, BEGUN, first) is None
    assert one.get(KEY) == again


def test_an_overtaken_attempt_changes_no_entry_but_its_end_is_in_the_history(location, opened):
    one, other = opened(location), opened(location)
    first = begin(one, KEY, BEGUN, None)
    assert write(other, Change(KEY, first, None))
    second = begin(other, KEY, BEGUN, None)
    assert finish(one, KEY, first, first._replace(state=DONE), ENDED) is False
    assert finish(one, KEY, first, None, ENDED) is False
    assert one.get(KEY) == second
    assert history(one) == [(KEY, ENDED)] * 2


def test_an_attempt_that_ended_is_in_the_history(location, opened):
    ledger = opened(location)
    begun = begin(ledger, KEY, ENTRY._replace(state=INTENT), None)
    assert history(ledger) == []
    assert finish(ledger, KEY, begun, begun._replace(state=DONE), ENDED) is True
    assert history(ledger) == [(KEY, ENDED)]
    assert (
        finish(
            ledger, KEY, ledger.get(KEY), None, ENDED._replace(at="", to_state=ABSENT, status=None)
        )
        is True
    )
    assert ledger.get(KEY) is None
    (_first, (_key, last)) = history(ledger)
    assert (last.to_state, last.status, last.at > AT) == (ABSENT, None, True)
    assert ledger.history(*KEY[:2], ["other"]) == {}
    assert ledger.history(*KEY[:2], ["other", "web01"]) == {"web01": [ENDED, last]}


def test_the_history_is_in_the_order_in_which_it_was_written_whatever_the_clocks_say(
    location, opened
):
    """As from two controllers, one of which is a second behind, and many rows of one second."""
    ledgers = [opened(location), opened(location)]
    at = ["2026-01-02T03:04:06Z", "2026-01-02T03:04:05Z"]
    told = [ENDED._replace(at=at[number % 2], message=str(number)) for number in range(40)]
    for number, ended in enumerate(told):
        ledger = ledgers[number % 2]
        write(ledger, Change(KEY, ledger.get(KEY), ENTRY, ended))
    assert ledgers[0].history(*KEY[:2], ["web01"]) == {"web01": told}


@pytest.mark.skipif(
    not hasattr(fcntl, "F_OFD_SETLK"), reason="open file description locks are of Linux"
)
def test_the_end_of_the_history_is_found_again_until_it_is_removed(location, opened):
    ledger = opened(location)
    assert ledger.history_end() == (0, "")
    assert ledger.has_history(0, "")
    ends = []
    for name in ("a", "b", "c"):
        assert write(ledger, Change(KEY._replace(name=name), None, ENTRY, ENDED))
        ends.append(ledger.history_end())
    assert [rows for rows, _last in ends] == [1, 2, 3]
    assert len({last for _rows, last in ends}) == 3
    assert all(ledger.has_history(*end) for end in ends)
    assert ledger.has_history(3, "")
    (rows, last), (_rows, newest) = ends[1:]
    assert not ledger.has_history(4, "")
    assert not ledger.has_history(4, newest)
    assert not ledger.has_history(0, "no such row")
    ledger.database.execute("DELETE FROM infrastructure_services_history WHERE name = 'b'")
    assert ledger.has_history(rows, newest)
    assert not ledger.has_history(rows, last)


def test_a_lock_that_cannot_be_released_fails_nothing(tmp_path, opened, monkeypatch):
    """The kernel may need memory in order to split a lock (fcntl_locking(2), ENOLCK)."""

    def without_memory(descriptor, command, lock):
        if struct.unpack_from("h", lock) == (fcntl.F_UNLCK,):
            raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))
        return set_lock(descriptor, command, lock)

    ledger, set_lock = opened(str(tmp_path / "ledger.db")), fcntl.fcntl
    monkeypatch.setattr(fcntl, "fcntl", without_memory)
    written, begun = ledger.begin(Change(KEY, None, BEGUN))
    assert (written, finish(ledger, KEY, begun, ENTRY, ENDED)) == (True, True)
    ledger.release(KEY)
    assert bare(ledger.get(KEY)).state == DONE


def test_several_entries_are_begun_and_finished_at_once(location, opened):
    ledger = opened(location)
    put(ledger, OTHER, ENTRY)
    keys = [KEY._replace(name=f"web{number:02}") for number in range(1, 5)]
    begun = ledger.write([Change(key, None, BEGUN) for key in keys], Kind.BEGIN)
    assert [bool(change) for change in begun] == [True, False, True, True]
    done = [
        Change(each.key, each.after, each.after._replace(state=DONE), ENDED)
        for each in begun
        if each
    ]
    assert all(ledger.write(done, Kind.END))
    assert [key for key, _ended in history(ledger)] == [change.key for change in done]
    found = ledger.get_many(*KEY[:2], [*(key.name for key in keys), "none"])
    assert {name: entry.state for name, entry in found.items()} == {key.name: DONE for key in keys}


def test_no_entry_is_begun_when_one_of_several_cannot_be(location, opened):
    ledger = opened(location)
    wrong = Change(OTHER, None, BEGUN._replace(state=None))
    with pytest.raises(LedgerError):
        ledger.write([Change(KEY, None, BEGUN), wrong], Kind.BEGIN)
    assert ledger.get(KEY) is None
    assert begin(ledger, KEY, BEGUN, None)


@SLOW_ON_POSTGRES
def test_ten_thousand_entries_are_read_in_well_under_a_second(location, opened):
    ledger = opened(location)
    names = [f"web{number:05}" for number in range(10_000)]
    ledger.write([Change(KEY._replace(name=name), None, ENTRY) for name in names], Kind.BEGIN)
    started = time.process_time()
    assert len(ledger.get_many(*KEY[:2], names)) == 10_000
    assert time.process_time() - started < 1


@pytest.mark.parametrize(
    "other", [{"base_url": "https://t"}, {"resource": "other"}, {"name": "web1"}]
)
def test_every_part_of_a_key_counts(location, opened, other):
    ledger = opened(location)
    put(ledger, KEY, ENTRY)
    assert ledger.get(KEY._replace(**other)) is None
    assert lock_number(KEY) != lock_number(KEY._replace(**other))


def test_a_name_is_looked_for_at_other_services_until_this_one_is_known(location, opened):
    ledger, new = opened(location), KEY._replace(base_url="https://new")
    asked = (*new[:2], ["web01", "web02"])
    assert (
        opened(location, read_only=True).other_services(*asked)
        == ledger.other_services(*asked)
        == {}
    )
    for base_url in ("https://t", "https://s"):
        put(ledger, KEY._replace(base_url=base_url), ENTRY)
    assert ledger.other_services(*asked) == {"web01": ["https://s", "https://t"]}
    assert ledger.other_services(new.base_url, "other", ["web01"]) == {}
    put(ledger, new._replace(name="web09"), ENTRY)
    assert ledger.other_services(*asked) == {}


def test_thousands_of_new_names_take_a_statement_for_each_five_hundred(
    location, opened, monkeypatch
):
    """At a service without entries each name is looked for at all others; on PostgreSQL a statement
    is a round trip.
    """
    ledger, names, statements = opened(location), [f"web{number:04}" for number in range(2_000)], []
    real = ledger.database.execute
    monkeypatch.setattr(
        ledger.database, "execute", lambda *asked: (statements.append(asked), real(*asked))[1]
    )
    put(ledger, KEY, ENTRY)
    statements.clear()
    assert ledger.get_many("https://new", KEY.resource, names) == {}
    assert ledger.other_services("https://new", KEY.resource, [*names, "web01"]) == {
        "web01": [KEY.base_url]
    }
    assert len(statements) == 4 + 2 + 5


@pytest.mark.parametrize(
    "text", ["O'Brien; DROP TABLE x", "ä€😀", "?", "%s", "a\nb", "\\u0000", "{{ 1 }}", "x" * 5000]
)
def test_any_text_comes_back_as_it_was(location, opened, text):
    ledger, key = opened(location), KEY._replace(name=text)
    asset = {"id": text, "deep": [{"null": None, "number": 1.5, "nul": "\x00"}]}
    entry = Entry(DONE, {text: text}, asset, AT, AT, text)
    put(ledger, key, entry)
    assert bare(ledger.get(key)) == entry
    assert bare(ledger.get_many(*KEY[:2], [text])[text]) == entry
    write(ledger, Change(key, ledger.get(key), None, ENDED._replace(message=f"{text}\0", by=text)))
    assert history(ledger) == [(key, ENDED._replace(message=f"{text} ", by=text))]


def test_an_entry_is_dated_when_written_unless_it_is_restored(location, opened):
    ledger = opened(location)
    before = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    put(ledger, KEY, ENTRY._replace(changed_at="", began_at=""))
    found = ledger.get(KEY)
    assert (
        before
        <= found.changed_at
        == found.began_at
        <= time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    )
    put(ledger, KEY, ENTRY)
    assert (ledger.get(KEY).changed_at, ledger.get(KEY).began_at) == (AT, AT)


def test_reading_a_missing_ledger_finds_and_creates_nothing(location, opened):
    ledger = opened(location, read_only=True)
    assert (ledger.version, ledger.get(KEY)) == (0, None)
    assert (
        ledger.get_many(*KEY[:2], ["web01"]),
        ledger.history(*KEY),
        ledger.entries({}, bool),
    ) == ({}, {}, [])
    assert opened(location, read_only=True).version == 0


@pytest.mark.parametrize("other", [tables.SCHEMA_VERSION - 1, tables.SCHEMA_VERSION + 1])
def test_a_ledger_with_another_schema_is_refused_and_left_alone(location, opened, other):
    ledger = opened(location)
    put(ledger, KEY, ENTRY)
    ledger.database.execute("UPDATE infrastructure_services_schema SET version = ?", (other,))
    for read_only in (True, False):
        numbers = rf"\(schema {other}, not {tables.SCHEMA_VERSION}\)"
        with pytest.raises(
            LedgerError, match=rf"by another version of this collection.* {numbers}. Use"
        ):
            opened(location, read_only)
    ledger.database.execute(
        "UPDATE infrastructure_services_schema SET version = ?", (tables.SCHEMA_VERSION,)
    )
    assert bare(opened(location).get(KEY)) == ENTRY


@pytest.mark.parametrize("statement", ["DROP TABLE", "DELETE FROM"])
def test_tables_without_a_version_are_refused_as_foreign(location, opened, statement):
    opened(location).database.execute(f"{statement} infrastructure_services_schema")
    for read_only in (True, False):
        with pytest.raises(LedgerError, match=r"or by something else \(schema None"):
            opened(location, read_only)


def test_an_entry_written_by_another_program_is_refused(location, opened):
    ledger = opened(location)
    put(ledger, KEY, ENTRY)
    ledger.database.execute("UPDATE infrastructure_services_entry SET asset = ?", ("not JSON",))
    for read in (lambda: ledger.get(KEY), lambda: ledger.entries({}, bool)):
        with pytest.raises(LedgerError, match="is not JSON"):
            read()


def test_a_key_is_held_by_one_ledger_of_a_process(location, opened):
    """A list that was cut off still holds its assets when the next item of the loop opens the
    ledger.
    """
    first, second = opened(location), opened(location)
    assert first.lock(KEY, wait=False)
    assert not second.lock(KEY, wait=False)
    second.release(KEY)
    assert not second.lock(KEY, wait=False)
    first.release(KEY)
    assert second.lock(KEY, wait=False)
    second.close()
    until(
        lambda: first.lock(KEY, wait=False)
    )  # PostgreSQL ends a session a moment after its connection


def test_a_key_is_held_by_one_process_and_other_keys_never_wait(location, opened, fork):
    with fork("hold", location, "web01") as first, fork("hold", location, "web02") as another:
        assert first.wait()
        assert another.wait()
        put(opened(location), OTHER, ENTRY)
        with fork("hold", location, "web01") as second:
            until(lambda: waiting(location) == 1)
            killed = time.monotonic()
            first.kill()
            assert second.wait() >= killed


def test_many_processes_open_a_ledger_that_does_not_exist_yet(location, opened, fork):
    with contextlib.ExitStack() as stack:
        for holder in [
            stack.enter_context(fork("hold", location, f"web{number}")) for number in range(8)
        ]:
            assert holder.wait()
    ledger = opened(location)
    assert ledger.get(KEY) is None
    assert ledger.database.execute("SELECT version FROM infrastructure_services_schema") == [
        (tables.SCHEMA_VERSION,)
    ]


@pytest.mark.stress
def test_the_cost_of_an_entry_does_not_grow(tmp_path, opened):
    """From 1,000 to 100,000 entries, the median cost of a task's statements grows by at most half."""
    ledger, costs = opened(str(tmp_path / "ledger.db")), {}
    ledger.database._is_durable = True  # keeps synchronous off, since this test measures statements
    ledger.database.execute("PRAGMA synchronous = OFF")
    for count in range(1, 100_001):
        name = KEY._replace(name=f"web{count:06}")
        started = time.perf_counter()
        begun = begin(ledger, name, BEGUN, ledger.get(name))
        finish(ledger, name, begun, ENTRY, ENDED)
        costs[count] = time.perf_counter() - started
    early, late = (
        sorted(costs[count] for count in range(end - 500, end))[250] for end in (1_000, 100_000)
    )
    assert late <= 1.5 * early, (
        f"{early * 1e6:.0f} us for an entry at 1,000, {late * 1e6:.0f} us at 100,000"
    )


def test_a_ledger_can_be_closed_twice(location):
    ledger = open_ledger(location)
    ledger.close()
    ledger.close()


@pytest.mark.parametrize("column", ["sent", "asset"])
@pytest.mark.parametrize(
    ("depth", "says"),
    [
        (100_000, "is nested deeper than 64 levels"),
        (500, "is nested deeper than 64 levels"),
        (0, "is not JSON"),
    ],
)
def test_an_entry_that_something_else_wrote_is_named(location, opened, column, depth, says):
    ledger = opened(location)
    put(ledger, KEY, ENTRY)
    put(ledger, OTHER, ENTRY)
    text = '{"a": ' + "[" * depth + "]" * depth + "}"
    ledger.database.write(
        [
            (
                f"UPDATE infrastructure_services_entry SET {column} = ? WHERE name = ?",
                (text, OTHER.name),
            )
        ],
        Kind.BEGIN,
    )
    assert bare(ledger.get(KEY)) == ENTRY
    for read in (lambda: ledger.get(OTHER), lambda: ledger.entries({}, lambda name: True)):
        with pytest.raises(
            LedgerError, match=f"the entry of web02 {says}, so something else wrote it"
        ):
            read()
