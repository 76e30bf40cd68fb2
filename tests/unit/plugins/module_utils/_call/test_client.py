# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A call follows the policy, fetches and renews its token, and reports what it did, on a real wire."""

from __future__ import annotations

import json
import re

import pytest
from ansible_collections.infrastructure.services.plugins.module_utils._call.client import Client
from ansible_collections.infrastructure.services.plugins.module_utils._call.place import Place
from ansible_collections.infrastructure.services.plugins.module_utils._errors import (
    MissingLibrary,
    RequestFailed,
    ServicesError,
)
from ansible_collections.infrastructure.services.plugins.module_utils._http.transport import (
    Transport,
)
from ansible_collections.infrastructure.services.plugins.module_utils._task.options import (
    ARGUMENT_SPEC,
    settings_from,
)
from ansible_collections.infrastructure.services.plugins.module_utils._task.validation import (
    validated,
)
from support import CREATE, RESOURCES, UPDATE, run_task
from support.wire import Last, answer, serving

ASSET = {"id": "a1", "name": "web01", "attributes": {}}
TOKEN = answer(200, {"access_token": "fetched", "token_type": "Bearer", "expires_in": 3600})
CUT = Last(b"HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n{")


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
    result, sent = call(
        CREATE, answer(201, ASSET), access_token="t0ken-t0ken", http_agent="agent/1", name="web01"
    )
    (request,) = sent
    assert request.line == "POST /api/v1/services/compute/virtual_machines HTTP/1.1"
    assert sorted(dict(request.headers)) == [
        "Accept",
        "Accept-Encoding",
        "Authorization",
        "Content-Length",
        "Content-Type",
        "Host",
        "User-Agent",
    ]
    headers = dict(request.headers)
    assert headers["Authorization"] == "Bearer t0ken-t0ken"
    assert headers["Content-Type"] == headers["Accept"] == "application/json"
    assert headers["User-Agent"] == "agent/1"
    assert request.body == b'{"name":"web01","attributes":{}}'
    assert (result["asset"], result["status"], result["request_attempts"]) == (ASSET, 201, 1)


def test_an_update_is_one_request():
    result, sent = call(UPDATE, answer(200, ASSET), id="a/b", attributes={"login": False})
    (request,) = sent
    assert request.line == "PUT /api/v1/services/cassandra/application_roles/a%2Fb HTTP/1.1"
    assert request.body == b'{"attributes":{"login":false}}'
    assert (result["asset"], result["outcome"]) == (ASSET, "accepted")


@pytest.mark.parametrize(
    ("resource", "answers", "outcome", "attempts"),
    [
        (CREATE, [answer(429), answer(201, ASSET)], "accepted", 2),
        (CREATE, [answer(429, None, "Retry-After: 0"), answer(201, ASSET)], "accepted", 2),
        (CREATE, [answer(503)], "unknown", 1),
        (CREATE, [answer(500)], "unknown", 1),
        (CREATE, [answer(409)], "rejected", 1),
        (CREATE, [answer(401)], "rejected", 1),
        (CREATE, [answer(307, None, "Location: /x")], "rejected", 1),
        (CREATE, [answer(303, None, "Location: /x")], "unknown", 1),
        (UPDATE, [answer(303, None, "Location: /x")], "unknown", 1),
        (CREATE, [Last(b"")], "unknown", 1),
        (CREATE, [CUT], "accepted", 1),
        (CREATE, [answer(201)], "accepted", 1),
        (CREATE, [answer(429)] * 4, "rejected", 4),
        (UPDATE, [answer(503), answer(200, ASSET)], "accepted", 2),
        (UPDATE, [Last(b""), answer(200, ASSET)], "accepted", 2),
        (UPDATE, [CUT, answer(200, ASSET)], "accepted", 2),
        (UPDATE, [CUT, answer(404)], "accepted", 2),
        (UPDATE, [Last(b""), answer(404)], "unknown", 2),
        (UPDATE, [answer(500)], "unknown", 1),
        (UPDATE, [answer(503)] * 4, "unknown", 4),
    ],
)
def test_a_call_is_repeated_as_the_policy_says(resource, answers, outcome, attempts):
    result, sent = call(resource, *answers)
    assert (result["outcome"], result["request_attempts"], len(sent)) == (
        outcome,
        attempts,
        attempts,
    )
    assert len({(request.line, request.body) for request in sent}) == 1


def test_a_failure_returns_the_body_and_the_location():
    secret = "t0ken-t0ken"
    page = b"x" * 990 + secret.encode() + b"y" * 50
    said = b"HTTP/1.1 502 -\r\nContent-Length: %d\r\n\r\n" % len(page) + page
    result, _sent = call(CREATE, said, access_token=secret)
    assert result["error_body"] == ("x" * 990 + "********" + "y" * 50)[:1000]
    assert "t0ken" not in json.dumps(result)
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


def test_a_token_is_fetched_before_the_request():
    result, sent = fetching(CREATE, TOKEN, answer(201, ASSET))
    assert [request.line.split()[0:2] for request in sent] == [
        ["POST", "/token"],
        ["POST", "/api/v1/services/compute/virtual_machines"],
    ]
    assert dict(sent[1].headers)["Authorization"] == "Bearer fetched"
    assert (result["outcome"], result["request_attempts"]) == ("accepted", 1)


@pytest.mark.parametrize("resource", [CREATE, UPDATE])
def test_a_refused_token_is_replaced_once(resource):
    second = answer(200, {"access_token": "second-one"})
    result, sent = fetching(resource, TOKEN, answer(401), second, answer(201, ASSET))
    assert [request.target == "/token" for request in sent] == [True, False, True, False]
    assert [dict(request.headers)["Authorization"] for request in sent[1::2]] == [
        "Bearer fetched",
        "Bearer second-one",
    ]
    assert (result["outcome"], result["request_attempts"]) == ("accepted", 2)
    again, sent = fetching(resource, TOKEN, answer(401), second, answer(401))
    assert (again["outcome"], again["status"], len(sent)) == ("rejected", 401, 4)


def test_without_a_token_nothing_is_sent_to_the_service():
    result, sent = fetching(CREATE, answer(400, {"error": "invalid_client"}))
    assert [request.target for request in sent] == ["/token"]
    assert (result["outcome"], result["status"], result["request_attempts"]) == (
        "not_sent",
        None,
        0,
    )
    assert "/token (auth_url): it answered with status 400: invalid_client" in result["msg"]


def test_a_failure_of_the_token_endpoint_says_why_it_is_not_tried_again():
    result, _sent = fetching(CREATE, answer(429, None, "Retry-After: 77"))
    assert re.search(
        r"/token \(auth_url\): .* status 429; it asks for a wait of 77 seconds", result["msg"]
    )


def test_a_token_request_is_repeated_as_a_put_is():
    result, sent = fetching(CREATE, answer(503), TOKEN, answer(201, ASSET))
    assert len(sent) == 3
    assert result["outcome"] == "accepted"


def test_neither_the_trace_nor_anything_else_contains_a_token():
    result, _sent = fetching(
        CREATE, TOKEN, answer(401), answer(200, {"access_token": "second-one"}), answer(409)
    )
    shown = json.dumps(result)
    assert "fetched" not in shown
    assert "second-one" not in shown
    assert "s3cret-s3cret" not in shown


class Guarded(Place):
    """A client of a server, in a place that allows a limited number of requests."""

    def __init__(self, wire, lets: int, **options) -> None:
        super().__init__()
        self.lets, self.built, self.waits = lets, [], []
        self.wait = self.waits.append
        given = {"base_url": wire.url, "access_token": "t0ken-t0ken", **options}
        self.settings = settings_from(validated(ARGUMENT_SPEC, {}, given)[0])
        self.client = Client(self.settings, self)

    def connect(self, settings):
        self.built.append(settings)
        return Transport(settings)

    def require_reader(self) -> None:
        self.lets -= 1
        if self.lets < 0:
            raise ServicesError("Ansible has ended")

    def call(self, resource: str):
        operation = RESOURCES[resource].operation
        return self.client.call(operation, self.client.build_request(operation, "a", b"{}"), "a")


IDENTITY = {"access_token": "", "client_id": "c", "client_secret": "s3cret-s3cret"}


@pytest.mark.parametrize(
    ("resource", "fetches", "answers", "lets", "outcome", "attempts"),
    [
        (CREATE, False, [], 0, "not_sent", 0),
        (CREATE, True, [], 0, "not_sent", 0),
        (CREATE, True, [TOKEN], 1, "not_sent", 0),
        (CREATE, False, [answer(429)], 1, "rejected", 1),
        (UPDATE, False, [answer(503)], 1, "unknown", 1),
        (UPDATE, True, [TOKEN, answer(401)], 2, "rejected", 1),
    ],
)
def test_a_guard_stops_every_further_request(resource, fetches, answers, lets, outcome, attempts):
    with serving(*answers) as wire:
        identity = (
            {**IDENTITY, "access_token": None, "auth_url": f"{wire.url}/token"} if fetches else {}
        )
        guarded = Guarded(wire, lets, **identity)
        with pytest.raises(RequestFailed, match="Ansible has ended") as failed:
            guarded.call(resource)
    assert (failed.value.outcome, failed.value.details["request_attempts"], len(wire.sent)) == (
        outcome,
        attempts,
        lets,
    )


def test_a_client_builds_nothing_before_it_sends():
    with serving(answer(201, ASSET)) as wire:
        guarded = Guarded(wire, 1)
        guarded.client.build_request(RESOURCES[CREATE].operation, "", b"{}")
        assert (guarded.built, wire.connections) == ([], 0)
        guarded.call(CREATE)
        assert len(guarded.built) == 1


@pytest.mark.parametrize("resource", [CREATE, UPDATE])
def test_check_mode_builds_no_transport(resource):
    def connect(_settings):
        raise MissingLibrary("requests is not installed")

    result = run_task(
        resource, check_mode=True, connect=connect, base_url="https://service.example"
    )
    assert (result.get("failed"), result["changed"], result["outcome"]) == (None, True, "not_sent")


def test_a_missing_library_is_reported_before_anything_is_sent():
    def connect(settings):
        raise MissingLibrary("requests is not installed")

    with serving() as wire:
        guarded = Guarded(wire, 1)
        guarded.connect = connect
        with pytest.raises(MissingLibrary):
            guarded.call(CREATE)


def test_a_connection_that_fails_is_said_to_lead_to_the_host_of_base_url():
    result = run_task(CREATE, base_url="http://127.0.0.1:9", retries=0)
    assert "no connection: Connection refused (127.0.0.1 port 9, from base_url)" in result["msg"]


def test_waiting_is_delegated_to_the_given_function():
    with serving(answer(429, None, "Retry-After: 7"), answer(201, ASSET)) as wire:
        guarded = Guarded(wire, 2)
        guarded.call(CREATE)
    assert guarded.waits == [7]


@pytest.mark.parametrize(
    ("asked", "granted", "missing"),
    [
        ({"scopes": ["vm.read", "vm.write"]}, "vm.read", "vm.write"),
        ({"scopes": ["vm.read vm.write", "admin"]}, "admin", "vm.read, vm.write"),
        ({"scopes": ["vm.read"]}, "", "vm.read"),
        ({"scopes": ["vm.read"], "auth_parameters": {"scope": "other"}}, "vm.read", "other"),
        ({"scopes": ["vm.read"]}, "vm.write vm.read", None),
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


def test_a_failure_also_warns_about_scopes():
    token = answer(200, {"access_token": "fetched-token", "scope": "vm.read"})
    result, _sent = fetching(CREATE, token, answer(403), scopes=["vm.write"])
    assert result["failed"]
    assert "vm.write is missing" in str(result["warnings"])


@pytest.mark.parametrize("resource", [CREATE, UPDATE])
@pytest.mark.parametrize(("status", "outcome"), [(200, "accepted"), (403, "rejected")])
@pytest.mark.parametrize(
    ("depth", "is_shown"), [(64, True), (65, False), (600, False), (900, False), (5000, False)]
)
def test_a_deeply_nested_body_of_a_failure_hides_neither_its_outcome_nor_shows_a_secret(
    resource, status, outcome, depth, is_shown
):
    page = f"{'[' * depth}{json.dumps('t0ken-t0ken').replace('t', chr(92) + 'u0074')}{']' * depth}".encode()
    said = f"HTTP/1.1 {status} -\r\nContent-Length: {len(page)}\r\n\r\n".encode() + page
    result, _sent = call(resource, said, access_token="t0ken-t0ken")
    hidden = f'{"[" * 64}"VALUE_SPECIFIED_IN_NO_LOG_PARAMETER"{"]" * 64}'
    shown = hidden if is_shown else "(nested too deeply to be shown)"
    assert (result["outcome"], result["error_body"]) == (outcome, shown)


@pytest.mark.parametrize("resource", [CREATE, UPDATE])
def test_a_400_names_the_options_of_a_client_certificate(resource):
    """nginx answers a connection without the certificate that it requires with a 400."""
    said = "No required SSL certificate was sent"
    head = f"HTTP/1.1 400 Bad Request\r\nContent-Type: text/html\r\nContent-Length: {len(said)}\r\n\r\n"
    result, _sent = call(resource, f"{head}{said}".encode())
    assert (result["outcome"], result["status"], result["error_body"]) == ("rejected", 400, said)
    assert "set client_cert and client_key" in result["msg"]


@pytest.mark.parametrize("resource", [CREATE, UPDATE])
def test_a_401_says_which_token_was_used(resource):
    own, _sent = call(resource, answer(401), access_token="t0ken-t0ken")
    assert "its client (the token is that of access_token)." in own["msg"]
    fetched, sent = fetching(resource, TOKEN, answer(401), TOKEN, answer(401))
    url = f"http://{dict(sent[0].headers)['Host']}/token"
    assert f"its client (the token comes from {url} for the client c)." in fetched["msg"]
    other, _sent = call(resource, answer(403), access_token="t0ken-t0ken")
    assert "the token is" not in other["msg"]
