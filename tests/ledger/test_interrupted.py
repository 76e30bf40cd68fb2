# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A task that is interrupted while its request is in flight: what it reports, and what the ledger then records."""

from __future__ import annotations

import json
import os
import re
import signal
import sqlite3
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing

import psycopg
import pytest
from ansible.executor.task_queue_manager import TaskQueueManager
from support.databases import schema_in
from support.running import Ansible, Run
from support.wire import Silence, Wire, running

CREATE = "infrastructure.services.compute_virtual_machine"
HISTORY = "SELECT to_state, outcome, message FROM infrastructure_services_history"
HOSTS = ("none", "sqlite", "postgresql")
PATHS = {"worker": {}, "become": {"become": True, "become_method": "myself"}}
OPERATION = "/api/v1/services/compute/virtual_machines"
TELLS = ("Ctrl-C", "timeout")  # the ends that leave ansible-playbook time to report
LONGEST = 10.0  # seconds that ending may take

# Which process gets which signal; None: the keyword timeout ends the task.
ENDS: dict[str, tuple[Callable[[int, int], None], int] | None] = {
    "Ctrl-C": (os.killpg, signal.SIGINT),
    "SIGTERM to all": (os.killpg, signal.SIGTERM),
    "timeout": None,
}
if hasattr(TaskQueueManager, "_signal_handler"):  # else the workers get no signal and wait for their answers
    ENDS["SIGTERM to the parent"] = (os.kill, signal.SIGTERM)


@pytest.fixture
def silent() -> Iterator[Wire]:
    """A service that never answers."""
    with running(lambda sent: Silence()) as service:
        yield service


@pytest.fixture
def ledgers(tmp_path, postgres_server) -> dict[str, str]:
    return {"sqlite": str(tmp_path / "ledger.db"), "postgresql": schema_in(postgres_server)}


def history(location: str) -> list[tuple]:
    """Return how the attempts in a ledger ended, read without the collection."""
    if location.startswith("postgresql:"):
        with psycopg.connect(location) as connection:
            return connection.execute(HISTORY).fetchall()
    with closing(sqlite3.connect(f"file:{location}?mode=ro", uri=True)) as connection:
        return connection.execute(HISTORY).fetchall()


def until(condition: Callable[[], bool]) -> None:
    """Wait until the condition holds."""
    deadline = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def interrupted(ansible: Ansible, service: Wire, keywords: dict, end: tuple | None, ledgers: Iterable[str]) -> Run:
    """Run a task on all hosts, end it when all requests are in flight, and wait for the run to end."""
    play = {"hosts": "all", "gather_facts": False, "tasks": [{
        "name": "Create", **keywords, **({} if end else {"timeout": 10 if keywords else 3}),
        CREATE: {"name": "vm-{{ inventory_hostname }}", "retries": 0, "ledger": "{{ ledger | default(omit) }}"}}]}
    with ansible.interrupted(json.dumps([play]), "--forks", "3", ANSIBLE_PIPELINING="true") as run:
        until(lambda: len(service.sent) == len(HOSTS))
        if end:
            who, number = end
            who(run.process.pid, number)
        done = run.end(LONGEST)
        until(lambda: all(map(history, ledgers)))  # the parent may exit before its workers
        return done


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("end", ENDS)
def test_requests_in_flight_are_unknown_and_reported(collections, tmp_path, silent, ledgers, path, end):
    hosts = {"none": {}, **{name: {"ledger": location} for name, location in ledgers.items()}}
    ansible = Ansible(tmp_path, collections, silent.url, "local", {"all": {"hosts": hosts}})
    run = interrupted(ansible, silent, PATHS[path], ENDS[end], ledgers.values())
    assert run.rc != 0
    assert len(silent.sent) == len(HOSTS)
    for name, location in ledgers.items():
        ((state, outcome, message),) = history(location)
        assert (state, outcome) == ("unknown", "unknown")
        assert message.startswith(f"virtual machine vm-{name}: the ")
        assert f"POST {silent.url}{OPERATION}" in message
    if end in TELLS:
        for name in HOSTS:
            assert re.search(rf"virtual machine vm-{name}: the .*POST .*{OPERATION}", " ".join(run.output.split()))
        assert {path.name for path in tmp_path.glob("ledger*")} == {"ledger.db", "ledger.db.lock"}
    told = {line["host"]: line["result"] for line in run.results}
    assert {name: result["outcome"] for name, result in told.items()} == dict.fromkeys(told, "unknown")
    assert set(told) == (set() if ENDS[end] else set(HOSTS))


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("form", ["one", "list"])
def test_under_no_log_only_the_outcome_is_shown(collections, tmp_path, silent, path, form):
    module, given = (CREATE, {"name": "hidden-name"}) if form == "one" else (
        f"{CREATE}s", {"virtual_machines": [{"name": "hidden-name"}]})
    task = {"name": "Create", module: {**given, "retries": 0}, **PATHS[path], "no_log": True}
    ansible = Ansible(tmp_path, collections, silent.url, "local")
    play = {"hosts": "localhost", "gather_facts": False, "tasks": [task]}
    with ansible.interrupted(json.dumps([play]), ANSIBLE_PIPELINING="true") as run:
        until(lambda: silent.sent)
        os.killpg(run.process.pid, signal.SIGINT)
        output = " ".join(run.end(20.0).output.split())
    assert f"{module}: a task with no_log was interrupted; its outcome is unknown" in output
    assert "hidden-name" not in output
