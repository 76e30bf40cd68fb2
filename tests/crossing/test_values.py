"""Values as users write them, and answers that mean something to Ansible: inside the worker and as
a module the same bytes are sent, and the same result comes back.
"""

from __future__ import annotations

import json

import pytest
from ansible.parsing.vault import VaultLib, VaultSecret
from support.running import Ansible
from support.wire import Last, Sent, answer, running

pytestmark = pytest.mark.matrix  # what they become depends on ansible-core

PASSWORD = "of the vault"
PATHS = {"worker": "false", "become": "true"}
VM, ROLE = "compute_virtual_machine", "cassandra_application_role"
# Name of the case: (module, options in YAML, answer).
VALUES = {
    "k=v": (VM, "'name=web01 retries=2 validate_certs=yes'"),
    "k=v with json": (VM, """ 'name=web01 attributes=''{"cpu": 2, "team": null}''' """),
    "number for text": (VM, "{name: 42, attributes: {team: 150, instance: 1e3, status: 0o17}}"),
    "text for a number": (VM, "{name: x, attributes: {cpu: '4', vm_ram: ' 8.0 '}}"),
    "big numbers": (VM, "{name: x, attributes: {cpu: 1180591620717411303424, vm_ram: 1.0e+300}}"),
    "text for a list": (VM, "{name: x, attributes: {puppet_classes: 'a,b'}}"),
    "nulls": (VM, "{name: x, timeout: null, attributes: {cpu: null, subnet: {dns: null}}}"),
    "omitted": (VM, "{name: x, timeout: '{{ omit }}', attributes: {cpu: '{{ omit }}'}}"),
    "timestamp": (VM, "{name: x, attributes: {creation_date: 2026-01-02 03:04:05Z}}"),
    "timestamp of no field": (VM, "{name: x, extra_attributes: {day: 2026-01-02}}"),
    "keys that are no text": (VM, "{name: x, extra_attributes: {1: a, null: d}}"),
    "escapes": (
        VM,
        r"""{name: "bücher \u202e\u2028", extra_attributes: {"k\\\"": "{no: jinja}"}}""",
    ),
    "templates": (VM, "{name: '{{ words.name }}', attributes: '{{ words.attributes }}'}"),
    "result of a task": (VM, "{name: x, extra_attributes: '{{ earlier }}'}"),
    "unsafe": (VM, "{name: !unsafe '{{ undefined }} {% x %}'}"),
    "vaulted": (VM, "{name: '{{ vaulted }}', extra_attributes: {a: ['{{ vaulted }}']}}"),
    "vaulted in place": (ROLE, "{id: r, body: {a: [@VAULT@], name: @VAULT@}}"),
    "body": (ROLE, "{id: r, body: {a: null, b: [null, 1.0, 2.50, ''], 3: {4: 5}, c: 1.0e-7}}"),
    "id": (ROLE, "{id: 'a/b ü', description: '', attributes: {login: 'yes'}}"),
    "template that comes back": (VM, "{name: x}", {"name": "{{ 1 + 1 }}"}),
    "keys of Ansible": (VM, "{name: x}", {"failed": True, "rc": 7, "_ansible_no_log": True}),
    "marks of Ansible": (VM, "{name: x}", {"a": {"__ansible_unsafe": "u"}}),
    "numbers that come back": (VM, "{name: x}", {"id": "1", "a": 2**80, "b": 1e300, "c": 0.1}),
    "lost": (VM, "{name: x}", None),
    "refused": (VM, "{name: x, attributes: {cpus: 1, cpu: four}}"),
}
NOTHING_SENT = {"refused"}


@pytest.fixture(scope="module")
def ran(collections, tmp_path_factory):
    """Run all cases on both paths; return the run and the service."""
    envelope = VaultLib([("default", VaultSecret(PASSWORD.encode()))]).encrypt("secret ü").decode()
    vaulted = f"!vault {json.dumps(envelope)}"
    words = {"name": "web ü", "attributes": {"cpu": "5", "team": None}}
    head = (
        "- hosts: localhost\n  gather_facts: false\n  ignore_errors: true\n"
        f"  vars: {{vaulted: {vaulted}, words: {json.dumps(words)}}}\n  tasks:\n"
        "  - {ansible.builtin.set_fact: {lines: [one two]}, register: earlier}\n"
    )
    answers = {str(number): case[2:] for number, case in enumerate(VALUES.values())}

    def choose(sent: Sent) -> bytes:
        (said,) = answers[sent.case] or ({"id": "1"},)
        return Last() if said is None else answer(201, said)

    with running(choose) as service:
        tasks = [
            f"  - name: {name}, {path}\n    become: {become}\n    become_method: myself\n"
            f"    module_defaults: {{infrastructure.services.{module}:"
            f" {{base_url: '{service.url}/{number}', access_token: token-of-the-tests, ledger: ''}}}}\n"
            f"    infrastructure.services.{module}: {options.replace('@VAULT@', vaulted)}\n"
            for number, (name, (module, options, *_answer)) in enumerate(VALUES.items())
            for path, become in PATHS.items()
        ]
        directory = tmp_path_factory.mktemp("values")
        (directory / "password").write_text(PASSWORD)
        ansible = Ansible(directory, collections, service.url, "local")
        password = ("--vault-password-file", str(directory / "password"))
        return ansible.playbook(
            head + "".join(tasks), *password, ANSIBLE_PIPELINING="true"
        ), service


@pytest.mark.parametrize("number", range(len(VALUES)), ids=VALUES)
def test_both_places_send_and_return_the_same(ran, number):
    run, service = ran
    name = [*VALUES][number]
    one, other = (run.result(f"{name}, {path}") for path in PATHS)
    assert json.dumps(one, sort_keys=True) == json.dumps(other, sort_keys=True)
    sent = [(each.line, each.headers, each.body) for each in service.sent_by(str(number))]
    assert len(sent) == (0 if name in NOTHING_SENT else 2)
    assert sent[: len(sent) // 2] == sent[len(sent) // 2 :]
    assert "Traceback" not in run.output
