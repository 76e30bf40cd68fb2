# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whenever a task is killed, no virtual machine is created twice and none is lost. The rerun knows, or says unknown."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest
from ansible_collections.infrastructure.services.plugins.plugin_utils._ledger.store import DONE
from emulator import faults
from ledger.tasks import key
from support.running import BIN

CRASHER = Path(__file__).with_name("crasher.py")
WORK = 0.03  # seconds that the service takes, so that many kills fall within them

# What the rerun finds after a kill at this step: whether a machine exists, and the outcome of the rerun.
AFTER_STEP = {
    "before the intent": (1, "accepted"),
    "after the intent": (0, "unknown"),
    "while the service works": (1, "unknown"),
    "after the answer": (1, "unknown"),
    "before the record": (1, "unknown"),
    "after the record": (1, "not_sent"),
}


def crash(location: str, service, count: int, seed: str, step: str = "") -> list[dict]:
    """Kill `count` tasks, run each again, and return what the crasher saw, once the service is idle."""
    service.api.add_fault(faults.parse({"kind": "delay", "seconds": 1 if step else WORK, "count": 0}))
    line = [sys.executable, str(CRASHER), location, service.url, str(count), seed, *([step] if step else [])]
    done = subprocess.run(line, capture_output=True, text=True, timeout=60 + count, check=False)
    assert done.returncode == 0, done.stderr
    time.sleep(1.5)
    return [json.loads(said) for said in done.stdout.splitlines()]


def machines(service) -> dict[str, list[str]]:
    """The ids of the service's virtual machines, by name."""
    found: dict[str, list[str]] = {}
    for asset in service.api.store.snapshot()["virtual_machines"]:
        found.setdefault(asset["name"], []).append(asset["id"])
    return found


def check(ledger, service, seen: list[dict]) -> Counter:
    """Assert that store, ledger and rerun agree on every key; return how often the rerun had each outcome."""
    there = machines(service)
    for one in seen:
        ids, again, entry = there.get(one["name"], []), one["again"], ledger.get(key(service, one["name"]))
        assert len(ids) <= 1, f"{one['name']} was created twice"
        if again["outcome"] == "unknown":
            assert not again["changed"]
            assert entry.state != DONE
        else:
            assert ids == [again["asset"]["id"]] == [entry.asset["id"]]
            assert entry.state == DONE
    return Counter(one["again"]["outcome"] for one in seen)


@pytest.mark.parametrize("step", AFTER_STEP)
def test_a_kill_at_each_step(location, opened, service, step):
    count, outcome = AFTER_STEP[step]
    seen = crash(location, service, 1, "step", step)
    assert check(opened(location), service, seen) == {outcome: 1}
    assert [one["crashed"] for one in seen] == [True]
    assert len(machines(service).get("step-0", [])) == count


def test_fifty_kills_at_random_moments(tmp_path, opened, service):
    seen = crash(str(tmp_path / "ledger.db"), service, 50, "random")
    outcomes = check(opened(str(tmp_path / "ledger.db")), service, seen)
    assert sum(outcomes.values()) == 50
    assert any(one["crashed"] for one in seen)


@pytest.mark.stress
@pytest.mark.parametrize("seed", ["one", "two"])
def test_a_thousand_kills_at_random_moments(location, opened, service, seed):
    seen = crash(location, service, 500, seed)
    outcomes = check(opened(location), service, seen)
    assert sum(outcomes.values()) == 500
    assert set(outcomes) == {"unknown", "accepted", "not_sent"}, "the moments did not reach every step"


def kill_playbook(ansible, line: list[str], seconds: float) -> None:
    """Start ansible-playbook in a process group of its own and kill the group; forks that left it live on."""
    with subprocess.Popen([BIN / "ansible-playbook", *line], cwd=ansible.directory, env=ansible.environment(),
                          stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True) as process:
        time.sleep(seconds)
        os.killpg(process.pid, signal.SIGKILL)


@pytest.mark.parametrize("deaths", [1, pytest.param(15, marks=pytest.mark.stress)])
def test_playbooks_killed_at_random_moments(ansible_once, location, opened, service, deaths):
    """Eight hosts at once, and again: what was in flight is done or unknown, the rest is created now."""
    service.api.add_fault(faults.parse({"kind": "delay", "seconds": 0.2, "count": 0}))
    (ansible_once.directory / "ansible.cfg").touch()
    chance, seen, whole = random.Random("playbooks"), [], 0.0
    for death in range(deaths + 1):
        hosts = [f"web{death}-{number}" for number in range(8)]
        line = ["infrastructure.services.create_fleet", "-i", ",".join(hosts), "--forks", "8",
                "-e", json.dumps({"fleet": "all", "ledger": location, "fleet_in_doubt": "skip"})]
        if death:  # the first run is not killed, and shows how long one takes
            kill_playbook(ansible_once, line, chance.uniform(0.6, 1) * whole)
        started = time.monotonic()
        run = ansible_once.playbook(*line)
        whole = whole or time.monotonic() - started
        seen += [{"name": item["item"], "again": item}
                 for item in run.result("infrastructure.services.fleet : Create the virtual machines")["results"]]
    assert [one["name"] for one in seen].count("web0-0") == 1
    assert len(seen) == 8 * (deaths + 1)
    assert sum(check(opened(location), service, seen).values()) == 8 * (deaths + 1)
