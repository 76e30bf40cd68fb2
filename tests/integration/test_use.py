# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The two modules as users call them: ad hoc, in playbooks, in loops, in check and diff mode."""

from __future__ import annotations

import pytest

VM = "infrastructure.services.compute_virtual_machine"
ROLE = "infrastructure.services.cassandra_application_role"


def test_ad_hoc_with_options_on_the_command_line(ansible, service):
    run = ansible.adhoc(VM, f"name=web01 base_url={service.url} access_token=from-the-command-line",
                        INFRASTRUCTURE_SERVICES_BASE_URL=None, INFRASTRUCTURE_SERVICES_ACCESS_TOKEN=None).ok()
    (result,) = [line["result"] for line in run.results]
    (request,) = service.conversation()
    assert result["outcome"] == "accepted"
    assert result["asset"]["name"] == "web01"
    assert request["method"] == "POST"
    assert request["path"] == "/api/v1/services/compute/virtual_machines"
    assert service.header("Authorization") == ["Bearer from-the-command-line"]
    assert service.bodies() == [{"name": "web01", "attributes": {}}]


def test_the_next_task_sees_the_envelope_as_a_fact(ansible, service):
    service.seed("role-1", name="reader", attributes={"login": False})
    run = ansible.tasks(f"""
- name: Create
  {VM}:
    name: web01
- name: Use the machine
  ansible.builtin.debug:
    msg: "{{{{ compute_virtual_machine.id }}}}"
- name: Update
  {ROLE}:
    id: role-1
    attributes: {{login: true}}
- name: Use the role
  ansible.builtin.debug:
    msg: "{{{{ cassandra_application_role.id }}}}"
""").ok()
    assert run.result("Use the machine")["msg"] == run.result("Create")["asset"]["id"]
    assert run.result("Use the role")["msg"] == "role-1"
    assert run.result("Update")["asset"]["attributes"]["login"] is True


def test_a_loop_registers_every_envelope(ansible, service):
    run = ansible.tasks(f"""
- name: Create
  {VM}:
    name: "web{{{{ item }}}}"
    attributes: {{cpu: "{{{{ item }}}}"}}
  loop: [1, 2, 3]
  register: created
- name: Use
  ansible.builtin.debug:
    msg: "{{{{ created.results | map(attribute='asset.id') | unique | length }}}}"
- name: The last one
  ansible.builtin.debug:
    msg: "{{{{ compute_virtual_machine.name }}}}"
""").ok()
    assert [item["asset"]["name"] for item in run.items("Create")] == ["web1", "web2", "web3"]
    assert str(run.result("Use")["msg"]) == "3"
    assert run.result("The last one")["msg"] == "web3"
    assert [body["attributes"] for body in service.bodies()] == [{"cpu": 1}, {"cpu": 2}, {"cpu": 3}]


def test_values_that_are_missing_or_null_are_not_sent(ansible, service):
    ansible.tasks(f"""
- {VM}:
    name: web01
    attributes:
      cpu: 4
      team:
      ip: "{{{{ omit }}}}"
      subnet: {{dns: null, mask: 255.255.255.0}}
""").ok()
    assert service.bodies() == [{"name": "web01", "attributes": {"cpu": 4, "subnet": {"mask": "255.255.255.0"}}}]


def test_whole_numbers_are_sent_without_a_decimal_point(ansible, service):
    ansible.tasks(f"""
- {VM}:
    name: web01
    attributes: {{cpu: 4, vm_ram: 16.0, memory_used_percent: 12.5, volumes: [{{name: root, size_gb: 40}}]}}
""").ok()
    (request,) = service.conversation()
    assert '"cpu":4,' in request["body"].replace(" ", "")
    assert ".0" not in request["body"]
    assert "12.5" in request["body"]


def test_unquoted_timestamps_are_sent_in_the_format_of_the_interface(ansible, service):
    ansible.tasks(f"""
- {VM}:
    name: web01
    attributes:
      creation_date: 2026-01-02 03:04:05Z
      last_reboot_date: "2026-01-02T05:04:05+02:00"
""").ok()
    assert service.bodies()[0]["attributes"] == {"creation_date": "2026-01-02T03:04:05Z",
                                                 "last_reboot_date": "2026-01-02T03:04:05Z"}


@pytest.mark.parametrize("options", [("--check",), ("--check", "--diff")])
def test_check_mode_predicts_and_sends_nothing(ansible, service, options):
    run = ansible.tasks(f"""
- name: Create
  {VM}:
    name: web01
    attributes: {{cpu: 4}}
- name: Update
  {ROLE}:
    id: role-1
    attributes: {{login: true}}
""", *options).ok()
    created, updated = run.result("Create"), run.result("Update")
    assert service.conversation() == []
    assert (created["changed"], created["outcome"]) == (True, "not_sent")
    assert (updated["changed"], updated["outcome"]) == (True, "not_sent")
    assert created["request"]["body"] == {"name": "web01", "attributes": {"cpu": 4}}
    assert created["asset"]["name"] == "web01"
    assert created["asset"]["id"] is None
    assert updated["asset"]["id"] == "role-1"
    assert ("diff" in created) is ("--diff" in options)


def test_diff_mode_shows_what_the_answer_changed(ansible, service):
    service.seed("role-1", name="reader", attributes={"login": False})
    run = ansible.tasks(f"""
- name: Update
  {ROLE}:
    id: role-1
    attributes: {{login: true}}
    current: {{id: role-1, name: reader, attributes: {{login: false}}}}
""", "--diff").ok()
    diff = run.result("Update")["diff"]
    assert diff["before"] != diff["after"]
    assert diff["before_header"]
    assert diff["after_header"]


def test_a_known_role_that_already_matches_is_not_changed(ansible, service):
    service.seed("role-1", name="reader", attributes={"login": False})
    run = ansible.tasks(f"""
- name: Update
  {ROLE}:
    id: role-1
    attributes: {{login: true}}
- name: Again
  {ROLE}:
    id: role-1
    attributes: {{login: true}}
    current: "{{{{ cassandra_application_role }}}}"
""").ok()
    assert run.result("Update")["changed"] is True
    assert run.result("Again")["changed"] is False


def test_body_is_sent_verbatim(ansible, service):
    service.seed("role-1", name="reader", attributes={"login": False})
    ansible.tasks(f"""
- {ROLE}:
    id: role-1
    body: {{description: null, anything: {{deep: [1, 2.5, null]}}}}
""").ok()
    assert service.bodies() == [{"description": None, "anything": {"deep": [1, 2.5, None]}}]


def test_an_id_stays_one_path_segment(ansible, service):
    service.settings(unknown_id="create")
    ansible.tasks(f"""
- {ROLE}:
    id: "{{{{ item }}}}"
    name: reader
  loop: [a/b, "../x", "%2e%2e", "é ?#"]
""")
    assert [request["path"].rsplit("/", 1)[1] for request in service.conversation()] == [
        "a%2Fb", "..%2Fx", "%252e%252e", "%C3%A9%20%3F%23"]


def test_the_action_group_sets_defaults_for_both_modules(ansible, service):
    service.seed("role-1", name="reader", attributes={})
    ansible.playbook(f"""
- hosts: localhost
  gather_facts: false
  module_defaults:
    group/infrastructure.services.all:
      base_url: "{service.url}/"
      access_token: from-the-group
  tasks:
    - {VM}: {{name: web01}}
    - {ROLE}: {{id: role-1, name: reader}}
""", INFRASTRUCTURE_SERVICES_BASE_URL=None, INFRASTRUCTURE_SERVICES_ACCESS_TOKEN=None).ok()
    assert service.header("Authorization") == ["Bearer from-the-group"] * 2


def test_no_output_contains_the_token(ansible):
    run = ansible.adhoc(VM, "name=web01", "-vvvv").ok()
    assert "integration-token" not in run.output
    assert "integration-token" not in str(run.results)
