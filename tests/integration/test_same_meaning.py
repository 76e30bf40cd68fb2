"""The same value means the same wherever a task runs and wherever its playbook is."""

from __future__ import annotations

import json
import time
from collections import Counter
from itertools import product

import pytest
from story.commands import Terminal
from support.ledgers import SERVICE, create
from support.running import Ansible
from support.wire import answer, running

VM = "infrastructure.services.compute_virtual_machine"
PREFIX = "INFRASTRUCTURE_SERVICES_"
PLACES = {"worker": {"become": True}, "target": {"vars": {"ansible_connection": "process"}}}


@pytest.fixture
def ansible(collections, tmp_path) -> Ansible:
    return Ansible(tmp_path, collections, "https://127.0.0.1:9", "local")


def test_how_many_requests_a_list_sends_at_once_is_what_the_controller_says(ansible):
    at_once, most = Counter(), Counter()

    def choose(sent) -> bytes:
        at_once[sent.case] += 1
        most[sent.case] = max(most[sent.case], at_once[sent.case])
        time.sleep(0.02)
        at_once[sent.case] -= 1
        return answer(201, json.loads(sent.body))

    with running(choose) as service:
        tasks = [
            {
                f"{VM}s": {
                    "base_url": f"{service.url}/{place}",
                    "virtual_machines": [{"name": f"vm{number}"} for number in range(9)],
                },
                **keywords,
            }
            for place, keywords in PLACES.items()
        ]
        concurrency = {f"{PREFIX}CONCURRENCY": "1"}
        ansible.tasks(tasks, **concurrency).ok()
        for place in PLACES:
            assert len(service.sent_by(place)) == 9
        assert most == dict.fromkeys(PLACES, 1)


def test_a_relative_path_is_below_the_working_directory(ansible):
    """The working directory of the tests is `tmp_path`, the playbook is deeper; `PWD` does not
    matter.
    """
    (ansible.directory / "plays").mkdir()
    plays = [
        {
            "hosts": "localhost",
            "gather_facts": False,
            "ignore_errors": True,
            **keywords,
            "tasks": [
                {"name": f"{place} option", VM: {"name": "vm", "ca_path": "x.pem"}},
                {"name": f"{place} variable", VM: {"name": "vm"}},
                {
                    "name": f"{place} keyword",
                    VM: {"name": "vm"},
                    "environment": {f"{PREFIX}CA_PATH": "y.pem"},
                },
            ],
        }
        for place, keywords in PLACES.items()
    ]
    (ansible.directory / "plays/play.json").write_text(json.dumps(plays))
    variables = {f"{PREFIX}CA_PATH": "x.pem", "PWD": "/nowhere"}
    run = ansible.command("ansible-playbook", "plays/play.json", **variables)
    here = ansible.directory
    expected = {
        "option": here / "x.pem",
        "variable": here / "x.pem",
        "keyword": here / "y.pem",
    }
    for place, (name, path) in product(PLACES, expected.items()):
        result = run.result(f"{place} {name}")
        assert f"{path} cannot be read" in result["msg"], result
        assert result["outcome"] == "not_sent"


def test_the_file_of_a_playbook_is_below_the_working_directory(tmp_path):
    """By the actions that the playbooks call."""
    terminal, ledger = Terminal(tmp_path, SERVICE), create(str(tmp_path / "ledger.db"))
    terminal.edit(ledger, "vm", asset={"id": "i", "name": "vm"})
    written = terminal.run("ledger_info", {"ledger": ledger, "file": "machines.csv"})
    assert not written.result.get("failed"), written.said
    assert (tmp_path / "machines.csv").stat().st_mode & 0o777 == 0o600
    row = (tmp_path / "machines.csv").read_text().splitlines()[1]
    assert row.startswith("compute_virtual_machine,vm,done,")
    assert "ledger entries: 1 unchanged" in terminal.settle(ledger, "machines.csv").said
    missing = terminal.settle(ledger, "none.csv").result
    assert (missing["outcome"], missing["failed"]) == ("not_sent", True)
    assert missing["msg"].startswith(f"file: {tmp_path}/none.csv cannot be read: ")
