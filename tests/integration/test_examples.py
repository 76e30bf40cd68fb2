"""Every example of the modules' EXAMPLES runs, unchanged but for a directory outside of the tests, where
the emulator has the operation.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml
from support import NOT_EMULATED
from support.ledgers import create
from support.running import Ansible, Run

ROOT = Path(__file__).resolve().parents[2]
FILES = (ROOT / "plugins/modules").glob("[a-z]*.py")
MODULES = sorted({path.stem for path in FILES} - NOT_EMULATED)


def play(host: str, tasks: str) -> str:
    """A play with tasks given as text, and the ledger beside it."""
    ledger = {"INFRASTRUCTURE_SERVICES_LEDGER": "{{ playbook_dir }}/fleet.db"}
    head = [{"hosts": host, "gather_facts": False, "environment": ledger}]
    return f"{yaml.safe_dump(head)}  tasks:\n" + "".join(
        f"    {line}\n" for line in tasks.splitlines()
    )


@pytest.fixture(scope="module")
def ran(collections, running_service, tmp_path_factory) -> Run:
    """The examples of each module, on a host and in a directory of its name."""
    running_service.reset()
    running_service.settings(unknown_id="create")
    inventory = {"all": {"hosts": {name: {} for name in MODULES}}}
    ansible = Ansible(
        tmp_path_factory.mktemp("examples"), collections, running_service.url, "local", inventory
    )
    names = [f"infrastructure.services.{module}" for module in MODULES]
    documented = ansible.command("ansible-doc", "--json", *names).ok().output
    examples = {
        name: entry["examples"]
        for name, entry in json.loads(documented[documented.index("{") :]).items()
    }
    assert all(f"{name}:" in text for name, text in examples.items())
    outside = tmp_path_factory.mktemp("outside")
    for module, name in zip(MODULES, names):
        directory = ansible.directory / module
        directory.mkdir()
        tasks = examples[name].replace("/srv/fleet", str(outside))
        (directory / "play.yml").write_text(play(module, tasks), encoding="utf-8")
        if module != "ledger_create":
            create(str(directory / "fleet.db"), running_service.url)
    return ansible.command("ansible-playbook", *(f"{module}/play.yml" for module in MODULES))


@pytest.mark.parametrize("host", MODULES)
def test_examples_run(ran, host):
    results = ran.on(host).results
    assert [line["task"] for line in results if line["result"]["failed"]] == [], ran.output
    assert results, ran.output


def test_all_examples_run_to_the_end(ran):
    ran.ok()
