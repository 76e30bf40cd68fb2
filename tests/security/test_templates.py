# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the service returns is data: an expression in an answer is never evaluated, wherever a playbook puts it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from faults.behaviours import whole
from faults.servers import Peer, Service

MODULE = "infrastructure.services.compute_virtual_machine"
ROLE = "infrastructure.services.cassandra_application_role"


def evil(expression: str) -> dict:
    """Return an envelope with the expression wherever a string can be, and with keys that mean something to Ansible."""
    return {
        "id": "1",
        "name": expression,
        "description": expression.replace("{{", "{%").replace("}}", "%}"),
        "service": None,
        "attributes": {
            "line": f"#!jinja {expression}",
            expression: expression,
            "_ansible_no_log": False,
            "list": [expression, {"deep": expression}],
        },
        "ansible_facts": {"injected": expression},
        "failed": True,
    }


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    """A file that exists only after an expression was evaluated."""
    return tmp_path / "evaluated"


@pytest.fixture
def expression(trace: Path) -> str:
    return f"{{{{ lookup('pipe', 'touch {trace}') }}}}"


@pytest.fixture
def service(expression: str) -> Iterator[Service]:
    """Run a service that creates what it is asked for, and returns an expression in every string."""
    ids = f"X-Request-Id: {expression}"
    error = json.dumps({"error": expression, "error_description": expression}).encode()

    def script(peer: Peer) -> None:
        while request := peer.request():
            kind, _colon, key = request.path.split("/")[1].partition(":")
            if kind == "token":
                peer.say(whole(error, status="400 No"))
            elif kind == "reserved":
                told = {"id": "1", "attributes": {"a": [{key: "TrustedAsTemplate", "value": expression}]}}
                peer.say(whole(json.dumps(told).encode()))
            elif kind == "forbidden":
                peer.say(whole(b"", ids, status="403 No"))
            else:
                peer.say(whole(json.dumps(evil(expression)).encode(), ids))

    with Service(script) as running:
        yield running


def tasks(url: str, in_process: bool) -> list[dict]:
    """Return tasks that put an answer into everything that accepts an expression."""
    common = {"base_url": url, "access_token": "abc", "retries": 0}
    create = {MODULE: {**common, "name": "web01"}, "diff": True}
    denied = {MODULE: {**common, "name": "web01", "access_token": None, "client_id": "a", "client_secret": "b"}}
    denied[MODULE]["auth_url"] = f"{url}/token"
    forbidden = {MODULE: {**common, "name": "web01", "base_url": f"{url}/forbidden"}, "ignore_errors": True}
    name = "{{ vm.asset.name }}"
    again = {**common, "id": name, "description": name, "attributes": {"name": "{{ compute_virtual_machine.name }}"}}
    made = [
        {**create, "register": "vm"},
        {**denied, "register": "denied", "ignore_errors": True},
        {**forbidden, "register": "forbidden"},
        {ROLE: again, "register": "role"},
        {ROLE: {**common, "id": "1", "body": "{{ vm.asset }}", "current": "{{ compute_virtual_machine }}"}},
        {MODULE: {**common, "name": name, "extra_attributes": "{{ vm.asset.attributes }}"}, "check_mode": True},
    ]
    made = [{**task, "environment": {} if in_process else {"SOMETHING": "set"}} for task in made]
    texts = [name, "{{ compute_virtual_machine.name }}", "{{ indirect }}", "{{ fact }}", "{{ denied.msg }}"]
    texts += ["{{ forbidden.msg }}", "{{ vm }}", "{{ vm.asset.attributes | to_json }}", "{{ role.request.url }}"]
    texts += ["{{ vm.asset.attributes.line }}", "{{ vm.diff }}", "{{ item }}"]
    kept = {"content": "{{ [vm, role, denied, forbidden] | to_json }}", "dest": "{{ playbook_dir }}/results.json"}
    return [
        *made,
        {"ansible.builtin.set_fact": {"fact": name}},
        *({"ansible.builtin.debug": {"var": name}} for name in ("vm", "vm.asset.name", "compute_virtual_machine")),
        {
            "ansible.builtin.debug": {"msg": texts},
            "vars": {"indirect": name},
            "loop": "{{ [vm.asset.name] + vm.asset.attributes.list + vm.asset.attributes.keys() | list }}",
            "when": "vm.asset.name is search('lookup')",
        },
        {"ansible.builtin.assert": {"that": "injected is not defined"}},
        {"ansible.builtin.copy": kept},
    ]


@pytest.mark.parametrize("in_process", [True, False], ids=["in process", "as a module"])
def test_no_expression_in_an_answer_is_evaluated(ansible, service, expression, trace, in_process):
    run = ansible("ansible-playbook", "-vvv", tasks=tasks(service.url, in_process))
    assert run.rc == 0, run.output
    assert "Traceback" not in run.output
    assert not trace.exists()
    vm, role, denied, forbidden = json.loads((run.directory / "results.json").read_text())
    assert (vm["asset"]["name"], vm["changed"], vm["failed"]) == (expression, True, False)
    assert role["request"]["body"] == {"description": expression, "attributes": {"name": expression}}
    assert expression in denied["msg"]
    assert expression in forbidden["msg"]


def test_the_expression_leaves_its_trace_when_it_is_evaluated(ansible, expression, trace):
    run = ansible("ansible-playbook", tasks=[{"ansible.builtin.debug": {"msg": expression}}])
    assert run.rc == 0, run.output
    assert trace.exists()


RESERVED = ("__ansible_type", "__ansible_unsafe", "__ansible_vault")


@pytest.mark.parametrize("in_process", [True, False], ids=["in process", "as a module"])
def test_keys_reserved_by_ansible_are_refused_and_the_outcome_is_accepted(ansible, service, in_process):
    """ansible-core would turn such a dict into an object of its own, or end the task without reporting an outcome."""
    options = {"name": "web01", "access_token": "abc", "retries": 0}
    tasks = [
        {
            MODULE: {**options, "base_url": f"{service.url}/reserved:{key}"},
            "register": f"result_{number}",
            "ignore_errors": True,
            "environment": {} if in_process else {"SOMETHING": "set"},
        }
        for number, key in enumerate(RESERVED)
    ]
    kept = {"content": "{{ [result_0, result_1, result_2] | to_json }}", "dest": "{{ playbook_dir }}/results.json"}
    run = ansible("ansible-playbook", tasks=[*tasks, {"ansible.builtin.copy": kept}])
    assert run.rc == 0, run.output
    for key, result in zip(RESERVED, json.loads((run.directory / "results.json").read_text())):
        assert (result["failed"], result["changed"], result["outcome"]) == (True, True, "accepted")
        assert f"the key {key}, which Ansible reserves" in result["msg"]
