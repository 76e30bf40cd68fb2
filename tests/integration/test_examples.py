# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Every example of README.md and of the modules' EXAMPLES runs, unchanged, against the emulator.

In README.md a yaml block that starts with `# NAME.yml` is a playbook, which the shell blocks run by that name; any
other yaml block is a list of tasks. A shell line is run when it starts with one of Ansible's commands.
"""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```$", README, re.MULTILINE | re.DOTALL)
PLAYBOOKS = {text.split()[1]: text for language, text in BLOCKS if language == "yaml" and text.startswith("# ")}
TASKS = [text for language, text in BLOCKS if language == "yaml" and not text.startswith("# ")]
LINES = [line for language, text in BLOCKS if language == "shell" for line in text.splitlines()]
RUN = ("ansible ", "ansible-doc ", "ansible-playbook ")
# Set-up steps, which the fixtures and the Makefile perform; listed so that no example is skipped silently.
NOT_RUN = ("make demo", "make test", "export INFRASTRUCTURE_SERVICES_", "ansible-galaxy collection build",
           "ansible-galaxy collection install infrastructure-services-1.0.0.tar.gz",
           "python -m pip install ")
MODULES = sorted(path.stem for path in (ROOT / "plugins/modules").glob("[a-z]*.py"))


@pytest.fixture
def prepared(ansible_once, service):
    """A directory with the README's playbooks, and the service as the emulator's playbook starts it: with one role."""
    service.seed("role-1", name="orders", attributes={"login": False})
    for name, text in PLAYBOOKS.items():
        (ansible_once.directory / name).write_text(text, encoding="utf-8")
    return ansible_once


@pytest.mark.parametrize("line", [line for line in LINES if line.startswith(RUN)])
def test_command_of_the_readme(prepared, line):
    command, *arguments = shlex.split(line)
    if arguments == ["infrastructure.services.emulator"]:
        arguments += ["-e", "emulator_port=0"]  # the port in the README may be in use
    prepared.command(command, *arguments).ok()


@pytest.mark.parametrize("tasks", TASKS)
def test_tasks_of_the_readme(prepared, tasks):
    prepared.tasks(tasks).ok()


def test_every_block_of_the_readme_is_known():
    assert {language for language, _text in BLOCKS} == {"mermaid", "shell", "yaml"}
    assert [line for line in LINES if not line.startswith((*RUN, *NOT_RUN))] == []
    assert {name for name in PLAYBOOKS if not any(name in line for line in LINES)} == set()


@pytest.mark.parametrize("module", MODULES)
def test_examples_of_the_module(prepared, service, module):
    service.settings(unknown_id="create")
    documented = prepared.command("ansible-doc", "--json", f"infrastructure.services.{module}").ok()
    (entry,) = json.loads(documented.output[documented.output.index("{"):]).values()
    assert f"infrastructure.services.{module}:" in entry["examples"]
    if module == "ledger_entry":
        remember(prepared)
    prepared.tasks(entry["examples"], INFRASTRUCTURE_SERVICES_LEDGER="ledger.db").ok()


def remember(ansible) -> None:
    """Record the machine that the examples of ledger_entry correct."""
    entry = {"ledger": "ledger.db", "base_url": "https://infrastructure.example.com", "name": "web01",
             "resource": "compute_virtual_machine", "asset": {"id": "vm-1", "name": "web01"}}
    ansible.adhoc("infrastructure.services.ledger_entry", json.dumps(entry)).ok()
