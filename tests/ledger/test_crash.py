"""Whenever a task or a list is killed, no machine is created twice and none is lost: the next run
knows, or says that it does not.
"""

from __future__ import annotations

import itertools
import random
import time
from collections import Counter
from collections.abc import Iterable

import pytest
from ansible_collections.infrastructure.services.plugins.plugin_utils._ledger.entries import (
    DONE,
    INTENT,
)
from emulator import faults
from ledger.entries import end_leases
from ledger.tasks import key, list_task, task
from support.ledgers import entry_of
from support.waiting import until

WORK = 0.03  # seconds that the service takes, so that many kills fall within them
NAMES = [f"web{number}" for number in range(5)]


def slow_down(service, seconds: float) -> None:
    service.api.add_fault(faults.parse({"kind": "delay", "seconds": seconds, "count": 0}))


def all_answered(service) -> bool:
    """Whether the service works on no request: a killed task does not stop it."""
    return all(entry.status for entry in list(service.api.conversation))


def machines(service) -> dict[str, list[str]]:
    """The ids of the service's virtual machines, by name."""
    found: dict[str, list[str]] = {}
    for asset in service.api.store.snapshot()["virtual_machines"]:
        found.setdefault(asset["name"], []).append(asset["id"])
    return found


def agree(ledger, service, names: Iterable[str]) -> Counter:
    """Assert that the service and the ledger agree on all machines; return how many are done, in
    doubt and not there.
    """
    until(lambda: all_answered(service))
    there, counts = machines(service), Counter()
    for name in names:
        ids, entry = there.get(name, []), entry_of(ledger, key(name))
        assert len(ids) <= 1, f"{name} was created twice"
        if entry is None:
            assert ids == [], f"{name} is lost"
        elif entry.state == DONE:
            assert ids == [entry.asset["id"]]
        counts[entry.state if entry else "absent"] += 1
    return counts


@pytest.mark.parametrize("when", ["before", "after"])
def test_a_task_is_killed_at_each_of_its_calls(location, fork, opened, service, when):
    """At each transaction of its ledger, and at its request; while the lease runs, nobody says that
    it is in doubt, and afterwards nobody sends it again.
    """
    for number in itertools.count(1):
        name = f"web{number}-{when}"
        with fork("create", location, service.url, name, number, when) as process:
            was_killed = process.result() == {}
        ledger = opened(location)
        agree(ledger, service, [name])
        entry, sent = entry_of(ledger, key(name)), len(service.api.conversation)
        end_leases(location)
        again = task(location, base_url=service.url, name=name, retries=0)
        if entry and entry.state == INTENT:
            assert entry.lease_until > time.time()
            assert (again["failed"], again["outcome"]) == (True, "unknown")
            assert "infrastructure.services.in_doubt" in again["msg"]
        else:
            assert again["outcome"] == ("not_sent" if entry else "accepted")
        assert len(service.api.conversation) == sent + (again["outcome"] == "accepted")
        agree(ledger, service, [name])
        if not was_killed:
            break
    assert number >= 4  # intent, request, outcome; the last one is not killed


@pytest.mark.parametrize("when", ["before", "after"])
def test_a_list_is_killed_at_each_of_its_calls(location, fork, opened, service, when):
    for number in itertools.count(1):
        names = [f"{name}-{number}-{when}" for name in NAMES]
        with fork("create_all", location, service.url, names, number, when) as process:
            was_killed = process.result() == {}
        ledger = opened(location)
        agree(ledger, service, names)
        end_leases(location)
        again = list_task(location, names, base_url=service.url, in_doubt="skip", concurrency=3)
        counts = agree(ledger, service, names)
        assert counts["absent"] == 0
        assert counts[INTENT] <= 3
        doubtful = [each for each in again["results"] if each["outcome"] == "unknown"]
        assert len(doubtful) == counts[INTENT]
        if not was_killed:
            break
    assert number > len(NAMES)  # its requests, and fewer commits


def crash(fork, location: str, service, count: int) -> list[list[str]]:
    """Kill tasks and lists in turn, at random moments; return their names."""
    slow_down(service, WORK)
    chance, wholes = random.Random("random"), []
    for function, names in (("create", "measured"), ("create_all", ["of", "a", "list"])):
        started = time.monotonic()
        with fork(function, location, service.url, names) as process:
            assert process.result()
        wholes.append(time.monotonic() - started)
    killed = []
    for number in range(count):
        size = 12 * (number % 2)
        names = [f"web{number}-{index}" for index in range(size or 1)]
        given = ("create_all", names) if size else ("create", names[0])
        with fork(given[0], location, service.url, given[1]) as process:
            process.ends_within(wholes[number % 2] * chance.uniform(0, 1.2) * (4 if size else 1))
            process.kill()
        killed.append(names)
    return killed


@pytest.mark.parametrize(
    ("count", "location"),
    [
        (20, "sqlite"),
        *(pytest.param(500, kind, marks=pytest.mark.stress) for kind in ("sqlite", "postgres")),
    ],
    indirect=["location"],
)
def test_kills_at_random_moments(location, fork, opened, service, count):
    killed = crash(fork, location, service, count)
    names = [name for some in killed for name in some]
    agree(opened(location), service, names)
    end_leases(location)
    for some in killed:
        again = list_task(location, some, base_url=service.url, in_doubt="skip", concurrency=3)
        assert {each["outcome"] for each in again["results"]} <= {"accepted", "not_sent", "unknown"}
    assert agree(opened(location), service, names)["absent"] == 0
