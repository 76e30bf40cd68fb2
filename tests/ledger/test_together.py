# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Many workers at once: with the same key they send one request, with different keys they never
wait for each other.
"""

from __future__ import annotations

import json
import threading

import pytest
from ansible_collections.infrastructure.services.plugins.plugin_utils._ledger.entries import (
    DONE,
    INTENT,
)
from emulator import faults
from ledger.loops import created, crowd
from ledger.tasks import key, task
from support.waiting import until
from support.wire import answer, running

LONGEST = 60.0  # seconds; only a failure takes this long


@pytest.mark.parametrize("count", [16, pytest.param(50, marks=pytest.mark.stress)])
def test_many_workers_with_one_key_send_one_request_and_all_return_its_asset(
    location, fork, service, count
):
    service.api.add_fault(faults.parse({"kind": "delay", "seconds": 0.3, "count": 0}))
    said = crowd(fork, location, service, count, "web01")
    assert (len(said), len(service.api.conversation), created(service)) == (count, 1, ["web01"])
    (asset,) = service.api.store.snapshot()["virtual_machines"]
    assert [result["msg"] for result in said if "asset" not in result] == []
    assert {result["asset"]["id"] for result in said} == {asset["id"]}
    assert sorted(result["outcome"] for result in said) == ["accepted"] + ["not_sent"] * (count - 1)
    assert sum(result["changed"] for result in said) == 1


def test_a_worker_that_waited_for_a_failure_sends_its_own_request(location, fork, service):
    """What was rejected does not exist, so the next in the queue tries; what is unknown stops all
    of them.
    """
    service.api.add_fault(faults.parse({"kind": "status", "status": 403, "count": 3}))
    outcomes = [result["outcome"] for result in crowd(fork, location, service, 8, "web01")]
    assert sorted(outcomes) == ["accepted"] + ["not_sent"] * 4 + ["rejected"] * 3
    service.api.add_fault(faults.parse({"kind": "drop", "when": "after"}))
    assert [result["outcome"] for result in crowd(fork, location, service, 8, "web02")] == [
        "unknown"
    ] * 8
    assert sorted(created(service)) == ["web01", "web02"]


def test_a_key_never_waits_for_the_request_of_another(location, fork, opened):
    ledger, may_answer = opened(location), threading.Event()

    def slow(sent) -> bytes:
        name = json.loads(sent.body)["name"]
        assert name == "web02" or may_answer.wait(LONGEST)
        return answer(201, {"id": name, "name": name, "attributes": {}})

    with running(slow) as service, fork("create", location, service.url, "web01") as process:
        until(lambda: service.sent)
        quick = [task(ledger, base_url=service.url, name="web02") for _time in range(3)]
        assert ledger.get(key(service)).state == INTENT
        may_answer.set()
        assert process.result()["outcome"] == "accepted"
        assert [result["outcome"] for result in quick] == ["accepted", "not_sent", "not_sent"]
        assert ledger.get(key(service)).state == ledger.get(key(service, "web02")).state == DONE
