# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A ledger shared by threads: commits are grouped, locked assets are not waited for, and failures
stay isolated.
"""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from ansible_collections.infrastructure.services.plugins.module_utils._call.place import Place
from ansible_collections.infrastructure.services.plugins.module_utils._errors import (
    ACCEPTED,
    UNKNOWN,
    Overtaken,
    ServicesError,
)
from ansible_collections.infrastructure.services.plugins.module_utils._list import items
from ansible_collections.infrastructure.services.plugins.module_utils._result import Result
from ansible_collections.infrastructure.services.plugins.module_utils._secrets import Secrets
from ansible_collections.infrastructure.services.plugins.module_utils._task.specs import (
    VIRTUAL_MACHINES,
)
from ansible_collections.infrastructure.services.plugins.module_utils._task.task import (
    Context,
    carry_out,
)
from ansible_collections.infrastructure.services.plugins.module_utils._task.validation import (
    validate,
)
from ansible_collections.infrastructure.services.plugins.plugin_utils._ledger import queue
from ansible_collections.infrastructure.services.plugins.plugin_utils._ledger.entries import (
    DONE,
    INTENT,
    Change,
    Ended,
    Entry,
    Key,
    Kind,
    LedgerError,
    LedgerLost,
)
from ansible_collections.infrastructure.services.plugins.plugin_utils._ledger.location import (
    open_ledger,
)
from ansible_collections.infrastructure.services.plugins.plugin_utils._ledger.queue import Queue
from ansible_collections.infrastructure.services.plugins.plugin_utils._ledger.recording import (
    ListRecording,
)
from ansible_collections.infrastructure.services.plugins.plugin_utils._ledger.store import (
    lock_number,
)

BASE = "http://127.0.0.1:9"
HOLD = """
import fcntl, sys
file = open(sys.argv[1] + ".lock", "r+")
fcntl.lockf(file, fcntl.LOCK_EX, 1, int(sys.argv[2]))
print(flush=True)
sys.stdin.read()
"""


def key(name: str) -> Key:
    return Key(BASE, "compute_virtual_machine", name)


def intent(name: str) -> Entry:
    return Entry(INTENT, {"name": name}, {})


def wanted(name: str) -> Change:
    return Change(key(name), None, intent(name))


@pytest.fixture
def ledger(tmp_path):
    opened = open_ledger(str(tmp_path / "l.db"))
    yield opened
    opened.close()


@pytest.fixture
def holder(ledger):
    """Return a function that makes another process lock an asset, and returns a function that
    releases it.
    """
    started = []

    def hold(name: str):
        command = [sys.executable, "-c", HOLD, ledger.file, str(lock_number(key(name)))]
        process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        started.append(process)
        process.stdout.readline()

        def end():
            process.stdin.close()
            process.wait(10)

        return end

    yield hold
    for process in started:
        process.kill()
        process.stdin.close()
        process.stdout.close()
        process.wait(10)


def test_changes_that_queue_up_share_one_commit(ledger, monkeypatch):
    begun, asked, original = [], [], ledger.write

    def begun_at_once(changes, kind):
        if changes[0].ended:
            return original(changes, kind)
        while len(asked) < min(120, sum(begun) + 40):  # until all threads wait
            time.sleep(0.001)
        time.sleep(0.05)
        begun.append(len(changes))
        return original(changes, kind)

    def begin(number):
        asked.append(number)
        return writer.begin(wanted(f"vm{number}"))[1]

    monkeypatch.setattr(ledger, "write", begun_at_once)
    writer = Queue(ledger)
    with ThreadPoolExecutor(40) as pool:
        entries = list(pool.map(begin, range(120)))
        after = [entry._replace(state=DONE, asset={"id": "x"}) for entry in entries]
        told = Ended(INTENT, DONE)
        finished = list(
            pool.map(
                lambda n: writer.finish(Change(key(f"vm{n}"), entries[n], after[n], told)),
                range(120),
            )
        )
    assert sum(begun) == 120
    assert len(begun) <= 12
    assert all(finished)
    assert len(ledger.entries({"state = ?": (DONE,)}, bool)) == 120


def test_an_asset_locked_by_another_process_is_not_waited_for(ledger, holder):
    end = holder("vm1")
    writer = Queue(ledger)
    with pytest.raises(Overtaken):
        writer.begin(wanted("vm1"))
    assert writer.begin(wanted("vm2"))[0]
    end()
    assert writer.begin(wanted("vm1"))[0]


def test_an_asset_that_was_held_but_is_in_flight_now_is_not_said_to_wait(
    ledger, holder, monkeypatch
):
    monkeypatch.setattr(queue, "SILENT", 0)
    shown = []
    waiting = ledger.database.waiting
    ledger.wait_like(waiting._replace(show=lambda keys, _entry: shown.append(keys)))
    ends = [holder("vm1"), holder("vm2")]
    writer = Queue(ledger)
    for name in ("vm1", "vm2"):
        with pytest.raises(Overtaken):
            writer.begin(wanted(name))
    ends[0]()
    assert writer.begin(wanted("vm1"))[0]
    writer.show_waiting()
    assert shown == [[key("vm2")]]


def test_a_lock_is_held_until_it_is_released(ledger):
    writer = Queue(ledger)
    assert writer.begin(wanted("vm1"))[0]
    command = [
        sys.executable,
        "-c",
        HOLD.replace("LOCK_EX", "LOCK_EX | fcntl.LOCK_NB"),
        ledger.file,
    ]
    command.append(str(lock_number(key("vm1"))))
    refused = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, check=False)
    writer.release(key("vm1"))
    assert writer.begin(wanted("vm2"))[0]  # after the release
    free = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, check=False)
    assert (refused.returncode != 0, free.returncode) == (True, 0)


def test_an_entry_that_cannot_be_written_does_not_affect_the_others(ledger, monkeypatch):
    original = ledger.write

    def write_all_but_bad(changes, kind):
        if any(change.key.name == "bad" for change in changes):
            raise LedgerError("ledger: no")
        return original(changes, kind)

    monkeypatch.setattr(ledger, "write", write_all_but_bad)
    writer = Queue(ledger)
    with ThreadPoolExecutor(20) as pool:
        names = [*(f"vm{number}" for number in range(20)), "bad"]
        futures = {name: pool.submit(writer.begin, wanted(name)) for name in names}
        failed = [name for name, future in futures.items() if future.exception()]
    assert failed == ["bad"]


def test_nobody_waits_for_a_thread_that_has_failed(ledger, monkeypatch):
    waiting = threading.Event()

    def broken(changes, kind):
        waiting.wait(60)
        time.sleep(0.05)
        raise ZeroDivisionError

    monkeypatch.setattr(ledger, "write", broken)
    writer = Queue(ledger)
    with ThreadPoolExecutor(20) as pool:
        begun = [pool.submit(writer.begin, wanted(f"vm{number}")) for number in range(20)]
        waiting.set()
        assert {type(done.exception(60)) for done in begun} <= {ZeroDivisionError, LedgerError}


def test_once_the_ledger_is_lost_nothing_is_begun_but_outcomes_are_recorded(ledger, monkeypatch):
    """As when the first item that cannot be begun comes while requests are in flight, and the
    database comes back.
    """
    writer, begun_before = Queue(ledger), {}
    for name in ("vm1", "vm2"):
        begun_before[name] = writer.begin(wanted(name))[1]

    def away(changes, kind):
        raise LedgerLost("ledger: away")

    with monkeypatch.context() as while_away:
        while_away.setattr(ledger, "write", away)
        with pytest.raises(LedgerLost):
            writer.begin(wanted("vm3"))
    with pytest.raises(LedgerLost):
        writer.begin(wanted("vm3"))
    assert all(
        writer.finish(Change(key(name), entry, entry._replace(state=DONE), Ended(INTENT, DONE)))
        for name, entry in begun_before.items()
    )


def test_assets_given_up_are_restored_and_nothing_more_is_written_for_them(ledger, monkeypatch):
    """One was begun, one is being begun at that moment, one would be begun later."""
    writer, original = Queue(ledger), ledger.write
    begun = writer.begin(wanted("vm1"))[1]
    started = threading.Event()

    def slow(changes, kind):
        started.set()
        time.sleep(0.2)
        return original(changes, kind)

    monkeypatch.setattr(ledger, "write", slow)

    with ThreadPoolExecutor(1) as pool:
        late = pool.submit(writer.begin, wanted("vm2"))
        assert started.wait(60)
        writer.give_up({key(name): Result() for name in ("vm1", "vm2", "vm3")})
        assert late.result()[0]
    with pytest.raises(Overtaken):
        writer.begin(wanted("vm3"))
    assert not writer.finish(
        Change(key("vm1"), begun, begun._replace(state=DONE), Ended(INTENT, DONE))
    )
    assert ledger.get_many(*key("")[:2], ["vm1", "vm2", "vm3"]) == {}
    told = ledger.history(*key("")[:2], ["vm1", "vm2", "vm3"])
    ends = {name: [(row.outcome, row.seconds) for row in rows] for name, rows in told.items()}
    assert ends == {"vm1": [("not_sent", 0)], "vm2": [("not_sent", 0)]}


def test_giving_up_does_not_wait_for_a_ledger_that_hangs(ledger, monkeypatch):
    monkeypatch.setattr(queue, "LEDGER_GRACE", 0.2)
    released = threading.Event()
    monkeypatch.setattr(ledger, "write", lambda changes, kind: released.wait(60) and [])
    writer = Queue(ledger)
    began = time.monotonic()
    writer.give_up({})
    assert time.monotonic() - began < 30
    released.set()


def tasks(*names: str, force: bool = False) -> list:
    given = {"base_url": BASE, "access_token": "token-of-the-tests", "force": force}
    given["virtual_machines"] = [{"name": name} for name in names]
    return items.prepare_all(VIRTUAL_MACHINES, validate(VIRTUAL_MACHINES, given).valid())


def recording(ledger, check_mode: bool = False) -> ListRecording:
    return ListRecording(ledger, Secrets(), "run", check_mode)


def carried_out(many: ListRecording, planned, sent: list | None = None) -> Result:
    """Return the result of an asset that the service accepts; `sent`: receives what was sent."""
    context = Context(False, Secrets(), Place())

    def send(planned, _context):
        if sent is not None:
            sent.append(planned.task.wanted.key)
        return Result(changed=True, outcome=ACCEPTED, asset={"id": "vm-1"}, status=201)

    try:
        return carry_out(planned, context, many, send)
    except ServicesError as error:
        return Result.of_error(error)


def write(ledger, name: str, state: str) -> None:
    (begun,) = ledger.write([wanted(name)], Kind.BEGIN)
    if state != INTENT:
        asset = {"id": "1"} if state == DONE else {}
        after = begun.after._replace(state=state, asset=asset)
        ledger.finish(Change(key(name), begun.after, after, Ended(INTENT, state)))


def test_a_list_is_read_in_one_query_and_each_state_is_handled(ledger, monkeypatch):
    for name, state in (
        ("done", DONE),
        ("unknown", UNKNOWN),
        ("accepted", ACCEPTED),
        ("intent", INTENT),
    ):
        write(ledger, name, state)
    monkeypatch.setattr(ledger, "get", None)
    found = recording(ledger, check_mode=True).look_up(
        tasks("new", "done", "unknown", "accepted", "intent")
    )
    assert (found[0].entry, found[0].plan.settled) == (None, False)
    assert (found[1].recorded.asset, found[1].plan.settled) == ({"id": "1"}, True)
    assert [each.error.outcome for each in found[2:]] == ["unknown", "accepted", "unknown"]


def test_an_intent_is_in_doubt_unless_another_run_holds_its_lock(ledger, holder):
    write(ledger, "vm1", INTENT)
    end, many = holder("vm1"), recording(ledger)
    (planned,) = many.look_up(tasks("vm1"))
    with pytest.raises(Overtaken), many.record_intent(planned):
        pass
    end()
    result = carried_out(many, planned)
    assert (result.failed, result.changed, result.outcome) == (True, False, "unknown")


def test_the_threads_of_a_list_use_the_ledger_by_its_queue_only(ledger, monkeypatch):
    """Also when another run has begun the asset since the list was planned."""
    many = recording(ledger)
    (planned,) = many.look_up(tasks("vm1"))
    write(ledger, "vm1", INTENT)
    monkeypatch.setattr(many, "ledger", None)
    result = carried_out(many, planned)
    assert (result.failed, result.outcome) == (True, "unknown")


def test_an_asset_that_another_run_has_since_created_is_kept(ledger):
    many, sent = recording(ledger), []
    (planned,) = many.look_up(tasks("vm1"))
    write(ledger, "vm1", DONE)
    result = carried_out(many, planned, sent)
    assert (sent, result.changed, result.asset) == ([], False, {"id": "1"})


def test_assets_that_are_recorded_but_not_listed_are_named(ledger):
    for name in ("vm1", "vm2", "vm3"):
        write(ledger, name, DONE)
    many = recording(ledger, check_mode=True)
    assert many.not_listed(tasks("vm2", "vm4")) == ["vm1", "vm3"]
    assert many.not_listed([]) == []


def test_names_at_another_service_raise_one_warning(ledger):
    for name in ("vm1", "vm2", "vm3"):
        other = Key("http://127.0.0.1:8", "compute_virtual_machine", name)
        ledger.write([Change(other, None, intent(name))], Kind.BEGIN)
    many = recording(ledger)
    many.look_up(tasks("vm1", "vm2", "vm3", "vm4"))
    (warning,) = many.warnings
    assert "http://127.0.0.1:8" in warning
    assert "2 others" in warning


def test_a_plan_of_thousands_takes_few_statements(ledger, monkeypatch):
    statements, real = [], ledger.database.execute
    monkeypatch.setattr(
        ledger.database, "execute", lambda *asked: (statements.append(asked), real(*asked))[1]
    )
    planned = recording(ledger, check_mode=True).look_up(
        tasks(*(f"vm{number:04}" for number in range(2_000)))
    )
    assert len(planned) == 2_000
    assert not any(each.error or each.plan.settled for each in planned)
    assert len(statements) <= 2 * 4 + 2


def test_an_empty_list_has_nothing_to_look_up(ledger):
    assert recording(ledger).look_up([]) == []
