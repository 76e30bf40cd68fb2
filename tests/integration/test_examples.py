"""Every example of the modules' EXAMPLES runs, unchanged, where the emulator has the operation."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml
from support import NOT_EMULATED
from support.running import Ansible, Run

ROOT = Path(__file__).resolve().parents[2]
FILES = (ROOT / "plugins/modules").glob("[a-z]*.py")
MODULES = sorted({path.stem for path in FILES} - NOT_EMULATED)
# The machine that the examples of ledger_entry correct.
REMEMBERED = {
    "name": "web01",
    "resource": "compute_virtual_machine",
    "asset": {"id": "vm-1", "name": "web01"},
}


def play(host: str, tasks: str) -> str:
    """A play with tasks given as text, and a ledger of its own."""
    head = [
        {
            "hosts": host,
            "gather_facts": False,
            "environment": {"INFRASTRUCTURE_SERVICES_LEDGER": f"{{{{ playbook_dir }}}}/{host}.db"},
        }
    ]
    return f"{yaml.safe_dump(head)}  tasks:\n" + "".join(
        f"    {line}\n" for line in tasks.splitlines()
    )


@pytest.fixture(scope="module")
def ran(collections, running_service, tmp_path_factory) -> Run:
    """The examples of each module on a host of its name."""
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
    plays = [
        play("ledger_entry", f"- infrastructure.services.ledger_entry: {json.dumps(REMEMBERED)}"),
        *(play(module, examples[name]) for module, name in zip(MODULES, names)),
    ]
    home = tmp_path_factory.mktemp("home")  # of ~/fleet.db
    return ansible.playbook("".join(plays), HOME=str(home))


@pytest.mark.parametrize("host", MODULES)
def test_examples_run(ran, host):
    results = ran.on(host).results
    assert [line["task"] for line in results if line["result"]["failed"]] == [], ran.output
    assert results, ran.output


def test_all_examples_run_to_the_end(ran):
    ran.ok()
