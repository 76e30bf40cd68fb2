# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A call follows the policy, gets and renews its token, and says what it did, on a real wire."""

from __future__ import annotations

import json

import pytest
from support import CREATE, UPDATE, run_task
from support.wire import Last, answer, serving

ASSET = {"id": "a1", "name": "web01", "attributes": {}}
TOKEN = answer(200, {"access_token": "fetched", "token_type": "Bearer", "expires_in": 3600})
CUT = Last(b"HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n{")


def call(resource: str, *answers: bytes, **options):
    """Run a task against these answers; return its result and what the server was sent."""
    with serving(*answers) as wire:
        return run_task(resource, base_url=wire.url, **options), wire.sent


def fetching(resource: str, *answers: bytes, **options):
    """The same, with a token that is fetched from the same server."""
    with serving(*answers) as wire:
        client = {"auth_url": f"{wire.url}/token", "client_id": "c", "client_secret": "s3cret-s3cret"}
        return run_task(resource, base_url=wire.url, access_token=None, **client, **options), wire.sent


def test_a_create_is_one_request():
    result, sent = call(CREATE, answer(201, ASSET), access_token="t0ken-t0ken", http_agent="agent/1", name="web01")
    (request,) = sent
    assert request.line == "POST /api/v1/services/compute/virtual_machines HTTP/1.1"
    assert sorted(dict(request.headers)) == [
        "Accept", "Accept-Encoding", "Authorization", "Content-Length", "Content-Type", "Host", "User-Agent",
    ]
    headers = dict(request.headers)
    assert headers["Authorization"] == "Bearer t0ken-t0ken"
    assert headers["Content-Type"] == headers["Accept"] == "application/json"
    assert headers["User-Agent"] == "agent/1"
    assert request.body == b'{"name":"web01","attributes":{}}'
    assert (result["asset"], result["status"], result["attempts"]) == (ASSET, 201, 1)


def test_an_update_is_one_request():
    result, sent = call(UPDATE, answer(200, ASSET), id="a/b", attributes={"login": False})
    (request,) = sent
    assert request.line == "PUT /api/v1/services/cassandra/application_roles/a%2Fb HTTP/1.1"
    assert request.body == b'{"attributes":{"login":false}}'
    assert (result["asset"], result["outcome"]) == (ASSET, "accepted")


@pytest.mark.parametrize(("resource", "answers", "outcome", "attempts"), [
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
])
def test_a_call_is_repeated_as_the_policy_says(resource, answers, outcome, attempts):
    result, sent = call(resource, *answers)
    assert (result["outcome"], result["attempts"], len(sent)) == (outcome, attempts, attempts)
    assert len({(request.line, request.body) for request in sent}) == 1
    assert len(result["trace"]) == attempts


def test_a_wait_that_is_longer_than_allowed_is_named():
    result, _sent = call(CREATE, answer(429, None, "Retry-After: 77"))
    assert "77 seconds, longer than retry_max_delay (0)" in result["msg"]


def test_a_token_is_fetched_before_the_request():
    result, sent = fetching(CREATE, TOKEN, answer(201, ASSET))
    assert [request.line.split()[0:2] for request in sent] == [
        ["POST", "/token"], ["POST", "/api/v1/services/compute/virtual_machines"],
    ]
    assert dict(sent[1].headers)["Authorization"] == "Bearer fetched"
    assert (result["outcome"], result["attempts"]) == ("accepted", 1)
    assert [entry["url"].rpartition("/")[2] for entry in result["trace"]] == ["token", "virtual_machines"]


@pytest.mark.parametrize("resource", [CREATE, UPDATE])
def test_a_refused_token_is_fetched_anew_once(resource):
    second = answer(200, {"access_token": "second-one"})
    result, sent = fetching(resource, TOKEN, answer(401), second, answer(201, ASSET))
    assert [request.target == "/token" for request in sent] == [True, False, True, False]
    assert [dict(request.headers)["Authorization"] for request in sent[1::2]] == ["Bearer fetched", "Bearer second-one"]
    assert (result["outcome"], result["attempts"]) == ("accepted", 2)
    again, sent = fetching(resource, TOKEN, answer(401), second, answer(401))
    assert (again["outcome"], again["status"], len(sent)) == ("rejected", 401, 4)


def test_without_a_token_nothing_is_sent_to_the_service():
    result, sent = fetching(CREATE, answer(400, {"error": "invalid_client"}))
    assert [request.target for request in sent] == ["/token"]
    assert (result["outcome"], result["status"], result["attempts"]) == ("not_sent", None, 0)
    assert "invalid_client" in result["msg"]
    assert "/token (auth_url)" in result["msg"]


def test_a_token_request_is_repeated_as_a_put_is():
    result, sent = fetching(CREATE, answer(503), TOKEN, answer(201, ASSET))
    assert len(sent) == 3
    assert result["outcome"] == "accepted"


def test_no_token_is_in_the_trace_or_anywhere_else():
    result, _sent = fetching(CREATE, TOKEN, answer(401), answer(200, {"access_token": "second-one"}), answer(409))
    shown = json.dumps(result)
    assert "fetched" not in shown
    assert "second-one" not in shown
    assert "s3cret-s3cret" not in shown
