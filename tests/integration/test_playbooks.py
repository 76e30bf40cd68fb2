# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The playbooks of the collection, called by their FQCN."""

from __future__ import annotations

import json
import shlex
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest
import requests
from integration.test_examples import LINES, PLAYBOOKS, RUN

CREATE = "infrastructure.services.create_virtual_machine"
DEMO = "infrastructure.services.demo"
FLEET = "infrastructure.services.create_fleet"
EMULATOR = "infrastructure.services.emulator"
UPDATE = "infrastructure.services.update_cassandra_application_role"


def test_create_sends_name_and_attributes(ansible_once, service):
    variables = {"virtual_machine_name": "web01", "virtual_machine_attributes": {"cpu": 4}}
    ansible_once.playbook(CREATE, "-e", json.dumps(variables)).ok()
    assert service.bodies() == [{"name": "web01", "attributes": {"cpu": 4}}]


def test_create_takes_address_and_token_as_variables(ansible_once, service):
    ansible_once.playbook(CREATE, "-e", f"virtual_machine_name=web01 base_url={service.url} access_token=given",
                          INFRASTRUCTURE_SERVICES_BASE_URL=None, INFRASTRUCTURE_SERVICES_ACCESS_TOKEN=None).ok()
    assert service.header("Authorization") == ["Bearer given"]


def test_update_sends_description_and_attributes(ansible_once, service):
    service.seed("role-1", name="reader", attributes={"login": False})
    variables = {"application_role_id": "role-1", "application_role_description": "Reads",
                 "application_role_attributes": {"login": True}}
    ansible_once.playbook(UPDATE, "-e", json.dumps(variables)).ok()
    assert service.bodies() == [{"description": "Reads", "attributes": {"login": True}}]


def test_a_missing_variable_is_named(ansible_once, service):
    for playbook, variable in ((CREATE, "virtual_machine_name"), (UPDATE, "application_role_id")):
        run = ansible_once.playbook(playbook)
        assert run.rc != 0
        assert f"missing required arguments: {variable}" in run.output
    assert service.conversation() == []


def test_the_demo_fits_on_one_screen(ansible_once, tmp_path):
    run = ansible_once.playbook(DEMO, "-e", f"demo_directory={tmp_path}").ok()
    told = [line["result"]["msg"] for line in run.results if line["task"] == "Tell the story"]
    story = [line.removeprefix("|") for lines in told for line in lines]
    assert len(story) <= 36  # on a screen of 40 lines, with the output of make and the set-up
    assert max(map(len, story)) <= 130
    assert [line.split() for line in story if line.startswith("   db02")] == [["db02", "unknown"]]
    assert "again           not_sent" in "\n".join(story)
    assert len([line for line in story if line.startswith("   batch100 to 299 accepted")]) == 1
    assert [word for word in ("WARNING", "DEPRECATION") if word in run.output] == []
    (bodies,) = [line.split()[-1] for line in story if "their bodies" in line]
    received = json.loads(Path(bodies).read_text())
    assert [request["method"] for request in received] == ["POST", "POST", "POST", "PUT", "POST", *["POST"] * 200]
    assert all(len(json.loads(request["body"])["attributes"]) >= 20 for request in received[:3])


def test_the_emulator_stays_in_the_background_until_it_is_stopped(ansible_once, tmp_path):
    settings = {"emulator_port": 0, "emulator_background": True, "emulator_delay": 0.25,
                "emulator_settings": {"put": "replace", "token": "it's \"$HOME\""}, "emulator_directory": str(tmp_path)}
    run = ansible_once.playbook(EMULATOR, "-e", json.dumps(settings)).ok()
    url = (tmp_path / "url").read_text().strip()
    try:
        said = run.result("Show how to use the emulator")["msg"]
        assert f"export INFRASTRUCTURE_SERVICES_BASE_URL={url}" in said
        assert f"Its page, for a browser: {url}" in said
        shown = requests.get(f"{url}/_emulator/settings", timeout=5).json()
        assert {**shown, "put": "replace", "token": "it's \"$HOME\"", "delay": {"any": 0.25}} == shown
    finally:
        ansible_once.playbook(EMULATOR, "-e", f"emulator_state=absent emulator_directory={tmp_path}").ok()
    with pytest.raises(requests.ConnectionError):
        requests.get(url, timeout=5)
    assert not (tmp_path / "url").exists()


def test_the_readme_s_examples_work_against_the_emulator_as_described(ansible_once, tmp_path):
    variables = f"emulator_port=0 emulator_background=true emulator_directory={tmp_path}"
    ansible_once.playbook(EMULATOR, "-e", variables).ok()
    url = (tmp_path / "url").read_text().strip()
    ansible_once.base_url = url
    try:
        for name, text in PLAYBOOKS.items():
            (ansible_once.directory / name).write_text(text, encoding="utf-8")
        for line in (line for line in LINES if line.startswith(RUN) and "infrastructure.services.emulator" not in line):
            command, *arguments = shlex.split(line)
            ansible_once.command(command, *arguments, INFRASTRUCTURE_SERVICES_ACCESS_TOKEN="emulator-access-token").ok()
        received = requests.get(f"{url}/_emulator/requests", timeout=5).json()
        assert {request["operation"]: request["status"] for request in received} == {
            "create_virtual_machine": 201, "update_application_role": 200}
    finally:
        ansible_once.playbook(EMULATOR, "-e", f"emulator_state=absent emulator_directory={tmp_path}").ok()


def test_an_emulator_that_does_not_start_says_why(ansible_once, service):
    port = service.url.rpartition(":")[2]
    run = ansible_once.playbook(EMULATOR, "-e", f"emulator_port={port}")
    assert run.rc != 0
    message = run.result("Require that the emulator is listening")["msg"]
    assert message.startswith(f"The emulator did not start on port {port}: the emulator cannot start: [Errno")
    assert "in use" in message


def test_the_directory_is_created_and_keeps_one_emulator(ansible_once, tmp_path):
    settings = {"emulator_port": 0, "emulator_background": True, "emulator_directory": f"{tmp_path}/not there/yet"}
    try:
        ansible_once.playbook(EMULATOR, "-e", json.dumps(settings)).ok()
        run = ansible_once.playbook(EMULATOR, "-e", json.dumps(settings))
        message = run.result("Require that the emulator is listening")["msg"]
        assert run.rc != 0
        assert "is still running in this directory" in message
    finally:
        ansible_once.playbook(EMULATOR, "-e", json.dumps({**settings, "emulator_state": "absent"})).ok()


def test_the_emulator_says_which_packages_are_missing(ansible_once, tmp_path):
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(tmp_path / "bare")], check=True)
    run = ansible_once.playbook(EMULATOR, "-e", f"emulator_python={tmp_path}/bare/bin/python")
    assert run.rc != 0
    assert f"{tmp_path}/bare/bin/python -m pip install h11 jsonschema PyYAML" in run.output.replace("\n", " ")
    assert "Traceback" not in run.output


@pytest.mark.parametrize("where", ["group", "all"])
def test_a_fleet_is_created_from_the_controller_whatever_the_inventory_says(ansible_once, service, where):
    """The hosts are the machines to be created: they have no address yet, and nobody can log in."""
    says = {"ansible_connection": "ssh", "ansible_host": "192.0.2.1", "ansible_user": "nobody", "ansible_become": True,
            "ansible_become_user": "nobody", "ansible_python_interpreter": "/nonexistent/python",
            "ansible_ssh_common_args": "-o ConnectTimeout=2"}
    fleet = {"hosts": {"web01": {"virtual_machine_attributes": {"cpu": 2}}, "web02": {}}}
    inventory = {"all": {"children": {"fleet": {**fleet, "vars": says if where == "group" else {}}},
                         "vars": says if where == "all" else {}}}
    (ansible_once.directory / "fleet.yml").write_text(json.dumps(inventory))
    ansible_once.playbook(FLEET, "-i", "fleet.yml", "-e", "ledger=ledger.db").ok()
    assert (ansible_once.directory / "ledger.db").exists()
    assert sorted(service.bodies(), key=lambda body: body["name"]) == [
        {"name": "web01", "attributes": {"cpu": 2}}, {"name": "web02", "attributes": {}}]


@pytest.mark.parametrize("playbook", [CREATE, UPDATE])
def test_one_asset_is_sent_from_the_controller_whatever_the_inventory_says(ansible_once, service, playbook):
    service.seed("role-1", name="reader")
    says = {"ansible_connection": "ssh", "ansible_become": True, "ansible_python_interpreter": "/nonexistent/python"}
    (ansible_once.directory / "fleet.json").write_text(json.dumps({"all": {"vars": says}}))
    variables = {"virtual_machine_name": "web01", "application_role_id": "role-1",
                 "application_role_attributes": {"login": True}}
    ansible_once.playbook(playbook, "-i", "fleet.json", "-e", json.dumps(variables)).ok()
    assert len(service.conversation()) == 1


def test_assets_in_doubt_are_listed_with_what_was_sent_and_how_to_settle_them(ansible_once, service):
    doubt = "infrastructure.services.in_doubt"
    told = "Show what is in doubt"
    path = f"{ansible_once.directory}/ledger.db"
    ledger, environment = ["-e", f"ledger={path}"], {"INFRASTRUCTURE_SERVICES_LEDGER": path}
    run = ansible_once.playbook(doubt, *ledger)
    assert run.rc == 2
    assert f"There is no ledger at {path}" in run.output
    service.fault(kind="drop", when="after", count=2)
    for name in ("web01", "web02"):
        ansible_once.playbook(CREATE, "-e", f"virtual_machine_name={name}", **environment)
    said = ansible_once.playbook(doubt, *ledger).ok().result(told)["msg"]
    assert [line.split()[0] for line in said[:3]] == ["STATE", "unknown", "unknown"]
    assert all('{"name": "web0' in line for line in said[1:3])
    assert "in flight" not in "".join(said)
    with closing(sqlite3.connect(path)) as database:
        database.executescript("UPDATE infrastructure_services_entry SET state = 'intent' WHERE name = 'web02'")
    said = ansible_once.playbook(doubt, *ledger).ok().result(told)["msg"]
    assert "A request in state intent may still be in flight" in said[3]
    found, gone = [said.index(f"If {name} is there, record it, with its id at the end:") for name in ("web01", "web02")]
    for line in (said[found + 1].replace("asset=id=", "asset=id=found"), said[gone + 3]):
        command, *arguments = shlex.split(line)
        assert '"' not in line
        ansible_once.command(command, *arguments).ok()
    assert ansible_once.playbook(doubt, *ledger).ok().result(told)["msg"] == [f"Nothing is in doubt in {path}."]
    assert ansible_once.playbook(doubt, **environment).ok().result(told)["msg"] == [f"Nothing is in doubt in {path}."]
    run = ansible_once.playbook(CREATE, "-e", "virtual_machine_name=web01", **environment).ok()
    assert [line["result"]["asset"]["id"] for line in run.results if "asset" in line["result"]] == ["found"]


@pytest.mark.parametrize(("ledger", "name", "says"), [
    ("here/a b/ledger.db", "web01", "ledger.db' ansible localhost -m infrastructure.services.ledger_entry -a 'res"),
    ("ledger.db", "web01 state=absent", "web01 state=absent cannot be put on a command line"),
    ("ledger.db", "it's", "it's cannot be put on a command line"),
])
def test_the_commands_for_assets_in_doubt_cannot_be_misread(ansible_once, service, ledger, name, says):
    path = ansible_once.directory / ledger
    path.parent.mkdir(parents=True, exist_ok=True)
    service.fault(kind="drop", when="after")
    environment = {"INFRASTRUCTURE_SERVICES_LEDGER": str(path)}
    ansible_once.playbook(CREATE, "-e", json.dumps({"virtual_machine_name": name}), **environment)
    doubt = "infrastructure.services.in_doubt"
    said = ansible_once.playbook(doubt, **environment).ok().result("Show what is in doubt")["msg"]
    assert says in "\n".join(said)
    for line in said:
        if "-m infrastructure.services.ledger_entry" in line and "state=absent" in line:
            variable, command, *arguments = shlex.split(line)
            assert variable == f"INFRASTRUCTURE_SERVICES_LEDGER={path}"
            run = ansible_once.command(command, *arguments, **environment).ok()
            assert "CHANGED" in run.output
