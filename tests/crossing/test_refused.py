"""Values that JSON cannot represent and variables that no process can have are refused, and affect
no other task.
"""

from __future__ import annotations

import json

import pytest
from support.running import Ansible
from support.wire import answer, running

CREATE = "infrastructure.services.compute_virtual_machine"
PATHS = {"worker": "false", "become": "true"}
BINARY = '!!binary "aGVsbG8="'

# name of the case: (a task in YAML, the start of its message)
CASES = {
    "binary": (
        f"{CREATE}: {{name: x, attributes: {{team: {BINARY}}}}}",
        "the options: one contains",
    ),
    "binary in a list": (
        f"{CREATE}s: {{virtual_machines: [{{name: x}}, {{name: {BINARY}}}]}}",
        "the options: one contains",
    ),
    "huge number": (
        f"{CREATE}: {{name: x, attributes: {{cpu: '{{{{ 10 ** 5000 }}}}'}}}}",
        ("the options: one contains", "attributes.cpu: must be a number"),
    ),  # older cores make it a text
    "null character": (
        f'{CREATE}: {{name: x}}\n    environment: {{BAD: "a\\0b"}}',
        "environment: the variable 'BAD' ",
    ),
    "equals sign": (
        f'{CREATE}: {{name: x}}\n    environment: {{"A=B": x}}',
        "environment: the variable 'A=B' ",
    ),
    "empty name": (
        f'{CREATE}: {{name: x}}\n    environment: {{"": x}}',
        "environment: the variable '' ",
    ),
}
LOOP = f"""
  - name: loop
    {CREATE}: {{name: "{{{{ item.name }}}}"}}
    environment: "{{{{ item.environment }}}}"
    loop:
    - {{name: one, environment: {{INFRASTRUCTURE_SERVICES_BASE_URL: "http://127.0.0.1:9", BAD: "a\\0b"}}}}
    - {{name: two, environment: {{}}}}
"""


@pytest.fixture(scope="module")
def ran(collections, tmp_path_factory):
    """Run all cases on both paths, then a loop; return the run and the service."""
    tasks = [
        f"  - name: {name} {path}\n    {task}\n    become: {become}\n"
        for name, (task, _says) in CASES.items()
        for path, become in PATHS.items()
    ]
    play = "- hosts: localhost\n  gather_facts: false\n  ignore_errors: true\n  become_method: myself\n  tasks:\n"
    with running(
        lambda sent: answer(201, {"id": "i", "name": json.loads(sent.body)["name"]})
    ) as service:
        ansible = Ansible(tmp_path_factory.mktemp("refused"), collections, service.url, "local")
        return ansible.playbook(play + "".join(tasks) + LOOP, ANSIBLE_PIPELINING="true"), service


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("name", CASES)
def test_it_is_refused_and_named(ran, name, path):
    result = ran[0].result(f"{name} {path}")
    assert (result["failed"], result.get("outcome"), result["changed"]) == (
        True,
        "not_sent",
        False,
    ), result
    assert result["msg"].startswith(CASES[name][1])


def test_the_next_item_runs_in_its_own_environment(ran):
    run, service = ran
    one, two = run.items("loop")
    assert (one["failed"], one["outcome"]) == (True, "not_sent")
    assert (two["failed"], two["outcome"]) == (False, "accepted")
    assert [json.loads(sent.body)["name"] for sent in service.sent] == ["two"]


def test_no_traceback(ran):
    assert "Traceback" not in ran[0].output
