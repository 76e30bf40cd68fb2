# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""When ansible-playbook is killed, a task that was still waiting does not start its module."""

from __future__ import annotations

import json
import os
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import NamedTuple

import pytest
from ansible_collections.infrastructure.services.plugins.plugin_utils._ledger.entries import Key
from ansible_collections.infrastructure.services.plugins.plugin_utils._ledger.location import (
    open_ledger,
)
from support.locks import hold
from support.running import Ansible
from support.wire import answer, running

ROLE = "infrastructure.services.cassandra_application_role"
MODULES = {
    "infrastructure.services.compute_virtual_machine": {"name": "vm"},
    "infrastructure.services.compute_virtual_machines": {"virtual_machines": [{"name": "vm"}]},
}


class Orphans(NamedTuple):
    """The workers of a run that was killed while they waited."""

    pids: list[int]

    @property
    def have_ended(self) -> bool:
        return not any(os.path.exists(f"/proc/{pid}") for pid in self.pids)


def until(condition: Callable[[], bool]) -> None:
    """Wait until the condition holds."""
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def workers(pid: int) -> list[int]:
    """Return the processes that a process started and that still exist."""
    asked = subprocess.run(
        ["ps", "-o", "pid=", "--ppid", str(pid)], capture_output=True, text=True, check=False
    )
    return [int(child) for child in asked.stdout.split()]


def has_open(pids: list[int], file: Path) -> bool:
    """Whether one of the processes has the file open."""
    return any(link.resolve() == file for pid in pids for link in Path(f"/proc/{pid}/fd").glob("*"))


@contextmanager
def killed(ansible: Ansible, task: dict, waits: Callable[[list[int]], bool]) -> Iterator[Orphans]:
    """Kill ansible-playbook, and nothing else, when the worker of a task waits; at the end, wait
    for the worker.
    """
    play = {"hosts": "localhost", "gather_facts": False, "tasks": [task]}
    with ansible.interrupted(json.dumps([play]), ANSIBLE_PIPELINING="true") as run:
        until(lambda: waits(workers(run.process.pid)))
        orphans = Orphans(workers(run.process.pid))
        run.process.kill()
        run.process.wait()
        assert orphans.pids
        yield orphans
        until(lambda: orphans.have_ended)


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
            Ansible(tmp_path, collections, service.url, "local"), task, lambda pids: begun.exists()
        ) as orphans:
            assert not orphans.have_ended
            goes_on.touch()
        assert not service.sent


def test_the_lock_of_another_run_is_followed_by_no_module(collections, tmp_path):
    location = str(tmp_path / "ledger.db")
    task = {
        ROLE: {"id": "r", "name": "n", "ledger": location},
        "become": True,
        "become_method": "myself",
    }
    with (
        running(lambda sent: answer(200, {"id": "r"})) as service,
        closing(open_ledger(location)) as ledger,
    ):
        key = Key(service.url, "cassandra_application_role", "r")
        ansible = Ansible(tmp_path, collections, service.url, "local")
        with ExitStack() as lock:
            lock.enter_context(hold(ledger, key))
            with killed(
                ansible, task, lambda pids: has_open(pids, Path(f"{location}.lock"))
            ) as orphans:
                assert not orphans.have_ended
                lock.close()
        assert not service.sent
        assert ledger.get(key) is None
