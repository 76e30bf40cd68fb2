"""A call follows the policy, fetches and renews its token, and reports what it did, on a real wire."""

from __future__ import annotations

import json

import pytest
from ansible_collections.infrastructure.services.plugins.module_utils._http import transport
from ansible_collections.infrastructure.services.plugins.module_utils._task.task import carry_out
from support import CREATE, LEAST, SPECS, UPDATE, Context, ServicesError, run_task, validate
from support.wire import answer, serving

ASSET = {"id": "a1", "name": "web01", "attributes": {}}
TOKEN = answer(200, {"access_token": "fetched", "token_type": "Bearer", "expires_in": 3600})


def call(resource: str, *answers: bytes, **options):
    """Run a task against these answers; return its result and what the server received."""
    with serving(*answers) as wire:
        return run_task(resource, base_url=wire.url, **options), wire.sent


def fetching(resource: str, *answers: bytes, **options):
    """The same, with a token fetched from the same server."""
    with serving(*answers) as wire:
        client = {
            "auth_url": f"{wire.url}/token",
            "client_id": "c",
            "client_secret": "s3cret-s3cret",
        }
        return run_task(
            resource, base_url=wire.url, access_token=None, **client, **options
        ), wire.sent


def test_a_create_is_one_request():
    result, sent = call(CREATE, answer(201, ASSET), access_token="t0ken-t0ken", name="web01")
    (request,) = sent
    assert request.line == "POST /api/v1/services/compute/virtual_machines HTTP/1.1"
    assert sorted(dict(request.headers)) == [
        "Accept",
        "Accept-Encoding",
        "Authorization",
        "Connection",
        "Content-Length",
        "Content-Type",
        "Host",
        "User-Agent",
    ]
    headers = dict(request.headers)
    assert headers["Authorization"] == "Bearer t0ken-t0ken"
    assert headers["Content-Type"] == headers["Accept"] == "application/json"
    assert headers["User-Agent"].startswith("infrastructure.services/")
    assert request.body == b'{"name":"web01","attributes":{}}'
    assert (result["asset"], result["status"], result["request_attempts"]) == (ASSET, 201, 1)


def test_an_update_is_one_request():
    result, sent = call(UPDATE, answer(200, ASSET), id="a/b", attributes={"login": False})
    (request,) = sent
    assert request.line == "PUT /api/v1/services/cassandra/application_roles/a%2Fb HTTP/1.1"
    assert request.body == b'{"attributes":{"login":false}}'
    assert (result["asset"], result["outcome"]) == (ASSET, "accepted")


def test_a_failure_returns_the_body_and_the_location():
    page = b"x" * 1050
    said = b"HTTP/1.1 502 -\r\nContent-Length: %d\r\n\r\n" % len(page) + page
    result, _sent = call(CREATE, said)
    assert result["error_body"] == "x" * 1000
    result, _sent = call(CREATE, answer(201, None, "Location: /vm/7"), name="web01")
    assert (result["outcome"], result["location"], "error_body" in result) == (
        "accepted",
        "/vm/7",
        False,
    )
    assert result["msg"].startswith("virtual machine web01: POST http://127.0.0.1:")


def test_a_wait_longer_than_allowed_is_named():
    result, _sent = call(CREATE, answer(429, None, "Retry-After: 77"))
    assert "77 seconds, longer than retry_max_delay (0)" in result["msg"]


def guarded(resource: str, lets: int, **options) -> dict:
    """Return the result of a task in a place that allows a limited number of requests."""
    left = iter(range(lets))

    def require_reader() -> None:
        if next(left, None) is None:
            raise ServicesError("Ansible has ended")

    given = {"access_token": "t0ken-t0ken", "retry_max_delay": 0, **LEAST[resource], **options}
    validated = validate(SPECS[resource], given)
    context = Context(False, validated.secrets, require_reader=require_reader)
    result = carry_out(validated, context)
    return result.as_ansible()


IDENTITY = {"access_token": "", "client_id": "c", "client_secret": "s3cret-s3cret"}


@pytest.mark.parametrize(
    ("resource", "fetches", "answers", "lets", "outcome", "attempts"),
    [
        (CREATE, True, [TOKEN], 0, "not_sent", 1),
        (CREATE, False, [answer(429)], 1, "rejected", 2),
        (UPDATE, True, [TOKEN, answer(401), TOKEN], 1, "rejected", 2),
    ],
)
def test_a_guard_stops_every_further_request(resource, fetches, answers, lets, outcome, attempts):
    with serving(*answers) as wire:
        identity = (
            {**IDENTITY, "access_token": None, "auth_url": f"{wire.url}/token"} if fetches else {}
        )
        result = guarded(resource, lets, base_url=wire.url, **identity)
    assert "Ansible has ended" in result["msg"]
    found = result["outcome"], result.get("request_attempts"), len(wire.sent)
    assert found == (outcome, attempts, len(answers))


@pytest.mark.parametrize("resource", [CREATE, UPDATE])
def test_check_mode_needs_no_library(resource, monkeypatch):
    monkeypatch.setattr(transport, "requests", None)
    result = run_task(resource, check_mode=True, base_url="https://service.example")
    assert (result.get("failed"), result["changed"], result["outcome"]) == (None, True, "not_sent")


@pytest.mark.parametrize(
    ("asked", "granted", "missing"),
    [
        ({"scopes": ["vm.read", "vm.write"]}, "vm.read", "vm.write"),
        ({"scopes": ["vm.read vm.write", "admin"]}, "admin", "vm.read, vm.write"),
        ({"scopes": ["vm.read"]}, None, None),
        ({"scopes": ["vm.read"]}, 7, None),
        ({}, "vm.read", None),
    ],
)
def test_a_scope_that_is_not_granted_raises_a_warning(asked, granted, missing):
    token = answer(200, {"access_token": "fetched-token", "scope": granted})
    result, _sent = fetching(CREATE, token, answer(201, ASSET), **asked)
    assert result["outcome"] == "accepted"
    warnings = [warning for warning in result["warnings"] if "scopes" in warning]
    assert all(f"(scopes): {missing} is missing" in warning for warning in warnings)
    assert len(warnings) == bool(missing)


@pytest.mark.parametrize(("status", "outcome"), [(200, "accepted"), (403, "rejected")])
@pytest.mark.parametrize("depth", [1, 5000])
def test_a_deeply_nested_body_of_a_failure_hides_its_secret(status, outcome, depth):
    page = f"{'[' * depth}{json.dumps('t0ken-t0ken').replace('t', chr(92) + 'u0074')}{']' * depth}".encode()
    said = f"HTTP/1.1 {status} -\r\nContent-Length: {len(page)}\r\n\r\n[".encode() + page[1:]
    result, _sent = call(CREATE, said, access_token="t0ken-t0ken")
    assert (result["outcome"], result["error_body"]) == (
        outcome,
        "(hidden, because it contains a credential)",
    )


def test_a_400_names_the_options_of_a_client_certificate():
    """nginx answers a connection without the certificate that it requires with a 400."""
    said = "No required SSL certificate was sent"
    head = f"HTTP/1.1 400 Bad Request\r\nContent-Type: text/html\r\nContent-Length: {len(said)}\r\n\r\n"
    result, _sent = call(CREATE, f"{head}{said}".encode())
    assert (result["outcome"], result["status"], result["error_body"]) == ("rejected", 400, said)
    assert "set client_cert and client_key" in result["msg"]
