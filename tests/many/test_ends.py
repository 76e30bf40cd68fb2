# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""However a list ends: nothing more is started, requests in flight get a grace period, and each item is reported."""

from __future__ import annotations

import os
import signal
import socket
import time

import pytest
from ansible_collections.infrastructure.services.plugins.plugin_utils._ledger.location import open_ledger
from many.conftest import until

LONGEST = 15.0  # seconds by which a run must have ended


def states(ledger: str) -> dict[str, str]:
    """The state of each entry, by name."""
    opened = open_ledger(ledger, read_only=True)
    try:
        return {key.name: entry.state for key, entry in opened.entries({}, lambda name: True)}
    finally:
        opened.close()


def gone(pids: list[int]) -> bool:
    """Whether none of the processes exists any more."""
    return not any(os.path.exists(f"/proc/{pid}") for pid in pids)


# How each end is caused: which process gets which signal.
ENDS = {
    "Ctrl-C": (lambda run: os.killpg(run.process.pid, signal.SIGINT)),
    "SIGINT to the parent": (lambda run: run.process.send_signal(signal.SIGINT)),
    "SIGTERM to the parent": (lambda run: run.process.send_signal(signal.SIGTERM)),
    "SIGTERM to all": (lambda run: os.killpg(run.process.pid, signal.SIGTERM)),
    "SIGHUP to all": (lambda run: os.killpg(run.process.pid, signal.SIGHUP)),
    "SIGKILL to the parent": (lambda run: run.process.kill()),
}


@pytest.mark.parametrize("end", ENDS)
def test_an_interrupted_list_loses_nothing_that_was_sent(start, service, tmp_path, end):
    """One answer takes longer than the grace period; all other requests in flight are recorded."""
    ledger = str(tmp_path / "l.db")
    service.seconds, service.slow["vm2"] = 0.3, 60.0
    run = start(1000, environment={"INFRASTRUCTURE_SERVICES_LEDGER": ledger})
    until(lambda: sum(service.created.values()) >= 40)
    workers = run.workers()
    began = time.monotonic()
    ENDS[end](run)
    run.end(LONGEST)
    until(lambda: gone(workers), LONGEST)
    assert time.monotonic() - began < LONGEST
    after = sum(service.created.values())
    time.sleep(0.5)
    assert sum(service.created.values()) == after <= 120
    assert set(service.created.values()) == {1}
    recorded = states(ledger)
    assert {name for name, state in recorded.items() if state != "done"} == {"vm2"}
    assert recorded.keys() == service.created.keys()


def test_the_keyword_timeout_is_reported_with_all_results(start, service):
    service.seconds, service.slow["vm2"] = 0.2, 60.0
    run = start(2000, seconds=3)
    run.end(60)
    result = run.result
    counts = result["counts"]
    assert (result["failed"], counts["unknown"]) == (True, 1)
    assert counts["accepted"] + counts["unknown"] == sum(service.created.values())
    assert counts["accepted"] + counts["unknown"] + counts["not_begun"] == 2000
    assert "since the keyword timeout (3 seconds) expired" in result["msg"]
    assert result["results"][2]["outcome"] == "unknown"


def test_a_terminated_worker_reports_what_is_known(start, service):
    """When only the worker gets the signal, its parent can still show the message."""
    service.seconds = 0.2
    run = start(1000)
    until(lambda: sum(service.created.values()) >= 20)
    os.kill(run.workers()[0], signal.SIGTERM)
    output = run.end(LONGEST)
    assert "received SIGTERM" in output
    assert "were not begun" in output


@pytest.mark.parametrize("end", ["the keyword timeout", "SIGTERM"])
def test_items_that_wait_for_a_token_count_as_never_started(start, service, tmp_path, end):
    """Nothing was sent, so the next run requires no manual repair of the ledger."""
    ledger = str(tmp_path / "l.db")
    with_ledger = {"INFRASTRUCTURE_SERVICES_LEDGER": ledger}
    with socket.create_server(("127.0.0.1", 0)) as silent:
        token = {"AUTH_URL": f"http://127.0.0.1:{silent.getsockname()[1]}", "CLIENT_ID": "me", "ACCESS_TOKEN": "",
                 "CLIENT_SECRET": "secret-of-the-tests"}
        token = {f"INFRASTRUCTURE_SERVICES_{name}": value for name, value in token.items()}
        run = start(30, environment={**with_ledger, **token}, seconds=2 if end == "the keyword timeout" else 0)
        until(lambda: os.path.exists(ledger) and "intent" in states(ledger).values())
        workers = run.workers()
        if end == "SIGTERM":
            os.killpg(run.process.pid, signal.SIGTERM)
        run.end(2 + LONGEST)
        until(lambda: gone(workers))
    if end == "the keyword timeout":
        assert (run.result["outcome"], run.result["counts"]["not_sent"]) == ("not_sent", 30)
        assert run.result["results"][0]["failed"] is True
    assert (states(ledger), dict(service.created)) == ({}, {})
    again = start(30, environment=with_ledger)
    again.end()
    assert again.result["counts"]["accepted"] == 30


@pytest.mark.parametrize("remembers", ["a ledger", "nothing"])
def test_ctrl_c_is_reported_with_both_counts_though_requests_outlast_the_grace(start, service, tmp_path, remembers):
    service.seconds = 40.0
    ledger = {"INFRASTRUCTURE_SERVICES_LEDGER": str(tmp_path / "l.db")} if remembers == "a ledger" else {}
    run = start(100, environment=ledger)
    until(lambda: sum(service.created.values()) >= 4)
    began = time.monotonic()
    os.killpg(run.process.pid, signal.SIGINT)
    output = run.end(LONGEST)
    assert time.monotonic() - began < LONGEST
    assert "[WARNING]: 4 of 100 virtual machines failed (4 in doubt): vm0, vm1, vm2, vm3." in run.errors
    assert "96 were not begun" in run.errors
    assert "results says" not in output
    assert ("ledger_info lists what is in doubt" if ledger else "Look on the service for those in doubt") in run.errors
