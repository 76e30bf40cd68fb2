"""When there is no token: who failed, the error in terms of RFC 6749 section 5.2, and that nothing
was sent.
"""

from __future__ import annotations

import json

import pytest
from emulator.faults import parse
from faults.behaviors import answers, grants, refuses, whole
from support.service import Service

WRONG = {
    "secret": ({"client_secret": "wr0ng-secret"}, {}, "status 401: invalid_client: "),
    "grant": (
        {"auth_parameters": {"grant_type": "device"}},
        {},
        "status 400: unsupported_grant_type: ",
    ),
    "scope": (
        {"scopes": ["admin"]},
        {"scopes": ["user"]},
        "status 400: invalid_scope: this client may have user",
    ),
    "way to authenticate": ({}, {"client_authentication": "post"}, "status 401: invalid_client: "),
    "address": ({"auth_url": "/nowhere"}, {}, "status 404; check auth_url, "),
}


@pytest.mark.parametrize(("options", "settings", "why"), WRONG.values(), ids=WRONG)
def test_the_message_says_why_the_token_endpoint_refused(
    task, emulator, conversation, options, settings, why
):
    emulator.api.settings = emulator.api.settings.changed(settings)
    if "auth_url" in options:
        options = {"auth_url": emulator.url + options["auth_url"]}
    result = task(retries=3, **options)
    assert (result["failed"], result["outcome"], result["status"]) == (True, "not_sent", None)
    assert result["request_attempts"] == 0
    assert f"no access token from {emulator.url}" in result["msg"]
    assert f"(auth_url): it answered with {why}" in result["msg"]
    assert "wr0ng" not in str(result)
    assert len(conversation.statuses()) == 1


@pytest.mark.parametrize(
    "fault", [{"kind": "drop"}, *({"kind": "status", "status": status} for status in (429, 503))]
)
def test_a_token_request_is_repeated_since_that_is_harmless(task, emulator, conversation, fault):
    emulator.api.faults = (parse({**fault, "operation": "token", "count": 2}),)
    result = task(retries=2)
    assert (result["outcome"], result["request_attempts"]) == ("accepted", 1)
    assert [operation for operation, _status in conversation.statuses()] == ["token"] * 3 + [
        "create_virtual_machine"
    ]


def moved(status: int, to: Service):
    """Redirect to another endpoint."""
    return refuses(f"{status} Moved", f"Location: {to.url}/x")


@pytest.mark.parametrize("status", [302, 307])
def test_a_redirect_is_not_followed_with_the_secret(task, status):
    with Service(grants()) as elsewhere, Service(moved(status, elsewhere)) as endpoint:
        result = task(auth_url=f"{endpoint.url}/token")
    assert result["outcome"] == "not_sent"
    assert f"it answered with status {status}" in result["msg"]
    assert (len(endpoint.received), elsewhere.received) == (1, [])


# What the endpoint says, including the secret, and what remains of it in the message.
SAID = {
    "control characters": ("red\x1b[31m\r\nline\u2028\u202eend", "red [31m  line \\u202eend"),
    "too long": ("x" * 1001, "invalid_client: (too long to be shown)"),
    "half the secret": ("x" * 990 + "s3cret-of-web", "invalid_client: (too long to be shown)"),
    "the secret": ("not s3cret-of-web", "not ********"),
    "the secret in the header": ("Basic d2ViOnMzY3JldC1vZi13ZWI=", "Basic ********"),
}


@pytest.mark.parametrize(("description", "shown"), SAID.values(), ids=SAID)
def test_the_endpoint_s_text_is_shown_short_printable_and_without_secrets(task, description, shown):
    body = json.dumps({"error": "invalid_client", "error_description": description}).encode()
    with Service(answers(whole(body, status="400 Bad Request"), carried_out=False)) as endpoint:
        result = task(auth_url=endpoint.url)
    assert shown in result["msg"]
    assert result["msg"].isprintable()
    assert "s3cret" not in result["msg"]
    assert "x" * 1001 not in result["msg"]


UNUSABLE = {
    "empty object": b"{}",
    "list": b"[]",
    "two tokens": b'{"access_token": "a", "access_token": "b"}',
    "space in the token": b'{"access_token": "a b"}',
    "null": b'{"access_token": null}',
    "type is no text": b'{"access_token": "a", "token_type": 1}',
}


@pytest.mark.parametrize("body", UNUSABLE.values(), ids=UNUSABLE)
def test_a_success_without_a_usable_token_is_a_failure(task, conversation, body):
    with Service(answers(whole(body, status="200 OK"), carried_out=False)) as endpoint:
        result = task(auth_url=endpoint.url)
    assert result["outcome"] == "not_sent"
    assert "it answered with status 200, but without a usable Bearer token" in result["msg"]
    assert (len(endpoint.received), conversation.statuses()) == (1, [])


@pytest.mark.parametrize("token_type", ["bearer", "BEARER", None])
def test_the_token_type_is_bearer_in_any_case_or_missing(task, emulator, token_type):
    emulator.api.settings = emulator.api.settings.changed({"token": "granted-token"})
    with Service(grants(token_type=token_type)) as endpoint:
        assert task(auth_url=endpoint.url)["outcome"] == "accepted"
