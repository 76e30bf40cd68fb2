"""The playbooks of the collection, called by their FQCN."""

from __future__ import annotations

import json
import os
import re
import shlex
import sqlite3
import sys
from contextlib import closing
from pathlib import Path

import pytest
import requests
from contract.test_playbooks import DOCUMENTED
from support.checkout import CHECKOUT
from support.ledgers import create
from support.running import BIN, Ansible, Run

CREATE, UPDATE = "create_virtual_machine", "update_cassandra_application_role"
VM, ENTRY = (
    f"infrastructure.services.{name}" for name in ("compute_virtual_machine", "ledger_entry")
)

# What an inventory may say of machines that have no address yet, and on which nobody can log in.
UNREACHABLE = {
    "ansible_connection": "ssh",
    "ansible_host": "192.0.2.1",
    "ansible_user": "nobody",
    "ansible_become": True,
    "ansible_become_user": "nobody",
    "ansible_python_interpreter": "/nonexistent/python",
    "ansible_ssh_common_args": "-o ConnectTimeout=2",
}


def test_one_asset_is_sent_once_from_the_controller_whatever_the_inventory_says(ansible, service):
    service.seed("role-1", name="reader", attributes={"login": False})
    inventory = ansible.directory / "fleet.json"
    inventory.write_text(json.dumps({"all": {"vars": UNREACHABLE}}))
    variables = {
        "base_url": service.url,
        "access_token": "given",
        "ledger": create(f"{ansible.directory}/ledger.db", service.url),
        "virtual_machine_name": "web01",
        "virtual_machine_attributes": {"cpu": 4},
        "application_role_id": "role-1",
        "application_role_description": "Reads",
        "application_role_attributes": {"login": True},
    }
    unset = dict.fromkeys(
        f"INFRASTRUCTURE_SERVICES_{name}" for name in ("BASE_URL", "ACCESS_TOKEN")
    )
    both = [f"infrastructure.services.{playbook}" for playbook in (CREATE, UPDATE)]
    given = ("-e", json.dumps(variables), "-i", str(inventory))
    for _time in range(2):
        ansible.command("ansible-playbook", *both, *given, **unset).ok()
    assert service.bodies() == [
        {"name": "web01", "attributes": {"cpu": 4}},
        {"description": "Reads", "attributes": {"login": True}},
    ]
    assert service.header("Authorization") == ["Bearer given"] * 2


@pytest.mark.parametrize(
    ("playbook", "variable"),
    [
        (CREATE, "virtual_machine_name"),
        pytest.param(UPDATE, "application_role_id", marks=pytest.mark.matrix),
    ],
)
def test_a_missing_variable_is_named(ansible, service, playbook, variable):
    run = ansible.ours(playbook, {})
    assert run.rc != 0
    assert f"{variable} is missing: pass -e {variable}=" in " ".join(run.output.split())
    assert "Nothing was sent." in run.output
    assert service.conversation() == []


@pytest.mark.matrix
def test_the_demo_fits_on_one_screen(ansible, tmp_path):
    where = tmp_path / "emulator"
    given = {
        "demo_directory": str(tmp_path),
        "demo_keep": True,
        "emulator_directory": str(where),
        "emulator_port": 0,
        "emulator_delay": 0.01,
        "emulator_settings": {"put": "replace"},
        "emulator_python": sys.executable,
        "emulator_extensions": str(CHECKOUT / "extensions"),
    }
    assert DOCUMENTED["demo"] == given.keys()
    try:
        run = ansible.ours("demo", given).ok()
        url = (where / "url").read_text().strip()
        settings = requests.get(f"{url}/_emulator/settings", timeout=5).json()
    finally:
        stop = {"emulator_state": "absent", "emulator_directory": str(where)}
        ansible.ours("emulator", stop).ok()
    assert settings["put"] == "replace"
    story = told_by(run)
    assert [line.split() for line in story if line.startswith("   the page:")] == [
        ["the", "page:", url]
    ]
    assert len(story) <= 37  # on a screen of 40 lines, with the output of make and the set-up
    assert max(len(line) for line in story if str(tmp_path) not in line) <= 80
    assert [line.split() for line in story if line.startswith("   db02")] == [["db02", "unknown"]]
    assert "again          not_sent" in "\n".join(story)
    assert len([line for line in story if line.startswith("   batch100..299  accepted")]) == 1
    assert not re.findall("(?s)(?:WARNING|DEPRECATION).{300}", run.output)
    (bodies,) = [line.split()[-1] for line in story if "their bodies" in line]
    received = json.loads(Path(bodies).read_text())
    methods = [request["method"] for request in received]
    assert methods == ["POST", "POST", "POST", "PUT", "POST", *["POST"] * 200]
    assert all(len(json.loads(request["body"])["attributes"]) >= 20 for request in received[:3])


@pytest.mark.matrix
def test_the_demo_needs_no_variable_runs_again_and_leaves_no_emulator(ansible):
    for is_removed in (False, False, True):
        if is_removed:
            (ansible.directory / "demo.db").unlink()
        run = ansible.ours("demo", {}, PWD=None).ok()
        assert "the page:" not in "".join(told_by(run))
    assert sorted(path.name for path in ansible.directory.glob("demo*")) == [
        "demo-requests.json",
        "demo.db",
        "demo.ledger.yml",
    ]
    assert not Path(run.result("Create a directory for the emulator")["path"]).exists()


def told_by(run: Run) -> list[str]:
    """The lines of the story that `make demo` shows."""
    told = [line["result"]["msg"] for line in run.results if line["task"] == "Tell the story"]
    return [line.removeprefix("|") for lines in told for line in lines]


@pytest.mark.matrix
def test_an_empty_variable_counts_as_unset(ansible, service):
    """As `-e ledger=$NOTSET` is."""
    given = {"base_url": "", "access_token": "", "ledger": "", "virtual_machine_name": "web01"}
    missing = ansible.ours(CREATE, given, INFRASTRUCTURE_SERVICES_LEDGER="")
    assert "ledger: is missing: set it, or the environment" in " ".join(missing.output.split())
    environment = {"INFRASTRUCTURE_SERVICES_LEDGER": str(ansible.directory / "env.db")}
    ansible.ours("create_ledger", {"ledger": "", "base_url": ""}, **environment).ok()
    for _time in range(2):
        ansible.ours(CREATE, given, **environment).ok()
    assert service.bodies() == [{"name": "web01", "attributes": {}}]
    listed = ansible.ours("show_ledger", {"ledger": "", "base_url": ""}, **environment).ok()
    assert "web01" in listed.output


def shown(run: Run) -> list[str]:
    """The lines that the playbook shows, which are plain ones on the screen."""
    _before, _heading, after = run.ok().output.partition("Read the ledger] ")
    _rest_of_heading, *lines = after.partition("\nok: [localhost]")[0].splitlines()
    return lines


@pytest.mark.matrix
def test_a_watcher_fails_if_something_is_in_doubt_or_there_is_no_ledger(ansible, service):
    ledger = f"{ansible.directory}/fleet.db"
    watch = {"ledger": ledger, "fail": True}
    failed = ansible.ours("in_doubt", watch)
    assert failed.rc == 2
    assert f"there is no ledger at {ledger}" in " ".join(failed.output.split())
    create(ledger, service.url)
    service.fault(kind="drop", when="after")
    send(ansible, ledger, "web01", "web02")
    ansible.ours("in_doubt", {"ledger": ledger}).ok()
    failed = ansible.ours("in_doubt", watch)
    assert failed.rc == 2
    assert "If it is there, record it" in failed.output
    assert f"1 in doubt in {ledger}: see above." in failed.output
    absent = f"ledger={ledger} resource=compute_virtual_machine name=web01 state=absent"
    ansible.adhoc(ENTRY, absent).ok()
    ansible.ours("in_doubt", watch).ok()
    refused = ansible.ours("in_doubt", {**watch, "states": "done"})
    assert "states: the playbook in_doubt has its own" in refused.output


def send(ansible: Ansible, ledger: str, *names: str) -> Run:
    """Create machines, and go on when that fails."""
    machines = [{"name": name, "attributes": ATTRIBUTES, "ledger": ledger} for name in names]
    return ansible.tasks([{VM: machine, "ignore_errors": True} for machine in machines])


ATTRIBUTES = {"ip": "192.0.2.10", "team": "web"}
ODD = ("web{01}", "web{02}")  # a command would template such names


@pytest.mark.matrix
def test_assets_in_doubt_are_listed_with_commands_that_settle_them_when_pasted(ansible, service):
    path = ansible.directory / "here/a b/ledger.db"
    path.parent.mkdir(parents=True)
    service.fault(kind="drop", when="after", count=4)
    create(str(path), service.url)
    lost = send(ansible, str(path), "web01", "web02", *ODD).results[0]["result"]
    with closing(sqlite3.connect(path)) as database:
        database.executescript(
            "UPDATE infrastructure_services_entry SET state = 'intent' WHERE name = 'web02'"
        )
    pasted = lost["msg"].rpartition("For the commands, run: ")[2]
    with_path = {"PATH": f"{BIN}:{os.environ['PATH']}"}
    said = shown(ansible.command("/bin/sh", "-c", pasted, **with_path))
    assert said[0] == f"{path}: 1 intent, 3 unknown"
    assert said[1].split() == ["NAME", "STATE", "SINCE", "(UTC)", "ADDRESS", "TEAM", "ID"]
    for name in ("web01", "web02", *ODD):
        (line,) = [line for line in said[3:7] if line.startswith(f"{name}  ")]
        assert line.removeprefix(name).split()[0] == ("intent" if name == "web02" else "unknown")
    # Two for each but the odd ones, which Ansible would template: what records it, and what removes
    # its entry.
    found, _gone, _found, gone = [line for line in said if "ansible localhost" in line]
    filled_in = found.replace('"ID"', '"found"').replace('"ADDRESS"', '"192.0.2.10"')
    for line in (filled_in, gone):
        command, *arguments = shlex.split(line)
        ansible.command(command, *arguments).ok()
    removed = {"ledger": str(path), "resource": "compute_virtual_machine", "state": "absent"}
    ansible.tasks([{ENTRY: {**removed, "name": name}} for name in ODD]).ok()
    again = send(ansible, str(path), "web01").ok().results[0]["result"]
    assert (again["asset"]["id"], again["changed"], "warnings" in again) == ("found", False, False)
    environment = {"INFRASTRUCTURE_SERVICES_LEDGER": str(path)}
    nothing = ansible.ours("in_doubt", {}, **environment)
    assert shown(nothing) == [f"Nothing that matches is in doubt in {path}."]
