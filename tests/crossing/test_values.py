"""Values as users write them, and answers that mean something to Ansible: inside the worker and as
a module the same bytes are sent, the same result comes back, and the same is refused.
"""

from __future__ import annotations

import json
from typing import NamedTuple

import pytest
from support.wire import Last, Sent, answer

pytestmark = pytest.mark.matrix  # what they become depends on ansible-core

PATHS = {"worker": "local", "target": "process"}  # the connection
VM, ROLE = "compute_virtual_machine", "cassandra_application_role"
BINARY = '!!binary "aGVsbG8="'
MADE = {"id": "1"}
BAD = "environment: the variable "


class Value(NamedTuple):
    """A task in YAML, and the answer to it, or how its refusal begins."""

    options: str
    module: str = VM
    answer: dict | None = MADE
    refused: str | tuple[str, ...] | None = None
    keywords: str = ""
    requests: int = 1


VALUES = {
    "k=v": Value("'name=web01 retries=2 validate_certs=yes'"),
    "k=v with json": Value(""" 'name=web01 attributes=''{"cpu": 2, "team": null}''' """),
    "text for a number": Value("{name: x, attributes: {cpu: '4', vm_ram: ' 8.0 '}}"),
    "big numbers": Value("{name: x, attributes: {cpu: 1180591620717411303424, vm_ram: 1.0e+300}}"),
    "text for a list": Value("{name: x, attributes: {puppet_classes: 'a,b'}}"),
    "nulls": Value("{name: x, timeout: null, attributes: {cpu: null, subnet: {dns: null}}}"),
    "omitted": Value("{name: x, timeout: '{{ omit }}', attributes: {cpu: '{{ omit }}'}}"),
    "timestamp": Value("{name: x, attributes: {creation_date: 2026-01-02 03:04:05Z}}"),
    "timestamp of no field": Value("{name: x, extra_attributes: {day: 2026-01-02}}"),
    "keys that are no text": Value("{name: x, extra_attributes: {1: a, null: d}}"),
    "escapes": Value(
        r"""{name: "bücher", extra_attributes: {"k\\\"": "{no: jinja} \u202e\u2028"}}"""
    ),
    "templates": Value("{name: '{{ words.name }}', attributes: '{{ words.attributes }}'}"),
    "result of a task": Value("{name: x, extra_attributes: '{{ earlier }}'}"),
    "unsafe": Value("{name: !unsafe '{{ undefined }} {% x %}'}"),
    "vaulted": Value("{name: '{{ vaulted }}', extra_attributes: {a: ['{{ vaulted }}']}}"),
    "vaulted in place": Value("{id: r, body: {a: ['@VAULT@'], name: '@VAULT@'}}", ROLE),
    "body": Value("{id: r, body: {a: null, b: [null, 1.0, 2.50, ''], 3: {4: 5}, c: 1.0e-7}}", ROLE),
    "id": Value("{id: 'a/b ü', description: '', attributes: {login: 'yes'}}", ROLE),
    "loop": Value(
        "{id: r, name: '{{ item }}'}", ROLE, keywords="diff: true, loop: [x, y]", requests=2
    ),
    "template that comes back": Value("{name: x}", answer={"name": "{{ 1 + 1 }}"}),
    "keys of Ansible": Value(
        "{name: x}", answer={"failed": True, "rc": 7, "_ansible_no_log": True}
    ),
    "marks of Ansible": Value("{name: x}", answer={"a": {"__ansible_unsafe": "u"}}),
    "numbers that come back": Value(
        "{name: x}", answer={"id": "1", "a": 2**80, "b": 1e300, "c": 0.1}
    ),
    "lost": Value("{name: x}", answer=None),
    "refused": Value("{name: x, attributes: {cpus: 1, cpu: four}}", refused="attributes."),
    "octal": Value("{id: 0017, name: x}", ROLE, refused="id: must be a string (write '0017', or"),
    "a line break": Value('{name: "web02\\n"}', refused="name: has a control character"),
    "binary": Value(
        f"{{name: x, attributes: {{team: {BINARY}}}}}", refused="the options: one contains"
    ),
    "binary in a list": Value(
        f"{{virtual_machines: [{{name: x}}, {{name: {BINARY}}}]}}",
        f"{VM}s",
        refused="the options: one contains",
    ),
    "huge number": Value(  # older cores make it a text
        "{name: x, attributes: {cpu: '{{ 10 ** 5000 }}'}}",
        refused=("the options: one contains", "attributes.cpu: must be a number"),
    ),
    "null character": Value(
        "{name: x}", refused=f"{BAD}'BAD' ", keywords='environment: {BAD: "a\\0b"}'
    ),
    "equals sign": Value("{name: x}", refused=f"{BAD}'A=B' ", keywords='environment: {"A=B": x}'),
    "empty name": Value("{name: x}", refused=f"{BAD}'' ", keywords='environment: {"": x}'),
}
LOOP = f"""- name: loop
  infrastructure.services.{VM}: {{name: "{{{{ item.name }}}}", base_url: "{{{{ service }}}}/loop"}}
  environment: "{{{{ item.environment }}}}"
  loop:
  - {{name: one, environment: {{BAD: "a\\0b"}}}}
  - {{name: two, environment: {{}}}}
"""


def task(number: int, name: str, path: str, value: Value) -> str:
    """Return a task in YAML."""
    where = f"base_url: '{{{{ service }}}}/{number}', access_token: token-of-the-tests"
    keywords = f", {value.keywords}" if value.keywords else ""
    return (
        f"- {{name: '{name}, {path}', vars: {{ansible_connection: {PATHS[path]}}}{keywords},"
        f" module_defaults: {{infrastructure.services.{value.module}: {{{where}}}}},"
        f" infrastructure.services.{value.module}: {value.options}}}\n"
    )


@pytest.fixture(scope="module")
def ran(played):
    """Run all cases on both paths; return the run and the service."""
    answers = {str(number): value.answer for number, value in enumerate(VALUES.values())}

    def choose(sent: Sent) -> bytes:
        said = answers.get(sent.case, MADE)
        return Last() if said is None else answer(201, said)

    tasks = "- {ansible.builtin.set_fact: {lines: [one two]}, register: earlier}\n" + "".join(
        task(number, name, path, value)
        for number, (name, value) in enumerate(VALUES.items())
        for path in PATHS
    )
    words = {"name": "web ü", "attributes": {"cpu": "5", "team": None}}
    return played(tasks + LOOP, choose, words=words)


@pytest.mark.parametrize("number", range(len(VALUES)), ids=VALUES)
def test_both_places_send_and_return_the_same(ran, number):
    name, value = list(VALUES.items())[number]
    one, other = (
        json.dumps(ran.run.result(f"{name}, {path}"), sort_keys=True).replace(path, "PATH")
        for path in PATHS
    )
    assert one == other
    sent = [(each.line, each.headers, each.body) for each in ran.service.sent_by(str(number))]
    assert len(sent) == (0 if value.refused else 2 * value.requests), one
    assert sent[: len(sent) // 2] == sent[len(sent) // 2 :]
    result = json.loads(one)
    if value.refused:
        seen = (result["failed"], result["outcome"], result["changed"])
        assert seen == (True, "not_sent", False)
        assert result["msg"].startswith(value.refused)


def test_the_next_item_runs_in_its_own_environment(ran):
    one, two = ran.run.items("loop")
    assert (one["failed"], one["outcome"]) == (True, "not_sent")
    assert (two["failed"], two["outcome"]) == (False, "accepted")
    assert [json.loads(sent.body)["name"] for sent in ran.service.sent_by("loop")] == ["two"]
