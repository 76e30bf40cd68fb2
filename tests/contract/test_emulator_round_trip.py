# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is sent to the emulator comes back and persists: bodies generated from the OpenAPI document,
over the socket.
"""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
import requests
from emulator.openapi import load, validator
from emulator.server import Running, start
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

SCHEMAS = load()["components"]["schemas"]
BOUNDED = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
CREATE, UPDATE = (
    "/api/v1/services/compute/virtual_machines",
    "/api/v1/services/cassandra/application_roles/role-1",
)
HEADERS = {"Authorization": "Bearer t", "Content-Type": "application/json"}

TEXT = st.text(max_size=8)
PLAIN = {
    "string": TEXT,
    "number": st.integers() | st.floats(allow_nan=False, allow_infinity=False),
    "boolean": st.booleans(),
    "null": st.none(),
}
DATE_TIMES = st.datetimes().map(lambda moment: moment.replace(microsecond=0).isoformat() + "Z")


def bodies(schema: dict, unknown: bool = True) -> st.SearchStrategy:
    """Return values that the schema admits: with fields left out and, in objects, with an unknown
    field.
    """
    if schema.get("format") == "date-time":
        return DATE_TIMES
    kinds = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
    return st.one_of([_kind(schema, kind, unknown) for kind in kinds])


def _kind(schema: dict, kind: str, unknown: bool) -> st.SearchStrategy:
    if kind == "object":
        known = {name: bodies(field) for name, field in schema["properties"].items()}
        more = {"x-unknown": st.lists(TEXT | st.integers(), max_size=2)} if unknown else {}
        return st.fixed_dictionaries({}, optional=known | more)
    if kind == "array":
        return st.lists(bodies(schema["items"]), max_size=2)
    return PLAIN[kind]


@pytest.fixture(scope="module")
def running() -> Iterator[Running]:
    with start(roles=["role-1"], required="lenient", unset="omit") as server:
        yield server


def send(running: Running, method: str, path: str, body: dict) -> dict:
    raw = json.dumps(body, ensure_ascii=False).encode()
    answer = requests.request(method, running.url + path, data=raw, headers=HEADERS, timeout=10)
    assert answer.ok, (answer.status_code, body)
    return answer.json()


def within(sent: object, found: object) -> bool:
    """Whether everything that was sent is in the answer, where objects may have further members."""
    if isinstance(sent, dict) and isinstance(found, dict):
        return all(key in found and within(item, found[key]) for key, item in sent.items())
    if isinstance(sent, list) and isinstance(found, list):
        return len(sent) == len(found) and all(map(within, sent, found))
    return type(sent) is type(found) and sent == found


@BOUNDED
@given(body=bodies(SCHEMAS["VirtualMachineCreate"]))
def test_a_created_machine_has_everything_that_was_sent(running, body):
    running.api.reset()
    asset = send(running, "POST", CREATE, body)
    validator(SCHEMAS["VirtualMachine"]).validate(asset)
    assert within(body, asset)
    assert requests.get(f"{running.url}/_emulator/assets", timeout=10).json()[
        "virtual_machines"
    ] == [asset]
    (entry,) = requests.get(f"{running.url}/_emulator/requests", timeout=10).json()
    assert json.loads(entry["body"]) == body


@BOUNDED
@given(
    first=bodies(SCHEMAS["ApplicationRoleUpdate"]), second=bodies(SCHEMAS["ApplicationRoleUpdate"])
)
def test_a_merge_keeps_other_fields_and_a_replacement_drops_them(running, first, second):
    for mode in ("merge", "replace"):
        running.api.reset()
        running.api.settings = running.api.settings.changed({"put": mode})
        send(running, "PUT", UPDATE, first)
        asset = send(running, "PUT", UPDATE, second)
        validator(SCHEMAS["ApplicationRole"]).validate(asset)
        assert within(second, asset)
        kept = {key: item for key, item in first.items() if key not in second}
        assert within(kept, asset) if mode == "merge" else asset == {**second, "id": "role-1"}
