# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a task says when the service refuses, loses the answer, answers oddly or is not there."""

from __future__ import annotations

import os
import socket
import subprocess
import sys

import pytest

TARGET_PYTHON = os.environ.get("TEST_TARGET_PYTHON") or sys.executable
VM = "infrastructure.services.compute_virtual_machine"


def create(ansible, **environment) -> dict:
    """Create a machine that is expected to fail."""
    run = ansible.adhoc(VM, "name=web01 timeout=10 retries=0", **environment)
    (line,) = run.results
    assert line["result"]["failed"] is True
    assert "Traceback" not in run.output
    return line["result"]


@pytest.mark.parametrize("status", [400, 401, 403, 404, 409, 422])
def test_a_refusal_is_rejected_and_explained(ansible, service, status):
    service.fault(kind="status", operation="create_virtual_machine", status=status, when="before")
    result = create(ansible)
    assert (result["outcome"], result["status"], result["attempts"]) == ("rejected", status, 1)
    assert result["changed"] is False
    assert str(status) in result["msg"]
    assert service.url in result["msg"]


@pytest.mark.parametrize("status", [500, 501, 503])
def test_an_error_of_the_server_proves_nothing(ansible, service, status):
    service.fault(kind="status", operation="create_virtual_machine", status=status, when="before")
    result = create(ansible)
    assert (result["outcome"], result["status"]) == ("unknown", status)


@pytest.mark.parametrize("when", ["before", "after"])
def test_a_lost_answer_is_unknown_and_not_repeated(ansible, service, when):
    service.fault(kind="drop", operation="create_virtual_machine", when=when)
    result = create(ansible)
    assert (result["outcome"], result["attempts"]) == ("unknown", 1)
    assert len(service.conversation()) == 1


def test_a_refused_connection_sent_nothing(ansible):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # bound but not listening: connections are refused
        result = create(ansible, INFRASTRUCTURE_SERVICES_BASE_URL=f"http://127.0.0.1:{taken.getsockname()[1]}")
    assert result["outcome"] == "not_sent"
    assert result["changed"] is False


def test_a_success_without_an_object_is_accepted_and_failed(ansible, service):
    service.fault(kind="status", operation="create_virtual_machine", status=204, when="after")
    result = create(ansible)
    assert (result["outcome"], result["status"], result["changed"]) == ("accepted", 204, True)


def test_requests_missing_on_the_target_is_said(ansible_once, service, tmp_path):
    subprocess.run([TARGET_PYTHON, "-m", "venv", "--without-pip", str(tmp_path / "bare")], check=True)
    run = ansible_once.tasks(f"""
- name: Create
  {VM}:
    name: web01
  vars:
    ansible_python_interpreter: {tmp_path}/bare/bin/python
  environment:  # a task with an environment of its own runs in the target's Python
    SOME: thing
""")
    result = run.result("Create")
    assert result["failed"] is True
    assert "requests" in result["msg"]
    assert result["outcome"] == "not_sent"
    assert "Traceback" not in run.output
    assert service.conversation() == []
