# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A task that is ended while nothing is in flight: it waits for another task, for a retry, or
writes to the ledger.

Where the keyword `timeout` is to end a task at a certain point, the test sends the signal that the
kernel sends then.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import sqlite3
import subprocess
import threading
from contextlib import ExitStack, closing

import pytest
from ansible_collections.infrastructure.services.plugins.module_utils._http.urls import (
    canonical_url,
)
from ansible_collections.infrastructure.services.plugins.plugin_utils._ledger.entries import Key
from ansible_collections.infrastructure.services.plugins.plugin_utils._ledger.location import (
    open_ledger,
)
from support.databases import schema_in
from support.locks import hold
from support.running import Ansible
from support.waiting import children, is_asleep, time_out, until, waiting
from support.wire import Silence, answer, running

CREATE, UPDATE = "compute_virtual_machine", "cassandra_application_role"
KEY_OPTION = {CREATE: "name", UPDATE: "id"}
PATHS = {"worker": False, "become": True}
REFUSED = "refused connection"


def playbook(timeout: int = 0, **options) -> str:
    """Return a play in which each host runs the module that its variable `module` names, without
    waiting for others.
    """
    options = {"ledger": "{{ ledger }}", "base_url": "{{ base_url }}", **options}
    tasks = [
        {
            "name": module,
            "when": f"module == '{module}'",
            "become": "{{ becomes | default(false) }}",
            "become_method": "myself",
            "timeout": timeout,
            f"infrastructure.services.{module}": {option: "{{ inventory_hostname }}", **options},
        }
        for module, option in KEY_OPTION.items()
    ]
    tasks[1][f"infrastructure.services.{UPDATE}"]["description"] = "d"
    return (
        json.dumps([{"hosts": "all", "gather_facts": False, "strategy": "free", "tasks": tasks}])
        + "\n"
    )


def results(run) -> dict[str, dict]:
    """Return the result of each host."""
    return {line["host"]: line["result"] for line in run.results if "outcome" in line["result"]}


@pytest.mark.matrix
@pytest.mark.parametrize("end", ["Ctrl-C", "timeout"])
def test_nothing_is_sent_by_a_task_that_is_ended_while_it_waits_for_another_one(
    collections, tmp_path, postgres_server, end
):
    ledgers = {"sqlite": str(tmp_path / "ledger.db"), "postgresql": schema_in(postgres_server)}
    hosts = {
        f"{kind}-{path}-{module.partition('_')[0]}": {
            "ledger": ledger,
            "becomes": becomes,
            "module": module,
        }
        for kind, ledger in ledgers.items()
        for path, becomes in PATHS.items()
        for module in KEY_OPTION
    }
    with running(lambda sent: answer(201)) as service, ExitStack() as stack:
        url = canonical_url(service.url)
        opened = {
            ledger: stack.enter_context(closing(open_ledger(ledger))) for ledger in ledgers.values()
        }
        keys = {host: Key(url, given["module"], host) for host, given in hosts.items()}
        hosts = {host: {**given, "base_url": url} for host, given in hosts.items()}
        ansible = Ansible(tmp_path, collections, url, "local", {"all": {"hosts": hosts}})
        with ExitStack() as held:
            for host, key in keys.items():
                held.enter_context(hold(opened[hosts[host]["ledger"]], key))
            with ansible.interrupted(
                playbook(600), "--forks", "8", ANSIBLE_PIPELINING="true"
            ) as run:
                until(lambda: [waiting(ledger) for ledger in opened] == [4, 4])
                workers = children(run.process.pid)
                if end == "timeout":
                    time_out(run.process.pid)
                else:
                    os.killpg(run.process.pid, signal.SIGINT)
                done = run.end(60)
        # Whoever still waits for a lock gets it now.
        until(lambda: not any(os.path.exists(f"/proc/{worker}") for worker in workers))
        assert service.sent == []
        assert [opened[hosts[host]["ledger"]].get(key) for host, key in keys.items()] == [None] * 8
    if end == "timeout":
        told = results(done)
        assert set(told) == set(hosts)
        for result in told.values():
            assert (result["failed"], result["changed"], result["outcome"]) == (
                True,
                False,
                "not_sent",
            )
            assert "keyword timeout" in result["msg"]


def test_a_timeout_during_the_write_of_the_outcome_does_not_hide_it(collections, tmp_path):
    """The answers come while another program blocks the ledger; the timeout comes when both tasks
    wait for it.
    """
    path = tmp_path / "ledger.db"
    asked, may_answer = threading.Barrier(3, timeout=60), threading.Event()
    hosts = {host: {"module": host, "ledger": str(path)} for host in KEY_OPTION}

    def choose(sent) -> bytes:
        asked.wait()
        assert may_answer.wait(60)
        return Silence(
            answer(201, {"id": UPDATE, "name": CREATE, "attributes": {}}, "Connection: close")
        )

    with (
        running(choose) as service,
        closing(sqlite3.connect(path, isolation_level=None, timeout=60)) as other,
    ):
        hosts = {host: {**given, "base_url": service.url} for host, given in hosts.items()}
        ansible = Ansible(tmp_path, collections, service.url, "local", {"all": {"hosts": hosts}})
        with ansible.interrupted(playbook(600)) as run:
            asked.wait()
            other.execute("BEGIN IMMEDIATE")
            may_answer.set()
            until(
                lambda: service.left == 2
            )  # the tasks have read their answers and closed the connections
            until(lambda: all(map(is_asleep, children(run.process.pid))))
            time_out(run.process.pid)
            with pytest.raises(subprocess.TimeoutExpired):
                run.end(0.5)
            other.execute("ROLLBACK")
            told = results(run.end(60))
        assert set(told) == set(hosts)
        for result in told.values():
            assert (result["outcome"], result["changed"], result.get("failed", False)) == (
                "accepted",
                True,
                False,
            )
        with closing(open_ledger(str(path), read_only=True)) as ledger:
            assert [
                ledger.get(Key(canonical_url(service.url), host, host)).state for host in hosts
            ] == ["done"] * 2


def test_a_timeout_between_attempts_says_what_is_known_of_those_before(collections, tmp_path):
    path = tmp_path / "ledger.db"
    expected = {"status": "rejected", "refused": "not_sent"}
    with (
        running(lambda sent: answer(429)) as service,
        socket.create_server(("127.0.0.1", 0)) as unused,
    ):
        closed = f"http://127.0.0.1:{unused.getsockname()[1]}"
        unused.close()
        hosts = {
            host: {"module": CREATE, "ledger": str(path), "base_url": url}
            for host, url in (("status", service.url), ("refused", closed))
        }
        ansible = Ansible(tmp_path, collections, service.url, "local", {"all": {"hosts": hosts}})
        told = results(ansible.playbook(playbook(5, retries=100, retry_max_delay=2)))
    assert {host: result["outcome"] for host, result in told.items()} == expected
    for host, result in told.items():
        assert (result["failed"], result["changed"]) == (True, False)
        assert "in flight" not in result["msg"]
        with closing(open_ledger(str(path), read_only=True)) as ledger:
            assert ledger.get(Key(canonical_url(hosts[host]["base_url"]), CREATE, host)) is None
