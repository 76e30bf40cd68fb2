"""The token endpoint of the emulator, against RFC 6749 sections 2.3.1, 4.4 and 5."""

from __future__ import annotations

import base64
import json
from urllib.parse import quote_plus, urlencode

import pytest
from emulator.messages import Request
from emulator.settings import DEFAULT
from emulator.tokens import FORM, Tokens

SECRET = "s/e:c%r+e t'\"é"


class Clock:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def tokens(clock: Clock) -> Tokens:
    return Tokens(clock)


def basic(client_id: str, secret: str) -> str:
    pair = f"{quote_plus(client_id)}:{quote_plus(secret)}"
    return "Basic " + base64.b64encode(pair.encode()).decode()


def ask(
    tokens: Tokens, form: dict | str, header: str = "", media_type: str = FORM, **settings
) -> tuple[int, dict]:
    """Request a token; return the status and the JSON of the answer."""
    headers = (("Content-Type", media_type), *((("Authorization", header),) if header else ()))
    body = form if isinstance(form, str) else urlencode(form)
    answer = tokens.answer(
        Request("POST", "/oauth/token", headers, body.encode()), DEFAULT.changed(settings)
    )
    assert ("Cache-Control", "no-store") in answer.headers
    assert answer.applied == (answer.status == 200)
    assert ("WWW-Authenticate" in dict(answer.headers)) == (answer.status == 401)
    return answer.status, json.loads(answer.body)


GRANT = {"grant_type": "client_credentials"}
POST = GRANT | {"client_id": "me", "client_secret": SECRET}
CLIENT = {"client_id": "me", "client_secret": SECRET}


@pytest.mark.parametrize(("form", "header"), [(POST, ""), (GRANT, basic("me", SECRET))])
def test_both_ways_of_client_authentication_get_a_token(tokens, form, header):
    status, body = ask(tokens, form, header, **CLIENT)
    assert (status, body["token_type"], body["expires_in"]) == (200, "Bearer", 3600)
    assert "scope" not in body
    assert tokens.good(body["access_token"], DEFAULT)


@pytest.mark.parametrize(
    ("form", "header"),
    [
        (GRANT, ""),
        (POST | {"client_id": "you"}, ""),
        (GRANT, basic("me", "x")),
        (GRANT, "Bearer x"),
        (GRANT, "Basic !"),
    ],
)
def test_a_wrong_client_is_refused(tokens, form, header):
    status, body = ask(tokens, form, header, **CLIENT)
    assert (status, body["error"]) == (401, "invalid_client")
    assert SECRET not in body["error_description"]


@pytest.mark.parametrize("way", ["basic", "post"])
def test_one_way_of_client_authentication_can_be_refused(tokens, way):
    statuses = [
        ask(tokens, form, header, client_authentication=way)[0]
        for form, header in ((GRANT, basic("me", "s")), (POST, ""))
    ]
    assert statuses == ([200, 401] if way == "basic" else [401, 200])


@pytest.mark.parametrize(
    ("form", "header", "media_type", "error"),
    [
        (POST, basic("me", SECRET), FORM, "invalid_request"),
        (CLIENT, "", FORM, "invalid_request"),
        (POST, "", "application/json", "invalid_request"),
        (urlencode(POST) + "&grant_type=client_credentials", "", FORM, "invalid_request"),
        (urlencode(POST) + "&x=%ff", "", FORM, "invalid_request"),
        (POST | {"grant_type": "password"}, "", FORM, "unsupported_grant_type"),
        (POST | {"scope": "a c"}, "", FORM, "invalid_scope"),
    ],
)
def test_a_bad_request_names_its_error(tokens, form, header, media_type, error):
    status, body = ask(tokens, form, header, media_type, scopes=["a", "b"])
    assert (status, body["error"]) == (400, error)
    assert body["error_description"]


def test_a_token_expires(tokens, clock):
    token = ask(tokens, POST, expires_in=60)[1]["access_token"]
    clock.now += 59
    assert tokens.good(token, DEFAULT)
    clock.now += 1
    assert not tokens.good(token, DEFAULT)
    assert tokens.summary() == {"requests": 1, "issued": 1, "good": 0}
