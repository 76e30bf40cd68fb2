# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The role `fleet`: from lists in variables to machines and roles, on the controller, and how it reports failures."""

from __future__ import annotations

import json
import re

import pytest
import yaml
from support.running import TOKEN

MACHINES = [{"name": "web01"}, {"name": "web02", "attributes": {"cpu": 8, "subnet": {"mask": "255.0.0.0"}}}]
ROLES = [{"id": "role-1", "attributes": {"login": True}}]
FLEET = {
    "fleet_ledger": "{{ playbook_dir }}/ledger.db",
    "fleet_defaults": {"attributes": {"cpu": 4, "subnet": {"dns": "192.0.2.1"}}},
    "fleet_application_role_defaults": {"service": "cassandra"},
    "fleet_virtual_machines": MACHINES,
    "fleet_application_roles": ROLES,
}
LAST = "infrastructure.services.fleet : Show the results"


@pytest.fixture
def fleet(ansible_once, service):
    """Return a function that runs the role in a play."""
    service.seed("role-1", name="reader")

    def fleet(*options: str, hosts: str = "localhost", **variables):
        play = {"hosts": hosts, "gather_facts": False, "roles": ["infrastructure.services.fleet"]}
        return ansible_once.playbook(yaml.safe_dump([{**play, "vars": {**FLEET, **variables}}]), *options)

    return fleet


def named(service) -> list[str]:
    """The names in the bodies that the service received, or the ids in the paths."""
    return sorted(body.get("name") or "role-1" for body in service.bodies())


def test_machines_and_roles_are_sent_once_with_their_shared_defaults(fleet, service):
    run = fleet().ok()
    assert len({line["task"] for line in run.results}) <= 5
    assert sorted(service.bodies(), key=json.dumps) == sorted([
        {"name": "web01", "attributes": {"cpu": 4, "subnet": {"dns": "192.0.2.1"}}},
        {"name": "web02", "attributes": {"cpu": 8, "subnet": {"dns": "192.0.2.1", "mask": "255.0.0.0"}}},
        {"service": "cassandra", "attributes": {"login": True}}], key=json.dumps)
    assert run.result(LAST)["msg"] == ["virtual machines: accepted 2 (web01, web02)",
                                       "application roles: accepted 1 (role-1)"]
    again = fleet().ok()
    assert len(service.conversation()) == 3
    assert again.result(LAST)["msg"] == ["virtual machines: not_sent 2 (web01, web02)",
                                         "application roles: not_sent 1 (role-1)"]


def test_check_mode_is_the_plan(fleet, service):
    fleet(fleet_application_roles=[]).ok()
    sent = len(service.conversation())
    wanted = [{"name": "new"}, {"name": "web02", "attributes": {"cpu": 16}}]
    run = fleet("--check", "--diff", fleet_virtual_machines=wanted).ok()
    assert run.result(LAST)["msg"] == [
        "virtual machines: create 1 (new)", "virtual machines: differs 1 (web02)",
        "virtual machines: not_listed 1 (web01)", "application roles: update 1 (role-1)"]
    assert "attributes.cpu (16 asked for, created with 8)" in " ".join(run.output.split())
    assert '"login": true' in run.output
    assert len(service.conversation()) == sent


def test_everything_is_attempted_and_failures_are_named_at_the_end(fleet, service, tmp_path):
    service.fault(kind="status", status=403, operation="create_virtual_machine", count=1)
    service.fault(kind="status", status=403, operation="update_application_role", count=1)
    run = fleet(fleet_concurrency=1, fleet_report=str(tmp_path / "fleet.json"))
    assert run.rc == 2
    assert len(service.conversation()) == 3
    said = run.result(LAST.replace("Show the results", "Fail with what failed"))["msg"]
    assert re.findall(r"1 of \d [a-z ]+ failed", said) == [
        "1 of 2 virtual machines failed", "1 of 1 application roles failed"]
    assert "web01" in said
    (one,) = json.loads((tmp_path / "fleet.json").read_text())["runs"]
    assert {asset["name"]: asset["outcome"] for asset in one["assets"]} == {
        "web01": "rejected", "web02": "accepted", "role-1": "rejected"}


@pytest.mark.parametrize(("word", "sent", "rc"), [("stop", ["role-1"], 2), ("skip", ["role-1", "web02"], 0)])
def test_a_machine_in_doubt_stops_the_run_or_is_skipped(fleet, service, word, sent, rc):
    service.fault(kind="drop", when="after", operation="create_virtual_machine")
    fleet(fleet_virtual_machines=MACHINES[:1], fleet_application_roles=[])
    assert named(service) == ["web01"]
    for options in (["--check"], []):
        run = fleet(*options, fleet_in_doubt=word)
        assert run.rc == rc, run.output
        assert "ledger_entry" in run.output
    assert named(service) == sorted(["web01", *sent])


def test_it_runs_on_the_controller_once_whatever_the_inventory_says(fleet, ansible_once, service):
    says = {"ansible_connection": "ssh", "ansible_host": "192.0.2.1", "ansible_become": True,
            "ansible_python_interpreter": "/nonexistent/python"}
    inventory = {"all": {"children": {"fleet": {"hosts": {"a": {}, "b": {}}, "vars": says}}}}
    (ansible_once.directory / "fleet.json").write_text(json.dumps(inventory))
    fleet("-i", "fleet.json", hosts="fleet").ok()
    assert named(service) == ["role-1", "web01", "web02"]


@pytest.mark.parametrize("ledger", ["", None])
def test_without_a_ledger_nothing_is_sent(fleet, service, ledger):
    run = fleet(fleet_ledger=ledger)
    assert run.rc == 2
    assert "ledger" in run.output
    assert service.conversation() == []


def test_no_secret_is_shown(fleet):
    assert TOKEN not in fleet("-vvv").ok().output


def test_an_empty_list_is_valid(fleet, service):
    fleet(fleet_virtual_machines=[], fleet_application_roles=[]).ok()
    assert service.conversation() == []


def test_a_mistake_in_every_machine_is_reported_once_at_the_end(fleet, service):
    run = fleet(fleet_virtual_machines=[{"name": "web01", "attributes": {"cpus": 4}}], fleet_application_roles=[])
    assert run.rc == 2
    assert "Error while" not in run.output
    assert "cpus" in run.result(LAST.replace("Show the results", "Fail with what failed"))["msg"]
    assert service.conversation() == []
