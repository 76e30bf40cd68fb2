"""What a task reports when the library that it needs is missing on the target."""

from __future__ import annotations

import os
import subprocess
import sys

TARGET_PYTHON = os.environ.get("TEST_TARGET_PYTHON") or sys.executable
VM = "infrastructure.services.compute_virtual_machine"


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
