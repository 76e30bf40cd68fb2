# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a task reports when the service refuses, loses the answer, sends a malformed one, or is
down.
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys

import pytest
import yaml

TARGET_PYTHON = os.environ.get("TEST_TARGET_PYTHON") or sys.executable
VM = "infrastructure.services.compute_virtual_machine"


def status(code: int, when: str = "before") -> dict:
    """A fault: answer with this status, before or after the machine is created."""
    return {"kind": "status", "status": code, "when": when}


# name of the case: (the fault, and the result's outcome, status, changed)
CASES = {
    "malformed": (status(400), "rejected", 400, False),
    "no token": (status(401), "rejected", 401, False),
    "no permission": (status(403), "rejected", 403, False),
    "no such address": (status(404), "rejected", 404, False),
    "exists": (status(409), "rejected", 409, False),
    "wrong values": (status(422), "rejected", 422, False),
    "redirected": (status(307), "rejected", 307, False),
    "failed before": (status(500), "unknown", 500, False),
    "failed after": (status(500, "after"), "unknown", 500, False),
    "overloaded": (status(503), "unknown", 503, False),
    "lost before": ({"kind": "drop", "when": "before"}, "unknown", None, False),
    "lost after": ({"kind": "drop", "when": "after"}, "unknown", None, False),
    "done without an asset": (status(204, "after"), "accepted", 204, True),
}


@pytest.fixture(scope="module")
def told(tmp_path_factory, running_service, ansible_in):
    """Each fault in turn, in one run: the results by name, and the conversation."""
    running_service.reset()
    for case in CASES.values():
        running_service.fault(operation="create_virtual_machine", **case[0])
    tasks = [
        {"name": name, VM: {"name": name, "timeout": 10}, "ignore_errors": True} for name in CASES
    ]
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # bound but not listening: connections are refused
        here = {
            "name": "refused",
            "retries": 0,
            "base_url": f"http://127.0.0.1:{taken.getsockname()[1]}",
        }
        tasks.append({"name": "refused connection", VM: here, "ignore_errors": True})
        run = (
            ansible_in(tmp_path_factory.mktemp("outcomes"))
            .playbook(
                yaml.safe_dump(
                    [{"hosts": "localhost", "gather_facts": False, "tasks": tasks}], sort_keys=False
                )
            )
            .ok()
        )
    return {
        task["name"]: run.result(task["name"]) for task in tasks
    }, running_service.conversation()


@pytest.mark.parametrize("case", CASES)
def test_a_failure_reports_what_is_known(told, running_service, case):
    result = told[0][case]
    assert result["failed"] is True
    assert (result["outcome"], result.get("status"), result["changed"]) == CASES[case][1:]
    assert result["request_attempts"] == 1
    assert running_service.url in result["msg"]


def test_no_create_was_sent_twice(told):
    assert len(told[1]) == len(CASES)


def test_a_refused_connection_sent_nothing(told):
    result = told[0]["refused connection"]
    assert (result["outcome"], result["changed"]) == ("not_sent", False)
    assert result["request"]["url"].partition("/api")[0] in result["msg"]


def test_requests_missing_on_the_target_is_reported(ansible_once, service, tmp_path):
    subprocess.run(
        [TARGET_PYTHON, "-m", "venv", "--without-pip", str(tmp_path / "bare")], check=True
    )
    run = ansible_once.tasks(f"""
- name: Create
  {VM}:
    name: web01
  vars:
    ansible_python_interpreter: {tmp_path}/bare/bin/python
  become: true  # so that it runs in the target's Python
  become_method: ansible.builtin.su
""")
    result = run.result("Create")
    assert result["failed"] is True
    assert "requests" in result["msg"]
    assert result["outcome"] == "not_sent"
    assert "Traceback" not in run.output
    assert service.conversation() == []
