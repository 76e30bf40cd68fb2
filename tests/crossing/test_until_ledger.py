# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The keyword until repeats the failure to record an outcome, not the success that was not recorded."""

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
