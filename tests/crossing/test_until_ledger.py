# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The keyword until: it repeats a failure to record an outcome as such, and `attempts` has its
count.
"""

from __future__ import annotations

import json
import os
import shutil

import pytest
from support.running import Ansible
from support.wire import answer, running

CREATE = "infrastructure.services.compute_virtual_machine"
PATHS = {"worker": {}, "become": {"become": True, "become_method": "myself"}}
REPEATED = {"until": "seen is success", "register": "seen", "delay": 0, "ignore_errors": True}


@pytest.fixture(scope="module")
def ran(collections, tmp_path_factory):
    """Run all tasks; return the run and the service."""
    directory = tmp_path_factory.mktemp("until")

    def choose(sent):
        """Refuse, or replace the ledger while the request is in flight."""
        path, aim = sent.case.split("-")
        if aim == "refused":
            return answer(403)
        ledger = directory / f"{path}.db"
        os.rename(ledger, f"{ledger}.away")
        shutil.copy(f"{ledger}.away", ledger)
        return answer(201, {"id": "i", "name": "vm"})

    with running(choose) as service:
        tasks = [{"name": "command", "ansible.builtin.command": "false", **REPEATED, "retries": 1}]
        for path, keywords in PATHS.items():
            ledger = {"ledger": str(directory / f"{path}.db")}
            for aim, given, retries in (("refused", {}, 1), ("created", ledger, 2)):
                options = {
                    "name": "vm",
                    "base_url": f"{service.url}/{path}-{aim}",
                    "retries": 0,
                    **given,
                }
                tasks.append(
                    {
                        "name": f"{path}-{aim}",
                        CREATE: options,
                        **keywords,
                        **REPEATED,
                        "retries": retries,
                    }
                )
        play = json.dumps([{"hosts": "localhost", "gather_facts": False, "tasks": tasks}]) + "\n"
        run = Ansible(directory, collections, service.url, "local").playbook(
            play, ANSIBLE_PIPELINING="true"
        )
    return run, service


@pytest.mark.matrix
@pytest.mark.parametrize("path", PATHS)
def test_what_could_not_be_recorded_fails_at_each_attempt(ran, path):
    result = ran[0].result(f"{path}-created")
    assert len(ran[1].sent_by(f"{path}-created")) == 1
    assert result["failed"], result
    assert result["outcome"] == "accepted"
    assert result["changed"]
    assert "could not be recorded" in result["msg"]
    assert result["msg"].count("This attempt sent nothing") == 1


@pytest.mark.parametrize("path", PATHS)
def test_attempts_counts_those_of_until_as_for_any_module(ran, path):
    assert len(ran[1].sent_by(f"{path}-refused")) == 2
    result = ran[0].result(f"{path}-refused")
    assert result["attempts"] == ran[0].result("command")["attempts"]
    assert result["request_attempts"] == 1
