# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Every example of README.md and of the modules' EXAMPLES runs, unchanged.

In README.md a yaml block that starts with `# NAME.yml` is a playbook, which the shell blocks run by that name; any
other yaml block is a list of tasks. A shell line is run when it starts with one of Ansible's commands: by
test_emulator_playbook.py, against the emulator that README.md tells people to start.
"""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
import yaml
from support.running import Ansible, Run

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
# The machine that the examples of ledger_entry correct.
REMEMBERED = {"base_url": "https://infrastructure.example.com", "name": "web01",
              "resource": "compute_virtual_machine", "asset": {"id": "vm-1", "name": "web01"}}


def play(host: str, tasks: str) -> str:
    """A play with tasks given as text, and a ledger of its own."""
    head = [{"hosts": host, "gather_facts": False, "environment": {"INFRASTRUCTURE_SERVICES_LEDGER": f"{host}.db"}}]
    return f"{yaml.safe_dump(head)}  tasks:\n" + "".join(f"    {line}\n" for line in tasks.splitlines())


@pytest.fixture(scope="module")
def ran(collections, running_service, tmp_path_factory) -> Run:
    """The examples of each module on a host of its name, and the tasks of README.md on the host `readme`."""
    running_service.reset()
    running_service.settings(unknown_id="create")
    inventory = {"all": {"hosts": {name: {} for name in (*MODULES, "readme")}}}
    ansible = Ansible(tmp_path_factory.mktemp("examples"), collections, running_service.url, "local", inventory)
    names = [f"infrastructure.services.{module}" for module in MODULES]
    documented = ansible.command("ansible-doc", "--json", *names).ok().output
    examples = {name: entry["examples"] for name, entry in json.loads(documented[documented.index("{"):]).items()}
    assert all(f"{name}:" in text for name, text in examples.items())
    plays = [play("ledger_entry", f"- infrastructure.services.ledger_entry: {json.dumps(REMEMBERED)}"),
             *(play(module, examples[name]) for module, name in zip(MODULES, names)),
             *(play("readme", tasks) for tasks in TASKS)]
    return ansible.playbook("".join(plays))


@pytest.mark.parametrize("host", [*MODULES, "readme"])
def test_examples_run(ran, host):
    results = ran.on(host).results
    assert [line["task"] for line in results if line["result"]["failed"]] == [], ran.output
    assert results, ran.output


def test_all_examples_run_to_the_end(ran):
    ran.ok()


def test_every_block_of_the_readme_is_known():
    assert {language for language, _text in BLOCKS} == {"mermaid", "shell", "yaml"}
    assert [line for line in LINES if not line.startswith((*RUN, *NOT_RUN))] == []
    assert {name for name in PLAYBOOKS if not any(name in line for line in LINES)} == set()
