"""When ansible-playbook is killed, a task that was still waiting sends nothing; that it waits is said on
the screen.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest
from ansible_collections.infrastructure.services.plugins.plugin_utils._ledger.entries import (
    INTENT,
    Entry,
    Key,
)
from support.ledgers import entry_of, finish, opened, put
from support.running import Ansible, Interrupted
from support.waiting import children, gone, until
from support.wire import answer, running

ROLE = "infrastructure.services.cassandra_application_role"
MODULES = {
    "infrastructure.services.compute_virtual_machine": {"name": "vm"},
    "infrastructure.services.compute_virtual_machines": {"virtual_machines": [{"name": "vm"}]},
}


@contextmanager
def killed(
    ansible: Ansible, task: dict, waits: Callable[[Interrupted], bool]
) -> Iterator[list[int]]:
    """Kill ansible-playbook, and nothing else, when the worker of a task waits; at the end, wait
    for the workers, whose pids are given.
    """
    play = {"hosts": "localhost", "gather_facts": False, "tasks": [task]}
    with ansible.interrupted(json.dumps([play]), ANSIBLE_PIPELINING="true") as run:
        until(lambda: waits(run))
        orphans = children(run.process.pid)
        run.process.kill()
        run.process.wait()
        assert orphans
        yield orphans
        until(lambda: gone(orphans))


@pytest.mark.parametrize("module", MODULES)
def test_a_slow_shell_is_followed_by_no_module(collections, tmp_path, module):
    begun, shell, goes_on = tmp_path / "begun", tmp_path / "shell", tmp_path / "goes on"
    waits = f"until [ -e '{goes_on}' ]; do sleep 0.05; done"
    shell.write_text(f'#!/bin/sh\ntouch {begun}\n{waits}\nexec /bin/sh "$@"\n', encoding="utf-8")
    shell.chmod(0o755)
    task = {
        module: MODULES[module],
        "vars": {"ansible_connection": "process", "ansible_shell_executable": str(shell)},
    }
    with running(lambda sent: answer(201, {"name": "vm"})) as service:
        with killed(
            Ansible(tmp_path, collections, service.url, "local"), task, lambda _run: begun.exists()
        ) as orphans:
            assert not gone(orphans)
            goes_on.touch()
        assert not service.sent


def test_the_lease_of_another_run_is_followed_by_no_request(collections, tmp_path):
    location = str(tmp_path / "ledger.db")
    key = Key("cassandra_application_role", "r")
    task = {ROLE: {"id": "r", "name": "n", "ledger": location}}
    with (
        running(lambda sent: answer(200, {"id": "r"})) as service,
        opened(location, service.url) as ledger,
    ):
        intent = put(ledger, key, Entry(INTENT, {}, {}), lease_seconds=600)
        ansible = Ansible(tmp_path, collections, service.url, "local")
        with killed(
            ansible, task, lambda run: "waiting for r: " in run.printed.read_text()
        ) as orphans:
            assert not gone(orphans)
            finish(ledger, key, intent, None)
        assert not service.sent
        assert entry_of(ledger, key) is None
