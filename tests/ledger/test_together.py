# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Many workers at once: with the same key they send one request, with different keys they never wait for each other."""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from ansible_collections.infrastructure.services.plugins.plugin_utils._ledger.entries import DONE, INTENT
from emulator import faults
from ledger.tasks import key, task

CROWD = Path(__file__).with_name("crowd.py")
SLOW = 3  # seconds that the service takes for its first answer


@contextlib.contextmanager
def crowd(location: str, service, count: int, name: str) -> Iterator[subprocess.Popen]:
    """Start `count` workers that create the same virtual machine."""
    line = [sys.executable, str(CROWD), location, service.url, str(count), name]
    with subprocess.Popen(line, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield process
        finally:
            process.kill()


def results(process: subprocess.Popen) -> list[dict]:
    """Return the result of each worker."""
    said, _errors = process.communicate(timeout=60)
    assert process.returncode == 0
    return [json.loads(line) for line in said.splitlines()]


def created(service) -> list[str]:
    return [asset["name"] for asset in service.api.store.snapshot()["virtual_machines"]]


def test_fifty_workers_with_one_key_send_one_request_and_all_return_its_asset(location, service):
    service.api.add_fault(faults.parse({"kind": "delay", "seconds": 0.3, "count": 0}))
    with crowd(location, service, 50, "web01") as process:
        said = results(process)
    assert (len(said), len(service.api.conversation), created(service)) == (50, 1, ["web01"])
    (asset,) = service.api.store.snapshot()["virtual_machines"]
    assert [result["msg"] for result in said if "asset" not in result] == []
    assert {result["asset"]["id"] for result in said} == {asset["id"]}
    assert sorted(result["outcome"] for result in said) == ["accepted"] + ["not_sent"] * 49
    assert sum(result["changed"] for result in said) == 1


def test_a_worker_that_waited_for_a_failure_sends_its_own_request(location, service):
    """What was rejected does not exist, so the next in the queue tries; what is unknown stops all of them."""
    service.api.add_fault(faults.parse({"kind": "status", "status": 403, "count": 3}))
    with crowd(location, service, 8, "web01") as process:
        outcomes = [result["outcome"] for result in results(process)]
    assert sorted(outcomes) == ["accepted"] + ["not_sent"] * 4 + ["rejected"] * 3
    service.api.add_fault(faults.parse({"kind": "drop", "when": "after"}))
    with crowd(location, service, 8, "web02") as process:
        assert [result["outcome"] for result in results(process)] == ["unknown"] * 8
    assert sorted(created(service)) == ["web01", "web02"]


def test_a_key_never_waits_for_the_request_of_another(location, opened, service):
    ledger = opened(location)
    service.api.add_fault(faults.parse({"kind": "delay", "seconds": SLOW, "when": "after"}))
    with crowd(location, service, 1, "web01") as process:
        deadline = time.monotonic() + 20
        while created(service) != ["web01"] and time.monotonic() < deadline:
            time.sleep(0.01)
        quick = [task(ledger, base_url=service.url, name="web02") for _time in range(3)]
        assert ledger.get(key(service)).state == INTENT, "the slow request was over before the quick one"
        (slow,) = results(process)
    assert [result["outcome"] for result in quick] == ["accepted", "not_sent", "not_sent"]
    assert slow["outcome"] == "accepted"
    assert ledger.get(key(service)).state == ledger.get(key(service, "web02")).state == DONE
