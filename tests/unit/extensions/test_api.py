"""The pure core of the emulator: what the operations do, and what they are strict about."""

from __future__ import annotations

import json

import pytest

MACHINES = "/api/v1/services/compute/virtual_machines"
ROLE = "/api/v1/services/cassandra/application_roles/role-1"
VM = {"name": "web01", "attributes": {"cpu": 4}}


def test_a_create_fills_the_envelope(core):
    answer = core.create()
    asset = json.loads(answer.body)
    assert (answer.status, answer.applied) == (201, True)
    assert list(asset) == [
        "id",
        "name",
        "description",
        "service",
        "attributes",
        "platform",
        "region",
        "tenant",
    ]
    assert (asset["name"], asset["service"], asset["tenant"]) == ("web01", "compute", None)
    attributes = {name: value for name, value in asset["attributes"].items() if value is not None}
    assert attributes == {
        "name": "web01",
        "cpu": 4,
        "creation_date": "2026-01-02T03:04:05Z",
        "ip": "10.0.0.1",
        "status": "created",
    }


def test_only_the_service_sets_the_rest_of_the_envelope(core):
    said = {**VM, "id": "mine", "service": 5, "extra": True, "attributes": {"ip": "192.0.2.7"}}
    asset = json.loads(core.create(said).body)
    assert asset["id"] != "mine"
    assert (asset["service"], asset["extra"]) == ("compute", True)
    assert asset["attributes"]["ip"] == "192.0.2.7"


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"\xff{}",
        b'\xef\xbb\xbf{"name":"a"}',
        b'{"name":"a","name":"b"}',
        b'{"attributes":{"cpu":NaN}}',
        b'{"attributes":{"cpu":1e999}}',
        b'{"x":' + b"[" * 100_000 + b"]" * 100_000 + b"}",
        b'{"attributes":{"cpu":' + b"9" * 5000 + b"}}",
    ],
)
def test_json_is_read_strictly(core, body):
    assert core.create(body).status == 400
    assert core.stored() == []


@pytest.mark.parametrize(
    ("changes", "status"),
    [
        ({"Authorization": None}, 401),
        ({"Authorization": "Basic dDp0"}, 401),
        ({"Authorization": "bearer t"}, 201),
        ({"Content_Type": None}, 415),
        ({"Content_Type": "text/plain"}, 415),
        ({"Content_Type": "Application/JSON; charset=utf-8"}, 201),
    ],
)
def test_headers_are_checked(core, changes, status):
    assert core.create(**changes).status == status


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", MACHINES, 405),
        ("POST", ROLE, 405),
        ("POST", "/", 404),
        ("POST", MACHINES + "/", 404),
        ("PUT", ROLE[:-6], 404),
        ("GET", "/oauth/token", 405),
        ("POST", MACHINES + "?a=b", 201),
        ("POST", "http://h:1" + MACHINES, 201),
        ("PUT", ROLE[:-6] + "%ff", 404),
    ],
)
def test_paths_and_methods_are_checked(core, method, path, status):
    answer = core.call(method, path)
    assert answer.status == status
    assert ("Allow" in dict(answer.headers)) == (status == 405)
