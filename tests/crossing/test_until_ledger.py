"""The keyword until: `attempts` has its count, as for any module."""

from __future__ import annotations

import json

import pytest
from support.running import Ansible
from support.wire import answer, running

CREATE = "infrastructure.services.compute_virtual_machine"
PATHS = {"worker": {}, "become": {"become": True, "become_method": "myself"}}
REPEATED = {
    "until": "seen is success",
    "register": "seen",
    "delay": 0,
    "retries": 1,
    "ignore_errors": True,
}


@pytest.fixture(scope="module")
def ran(collections, tmp_path_factory):
    """Run all tasks; return the run and the service."""
    directory = tmp_path_factory.mktemp("until")
    with running(lambda sent: answer(403)) as service:
        tasks = [{"name": "command", "ansible.builtin.command": "false", **REPEATED}]
        for path, keywords in PATHS.items():
            options = {
                "name": "vm",
                "base_url": f"{service.url}/{path}",
                "ledger": str(directory / f"{path}.db"),
                "retries": 0,
            }
            tasks.append({"name": path, CREATE: options, **keywords, **REPEATED})
        play = json.dumps([{"hosts": "localhost", "gather_facts": False, "tasks": tasks}]) + "\n"
        run = Ansible(directory, collections, service.url, "local").playbook(
            play, ANSIBLE_PIPELINING="true"
        )
    return run, service


@pytest.mark.matrix
@pytest.mark.parametrize("path", PATHS)
def test_attempts_counts_those_of_until_as_for_any_module(ran, path):
    assert len(ran[1].sent_by(path)) == 2
    result = ran[0].result(path)
    assert result["attempts"] == ran[0].result("command")["attempts"]
    assert result["request_attempts"] == 1
