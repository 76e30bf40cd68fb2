# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The table of cases whose results must not depend on where a task runs.

A case is a task as a user writes it in YAML; `{{ url }}` is the address that serves the case's own
answers.
"""

from __future__ import annotations

from typing import NamedTuple

from support.wire import Last, answer

TOKEN_OF_THE_RUN = "parity-token"
ASSET = {
    "id": "asset-1",
    "name": "web01",
    "description": None,
    "service": "s",
    "attributes": {"cpu": 4},
    "platform": "p",
    "region": "r",
    "tenant": "t",
}
CREATED, UPDATED = answer(201, ASSET), answer(200, ASSET)
TOKEN, NEW_TOKEN = (
    answer(200, {"access_token": token, "token_type": "Bearer", "expires_in": 3600})
    for token in ("fetched/to+ken", "another/to+ken")
)
CLIENT = (
    """auth_url: "{{ url }}/token", client_id: me, client_secret: 'se"cr/et', access_token: null"""
)


class Case(NamedTuple):
    """A task: the module's options and the task's keywords, in YAML; what the service answers; the
    expected outcome.
    """

    module: str
    options: str
    outcome: str
    answers: tuple[bytes, ...]
    keywords: str


def create(options: str, outcome: str = "accepted", *answers: bytes, keywords: str = "{}") -> Case:
    """A creation; the service accepts it unless told otherwise or not needed."""
    return Case(
        "compute_virtual_machine",
        options,
        outcome,
        answers or ((CREATED,) * (outcome == "accepted")),
        keywords,
    )


def update(options: str, outcome: str = "accepted", *answers: bytes, keywords: str = "{}") -> Case:
    """An update, likewise."""
    return Case(
        "cassandra_application_role",
        options,
        outcome,
        answers or ((UPDATED,) * (outcome == "accepted")),
        keywords,
    )


FULL = """{name: web01, attributes: {bios_serial_number: b, cdc_security: {anti_tamper: "on", uuid: u}, cpu: 4, vm_ram: 16.5,
  creation_date: "2026-01-02T03:04:05+02:00", global_status: {label: up, status: 1}, partitions: [{capacity: 1, free: 0.5, path: /},
  {path: /var}], puppet_classes: [a, b], subnet: {dns: null, mask: 255.255.255.0}, volumes: [{name: root, size_gb: 40}]}}"""

VALUES = {
    "required options only": create("{name: web01}"),
    "null for a default": create("{name: x, timeout: null, http_agent: null}"),
    "every attribute": create(FULL),
    "k=v": create("'name=web01 retries=2 validate_certs=yes'"),
    "k=v with json": create(r"""'name=web01 attributes=''{"cpu": 2, "team": null}'''"""),
    "number for a string": create(
        "{name: 42, attributes: {team: 150, instance: 1e3, status: 0o17}}"
    ),
    "big number for a string": create("{name: 123456789012345678901234567890}"),
    "string for a number": create(
        "{name: x, attributes: {cpu: '4', vm_ram: ' 8.0 ', memory_used_percent: '1e1'}}"
    ),
    "big numbers": create("{name: x, attributes: {cpu: 1180591620717411303424, vm_ram: 1.0e+300}}"),
    "negative zero and fractions": create(
        "{name: x, attributes: {cpu: -0.0, vm_ram: 0.1, memory_used_percent: 12.5}}"
    ),
    "string for a list": create("{name: x, attributes: {puppet_classes: 'a,b'}}"),
    "scalar for a list": create("{name: x, attributes: {puppet_classes: 5}}"),
    "mixed list": create("{name: x, attributes: {puppet_classes: [a, 1, 25]}}"),
    "empty containers": create(
        "{name: x, attributes: {puppet_classes: [], volumes: [], subnet: {}}, extra_attributes: {}}"
    ),
    "json for a dict": create(
        """{name: x, attributes: '{"cpu": 3}', extra_attributes: "a=1 b='2 3'"}"""
    ),
    "unquoted timestamps": create(
        "{name: x, attributes: {creation_date: 2026-01-02 03:04:05Z, last_reboot_date: 2026-01-02T03:04:05.5+01:00}}"
    ),
    "timestamps in extra_attributes": create(
        "{name: x, extra_attributes: {day: 2026-01-02, moment: 2026-01-02 03:04:05}}"
    ),
    "null options": create(
        "{name: x, attributes: null, extra_attributes: null, ca_path: null, scopes: null}"
    ),
    "nested nulls": create(
        "{name: x, attributes: {cpu: null, subnet: {dns: null}, volumes: [{name: null}]}, extra_attributes: {a: {b: null, c: [null, 1]}}}"
    ),
    "omitted": create(
        "{name: x, timeout: '{{ omit }}', attributes: {cpu: '{{ omit }}', subnet: {dns: '{{ omit }}', mask: m}}}"
    ),
    "keys that are no strings": create(
        "{name: x, extra_attributes: {1: a, 2.5: b, true: c, null: d, nested: {7: [{8: e}]}}}"
    ),
    "unicode": create(
        "{name: 'bücher ✓ 🖥 \u202e\u0000 \x7f', attributes: {team: 'Ω'}, extra_attributes: {ключ: 'значение'}}".replace(
            "\x00", ""
        ).replace("\x7f", "")
    ),
    "escapes": create(
        r"""{name: "a\\b\"c\td\u0085\u2028", extra_attributes: {"k\\\"": "{not: jinja}"}}"""
    ),
    "templated": create(
        "{name: '{{ words.name }}', attributes: {cpu: '{{ words.cpu }}', team: 'no {{ words.cpu }}', puppet_classes: '{{ words.list }}'}}"
    ),
    "templated whole": create(
        "{name: x, attributes: '{{ words.attributes }}', extra_attributes: '{{ words.extra }}', validate_certs: '{{ words.flag }}'}"
    ),
    "templated by filters": create(
        "{name: \"{{ ['a', 'b'] | join('-') }}\", "
        "attributes: {puppet_classes: \"{{ ['b', 'a'] | map('upper') | list }}\", cpu: '{{ 2 + 2 }}'}}"
    ),
    "result of another task": create(
        "{name: '{{ earlier.ansible_facts.stdout_lines[0] }}', extra_attributes: '{{ earlier }}'}"
    ),
    "unsafe": create(
        "{name: !unsafe '{{ undefined }} {% x %}', extra_attributes: {a: !unsafe '{{ b }}'}}"
    ),
    "vaulted": create(
        "{name: '{{ vaulted }}', attributes: {team: '{{ vaulted }}', puppet_classes: ['{{ vaulted }}']}, "
        "extra_attributes: {a: ['{{ vaulted }}']}}"
    ),
    "vaulted in a structure": create("{name: x, extra_attributes: '{{ structure }}'}"),
    "vaulted token": create("{name: x, access_token: '{{ token }}'}"),
    "vaulted in place": update("{id: r, name: @VAULT@, attributes: {name: @VAULT@}}"),
    "vaulted in a body": update("{id: r, body: {a: [@VAULT@], b: '{{ vaulted }}'}}"),
    "role": update(
        "{id: 'a/b ü', name: n, description: '', service: s, attributes: {login: 'yes', effective_grants: [{permissions: 'A,B', source: null}]}}"
    ),
    "verbatim body": update(
        "{id: r, body: {a: null, b: [null, 1.0, 2.50, true, '', 2026-01-02], 3: {4: 5}, name: '{{ words.name }}'}}"
    ),
    "large and small numbers in a body": update(
        "{id: r, body: {a: 1180591620717411303424, b: 1.0e-7, c: -0.0, d: [], e: {}}}"
    ),
    "current state is as wanted": update(
        "{id: r, attributes: {login: true}, current: {id: r, attributes: {login: true, x: 1}}}",
        "not_sent",
    ),
    "current state differs": update(
        "{id: r, attributes: {login: true}, current: {id: r, attributes: {login: false}}}",
        keywords="{diff: true}",
    ),
    "other transport options": create(
        "{name: x, use_proxy: 'off', http_agent: me/1, timeout: '5', connect_timeout: 2.5, retries: '0', retry_max_delay: 1}"
    ),
}

MODES = {
    "check": create(FULL, "not_sent", keywords="{check_mode: true}"),
    "check and diff": create(FULL, "not_sent", keywords="{check_mode: true, diff: true}"),
    "check of a role": update(
        "{id: r, body: {a: 1}, current: {b: 2}}",
        "not_sent",
        keywords="{check_mode: true, diff: true}",
    ),
    "check with a client": create(
        "{name: x, %s}" % CLIENT, "not_sent", keywords="{check_mode: true}"
    ),
    "diff": create("{name: x}", keywords="{diff: true}"),
    "no_log": create("{name: x}", "", CREATED, keywords="{no_log: true}"),
    "module_defaults": create(
        "{attributes: {cpu: 1}}",
        keywords="{module_defaults: {infrastructure.services.compute_virtual_machine: {name: by default}}}",
    ),
    "group of module_defaults": create(
        "{name: x}",
        keywords="{module_defaults: "
        " {group/infrastructure.services.all: {base_url: '{{ url }}', access_token: by-group}}}",
    ),
    "changed_when": create("{name: x}", keywords="{changed_when: false}"),
    "failed_when": create("{name: x}", "rejected", answer(403), keywords="{failed_when: false}"),
    "until": create(
        "{name: x}",
        "accepted",
        answer(409),
        CREATED,
        keywords="{until: r.outcome == 'accepted', retries: 2, delay: 0, register: r}",
    ),
    "delegated": create("{name: x}", keywords="{delegate_to: localhost}"),
    "loop": create(
        "{name: 'x{{ item }}', attributes: {cpu: '{{ item }}'}}",
        "",
        CREATED,
        answer(409),
        CREATED,
        keywords="{loop: [1, 2, three, 4]}",
    ),
}

REFUSED = {
    name: create(options, "not_sent")
    for name, options in {
        "no name": "{attributes: {}}",
        "empty name": "{name: ''}",
        "unknown options": "{name: x, nmae: y, state: present}",
        "unknown attribute": "{name: x, attributes: {cpus: 1}}",
        "unknown attribute of a volume": "{name: x, attributes: {volumes: [{size: 1}, {name: a}, {nmae: b}]}}",
        "boolean for a string": "{name: yes}",
        "fraction for a string": "{name: x, attributes: {team: 1.50}}",
        "fraction in a list of strings": "{name: x, attributes: {puppet_classes: [a, 2.5]}}",
        "text for a number": "{name: x, attributes: {cpu: four, vm_ram: five}}",
        "not a number": "{name: x, attributes: {cpu: .nan}}",
        "infinity": "{name: x, extra_attributes: {a: .inf}}",
        "dict for a list": "{name: x, attributes: {volumes: {name: y}}}",
        "text for a dict": "{name: x, attributes: nothing}",
        "list for a string": "{name: [x]}",
        "null in a list": "{name: x, attributes: {puppet_classes: [a, null]}}",
        "date without a time": "{name: x, attributes: {creation_date: 2026-01-02}}",
        "attribute in extra_attributes too": "{name: x, extra_attributes: {cpu: 1}}",
        "text for an int": "{name: x, retries: three}",
        "fraction for an int": "{name: x, retries: 1.5}",
        "text for a bool": "{name: x, validate_certs: perhaps}",
        "value that is not a choice": "{name: x, client_authentication: digest}",
        "secret in a url": "{name: x, base_url: 'https://me:secret@127.0.0.1'}",
        "http to another machine": "{name: x, base_url: 'http://service.example'}",
        "token with a line break": '{name: x, access_token: "bad token\\nX-Header: y"}',
        "dict for a token": "{name: x, access_token: {a: b}}",
        "text for auth_parameters": "{name: x, auth_parameters: hidden-thing}",
        "client without a secret": '{name: x, access_token: null, auth_url: "{{ url }}/token", client_id: me}',
        "missing ca_path": "{name: x, ca_path: no/such/file}",
        "ca_path in the directory of the playbook": "{name: x, ca_path: authorities/none.pem}",
        "ca_path in the home directory": "{name: x, ca_path: '~/no-such-file'}",
        "client_key without client_cert": "{name: x, client_key: key.pem}",
    }.items()
}
REFUSED |= {
    "body and more": update("{id: r, body: {a: 1}, name: n, attributes: {}}", "not_sent"),
    "nothing to send": update("{id: r}", "not_sent"),
    "nothing but null": update("{id: r, attributes: {login: null}}", "not_sent"),
    "id of two dots": update("{id: .., name: n}", "not_sent"),
    "text for a boolean": update("{id: r, attributes: {login: perhaps}}", "not_sent"),
}

FAILURES = {
    "nothing listens": create(
        "{name: x, base_url: '{{ nobody }}', retries: 1, retry_max_delay: 0}", "not_sent"
    ),
    "400": create("{name: x}", "rejected", answer(400)),
    "401": create("{name: x}", "rejected", answer(401, None, "X-Request-Id: 7")),
    "429 with a long wait": create("{name: x}", "rejected", answer(429, None, "Retry-After: 3600")),
    "429, then 201": create("{name: x}", "accepted", answer(429, None, "Retry-After: 0"), CREATED),
    "redirect": create(
        "{name: x}", "rejected", answer(307, None, "Location: https://elsewhere.example/x")
    ),
    "500": create("{name: x}", "unknown", answer(500)),
    "503 of an update": update(
        "{id: r, name: n, retry_max_delay: 0, retries: 2}", "unknown", *[answer(503)] * 3
    ),
    "503, then 200": update(
        "{id: r, name: n, retry_max_delay: 0}", "accepted", answer(503), UPDATED
    ),
    "no answer": create("{name: x}", "unknown", Last()),
    "not HTTP": create("{name: x}", "unknown", Last(b"SSH-2.0\r\n")),
    "truncated headers": create("{name: x}", "unknown", Last(CREATED[:30])),
    "truncated body": create("{name: x}", "accepted", Last(CREATED[:-5])),
    "no body": create("{name: x}", "accepted", answer(204)),
    "list instead of an object": create("{name: x}", "accepted", answer(200, [1])),
    "not UTF-8": create(
        "{name: x}", "accepted", b'HTTP/1.1 200 -\r\nContent-Length: 7\r\n\r\n{"\xff":1}'
    ),
    "duplicate key in the answer": create(
        "{name: x}", "accepted", b'HTTP/1.1 200 -\r\nContent-Length: 13\r\n\r\n{"a":1,"a":2}'
    ),
}

TOKENS = {
    "client": create("{name: x, %s, scopes: 'a b,c'}" % CLIENT, "accepted", TOKEN, CREATED),
    "client by form": create(
        "{name: x, %s, client_authentication: post, auth_parameters: {audience: hidden, n: 5, b: true, z: null}}"
        % CLIENT,
        "accepted",
        TOKEN,
        answer(201, dict(ASSET, name="hidden", hidden=[5, True])),
    ),
    "client refused": create(
        "{name: x, %s}" % CLIENT,
        "not_sent",
        answer(400, {"error": "invalid_client", "error_description": 'not se"cr/et'}),
    ),
    "token endpoint fails": create(
        "{name: x, retries: 1, retry_max_delay: 0, %s}" % CLIENT,
        "not_sent",
        answer(503),
        answer(503),
    ),
    "malformed token": create(
        "{name: x, retries: 0, %s}" % CLIENT, "not_sent", answer(200, {"access_token": "two words"})
    ),
    "token endpoint without an answer": create(
        "{name: x, retries: 0, %s}" % CLIENT, "not_sent", Last()
    ),
    "token renewed": update(
        "{id: r, name: n, %s}" % CLIENT, "accepted", TOKEN, answer(401), NEW_TOKEN, UPDATED
    ),
    "token refused twice": update(
        "{id: r, name: n, %s}" % CLIENT, "rejected", TOKEN, answer(401), NEW_TOKEN, answer(401)
    ),
    "secrets in the answer": create(
        "{name: x, %s}" % CLIENT,
        "accepted",
        TOKEN,
        answer(
            201,
            {
                "name": 'se"cr/et',
                "fetched/to+ken": "Bearer fetched/to+ken",
                "list": [
                    "bWU6c2UlMjJjciUyRmV0",
                    {'a se"cr/et': {"fetched%2Fto%2Bken": 'se\\"cr/et'}},
                ],
            },
        ),
    ),
    "secrets in the options": create(
        "{name: 'my-token', access_token: my-token, attributes: {team: a my-token b}, extra_attributes: {my-token: 1}}"
    ),
    "short secret": create("{name: 'x1', access_token: '1', attributes: {cpu: 1}}"),
    "numbers like a secret": create("{name: x, access_token: 12345, attributes: {cpu: 12345}}"),
}

ANSWERS = {
    name: create("{name: x}", "accepted", answer(201, asset))
    for name, asset in {
        "template": {
            "name": "{{ 1 + 1 }}",
            "attributes": {"{{ key }}": ["{% raw %}", "{{ lookup('pipe', 'id') }}"]},
        },
        "ansible's own keys": {
            "failed": True,
            "changed": False,
            "invocation": 1,
            "warnings": ["w"],
            "exception": "e",
            "rc": 7,
            "ansible_facts": {"a": 1},
            "_ansible_no_log": True,
            "skipped": True,
            "stdout": "a\nb",
            "results": [1],
        },
        "keys that mark encoded values": {
            "a": {"__ansible_unsafe": "u"},
            "b": {"__ansible_vault": "v"},
            "c": {"__ansible_type": "x", "value": 1},
        },
        "connection variables": {
            "ansible_connection": "ssh",
            "ansible_python_interpreter": "/x",
            "discovered_interpreter_python": "/y",
        },
        "numbers": {"id": "1", "a": 2**80, "b": -0.0, "c": 1e300, "d": 0.1, "e": 10**400},
        "strings": {
            "id": "é\u0000\u2028🖥",
            "a": "",
            "b": "x" * 70000,
            "c": "null",
            "d": '{"a": 1}',
            "e": "[1]",
        },
        "another name": {"name": "y", "attributes": None},
        "deeply nested": {"a": [[[[[[[[[[{"b": {"c": {}}}]]]]]]]]]]},
        "empty": {},
    }.items()
}
ANSWERS |= {
    "validate_certs": create("{name: x, validate_certs: false}"),
    "two warnings": create(
        "{name: x, validate_certs: false}", "accepted", answer(201, {"name": "y"})
    ),
}

# What depends neither on how Ansible hands options to a module nor on how it takes back the result,
# except the first of each group: the module runs in the process of the tests.
WITH_ANSIBLE = {
    # a result with warnings, which core encodes:
    "429, then 201",
    "503, then 200",
    "client by form",
    "token renewed",
    "secrets in the answer",
    "secrets in the options",
    "short secret",
    "numbers like a secret",
    "secret in a url",
}
WITHOUT_ANSIBLE = {
    f"{group}: {name}"
    for group, cases in {"refused": REFUSED, "failures": FAILURES, "tokens": TOKENS}.items()
    for name in list(cases)[1:]
    if name not in WITH_ANSIBLE
}

CASES = {
    f"{group}: {name}": case
    for group, cases in {
        "values": VALUES,
        "modes": MODES,
        "refused": REFUSED,
        "failures": FAILURES,
        "tokens": TOKENS,
        "answers": ANSWERS,
    }.items()
    for name, case in cases.items()
}
