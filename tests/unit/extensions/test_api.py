# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The pure core of the emulator: what it is strict about, and both readings of what the interface leaves open."""

from __future__ import annotations

import json

import pytest
from emulator.api import Api
from emulator.messages import Request, Response
from emulator.settings import DEFAULT

MACHINES = "/api/v1/services/compute/virtual_machines"
ROLE = "/api/v1/services/cassandra/application_roles/role-1"
VM = {"name": "web01", "attributes": {"cpu": 4}}
BODY = json.dumps(VM).encode()
HEADERS = {"Authorization": "Bearer t", "Content-Type": "application/json"}
NOW = 1_767_323_045  # 2026-01-02T03:04:05Z


@pytest.fixture(scope="module")
def shared() -> Api:
    return Api(roles=["role-1"], clock=lambda: NOW)


@pytest.fixture
def api(shared: Api) -> Api:
    shared.reset()
    return shared


def call(api: Api, method: str, path: str, body: object = BODY, **headers: str | None) -> Response:
    """Send one request; keyword arguments replace headers, None leaves one out."""
    given = HEADERS | {name.replace("_", "-"): value for name, value in headers.items()}
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()
    pairs = tuple((name, value) for name, value in given.items() if value is not None)
    return api.handle(Request(method, path, pairs, raw))


def create(api: Api, body: object = BODY, **headers: str | None) -> Response:
    return call(api, "POST", MACHINES, body, **headers)


def update(api: Api, body: object, path: str = ROLE, **headers: str | None) -> Response:
    return call(api, "PUT", path, body, **headers)


def configure(api: Api, **settings: object) -> None:
    api.settings = DEFAULT.changed(settings)


def stored(api: Api) -> list[dict]:
    return api.snapshot()["virtual_machines"]


def test_a_create_fills_the_envelope(api):
    answer = create(api)
    asset = json.loads(answer.body)
    assert (answer.status, answer.applied) == (201, True)
    assert list(asset) == ["id", "name", "description", "service", "attributes", "platform", "region", "tenant"]
    assert (asset["name"], asset["service"], asset["tenant"]) == ("web01", "compute", None)
    attributes = {name: value for name, value in asset["attributes"].items() if value is not None}
    assert attributes == {
        "name": "web01", "cpu": 4, "creation_date": "2026-01-02T03:04:05Z", "ip": "10.0.0.1", "status": "created",
    }


def test_what_was_sent_wins_over_what_is_generated(api):
    asset = json.loads(create(api, {"name": "a", "attributes": {"ip": "192.0.2.7", "name": "b", "extra": [1]}}).body)
    assert (asset["attributes"]["ip"], asset["attributes"]["name"]) == ("192.0.2.7", "b")
    assert asset["attributes"]["extra"] == [1]


def test_the_service_alone_decides_the_rest_of_the_envelope(api):
    asset = json.loads(create(api, {**VM, "id": "mine", "service": 5, "extra": True}).body)
    assert asset["id"] != "mine"
    assert (asset["service"], asset["extra"]) == ("compute", True)


def test_a_create_is_not_idempotent(api):
    ids = {json.loads(create(api).body)["id"] for _time in range(3)}
    assert len(ids) == len(stored(api)) == 3
    assert len({machine["attributes"]["ip"] for machine in stored(api)}) == 3


def test_names_can_be_unique(api):
    configure(api, unique_names=True)
    assert [create(api).status for _time in range(2)] == [201, 409]
    assert len(stored(api)) == 1


@pytest.mark.parametrize(("unset", "shown"), [("null", {"description", "tenant"}), ("omit", set())])
def test_fields_without_a_value_are_null_or_left_out(api, unset, shown):
    configure(api, unset=unset)
    asset = json.loads(create(api).body)
    assert set(asset) & {"description", "tenant"} == shown
    assert ("team" in asset["attributes"]) == bool(shown)


@pytest.mark.parametrize("status", [200, 202, 204])
def test_the_success_status_is_a_switch(api, status):
    configure(api, create_status=status, update_status=status)
    assert [create(api).status, update(api, {}).status] == [status, status]


@pytest.mark.parametrize("body", [{}, {"name": "a"}, {"attributes": {}}, {"name": "", "attributes": {}}])
def test_required_fields_are_a_switch(api, body):
    assert create(api, body).status == 422
    configure(api, required="lenient")
    assert create(api, body).status == 201


@pytest.mark.parametrize(
    ("attributes", "wrong"),
    [
        ({"cpu": "4"}, True), ({"cpu": True}, True), ({"cpu": None}, True), ({"cpu": 4.5}, False),
        ({"volumes": {}}, True), ({"volumes": [{"size_gb": "1"}]}, True), ({"volumes": [{"size_gb": 1}]}, False),
        ({"creation_date": "2026-01-02"}, True), ({"creation_date": "2026-02-30T00:00:00Z"}, True),
        ({"creation_date": "2026-01-02T03:04:05Z"}, False), ({"puppet_classes": [1]}, True),
        ({"subnet": {"dns": 1}}, True), ({"unknown": 1}, False),
    ],
)
def test_types_are_those_of_the_document(api, attributes, wrong):
    assert create(api, {"name": "a", "attributes": attributes}).status == (422 if wrong else 201)


@pytest.mark.parametrize(
    "body",
    [b"", b"{", b"\xff{}", b'\xef\xbb\xbf{"name":"a"}', '{"name":"a"}'.encode("utf-16"), b'{"name":"a","name":"b"}',
     b'{"attributes":{"cpu":NaN}}', b'{"attributes":{"cpu":-Infinity}}', b'{"attributes":{"cpu":1e999}}', b"{} {}",
     b'{"x":' + b"[" * 1000 + b"]" * 1000 + b"}", b'{"x":' + b"[" * 100_000 + b"]" * 100_000 + b"}",
     b'{"attributes":{"cpu":' + b"9" * 5000 + b"}}"],
)
def test_json_is_read_strictly(api, body):
    assert create(api, body).status == 400
    assert stored(api) == []


def test_many_objects_side_by_side_are_not_deep(api):
    partitions = [{"path": "/", "free": 1}] * 1000
    assert create(api, {"name": "a", "attributes": {"partitions": partitions}}).status == 201


@pytest.mark.parametrize("body", [[], "text", 1, None, True])
def test_the_body_is_an_object(api, body):
    assert [create(api, body).status, update(api, body).status] == [422, 422]


@pytest.mark.parametrize(
    ("changes", "status"),
    [
        ({"Authorization": None}, 401), ({"Authorization": "Bearer"}, 401), ({"Authorization": "Basic dDp0"}, 401),
        ({"Authorization": "bearer t"}, 201), ({"Content_Type": None}, 415), ({"Content_Type": "text/plain"}, 415),
        ({"Content_Type": "Application/JSON; charset=utf-8"}, 201),
    ],
)
def test_headers_are_checked(api, changes, status):
    assert create(api, **changes).status == status


def test_an_unauthorized_request_is_told_the_scheme(api):
    assert create(api, Authorization=None).headers == (("WWW-Authenticate", 'Bearer realm="emulator"'),)
    configure(api, authorization="off")
    assert create(api, Authorization=None).status == 201


def test_one_static_token_is_good(api):
    configure(api, token="t")
    assert [create(api).status, create(api, Authorization="Bearer u").status] == [201, 401]


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", MACHINES, 405), ("PUT", MACHINES, 405), ("POST", ROLE, 405), ("POST", "/api/v1", 404),
        ("POST", "/", 404), ("POST", MACHINES + "/", 404), ("PUT", ROLE + "/x", 404), ("PUT", ROLE[:-6], 404),
        ("GET", "/oauth/token", 405),
        ("POST", MACHINES + "?a=b", 201), ("POST", "http://h:1" + MACHINES, 201), ("PUT", ROLE[:-6] + "%ff", 404),
    ],
)
def test_paths_and_methods_are_checked(api, method, path, status):
    answer = call(api, method, path)
    assert answer.status == status
    assert ("Allow" in dict(answer.headers)) == (status == 405)


@pytest.mark.parametrize(("method", "path"), [("POST", "/x"), ("GET", ROLE), ("POST", MACHINES)])
def test_errors_have_an_empty_body(api, method, path):
    answer = call(api, method, path, b"")
    assert (answer.status >= 400, answer.body, answer.applied) == (True, b"", False)


@pytest.mark.parametrize("encoded", ["a%2Fb", "%2e%2e", "r%C3%B6le", "%23", "a+b"])
def test_an_encoded_id_is_one_segment(api, encoded):
    configure(api, unknown_id="create")
    decoded = {"a%2Fb": "a/b", "%2e%2e": "..", "r%C3%B6le": "röle", "%23": "#", "a+b": "a+b"}[encoded]
    assert json.loads(update(api, {}, ROLE.replace("role-1", encoded)).body)["id"] == decoded


def test_an_unknown_role_is_refused_or_created(api):
    other = ROLE.replace("role-1", "role-2")
    assert update(api, {"name": "x"}, other).status == 404
    configure(api, unknown_id="create")
    assert update(api, {"name": "x"}, other).status == 200
    assert [role["id"] for role in api.snapshot()["application_roles"]] == ["role-1", "role-2"]


def test_the_id_of_a_machine_is_no_role(api):
    machine = json.loads(create(api).body)["id"]
    assert update(api, {}, ROLE.replace("role-1", machine)).status == 404


@pytest.mark.parametrize(
    ("mode", "expected"),
    [
        ("merge", {"name": "new", "tenant": "t", "attributes": {"login": True, "name": "n"}}),
        ("replace", {"name": "new", "attributes": {"login": True}}),
    ],
)
def test_an_update_merges_or_replaces(api, mode, expected):
    configure(api, put=mode, unset="omit")
    api.seed("role-1", {"name": "old", "tenant": "t", "attributes": {"login": False, "name": "n"}})
    asset = json.loads(update(api, {"name": "new", "id": "other", "attributes": {"login": True}}).body)
    assert {key: asset.get(key) for key in expected} == expected
    assert asset["id"] == "role-1"
    assert ("tenant" in asset) == (mode == "merge")


def test_a_null_in_an_update_is_taken_as_it_is(api):
    configure(api, unset="omit")
    asset = json.loads(update(api, {"tenant": None, "attributes": None}).body)
    assert (asset["tenant"], asset["attributes"]) == (None, None)
    configure(api, unset="null")
    assert json.loads(update(api, {}).body)["attributes"]["login"] is None


@pytest.mark.parametrize("body", [{"name": 1}, {"attributes": []}, {"attributes": {"login": "yes"}}])
def test_documented_fields_of_an_update_are_typed(api, body):
    assert update(api, body).status == 422


def test_half_of_a_surrogate_pair_does_no_harm(api):
    assert create(api, b'{"name":"\\ud800","attributes":{}}').status == 201
    assert stored(api)[0]["name"] == "\ud800"
