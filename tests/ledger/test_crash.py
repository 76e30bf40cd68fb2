# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whenever a task is killed, no virtual machine is created twice and none is lost. The rerun knows,
or says unknown.
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import time
from collections import Counter

import pytest
from ansible_collections.infrastructure.services.plugins.plugin_utils._ledger.entries import DONE
from emulator import faults
from ledger.tasks import key
from support.running import BIN
from support.waiting import until

WORK = 0.03  # seconds that the service takes, so that many kills fall within them
FLEET = "infrastructure.services.fleet : Create the virtual machines"

# What the rerun finds after a kill at this step: whether a machine exists, and the outcome of the
# rerun.
AFTER_STEP = {
    "before the intent": (1, "accepted"),
    "after the intent": (0, "unknown"),
    "while the service works": (1, "unknown"),
    "after the answer": (1, "unknown"),
    "before the record": (1, "unknown"),
    "after the record": (1, "not_sent"),
}


def slow_down(service, seconds: float) -> None:
    service.api.add_fault(faults.parse({"kind": "delay", "seconds": seconds, "count": 0}))


def all_answered(service) -> bool:
    """Whether the service works on no request: a killed task does not stop it."""
    return all(entry.status for entry in list(service.api.conversation))


def crash(fork, location: str, service, count: int, seed: str) -> list[dict]:
    """Kill `count` tasks at random moments and run each again; return what was seen, once the
    service is idle.
    """
    slow_down(service, WORK)
    chance, seen = random.Random(seed), []
    started = time.monotonic()
    with fork("create", location, service.url, f"{seed}-measure") as process:
        assert process.result()
    whole = time.monotonic() - started
    for number in range(count):
        name = f"{seed}-{number}"
        with fork("create", location, service.url, name) as process:
            process.ends_within(whole * chance.uniform(0, 1.2))
            process.kill()
            crashed = not process.said
        with fork("create", location, service.url, name) as process:
            seen.append({"name": name, "crashed": crashed, "again": process.result()})
    until(lambda: all_answered(service))
    return seen


def machines(service) -> dict[str, list[str]]:
    """The ids of the service's virtual machines, by name."""
    found: dict[str, list[str]] = {}
    for asset in service.api.store.snapshot()["virtual_machines"]:
        found.setdefault(asset["name"], []).append(asset["id"])
    return found


def check(ledger, service, seen: list[dict]) -> Counter:
    """Assert that store, ledger and rerun agree on every key; return how often the rerun had each
    outcome.
    """
    there = machines(service)
    for one in seen:
        ids, again, entry = (
            there.get(one["name"], []),
            one["again"],
            ledger.get(key(service, one["name"])),
        )
        assert len(ids) <= 1, f"{one['name']} was created twice"
        if again["outcome"] == "unknown":
            assert not again["changed"]
            assert entry.state != DONE
        else:
            assert ids == [again["asset"]["id"]] == [entry.asset["id"]]
            assert entry.state == DONE
    return Counter(one["again"]["outcome"] for one in seen)


@pytest.mark.parametrize("step", AFTER_STEP)
def test_a_kill_at_each_step(location, fork, opened, service, step):
    count, outcome = AFTER_STEP[step]
    if step == "while the service works":
        slow_down(service, 0.3)
    with fork("create", location, service.url, "web01", step) as process:
        if step == "while the service works":
            until(lambda: service.api.conversation)
            process.kill()
        assert process.result() == {}, "it was not killed"
    until(lambda: all_answered(service))
    with fork("create", location, service.url, "web01") as process:
        seen = [{"name": "web01", "again": process.result()}]
    assert check(opened(location), service, seen) == {outcome: 1}
    assert len(machines(service).get("web01", [])) == count


def test_twenty_five_kills_at_random_moments(tmp_path, fork, opened, service):
    seen = crash(fork, str(tmp_path / "ledger.db"), service, 25, "random")
    outcomes = check(opened(str(tmp_path / "ledger.db")), service, seen)
    assert sum(outcomes.values()) == 25
    assert any(one["crashed"] for one in seen)


@pytest.mark.stress
@pytest.mark.parametrize("seed", ["one", "two"])
def test_a_thousand_kills_at_random_moments(location, fork, opened, service, seed):
    seen = crash(fork, location, service, 500, seed)
    outcomes = check(opened(location), service, seen)
    assert sum(outcomes.values()) == 500
    assert set(outcomes) == {"unknown", "accepted", "not_sent"}, (
        "the moments did not reach every step"
    )


def kill_playbook(ansible, service, line: list[str], chance: random.Random) -> None:
    """Start ansible-playbook in a process group of its own and kill the group; forks that left it
    live on.
    """
    before, some = len(service.api.conversation), chance.randint(1, 6)
    with subprocess.Popen(
        [BIN / "ansible-playbook", *line],
        cwd=ansible.directory,
        env=ansible.environment(),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    ) as process:
        until(lambda: len(service.api.conversation) >= before + some)
        time.sleep(chance.uniform(0, 0.3))
        os.killpg(process.pid, signal.SIGKILL)


@pytest.mark.parametrize(
    ("deaths", "location"),
    [
        (1, "sqlite"),
        *(pytest.param(15, kind, marks=pytest.mark.stress) for kind in ("sqlite", "postgres")),
    ],
    indirect=["location"],
)
def test_playbooks_killed_at_random_moments(ansible_once, location, opened, service, deaths):
    """Eight machines at once, and again: what was in flight is done or unknown, the rest is created
    now.
    """
    slow_down(service, 0.2)
    (ansible_once.directory / "ansible.cfg").touch()
    chance, seen = random.Random("playbooks"), []
    for death in range(deaths):
        hosts = [f"web{death}-{number}" for number in range(8)]
        line = [
            "infrastructure.services.create_fleet",
            "-i",
            ",".join(hosts),
            "--forks",
            "8",
            "-e",
            json.dumps(
                {
                    "fleet": "all",
                    "ledger": location,
                    "fleet_in_doubt": "skip",
                    "virtual_machine_attributes": {},
                }
            ),
        ]
        kill_playbook(ansible_once, service, line, chance)
        run = ansible_once.playbook(*line)
        result = run.result(FLEET)
        doubtful = {item["item"]: item for item in result["results"]}
        facts = result["ansible_facts"]["compute_virtual_machines"]
        done = {host: {"outcome": "done", "asset": asset} for host, asset in facts.items()}
        seen += [{"name": host, "again": doubtful.get(host) or done[host]} for host in hosts]
    assert [one["name"] for one in seen].count("web0-0") == 1
    assert len(seen) == 8 * deaths
    assert sum(check(opened(location), service, seen).values()) == 8 * deaths
