"""The control endpoints of the emulator: what they do, and how they refuse."""

from __future__ import annotations

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
        {"unique_names": 1},
        {"create_status": 404},
        {"token": 1},
        {"grant_types": None},
        {"scopes": [1]},
        {"expires_in": 1.5},
        {"rate": 0},
        {"retry_after": "1"},
        {"delay": 1},
        {"delay": {"any": -1}},
    ],
)
def test_invalid_settings_are_refused_and_change_nothing(call, values):
    status, body = call("PUT", "settings", json=values)
    assert status == 400
    assert re.search("cannot be|is an object|are an object", body["message"])
    assert call("GET", "settings")[1]["create_status"] == 201


@pytest.mark.parametrize("body", [b"", b"{", b'{"kind":"drop","kind":"drop"}', b'{"kind":"x"}'])
def test_a_bad_fault_is_refused(call, body):
    status, answer = call("POST", "faults", data=body)
    assert (status, bool(answer["message"])) == (400, True)
    assert call("GET", "faults") == (200, [])


def test_the_readme_names_every_setting_kind_and_route():
    named = set(re.findall(r"`([^`]+)`", re.sub(r"```.*?```", "", README, flags=re.DOTALL)))
    routes = {f"{method} {path}" for path, methods in control._ROUTES.items() for method in methods}
    parameters = {name for kind in KINDS.values() for name in kind.parameters}
    assert (set(RULES) | set(KINDS) | routes | parameters) <= named
