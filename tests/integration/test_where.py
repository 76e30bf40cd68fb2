# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Where a task runs and what that costs, measured by its processes, imports, connections and token requests."""

from __future__ import annotations

import json
import sys

import pytest

VM = "infrastructure.services.compute_virtual_machine"
ITEMS = 50
LOOP = f"""
- name: Create
  {VM}:
    name: "web{{{{ item }}}}"
    attributes: {{cpu: 4}}
  loop: "{{{{ range({ITEMS}) | list }}}}"
"""


def executable(path, *lines: str) -> str:
    """Write a shell script."""
    path.write_text("\n".join(["#!/bin/sh", *lines]), encoding="utf-8")
    path.chmod(0o755)
    return str(path)


@pytest.fixture
def watched_python(tmp_path):
    """An interpreter that logs each start to a file, and that file."""
    log = tmp_path / "starts"
    log.touch()
    return executable(tmp_path / "python3", f"echo start >> {log}", f'exec {sys.executable} "$@"'), log


def test_a_loop_opens_one_connection_starts_no_process_and_imports_nothing_after_its_first_item(
        ansible_once, service, tmp_path):
    audit = tmp_path / "audit"
    run = ansible_once.tasks(LOOP, ANSIBLE_CALLBACKS_ENABLED="recorder,auditor", AUDITOR_FILE=str(audit)).ok()
    assert len(run.items("Create")) == len(service.conversation()) == ITEMS
    lines = audit.read_text(encoding="utf-8").splitlines()
    assert lines[0] == "imported True", "the parent does not import what the workers need"
    assert lines.count("item") == ITEMS
    places = [place for place, line in enumerate(lines) if line == "item"]
    # After the last item the worker may be exiting, when Python itself imports modules.
    assert set(lines[places[1]:places[-1]]) == {"item"}, "a later item does more than send its request"
    assert [line for line in lines if line.startswith("socket.connect")] == ["socket.connect"]
    # Before the first item Ansible itself may start a process: ansible-core 2.21 asks ldconfig where libcrypt is.
    assert not [line for line in lines[places[0]:] if line.startswith(("os.", "subprocess."))]


PLACES = {
    "plain": ("", False),
    "become": ("become: true", True),
    "async": ("async: 60\n  poll: 1", True),
    "environment": ("environment: {SOME: thing}", False),
    "connection": ("vars: {ansible_connection: process}", True),
    "delegated to a local host": ("delegate_to: near", False),
    "delegated to a far host": ("delegate_to: far", True),
}


@pytest.mark.parametrize(("keywords", "elsewhere"), PLACES.values(), ids=PLACES)
def test_what_is_unsafe_in_the_worker_runs_as_a_module_with_the_same_result(
        ansible_once, service, tmp_path, watched_python, keywords, elsewhere):
    python, log = watched_python
    become = executable(tmp_path / "sudo", 'while [ "$1" != /bin/sh ]; do shift; done', 'exec "$@"')
    hosts = {"near": {"ansible_connection": "local"}, "far": {"ansible_connection": "process"}}
    inventory = tmp_path / "hosts.json"
    inventory.write_text(json.dumps({"all": {
        "hosts": {"localhost": {"ansible_connection": "local"}, **hosts},
        "vars": {"ansible_python_interpreter": python, "ansible_become_exe": become}}}), encoding="utf-8")
    run = ansible_once.tasks(f"""
- name: Create
  {VM}:
    name: web01
    attributes: {{cpu: 4}}
  {keywords}
""", "-i", str(inventory)).ok()
    result = run.result("Create")
    assert (result["outcome"], result["changed"], result["status"], result["attempts"]) == ("accepted", True, 201, 1)
    assert result["asset"] == result["ansible_facts"]["compute_virtual_machine"]
    assert result["request"]["body"] == {"name": "web01", "attributes": {"cpu": 4}}
    assert len(service.conversation()) == 1
    assert bool(log.read_text()) is elsewhere


IDENTITY = {"INFRASTRUCTURE_SERVICES_ACCESS_TOKEN": None, "INFRASTRUCTURE_SERVICES_CLIENT_ID": "emulator",
            "INFRASTRUCTURE_SERVICES_CLIENT_SECRET": "emulator"}


def test_a_hundred_hosts_share_one_token(ansible_once, service, tmp_path):
    inventory = tmp_path / "hosts.ini"
    inventory.write_text("[all]\nweb[001:100] ansible_connection=local\n", encoding="utf-8")
    text = f"""
- hosts: all
  gather_facts: false
  tasks:
    - name: Create
      {VM}:
        name: "{{{{ inventory_hostname }}}}"
"""
    environment = {**IDENTITY, "INFRASTRUCTURE_SERVICES_AUTH_URL": f"{service.url}/oauth/token"}
    ansible_once.playbook(text, "-i", str(inventory), "--forks", "10", "--check", **environment).ok()
    assert service.conversation() == []
    ansible_once.playbook(text, "-i", str(inventory), "--forks", "10", **environment).ok()
    paths = [request["path"] for request in service.conversation()]
    assert (paths.count("/oauth/token"), len(paths)) == (1, 101)
