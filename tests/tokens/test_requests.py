"""What a token request contains: how the client authenticates, and what else is in the form (RFC
6749).
"""

from __future__ import annotations

import base64
from urllib.parse import parse_qsl, quote_plus

import pytest
from faults.behaviors import grants
from support.service import Service

ODD_ID, ODD_SECRET = "web:id %+\u00e9", "p:a/s%25 '\"\\&=\u2603"
GRANT = {"grant_type": "client_credentials"}
BY_FORM = {"client_id": "web", "client_secret": "s3cret-of-web"}
PASSWORD = {"grant_type": "password", "username": "alice", "password": "w0nder/land"}

# options in addition to client_id and client_secret: the decoded Authorization header, and the
# form.
BASIC = "web:s3cret-of-web"
REQUESTS = {
    "basic by default": ({}, BASIC, GRANT),
    "basic": ({"client_authentication": "basic"}, BASIC, GRANT),
    "post": ({"client_authentication": "post"}, None, {**GRANT, **BY_FORM}),
    "scopes": ({"scopes": ["vm.write", "b"]}, BASIC, {**GRANT, "scope": "vm.write b"}),
    "audience": ({"auth_parameters": {"aud": "/?b=c&d"}}, BASIC, {**GRANT, "aud": "/?b=c&d"}),
    "null": ({"auth_parameters": {"e": None, "f": ""}}, BASIC, {**GRANT, "f": ""}),
    "another grant": ({"auth_parameters": PASSWORD}, BASIC, PASSWORD),
    "a public client": (
        {"auth_parameters": PASSWORD, "client_secret": None},
        None,
        {**PASSWORD, "client_id": "web"},
    ),
    "no client at all": (
        {"auth_parameters": PASSWORD, "client_id": None, "client_secret": None},
        None,
        PASSWORD,
    ),
    "a parameter over ours": (
        {"auth_parameters": {"scope": "mine"}, "scopes": ["yours"]},
        BASIC,
        {**GRANT, "scope": "mine"},
    ),
}


@pytest.mark.parametrize(("options", "header", "form"), REQUESTS.values(), ids=REQUESTS)
def test_the_content_of_a_token_request(task, options, header, form):
    with Service(grants()) as endpoint:
        result = task(auth_url=endpoint.url, **options)
    assert result["outcome"] == "accepted", result
    (request,) = endpoint.received
    assert decoded(request.headers.get("authorization")) == header
    assert dict(parse_qsl(request.body.decode(), keep_blank_values=True)) == form


def decoded(header: str | None) -> str | None:
    """Return the content of a Basic header."""
    kind, dummy, value = (header or "").partition(" ")
    return base64.b64decode(value).decode() if kind == "Basic" else header


@pytest.mark.parametrize("authentication", ["basic", "post"])
def test_unusual_client_credentials_are_understood_by_the_server(
    task, emulator, conversation, authentication
):
    """Form-encoded before base64 (RFC 6749 section 2.3.1), so that a colon or a non-ASCII character
    survives.
    """
    emulator.api.settings = emulator.api.settings.changed(
        {"client_id": ODD_ID, "client_secret": ODD_SECRET}
    )
    result = task(client_id=ODD_ID, client_secret=ODD_SECRET, client_authentication=authentication)
    assert result["outcome"] == "accepted", result
    (request,) = conversation.requests("token")
    header = dict(request.headers).get("Authorization")
    assert decoded(header) == (
        f"{quote_plus(ODD_ID)}:{quote_plus(ODD_SECRET)}" if authentication == "basic" else None
    )


def test_the_token_request_is_a_form_and_the_operation_carries_its_token(
    task, emulator, conversation
):
    task()
    (token,), (operation,) = (
        conversation.requests("token"),
        conversation.requests("create_virtual_machine"),
    )
    headers = dict(token.headers)
    assert (token.method, token.target) == ("POST", "/oauth/token")
    assert headers["Content-Type"] == "application/x-www-form-urlencoded"
    assert headers["Accept"] == "application/json"
    assert headers["User-Agent"].startswith("infrastructure.services/")
    scheme, dummy, value = dict(operation.headers)["Authorization"].partition(" ")
    assert scheme == "Bearer"
    assert emulator.api.tokens.good(value, emulator.api.settings)
