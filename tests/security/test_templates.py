"""What the service returns is data: an expression in an answer is never evaluated, wherever a
playbook puts it.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from faults.behaviors import whole
from support.ledgers import create
from support.service import Peer, Service

from .conftest import ON_TARGET

MODULE = "infrastructure.services.compute_virtual_machine"
ROLE = "infrastructure.services.cassandra_application_role"


def evil(expression: str) -> dict:
    """Return an envelope with the expression wherever a string can be, and with keys that mean
    something to Ansible.
    """
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


def touching(trace: Path) -> str:
    """Return an expression that creates a file when it is evaluated."""
    return f"{{{{ lookup('pipe', 'touch {trace}') }}}}"


def script(expression: str):
    """Return what creates what it is asked for, and returns an expression in every string."""
    ids = f"X-Request-Id: {expression}"
    error = json.dumps({"error": expression, "error_description": expression}).encode()

    def answer(peer: Peer) -> None:
        while request := peer.request():
            kind = request.path.split("/")[1]
            if kind == "token":
                peer.say(whole(error, status="400 No"))
            elif kind == "forbidden":
                peer.say(whole(b"", ids, status="403 No"))
            else:
                peer.say(whole(json.dumps(evil(expression)).encode(), ids))

    return answer


def tasks(url: str, keywords: dict) -> list[dict]:
    """Return tasks that put an answer into everything that accepts an expression; the last one
    keeps their results.
    """
    common = {"base_url": url, "access_token": "abc", "retries": 0}
    create = {MODULE: {**common, "name": "web01"}, "diff": True}
    client = {"client_id": "a", "client_secret": "b", "auth_url": f"{url}/token"}
    denied = {MODULE: {**common, "name": "web01", "access_token": None, **client}}
    forbidden = {
        MODULE: {**common, "name": "web01", "base_url": f"{url}/forbidden"},
        "ignore_errors": True,
    }
    name = "{{ vm.asset.name }}"
    again = {
        **common,
        "id": name,
        "description": name,
        "attributes": {"name": "{{ compute_virtual_machine.name }}"},
    }
    made = [
        {**create, "register": "vm"},
        {**denied, "register": "denied", "ignore_errors": True},
        {**forbidden, "register": "forbidden"},
        {ROLE: again, "register": "role"},
        {
            ROLE: {
                **common,
                "id": "1",
                "body": "{{ vm.asset }}",
                "current": "{{ compute_virtual_machine }}",
            }
        },
        {
            MODULE: {**common, "name": name, "extra_attributes": "{{ vm.asset.attributes }}"},
            "check_mode": True,
        },
    ]
    made = [{**task, **keywords} for task in made]
    texts = [
        *(name, "{{ compute_virtual_machine.name }}", "{{ indirect }}", "{{ fact }}"),
        *("{{ denied.msg }}", "{{ forbidden.msg }}", "{{ vm }}", "{{ role.request.url }}"),
        *("{{ vm.asset.attributes | to_json }}", "{{ vm.asset.attributes.line }}"),
        *("{{ vm.diff }}", "{{ item }}"),
    ]
    kept = {
        "content": "{{ [vm, role, denied, forbidden] | to_json }}",
        "dest": "{{ playbook_dir }}/results.json",
    }
    return [
        *made,
        {"ansible.builtin.set_fact": {"fact": name}},
        *(
            {"ansible.builtin.debug": {"var": name}}
            for name in ("vm", "vm.asset.name", "compute_virtual_machine")
        ),
        {
            "ansible.builtin.debug": {"msg": texts},
            "vars": {"indirect": name},
            "loop": "{{ [vm.asset.name] + vm.asset.attributes.list + vm.asset.attributes.keys() | list }}",
            "when": "vm.asset.name is search('lookup')",
        },
        {"ansible.builtin.assert": {"that": "injected is not defined"}},
        {"ansible.builtin.copy": kept},
    ]


@pytest.mark.parametrize(
    "keywords",
    [
        pytest.param({}, id="in process"),
        pytest.param(ON_TARGET, id="as a module", marks=pytest.mark.matrix),
    ],
)
def test_no_expression_in_an_answer_is_evaluated(keywords, ansible, tmp_path):
    """The last task has an expression of the test's own, which is evaluated."""
    trace, control = tmp_path / "evaluated", tmp_path / "control"
    expression = touching(trace)
    with Service(script(expression)) as service:
        last = {"ansible.builtin.debug": {"msg": touching(control)}}
        run = ansible("ansible-playbook", "-vvv", tasks=[*tasks(service.url, keywords), last])
    assert run.rc == 0, run.output
    assert ("plugins/modules/compute_virtual_machine.py" in run.output) == bool(keywords)
    assert "Traceback" not in run.output
    assert control.exists(), "an expression that is evaluated leaves no trace"
    assert not trace.exists()
    results = json.loads((run.directory / "results.json").read_text(encoding="utf-8"))
    vm, role, denied, forbidden = results
    assert (vm["asset"]["name"], vm["changed"], vm["failed"]) == (expression, True, False)
    assert role["request"]["body"] == {
        "description": expression,
        "attributes": {"name": expression},
    }
    assert expression in denied["msg"]
    assert expression in forbidden["msg"]


@pytest.mark.matrix
def test_an_answer_without_braces_is_no_expression_in_an_inventory_either(ansible, tmp_path):
    """Nor is it when AWX gives back what `ansible-inventory` exported; a conditional evaluates what
    it finds there.
    """
    trace = tmp_path / "evaluated"
    call = f"lookup('pipe', 'touch {trace}; echo yes')"
    asset = {"id": "1", "name": "web01", "attributes": {"ip": "192.0.2.1", "status": call}}
    entries = [{"resource": "compute_virtual_machine", "name": "web01", "asset": asset}]
    common = {"ledger": create(str(tmp_path / "fleet.db"))}
    ansible(
        "ansible-playbook",
        tasks=[{"infrastructure.services.ledger_entry": {**common, "entries": entries}}],
    )
    source, given_back = tmp_path / "ledger.yml", tmp_path / "script"
    source.write_text(
        json.dumps({"plugin": "infrastructure.services.ledger", "ledger": common["ledger"]})
    )
    exported = ansible("ansible-inventory", "-i", str(source), "--list", "--export").output
    exported = exported[exported.index("{\n") : exported.rindex("}") + 1]
    given_back.write_text(f"#!/bin/sh\ncat <<'END'\n{exported}\nEND\n")
    given_back.chmod(0o755)
    status = "{{ hostvars.web01.virtual_machine.attributes.status }}"
    tasks = [
        {"ansible.builtin.debug": {"msg": "met"}, "when": status, "ignore_errors": True},
        {"ansible.builtin.debug": {"var": status}, "ignore_errors": True},
        {"ansible.builtin.debug": {"msg": status}},
    ]
    for inventory in (source, given_back):
        run = ansible("ansible-playbook", "-i", str(inventory), tasks=tasks)
        assert run.rc == 0, run.output
        assert "echo yes" in run.output, "the inventory was not read"
        assert not trace.exists(), inventory
