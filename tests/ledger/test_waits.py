# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A task that is ended while nothing is in flight: it waits for another task, for a retry, or writes to the ledger."""

from __future__ import annotations

import json
import os
import signal
import socket
import sqlite3
import threading
import time
from contextlib import closing

import pytest
from ansible_collections.infrastructure.services.plugins.module_utils._http.urls import canonical_url
from ansible_collections.infrastructure.services.plugins.plugin_utils._ledger.entries import Key
from ansible_collections.infrastructure.services.plugins.plugin_utils._ledger.location import open_ledger
from support.databases import schema_in
from support.running import Ansible
from support.wire import answer, running

CREATE, UPDATE = "compute_virtual_machine", "cassandra_application_role"
PATHS = {"worker": {}, "become": {"become": True, "become_method": "myself"}}
ASSETS = {CREATE: {"name": "web01"}, UPDATE: {"id": "web01", "description": "d"}}
MACHINE = {"id": "vm-1", "name": "web01", "attributes": {}}


@pytest.fixture(params=["sqlite", "postgresql"])
def location(request, tmp_path, postgres_server) -> str:
    return str(tmp_path / "ledger.db") if request.param == "sqlite" else schema_in(postgres_server)


def play(module: str, ledger: str, keywords: dict, **options) -> str:
    task = {"name": "Send", **keywords, "register": "sent",
            f"infrastructure.services.{module}": {**ASSETS[module], "ledger": ledger, **options}}
    return json.dumps([{"hosts": "all", "gather_facts": False, "ignore_errors": True, "tasks": [task]}]) + "\n"


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("module", ASSETS)
@pytest.mark.parametrize("end", ["Ctrl-C", "timeout"])
def test_nothing_is_sent_by_a_task_that_is_ended_while_it_waits_for_another_one(
        collections, tmp_path, location, module, path, end):
    with running(lambda sent: answer(201, MACHINE)) as service:
        ledger, key = open_ledger(location), Key(canonical_url(service.url), module, "web01")
        ansible = Ansible(tmp_path, collections, service.url, "local")
        keywords = {**PATHS[path], **({"timeout": 5} if end == "timeout" else {})}
        with ledger.hold(key), ansible.interrupted(play(module, location, keywords), ANSIBLE_PIPELINING="true") as run:
            if end == "Ctrl-C":
                time.sleep(5)
                os.killpg(run.process.pid, signal.SIGINT)
            done = run.end(15)
        time.sleep(1)  # whoever waited for the lock has it now
        assert service.sent == []
        assert ledger.get(key) is None
        ledger.close()
    if end == "timeout":
        result = done.result("Send")
        assert (result["failed"], result["changed"], result["outcome"]) == (True, False, "not_sent")
        assert "timeout" in result["msg"]


@pytest.mark.parametrize(("module", "status"), [(CREATE, 201), (UPDATE, 200)])
def test_a_timeout_during_the_write_of_the_outcome_does_not_hide_it(collections, tmp_path, module, status):
    path = tmp_path / "ledger.db"
    blocked = threading.Event()

    def block(sent) -> bytes:
        threading.Thread(target=hold_the_file).start()
        assert blocked.wait(10)
        return answer(status, {**MACHINE, "id": "web01"})

    def hold_the_file() -> None:
        with closing(sqlite3.connect(path, isolation_level=None, timeout=10)) as other:
            other.execute("BEGIN IMMEDIATE")
            blocked.set()
            time.sleep(4.5)
            other.execute("ROLLBACK")

    with running(block) as service:
        run = Ansible(tmp_path, collections, service.url, "local").playbook(
            play(module, str(path), {"timeout": 4}))
    result = run.result("Send")
    assert (result["outcome"], result["changed"], result.get("failed", False)) == ("accepted", True, False)
    with closing(open_ledger(str(path), read_only=True)) as ledger:
        assert ledger.get(Key(canonical_url(service.url), module, "web01")).state == "done"


@pytest.mark.parametrize(("refusal", "outcome"), [("refused connection", "not_sent"), ("429", "rejected")])
def test_a_timeout_between_attempts_says_what_is_known_of_those_before(
        collections, tmp_path, refusal, outcome):
    path = tmp_path / "ledger.db"
    with running(lambda sent: answer(429)) as service, socket.create_server(("127.0.0.1", 0)) as unused:
        closed = f"http://127.0.0.1:{unused.getsockname()[1]}"
        unused.close()
        url = service.url if refusal == "429" else closed
        run = Ansible(tmp_path, collections, url, "local").playbook(
            play(CREATE, str(path), {"timeout": 4}, retries=100, retry_max_delay=2))
    result = run.result("Send")
    assert (result["failed"], result["changed"], result["outcome"]) == (True, False, outcome)
    assert "in flight" not in result["msg"]
    with closing(open_ledger(str(path), read_only=True)) as ledger:
        assert ledger.get(Key(canonical_url(url), CREATE, "web01")) is None
