"""The two modules as users call them: ad hoc, in playbooks, in loops, in check and diff mode."""

from __future__ import annotations

import json

import pytest
from support.running import TOKEN, Run

VM = "infrastructure.services.compute_virtual_machine"
ROLE = "infrastructure.services.cassandra_application_role"
PLAY = f"""
- hosts: localhost
  gather_facts: false
  tasks:
    - name: Create
      {VM}:
        name: web01
    - name: Use the machine
      ansible.builtin.debug:
        msg: "{{{{ compute_virtual_machine.id }}}}"

    - name: Create in a loop
      {VM}:
        name: "web1{{{{ item }}}}"
        attributes: {{cpu: "{{{{ item }}}}"}}
      loop: [1, 2, 3]
      register: created
    - name: Use all of the loop
      ansible.builtin.debug:
        msg: "{{{{ created.results | map(attribute='asset.id') | unique | length }}}}"
    - name: Use the last of the loop
      ansible.builtin.debug:
        msg: "{{{{ compute_virtual_machine.name }}}}"

    - name: Predict
      {VM}:
        name: web01
      check_mode: true

    - name: Update
      {ROLE}:
        id: role-1
        attributes: {{login: true}}
        current: {{id: role-1, name: reader, attributes: {{login: false}}}}
      diff: true
    - name: Use the role
      ansible.builtin.debug:
        msg: "{{{{ cassandra_application_role.id }}}}"
    - name: Update again
      {ROLE}:
        id: role-1
        attributes: {{login: true}}
        current: "{{{{ cassandra_application_role }}}}"

- hosts: localhost
  gather_facts: false
  environment:
    INFRASTRUCTURE_SERVICES_BASE_URL: http://127.0.0.1:9
    INFRASTRUCTURE_SERVICES_ACCESS_TOKEN: from-the-environment
  module_defaults:
    group/infrastructure.services.all:
      base_url: "{{{{ url_of_the_service }}}}/"
      access_token: from-the-group
  tasks:
    - {VM}: {{name: web01}}
    - {ROLE}: {{id: role-1, name: reader}}
"""


class Used:
    """What a run of PLAY printed, returned and sent."""

    def __init__(self, run: Run, conversation: list[dict]) -> None:
        self.run, self.conversation = run, conversation

    def body(self, name: str) -> dict:
        bodies = [json.loads(request["body"]) for request in self.conversation]
        (body,) = [body for body in bodies if body.get("name") == name]
        return body


@pytest.fixture(scope="module")
def used(tmp_path_factory, running_service, ansible_in) -> Used:
    running_service.reset()
    running_service.settings(unknown_id="create")
    running_service.seed("role-1", name="reader", attributes={"login": False})
    run = (
        ansible_in(tmp_path_factory.mktemp("use"))
        .playbook(PLAY, "-vvvv", "-e", f"url_of_the_service={running_service.url}")
        .ok()
    )
    return Used(run, running_service.conversation())


def test_ad_hoc_with_options_on_the_command_line(ansible, service):
    run = ansible.adhoc(
        VM,
        f"name=web01 base_url={service.url} access_token=from-the-command-line",
        INFRASTRUCTURE_SERVICES_BASE_URL=None,
        INFRASTRUCTURE_SERVICES_ACCESS_TOKEN=None,
    ).ok()
    (result,) = [line["result"] for line in run.results]
    (request,) = service.conversation()
    assert result["outcome"] == "accepted"
    assert result["asset"]["name"] == "web01"
    assert request["method"] == "POST"
    assert request["path"] == "/api/v1/services/compute/virtual_machines"
    assert service.header("Authorization") == ["Bearer from-the-command-line"]
    assert service.bodies() == [{"name": "web01", "attributes": {}}]


def test_the_next_task_sees_the_envelope_as_a_fact(used):
    assert used.run.result("Use the machine")["msg"] == used.run.result("Create")["asset"]["id"]
    assert used.run.result("Use the role")["msg"] == "role-1"
    assert used.run.result("Update")["asset"]["attributes"]["login"] is True


def test_a_loop_registers_every_envelope(used):
    names = ["web11", "web12", "web13"]
    assert [item["asset"]["name"] for item in used.run.items("Create in a loop")] == names
    assert str(used.run.result("Use all of the loop")["msg"]) == "3"
    assert used.run.result("Use the last of the loop")["msg"] == "web13"
    assert [used.body(name)["attributes"] for name in names] == [{"cpu": 1}, {"cpu": 2}, {"cpu": 3}]


def test_check_mode_sends_nothing_and_there_is_no_diff_unless_it_is_asked_for(used):
    predicted, created = used.run.result("Predict"), used.run.result("Create")
    assert (predicted["changed"], predicted["outcome"]) == (True, "not_sent")
    assert (predicted["asset"]["name"], predicted["asset"]["id"]) == ("web01", None)
    assert "diff" not in predicted
    assert "diff" not in created
    sent = [json.loads(request["body"]).get("name") for request in used.conversation]
    assert sent.count("web01") == 2  # the task Create, and the second play


def test_diff_mode_shows_what_the_answer_changed(used):
    diff = used.run.result("Update")["diff"]
    assert diff["before"] != diff["after"]
    assert diff["before_header"]
    assert diff["after_header"]


def test_a_known_role_that_already_matches_is_not_changed(used):
    assert used.run.result("Update")["changed"] is True
    assert used.run.result("Update again")["changed"] is False


def test_the_action_group_sets_defaults_for_both_modules(used):
    tokens = [dict(request["headers"])["Authorization"] for request in used.conversation]
    assert tokens[-2:] == ["Bearer from-the-group"] * 2
    assert set(tokens[:-2]) == {f"Bearer {TOKEN}"}
