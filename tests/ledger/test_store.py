# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The ledger itself: the same tests on SQLite and on PostgreSQL."""

from __future__ import annotations

import contextlib
import subprocess
import sys
import time
from pathlib import Path

import pytest
from ansible_collections.infrastructure.services.plugins.plugin_utils._ledger import store
from ansible_collections.infrastructure.services.plugins.plugin_utils._ledger.location import open_ledger
from ansible_collections.infrastructure.services.plugins.plugin_utils._ledger.store import (
    DONE,
    INTENT,
    STATES,
    Entry,
    Key,
    LedgerError,
)

KEY = Key("https://s", "compute_virtual_machine", "web01")
OTHER = KEY._replace(name="web02")
ENTRY = Entry(DONE, {"name": "web01"}, {"id": "1", "attributes": {"ip": "192.0.2.1"}}, "2026-01-02T03:04:05Z")
HOLDER = Path(__file__).with_name("holder.py")


def test_what_was_put_is_got_by_who_opens_the_ledger_anew(location, opened):
    first = opened(location)
    for state in STATES:
        first.put(KEY, ENTRY._replace(state=state))
        assert opened(location).get(KEY) == ENTRY._replace(state=state)


@pytest.mark.parametrize("durable", [True, False])
def test_what_was_deleted_is_gone(location, opened, durable):
    first = opened(location)
    first.put(KEY, ENTRY, durable)
    first.put(OTHER, ENTRY, durable)
    first.delete(KEY, durable)
    first.delete(KEY, durable)
    assert (opened(location).get(KEY), opened(location).get(OTHER)) == (None, ENTRY)


@pytest.mark.parametrize("other", [{"base_url": "https://t"}, {"resource": "other"}, {"name": "web1"}])
def test_a_key_is_all_of_its_parts(location, opened, other):
    ledger = opened(location)
    ledger.put(KEY, ENTRY)
    assert ledger.get(KEY._replace(**other)) is None
    assert KEY.number() != KEY._replace(**other).number()


@pytest.mark.parametrize("text", ["O'Brien; DROP TABLE x", "ä€😀", "?", "%s", "a\nb", "\\u0000", "{{ 1 }}", "x" * 5000])
def test_any_text_comes_back_as_it_was(location, opened, text):
    ledger = opened(location)
    entry = Entry(DONE, {text: text}, {"id": text, "deep": [{"null": None, "number": 1.5, "nul": "\x00"}]}, "now")
    ledger.put(KEY._replace(name=text), entry)
    assert ledger.get(KEY._replace(name=text)) == entry


def test_an_entry_says_when_it_was_written_unless_it_is_put_back(location, opened):
    ledger = opened(location)
    before = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    ledger.put(KEY, ENTRY._replace(changed_at=""))
    assert before <= ledger.get(KEY).changed_at <= time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    ledger.put(KEY, ENTRY)
    assert ledger.get(KEY).changed_at == "2026-01-02T03:04:05Z"


def test_assets_are_those_of_one_resource_that_are_done_by_name(location, opened):
    ledger = opened(location)
    for number, state in enumerate(STATES):
        ledger.put(KEY._replace(name=f"web0{number}"), ENTRY._replace(state=state))
    ledger.put(KEY._replace(name="app01"), ENTRY)
    ledger.put(KEY._replace(resource="other"), ENTRY)
    done = f"web0{STATES.index(DONE)}"
    assert ledger.assets(KEY.resource) == [("https://s", name, ENTRY.asset) for name in ("app01", done)]


def test_no_state_but_the_four_can_be_written(location, opened):
    with pytest.raises(LedgerError, match="constraint"):
        opened(location).put(KEY, ENTRY._replace(state="other"))


def test_reading_what_does_not_exist_is_reading_nothing_and_makes_nothing(location, opened):
    ledger = opened(location, read_only=True)
    assert (ledger.exists, ledger.get(KEY), ledger.assets(KEY.resource)) == (False, None, [])
    assert opened(location, read_only=True).exists is False


def test_a_ledger_of_a_newer_collection_is_refused(location, opened, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(store, "SCHEMA_VERSION", 2)
        opened(location).put(KEY, ENTRY)
    for read_only in (True, False):
        with pytest.raises(LedgerError, match="written by a newer version of this collection"):
            opened(location, read_only)


def test_an_entry_that_something_else_wrote_is_refused(location, opened):
    ledger = opened(location)
    ledger.put(KEY, ENTRY)
    ledger.run("UPDATE infrastructure_services_entry SET asset = ?", ("not JSON",))
    with pytest.raises(LedgerError, match="is not JSON"):
        ledger.get(KEY)
    with pytest.raises(LedgerError, match="is not JSON"):
        ledger.assets(KEY.resource)


@contextlib.contextmanager
def holder(location: str, name: str):
    """Run a process that holds a key, and wait until it does; it is killed at the end."""
    with subprocess.Popen([sys.executable, str(HOLDER), location, name], stdout=subprocess.PIPE, text=True) as process:
        try:
            yield process
        finally:
            process.kill()


def line(process: subprocess.Popen) -> str:
    """Return the next line that the process says."""
    return process.stdout.readline().strip()


def test_a_key_is_held_by_one_and_others_never_wait(location, opened):
    with holder(location, "web01") as first, holder(location, "web02") as another:
        assert (line(first), line(another)) == ("held", "held")
        opened(location).put(OTHER, ENTRY)
        with holder(location, "web01") as second:
            time.sleep(0.5)
            killed = time.monotonic()
            first.kill()
            first.wait()
            assert line(second) == "held"
            assert float(line(second)) >= killed


def test_many_open_a_ledger_that_does_not_exist_yet(location, opened):
    with contextlib.ExitStack() as stack:
        holders = [stack.enter_context(holder(location, f"web{number}")) for number in range(8)]
        assert [line(process) for process in holders] == ["held"] * 8
    assert opened(location).get(KEY) is None


@pytest.mark.stress
def test_the_cost_of_an_entry_does_not_grow(tmp_path, opened):
    """From 1,000 to 100,000 entries, the median of a whole task's statements stays within a factor."""
    ledger, costs = opened(str(tmp_path / "ledger.db")), {}
    ledger.run("PRAGMA synchronous = OFF", ())
    for count in range(1, 100_001):
        name = KEY._replace(name=f"web{count:06}")
        started = time.perf_counter()
        ledger.get(name)
        ledger.put(name, ENTRY._replace(state=INTENT), durable=False)
        ledger.put(name, ENTRY, durable=False)
        costs[count] = time.perf_counter() - started
    early, late = (sorted(costs[count] for count in range(end - 500, end))[250] for end in (1_000, 100_000))
    assert late <= 1.5 * early, f"{early * 1e6:.0f} us for an entry at 1,000, {late * 1e6:.0f} us at 100,000"


def test_a_ledger_can_be_closed_twice(location):
    ledger = open_ledger(location)
    ledger.close()
    ledger.close()
