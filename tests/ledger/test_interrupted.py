"""A task that is interrupted while its request is in flight: what it reports, and what the ledger
then records.
"""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Callable, Iterator

import pytest
from ansible.executor.task_queue_manager import TaskQueueManager
from ledger.entries import execute
from support.databases import schema_in
from support.ledgers import create
from support.running import Ansible, Run
from support.waiting import time_out, until
from support.wire import Silence, Wire, running

CREATE = "infrastructure.services.compute_virtual_machine"
HISTORY = "SELECT to_state, outcome FROM infrastructure_services_history"
STATES = "SELECT state FROM infrastructure_services_entry ORDER BY name"
HOSTS = ("none", "sqlite", "postgresql", "target")  # where the ledger is, or the module
TIMEOUTS = {"timeout": 600}

# How ansible-playbook, whose pid is given, or its workers are ended.
ENDS: dict[str, Callable[[int], None]] = {
    "Ctrl-C": lambda pid: os.killpg(pid, signal.SIGINT),
    "SIGTERM to all": lambda pid: os.killpg(pid, signal.SIGTERM),
    "timeout": time_out,
}
if hasattr(
    TaskQueueManager, "_signal_handler"
):  # else the workers get no signal and wait for their answers
    ENDS["SIGTERM to the parent"] = lambda pid: os.kill(pid, signal.SIGTERM)


@pytest.fixture
def silent() -> Iterator[Wire]:
    """A service that never answers."""
    with running(lambda sent: Silence()) as service:
        yield service


@pytest.fixture
def ledgers(tmp_path, postgres_server) -> dict[str, str]:
    return {"sqlite": str(tmp_path / "ledger.db"), "postgresql": schema_in(postgres_server)}


def interrupted(ansible: Ansible, service: Wire, timeout: int, end: Callable) -> Run:
    """Run a task on all hosts, end it when all requests are in flight, and wait for the run to end."""
    play = {
        "hosts": "all",
        "gather_facts": False,
        "tasks": [
            {
                "name": "Create",
                "timeout": timeout,
                CREATE: {
                    "name": "vm-{{ inventory_hostname }}",
                    "retries": 0,
                    "ledger": "{{ ledger }}",
                },
            }
        ],
    }
    with ansible.interrupted(
        json.dumps([play]), "--forks", str(len(HOSTS)), ANSIBLE_PIPELINING="true"
    ) as run:
        until(lambda: len(service.sent) == len(HOSTS))
        end(run.process.pid)
        return run.end(60)


@pytest.mark.parametrize(
    "end",
    [
        "Ctrl-C",
        "timeout",
        *(pytest.param(end, marks=pytest.mark.matrix) for end in ENDS if end.startswith("SIGTERM")),
    ],
)
def test_requests_in_flight_are_unknown_and_reported(collections, tmp_path, silent, ledgers, end):
    hosts = {host: {"ledger": ledgers.get(host, "none")} for host in HOSTS}
    hosts["target"]["ansible_connection"] = "process"
    for location in ledgers.values():
        create(location, silent.url)
    ansible = Ansible(tmp_path, collections, silent.url, "local", {"all": {"hosts": hosts}})
    run = interrupted(ansible, silent, TIMEOUTS.get(end, 0), ENDS[end])
    assert run.rc != 0
    assert len(silent.sent) == len(HOSTS)
    for location in ledgers.values():
        # Its lease ends by itself: a thread that is late may still be sending.
        assert execute(location, HISTORY) == [("intent", "")]
        assert execute(location, STATES) == [("intent",)]
    told = {line["host"]: line["result"] for line in run.results}
    for name, result in told.items():
        who = f"virtual machine vm-{name}: the "
        assert result["msg"].startswith(who)
        assert "the keyword timeout expired" in result["msg"]
        assert "It is unknown whether the virtual machine was created" in result["msg"]
        assert f'"msg": "{who}' in run.output
    if end == "timeout":
        assert {path.name for path in tmp_path.glob("ledger*")} == {"ledger.db"}
    assert {name: result["outcome"] for name, result in told.items()} == dict.fromkeys(
        told, "unknown"
    )
    assert set(told) == (set(HOSTS) if end == "timeout" else set())


@pytest.mark.matrix
@pytest.mark.parametrize("connection", ["local", "process"])
def test_under_no_log_no_name_is_shown(collections, tmp_path, silent, connection):
    """For one machine and for a list."""
    tasks = [
        {
            "name": module,
            "when": f"module == '{module}'",
            module: {**given, "retries": 0, "ledger": "none"},
            "no_log": True,
        }
        for module, given in (
            (CREATE, {"name": "hidden-name"}),
            (f"{CREATE}s", {"virtual_machines": [{"name": "hidden-name"}]}),
        )
    ]
    hosts = {form: {"module": task["name"]} for form, task in zip(("one", "list"), tasks)}
    ansible = Ansible(tmp_path, collections, silent.url, connection, {"all": {"hosts": hosts}})
    play = {"hosts": "all", "gather_facts": False, "strategy": "free", "tasks": tasks}
    with ansible.interrupted(json.dumps([play]), ANSIBLE_PIPELINING="true") as run:
        until(lambda: len(silent.sent) == len(hosts))
        os.killpg(run.process.pid, signal.SIGINT)
        output = " ".join(run.end(60).output.split())
    assert "hidden-name" not in output
