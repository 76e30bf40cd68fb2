# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The keyword until: it repeats a failure to record an outcome as such, and `attempts` has its count."""

from __future__ import annotations

import json
import os
import shutil

import pytest
from support.running import Ansible
from support.wire import answer, running

CREATE = "infrastructure.services.compute_virtual_machine"
PATHS = {"worker": {}, "become": {"become": True, "become_method": "myself"}}


@pytest.mark.parametrize("path", PATHS)
def test_what_could_not_be_recorded_fails_at_each_attempt(collections, tmp_path, path):
    ledger = tmp_path / "ledger.db"

    def choose(sent):
        """Replace the ledger while the request is in flight."""
        os.rename(ledger, f"{ledger}.away")
        shutil.copy(f"{ledger}.away", ledger)
        return answer(201, {"id": "i", "name": "vm"})

    task = {"name": "Create", CREATE: {"name": "vm", "ledger": str(ledger)}, **PATHS[path],
            "register": "seen", "until": "seen is success", "retries": 2, "delay": 0}
    with running(choose) as service:
        ansible = Ansible(tmp_path, collections, service.url, "local")
        run = ansible.playbook(json.dumps([{"hosts": "localhost", "gather_facts": False, "tasks": [task]}]) + "\n",
                               ANSIBLE_PIPELINING="true")
    result = run.result("Create")
    assert len(service.sent) == 1
    assert result["failed"], result
    assert result["outcome"] == "accepted"
    assert result["changed"]
    assert "could not be recorded" in result["msg"]
    assert "This attempt sent nothing" in result["msg"]


@pytest.mark.parametrize("path", PATHS)
def test_attempts_counts_those_of_until_as_for_any_module(collections, tmp_path, path):
    repeated = {"until": "seen is success", "register": "seen", "retries": 2, "delay": 0, "ignore_errors": True}
    tasks = [{"name": "Create", CREATE: {"name": "vm", "retries": 0}, **PATHS[path], **repeated},
             {"name": "Compare", "ansible.builtin.command": "false", **repeated}]
    play = json.dumps([{"hosts": "localhost", "gather_facts": False, "tasks": tasks}]) + "\n"
    with running(lambda sent: answer(403)) as service:
        run = Ansible(tmp_path, collections, service.url, "local").playbook(play, ANSIBLE_PIPELINING="true")
    assert len(service.sent) == 3
    assert run.result("Create")["attempts"] == run.result("Compare")["attempts"]
    assert run.result("Create")["request_attempts"] == 1
