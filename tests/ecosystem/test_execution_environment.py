# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""ansible-builder finds what the collection needs, and ansible-runner runs it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import ansible_runner
import yaml
from support.running import BIN

DEFINITION = Path(__file__).resolve().parents[2] / "docs/awx/execution-environment.yml"


def builder(*arguments: str) -> str:
    done = subprocess.run(
        [str(BIN / "ansible-builder"), *arguments], check=True, stdout=subprocess.PIPE, text=True
    )
    return done.stdout


def test_the_definition_makes_a_build_context(tmp_path):
    builder(
        "create",
        "--file",
        str(DEFINITION),
        "--context",
        str(tmp_path),
        "--output-filename",
        "Containerfile",
    )
    wanted = yaml.safe_load((tmp_path / "_build/requirements.yml").read_text(encoding="utf-8"))
    assert wanted == {"collections": ["infrastructure.services"]}
    assert "ansible-galaxy collection install" in (tmp_path / "Containerfile").read_text(
        encoding="utf-8"
    )


def test_the_collection_declares_what_an_execution_environment_needs(collections, tmp_path):
    builder("introspect", str(collections), "--write-pip", str(tmp_path / "pip"))
    lines = (tmp_path / "pip").read_text(encoding="utf-8").splitlines()
    assert [line.split("#")[0].strip() for line in lines] == ["requests>=2.31", "urllib3<3"]


def test_a_run_by_ansible_runner_reports_the_outcome(collections, service, tmp_path):
    play = [
        {
            "hosts": "localhost",
            "gather_facts": False,
            "tasks": [
                {
                    "name": "Create",
                    "infrastructure.services.compute_virtual_machine": {"name": "web01"},
                }
            ],
        }
    ]
    environment = {
        "ANSIBLE_COLLECTIONS_PATH": str(collections),
        "ANSIBLE_HOME": str(tmp_path / "home"),
        "INFRASTRUCTURE_SERVICES_ACCESS_TOKEN": "a-token",
        "INFRASTRUCTURE_SERVICES_BASE_URL": service.url,
        "PATH": f"{BIN}{os.pathsep}{os.environ['PATH']}",
    }
    host = {"ansible_connection": "local", "ansible_python_interpreter": sys.executable}
    run = ansible_runner.run(
        private_data_dir=str(tmp_path),
        playbook=play,
        quiet=True,
        envvars=environment,
        inventory={"all": {"hosts": {"localhost": host}}},
        timeout=120,
    )
    results = [
        event["event_data"]["res"] for event in run.events if event["event"] == "runner_on_ok"
    ]
    assert (run.status, [result["outcome"] for result in results]) == ("successful", ["accepted"])
    assert [request["method"] for request in service.conversation()] == ["POST"]
