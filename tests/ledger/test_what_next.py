# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a message proposes as the next step works: it depends on whether there is a ledger, and on what it records."""

from __future__ import annotations

import os
import shlex
import subprocess

import pytest
from emulator import faults
from support.running import BIN

CREATE = "infrastructure.services.compute_virtual_machine"
ANOTHER = "Look for it on the service before running this task again, which would create another one."
SETTLE = "Running the task again sends nothing until that is settled. For the commands that settle it, run: "
IN_DOUBT = "ansible-playbook infrastructure.services.in_doubt"


def creation(ledger: str, force: bool = False) -> str:
    return f"""
- name: Create
  {CREATE}:
    name: web01
    retries: 0
    ledger: "{ledger}"
    force: {force}
"""


@pytest.fixture
def lost(emulator):
    """Lose the answer to the next request."""
    emulator.fault(kind="drop", when="after")


@pytest.mark.parametrize("ledger", ["ledger.db", "ledger of us.db", "postgresql", ""])
def test_after_a_lost_answer_the_message_says_what_rerunning_does(ansible, request, lost, ledger):
    location = request.getfixturevalue("postgres") if ledger == "postgresql" else ledger
    failed = ansible.tasks(creation(location)).result("Create")
    path = shlex.quote(f"{ansible.directory}/{ledger}")
    told = {
        "": ANOTHER,
        "ledger.db": f"{SETTLE}{IN_DOUBT} -e ledger={path}",
        "ledger of us.db": f"{SETTLE}INFRASTRUCTURE_SERVICES_LEDGER={path} {IN_DOUBT}",
        "postgresql": f"{SETTLE}{IN_DOUBT} -e ledger=...",
    }
    assert failed["outcome"] == "unknown"
    assert failed["msg"].partition(" was created. ")[2] == told[ledger]
    if ledger:
        again = ansible.tasks(creation(location)).result("Create")
        assert again["msg"].endswith(told[ledger].removeprefix(SETTLE))


def test_a_pasted_command_finds_the_ledger(ansible, lost):
    failed = ansible.tasks(creation("ledger of us.db")).result("Create")
    command = failed["msg"].rpartition("For the commands that settle it, run: ")[2]
    environment = ansible.environment(PATH=f"{BIN}:{os.environ['PATH']}")
    done = subprocess.run(command, shell=True, cwd=ansible.directory, env=environment, capture_output=True, text=True,
                          check=True)
    assert "ledger of us.db" in done.stdout
    assert "web01" in done.stdout


def test_force_creates_another_machine_with_a_ledger_too(ansible, lost):
    failed = ansible.tasks(creation("ledger.db", force=True)).result("Create")
    assert failed["msg"].endswith(ANOTHER)


def test_each_machine_of_a_list_says_so_too(ansible_once, service):
    service.api.add_fault(faults.parse({"kind": "drop", "when": "after"}))
    failed = ansible_once.tasks(f"""
- name: Create
  {CREATE}s:
    virtual_machines: [{{name: web01}}]
    retries: 0
    ledger: ledger.db
""").result("Create")
    assert failed["results"][0]["msg"].endswith(f"{SETTLE}{IN_DOUBT} -e ledger={ansible_once.directory}/ledger.db")


def test_a_list_with_a_ledger_but_without_requests_says_what_to_install(ansible_once, tmp_path):
    (tmp_path / "without").mkdir()
    (tmp_path / "without/requests.py").write_text("raise ImportError", encoding="utf-8")
    failed = ansible_once.tasks(f"""
- name: Create
  {CREATE}s:
    virtual_machines: [{{name: web01}}]
    ledger: ledger.db
""", PYTHONPATH=str(tmp_path / "without")).result("Create")
    assert "has no requests; run there: " in failed["msg"]
    assert failed["outcome"] == "not_sent"
