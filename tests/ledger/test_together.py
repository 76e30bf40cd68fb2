"""Many tasks and lists at once: of one name one request is sent, and nobody waits for another name."""

from __future__ import annotations

import json
import threading
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack

import pytest
from ansible_collections.infrastructure.services.plugins.plugin_utils._ledger import recording
from ansible_collections.infrastructure.services.plugins.plugin_utils._ledger.entries import (
    DONE,
    INTENT,
    Change,
    Entry,
    HistoryRow,
    Write,
    stamped,
)
from emulator import faults
from ledger.entries import end_leases, put
from ledger.tasks import key, list_task, task
from ledger.test_crash import slow_down
from support.ledgers import entry_of
from support.waiting import until
from support.wire import Wire, answer, running

LONGEST = 60.0  # seconds; only a failure takes this long
BUSY = Entry(INTENT, {"name": "web01"}, {}, "2026-01-02T03:04:05Z", by="ann@ctl")


def created(service) -> list[str]:
    """Return the names of the service's machines."""
    return sorted(asset["name"] for asset in service.api.store.snapshot()["virtual_machines"])


def crowd(fork, location: str, service, count: int, name: str) -> list[dict]:
    """Create one machine in `count` processes at once, and return their results."""
    with ExitStack() as stack:
        processes = [
            stack.enter_context(fork("create", location, service.url, name))
            for _number in range(count)
        ]
        return [process.result() for process in processes]


@pytest.mark.parametrize("count", [20, pytest.param(50, marks=pytest.mark.stress)])
def test_of_one_name_one_request_is_sent_and_all_return_its_asset(location, fork, service, count):
    slow_down(service, 0.3)
    said = crowd(fork, location, service, count, "web01")
    assert (len(said), len(service.api.conversation), created(service)) == (count, 1, ["web01"])
    (asset,) = service.api.store.snapshot()["virtual_machines"]
    assert [result["msg"] for result in said if "asset" not in result] == []
    assert {result["asset"]["id"] for result in said} == {asset["id"]}
    assert sorted(result["outcome"] for result in said) == ["accepted"] + ["not_sent"] * (count - 1)
    assert sum(result["changed"] for result in said) == 1


def test_who_waited_for_a_failure_sends_and_who_waited_for_a_doubt_does_not(
    location, fork, service
):
    service.api.add_fault(faults.parse({"kind": "status", "status": 403, "count": 3}))
    outcomes = Counter(each["outcome"] for each in crowd(fork, location, service, 8, "web01"))
    assert outcomes == {"accepted": 1, "not_sent": 4, "rejected": 3}
    service.api.add_fault(faults.parse({"kind": "drop", "when": "after"}))
    outcomes = Counter(each["outcome"] for each in crowd(fork, location, service, 8, "web02"))
    assert outcomes == {"unknown": 8}
    assert created(service) == ["web01", "web02"]


def test_two_equal_lists_at_once_create_each_machine_once(location, fork, service):
    """What the other one has begun meanwhile is not sent, and says so by name."""
    slow_down(service, 0.05)
    names = [f"web{number}" for number in range(12)]
    with ExitStack() as stack:
        lists = [
            stack.enter_context(fork("create_all", location, service.url, given))
            for given in (names, names[::-1])
        ]
        results = [each.result() for each in lists]
    assert created(service) == sorted(names)
    by_name: dict[str, list[dict]] = {name: [] for name in names}
    for result in results:
        assert "results" in result, result
        for each in result["results"]:
            by_name[each["item"]].append(each)
    for name, (first, second) in by_name.items():
        assert sorted([first["outcome"], second["outcome"]]) == ["accepted", "not_sent"], name
        (other,) = [each for each in (first, second) if each["outcome"] == "not_sent"]
        if other["failed"]:
            assert "another task" in other["msg"]
            assert "run it again later" in other["msg"]
            assert name in other["msg"]
    again = list_task(location, names, base_url=service.url)
    assert (again["changed"], again.get("failed", False)) == (False, False)


@pytest.fixture
def quick(monkeypatch) -> None:
    """Let tasks look at leases more often, and say at once that they wait."""
    monkeypatch.setattr(recording, "_LOOK", 0.01)
    monkeypatch.setattr(recording, "_SILENT", 0.0)


@pytest.mark.parametrize("how", ["a task", "a list"])
def test_a_lease_is_waited_for_and_a_line_says_for_whom_since_when_until_when(
    location, opened, service, quick, how
):
    names = ["web01"] if how == "a task" else ["web01", "web02"]
    intents = {name: put(opened(location), key(name), BUSY, lease_seconds=300) for name in names}
    lines: list[str] = []
    given = {"show": lines.append, "base_url": service.url}
    with ThreadPoolExecutor(1) as pool:
        if how == "a task":
            ends = pool.submit(task, location, **given)
        else:
            ends = pool.submit(list_task, location, ["web00", *names], **given)
        until(lambda: lines)
        assert service.api.conversation == []
        done = Entry(DONE, BUSY.sent, {"id": "i-1", "name": "web01"})
        row = HistoryRow("absent", DONE)
        changes = [
            stamped(Change(Write.OUTCOME, key(name), intent, done, row))
            for name, intent in intents.items()
        ]
        assert all(opened(location).write(changes))
        result = ends.result(LONGEST)
    (line,) = lines
    by = "ann@ctl has worked since 2026-01-02T03:04:05Z, at most until "
    assert line.startswith(f"waiting for {', '.join(names)}: {by}")
    done = result if how == "a task" else result["results"][1]
    assert (done["changed"], done["outcome"]) == (False, "not_sent")
    assert created(service) == ([] if how == "a task" else ["web00"])


def test_a_lease_that_ends_while_it_is_waited_for_is_in_doubt(location, opened, service, quick):
    put(opened(location), key(), BUSY, lease_seconds=300)
    lines: list[str] = []
    with ThreadPoolExecutor(1) as pool:
        ends = pool.submit(task, location, show=lines.append, base_url=service.url)
        until(lambda: lines)
        end_leases(location)
        result = ends.result(LONGEST)
    assert (result["failed"], result["outcome"], service.api.conversation) == (True, "unknown", [])


class Gate:
    """A service that keeps the request for one name until `open` is set."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.open = threading.Event()

    def answer(self, sent) -> bytes:
        name = json.loads(sent.body)["name"]
        assert name != self.name or self.open.wait(LONGEST)
        return answer(201, {"id": name, "name": name, "attributes": {}})


@pytest.fixture
def gate() -> Gate:
    return Gate("web01")


@pytest.fixture
def gated(gate) -> Iterator[Wire]:
    with running(gate.answer) as service:
        yield service


def test_nobody_waits_for_the_request_of_another_name(location, fork, opened, gate, gated):
    with fork("create", location, gated.url, "web01") as process:
        until(lambda: gated.sent)
        quick = [task(location, base_url=gated.url, name="web02") for _time in range(3)]
        assert entry_of(opened(location), key()).state == INTENT
        gate.open.set()
        assert process.result()["outcome"] == "accepted"
    assert [result["outcome"] for result in quick] == ["accepted", "not_sent", "not_sent"]


@pytest.mark.parametrize("outcome", ["settled", "settled and begun anew"])
def test_an_outcome_that_comes_after_its_lease_says_what_happened_to_its_entry(
    location, fork, opened, gate, gated, outcome
):
    """As after a suspended controller: the machine is there, and nothing of it is lost."""
    with fork("create", location, gated.url, "web01") as process:
        until(lambda: gated.sent)
        end_leases(location)
        put(opened(location), key(), None)
        if outcome == "settled and begun anew":
            put(opened(location), key(), BUSY, lease_seconds=300)
        gate.open.set()
        result = process.result()
    assert (result["outcome"], result["asset"]["id"]) == ("accepted", "web01")
    entry = entry_of(opened(location), key())
    if outcome == "settled":
        assert (entry.state, entry.asset["id"]) == (DONE, "web01")
        assert "its entry was gone when the request ended" in str(result["warnings"])
    else:
        assert (entry.state, entry.by) == (INTENT, "ann@ctl")
        assert "could not be recorded: another task changed its entry meanwhile" in result["msg"]
