# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The playbooks that the collection brings, called by their FQCN."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys

import requests

CREATE = "infrastructure.services.create_virtual_machine"
DEMO = "infrastructure.services.demo"
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


def test_the_demo_shows_what_the_service_received(ansible_once):
    run = ansible_once.playbook(DEMO).ok()
    story = run.result("Show what happened")["msg"]
    assert [line.split(":")[0] for line in story[:4]] == [
        "created web01", "created web02", "created db01", "updated webshop_reader"]
    assert story[4] == "updated webshop_reader again: changed=False, not_sent"
    shown = [item["msg"] for item in run.items("Show the conversation as the emulator recorded it")]
    assert [exchange["request"].split()[0] for exchange in shown] == ["POST", "POST", "POST", "PUT"]
    assert all(len(exchange["body"]["attributes"]) >= 20 for exchange in shown[:3])


def test_the_emulator_stays_in_the_background(ansible_once):
    run = ansible_once.playbook(EMULATOR, "-e", "emulator_port=0 emulator_background=true").ok()
    facts = run.result("Keep the emulator's address")["ansible_facts"]
    try:
        assert requests.get(f"{facts['emulator_url']}/_emulator/health", timeout=5).status_code == 200
    finally:
        os.kill(int(facts["emulator_process"]), signal.SIGTERM)


def test_the_emulator_says_what_it_needs(ansible_once, tmp_path):
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(tmp_path / "bare")], check=True)
    run = ansible_once.playbook(EMULATOR, "-e", f"emulator_python={tmp_path}/bare/bin/python")
    assert run.rc != 0
    assert "-m pip install h11 jsonschema PyYAML" in run.output
    assert "Traceback" not in run.output
