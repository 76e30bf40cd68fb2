# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The control endpoints of the emulator: what they do, and how they refuse."""

from __future__ import annotations

import json
import re
from pathlib import Path

import emulator as package
import pytest
import requests
from emulator import control
from emulator.faults import KINDS
from emulator.settings import DEFAULT, RULES

README = Path(package.__file__).with_name("README.md").read_text(encoding="utf-8")


@pytest.fixture
def call(emulator):
    def send(method: str, path: str, **options: object) -> tuple[int, object]:
        headers = {"Content-Type": "application/json"}
        answer = requests.request(
            method, f"{emulator.url}/_emulator/{path}", timeout=5, headers=headers, **options
        )
        return answer.status_code, answer.json()

    return send


def test_reset_restores_the_initial_state(call, emulator):
    call("PUT", "settings", json={"put": "replace"})
    call("PUT", "assets/other", json={})
    call("POST", "faults", json={"kind": "drop", "skip": 9})
    requests.get(f"{emulator.url}/x", timeout=5)
    assert call("POST", "reset") == (200, {})
    assert call("GET", "settings")[1]["put"] == "merge"
    assert [role["id"] for role in call("GET", "assets")[1]["application_roles"]] == ["role-1"]
    assert (call("GET", "faults"), call("GET", "requests")) == ((200, []), (200, []))
    health = {"status": "ok", "requests": 0, "virtual_machines": 0, "application_roles": 1}
    assert call("GET", "health") == (200, health)


def test_settings_that_are_not_sent_are_kept(call):
    call("PUT", "settings", json={"put": "replace", "token": "t"})
    status, settings = call("PUT", "settings", json={"scopes": ["a"], "token": None})
    assert status == 200
    assert settings == {
        **DEFAULT.as_dict(),
        "grant_types": ["client_credentials"],
        "put": "replace",
        "scopes": ["a"],
    }
    assert call("GET", "settings") == (200, settings)


@pytest.mark.parametrize(
    "values",
    [
        [],
        {"typo": 1},
        {"required": "no"},
        {"put": None},
        {"unknown_id": ["refuse"]},
        {"unset": "x"},
        {"unique_names": 1},
        {"create_status": 404},
        {"update_status": "200"},
        {"create_status": True},
        {"authorization": "on"},
        {"token": 1},
        {"client_authentication": "x"},
        {"grant_types": None},
        {"grant_types": "x"},
        {"scopes": [1]},
        {"expires_in": 1.5},
        {"rate": 0},
        {"rate": 1.5},
        {"capacity": 0},
        {"queue": -1},
        {"retry_after": "1"},
        {"delay": 1},
        {"delay": {"typo": 1}},
        {"delay": {"any": -1}},
        {"delay": {"any": True}},
    ],
)
def test_invalid_settings_are_refused_and_change_nothing(call, values):
    status, body = call("PUT", "settings", json=values)
    assert status == 400
    assert re.search("cannot be|is an object|are an object", body["message"])
    assert call("GET", "settings")[1]["create_status"] == 201


def test_a_role_can_be_put(call):
    role = {"name": "n", "id": "not this", "attributes": {"login": True}}
    expected = {"service": "cassandra", "name": "n", "id": "a/b", "attributes": {"login": True}}
    assert call("PUT", "assets/a%2Fb", json=role) == (200, expected)
    assert call("GET", "assets")[1]["application_roles"][1] == expected


@pytest.mark.parametrize("asset", [[], {"name": 1}, {"attributes": {"login": "yes"}}])
def test_an_invalid_role_cannot_be_put(call, asset):
    assert call("PUT", "assets/x", json=asset)[0] == 400


@pytest.mark.parametrize("body", [b"", b"{", b'{"kind":"drop","kind":"drop"}', b'{"kind":"x"}'])
def test_a_bad_fault_is_refused(call, body):
    status, answer = call("POST", "faults", data=body)
    assert (status, bool(answer["message"])) == (400, True)
    assert call("GET", "faults") == (200, [])


def test_faults_are_listed_and_removed(call):
    fault = {"kind": "drop", "operation": "any", "count": 2, "skip": 0, "when": "before"}
    status, added = call("POST", "faults", json={"kind": "drop", "count": 2})
    assert (status, added) == (200, {"id": added["id"], **fault})
    assert call("GET", "faults") == (200, [added])
    assert call("DELETE", "faults") == (200, {})
    assert call("GET", "faults") == (200, [])


def test_one_fault_of_several_is_removed(call, emulator):
    ids = [
        call("POST", "faults", json={"kind": "status", "status": status})[1]["id"]
        for status in (501, 502, 503)
    ]
    assert call("DELETE", f"faults/{ids[1]}") == (200, {})
    assert [fault["id"] for fault in call("GET", "faults")[1]] == [ids[0], ids[2]]
    assert [requests.get(f"{emulator.url}/x", timeout=5).status_code for _time in range(3)] == [
        501,
        503,
        404,
    ]


def test_a_fault_that_is_gone_stays_gone(call):
    old = call("POST", "faults", json={"kind": "drop"})[1]["id"]
    call("POST", "reset")
    new = call("POST", "faults", json={"kind": "drop"})[1]["id"]
    for name in (old, "x", "%C2%B2"):
        assert call("DELETE", f"faults/{name}")[0] == 404
    assert [fault["id"] for fault in call("GET", "faults")[1]] == [new]


def test_the_conversation_can_be_cleared(call, emulator):
    requests.get(f"{emulator.url}/x", timeout=5)
    assert len(call("GET", "requests")[1]) == 1
    assert call("DELETE", "requests") == (200, {})
    assert call("GET", "requests") == (200, [])


@pytest.mark.parametrize(
    ("last", "numbers"), [("0", []), ("2", [2, 3]), ("3", [1, 2, 3]), ("9", [1, 2, 3])]
)
def test_only_the_newest_entries_can_be_requested(call, emulator, last, numbers):
    for number in (1, 2, 3):
        requests.get(f"{emulator.url}/x", timeout=5)
        call("PUT", f"assets/{number}", json={})
    assert [entry["number"] for entry in call("GET", f"requests?last={last}")[1]] == numbers
    roles = call("GET", f"assets?last={last}")[1]["application_roles"]
    assert [role["id"] for role in roles if role["id"] != "role-1"] == [
        str(number) for number in numbers
    ]


@pytest.mark.parametrize("last", ["-1", "x", "1.5", "%C2%B2"])
@pytest.mark.parametrize("path", ["requests", "assets"])
def test_last_must_be_a_number(call, path, last):
    status, answer = call("GET", f"{path}?last={last}")
    assert (status, "last cannot be" in answer["message"]) == (400, True)


def test_issued_tokens_can_be_revoked(call, emulator):
    grant = {"grant_type": "client_credentials", "client_id": "a", "client_secret": "b"}
    requests.post(f"{emulator.url}/oauth/token", data=grant, timeout=5)
    assert call("GET", "tokens") == (200, {"requests": 1, "issued": 1, "good": 1})
    assert call("DELETE", "tokens") == (200, {})
    assert call("GET", "tokens") == (200, {"requests": 1, "issued": 1, "good": 0})


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "nothing", 404),
        ("GET", "", 404),
        ("GET", "health/x", 404),
        ("GET", "reset", 405),
        ("GET", "assets/x", 405),
    ],
)
def test_unknown_paths_and_methods_are_reported(call, method, path, status):
    answer = call(method, path)
    assert (answer[0], bool(answer[1]["message"])) == (status, True)


def test_the_readme_names_every_setting_kind_and_route():
    named = set(re.findall(r"`([^`]+)`", re.sub(r"```.*?```", "", README, flags=re.DOTALL)))
    routes = {f"{method} {path}" for path, methods in control._ROUTES.items() for method in methods}
    parameters = {name for kind in KINDS.values() for name in kind.parameters}
    assert (set(RULES) | set(KINDS) | routes | parameters) <= named


def test_the_readme_names_the_defaults():
    section = README.partition("## Settings")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| (`\w+`(?:, `\w+`)*) \| ([^|]*) \|", section, re.MULTILINE)
    cells = {
        name: values.replace("`", "")
        for names, values in rows
        for name in re.findall(r"\w+", names)
    }
    for name, value in DEFAULT.as_dict().items():
        shown = value if isinstance(value, str) else json.dumps(value)
        assert re.search(rf"(^|, ){re.escape(shown)}([,;]|$)", cells[name]), name
