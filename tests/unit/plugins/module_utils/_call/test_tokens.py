# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Tokens: what is sent to the token endpoint, how its answer is read, and how long a token is used."""

from __future__ import annotations

import threading
import time
from urllib.parse import parse_qsl

import pytest
from ansible_collections.infrastructure.services.plugins.module_utils._call.policy import Event
from ansible_collections.infrastructure.services.plugins.module_utils._call.tokens import (
    TOKEN,
    Credentials,
    FetchedToken,
    Memory,
    Token,
    build_token_request,
    checked_parameters,
    missing_scopes,
    read_token,
)
from ansible_collections.infrastructure.services.plugins.module_utils._errors import (
    InvalidInput,
    TokenError,
)
from ansible_collections.infrastructure.services.plugins.module_utils._http.exchange import Answer
from hypothesis import given
from hypothesis import strategies as st

CREDENTIALS = Credentials("https://id.example/token", "web", "s3cret", "basic", (), (), "agent/1")


@pytest.mark.parametrize(
    ("changed", "authorization", "form"),
    [
        ({}, "Basic d2ViOnMzY3JldA==", {}),
        ({"client_authentication": "post"}, None, {"client_id": "web", "client_secret": "s3cret"}),
        # RFC 6749 section 2.3.1: both parts are form-encoded before they are joined; this is
        # a%3Ab:%C3%A9+%2B
        ({"client_id": "a:b", "client_secret": "é +"}, "Basic YSUzQWI6JUMzJUE5KyUyQg==", {}),
        ({"scopes": ("read", "write")}, "Basic d2ViOnMzY3JldA==", {"scope": "read write"}),
        ({"parameters": (("audience", "a&b"),)}, "Basic d2ViOnMzY3JldA==", {"audience": "a&b"}),
        (
            {"client_secret": None, "parameters": (("grant_type", "password"), ("n", "1"))},
            None,
            {"client_id": "web", "grant_type": "password", "n": "1"},
        ),
        ({"client_id": None, "client_secret": None, "parameters": (("a", "b"),)}, None, {"a": "b"}),
    ],
)
def test_the_token_request_follows_the_rfc(changed, authorization, form):
    request = build_token_request(CREDENTIALS._replace(**changed))
    assert (request.method, request.url) == ("POST", "https://id.example/token")
    assert request.headers["Content-Type"] == "application/x-www-form-urlencoded"
    assert request.headers["User-Agent"] == "agent/1"
    assert request.headers.get("Authorization") == authorization
    said = parse_qsl(request.body.decode("ascii"), strict_parsing=True)
    assert dict(said) == {"grant_type": "client_credentials", **form}
    assert len(said) == len(dict(said))


@pytest.mark.parametrize(
    ("status", "body", "event", "reason"),
    [
        (200, b'{"access_token":"t","token_type":"bearer"}', "success", ""),
        (200, b'{"access_token":"t"}', "success", ""),
        (
            200,
            b'{"access_token":"t","token_type":"mac"}',
            "accepted, answer unusable",
            "token_type is not Bearer",
        ),
        (
            200,
            b'{"access_token":"a b"}',
            "accepted, answer unusable",
            "without a usable access_token",
        ),
        (200, b'{"access_token":7}', "accepted, answer unusable", "without a usable access_token"),
        (200, b"{}", "accepted, answer unusable", "status 200"),
        (200, b"<html>", "accepted, answer unusable", "it is not JSON"),
        (
            400,
            b'{"error":"invalid_client","error_description":"who?"}',
            "refused",
            "status 400: invalid_client: who?; check client_id, client_secret and client_",
        ),
        (400, b'{"error":"invalid_grant"}', "refused", "invalid_grant; check auth_parameters"),
        (
            400,
            b'{"error":"unsupported_grant_type"}',
            "refused",
            "unsupported_grant_type; check auth_parameters",
        ),
        (405, b"", "refused", "status 405; check auth_url"),
        (400, b'{"error":"a\\u0000b"}', "refused", "status 400: a b"),
        (
            200,
            b'{"error":"invalid_scope"}',
            "accepted, answer unusable",
            "access_token: invalid_scope; check scopes",
        ),
        (401, b"", "unauthorized", "status 401"),
        (429, b"", "throttled", "status 429"),
        (503, b"<html>", "unavailable", "status 503"),
        (302, b"", "redirected", "status 302"),
    ],
)
def test_an_answer_is_a_token_or_says_why_not(status, body, event, reason):
    result = read_token(Answer(status, {}, body))
    assert result.event.value[0] == event
    assert reason in result.reason
    assert (result.value is not None) is (event == "success")


def test_a_cut_answer_may_be_requested_again():
    assert (
        read_token(Answer(200, {}, b"", "it was not complete", cut=True)).event == Event.ANSWER_CUT
    )


@pytest.mark.parametrize(
    ("lifetime", "seconds"),
    [
        ("", float("inf")),
        (',"expires_in":3600', 3570),
        (',"expires_in":"3600"', 3570),
        (',"expires_in":40', 20),
        (',"expires_in":0', 0),
        (',"expires_in":-5', 0),
        (',"expires_in":null', float("inf")),
        (',"expires_in":"soon"', float("inf")),
        (',"expires_in":true', float("inf")),
        (',"expires_in":[]', float("inf")),
    ],
)
def test_a_token_is_used_until_shortly_before_it_expires(lifetime, seconds):
    token = read_token(Answer(200, {}, b'{"access_token":"t"%s}' % lifetime.encode())).value
    assert token.use_until - time.time() == pytest.approx(seconds, abs=5)


def fetching(lasting: float):
    """Return a token that is kept, and fetched as t1, t2, ... each lasting `lasting` seconds."""
    names = iter(["t1", "t2", "t3"])
    return FetchedToken(CREDENTIALS, lambda: Token(next(names), time.time() + lasting), Memory())


def test_a_token_is_fetched_once_until_it_is_renewed():
    source = fetching(lasting=60)
    assert [source.token(), source.token()] == ["t1", "t1"]
    source.discard("t1")
    assert [source.token(), source.token()] == ["t2", "t2"]


def test_a_late_refusal_of_an_older_token_changes_nothing():
    source = fetching(lasting=60)
    source.discard(source.token())
    assert source.token() == "t2"
    source.discard("t1")
    assert source.token() == "t2"


def test_a_failure_is_reported_to_those_who_waited_for_it_and_no_one_else():
    asked, told = [], []

    class Read(Memory):
        """Counts how often it is read: once by each thread, and once more by the one that fetches
        the token.
        """

        times = 0

        def read(self):
            self.times += 1
            return super().read()

    def fetch():
        asked.append(1)
        deadline = time.monotonic() + 60
        while memory.times < 21 and time.monotonic() < deadline:
            time.sleep(0.001)
        raise TokenError("no access token")

    memory = Read()
    source = FetchedToken(CREDENTIALS, fetch, memory)

    def work():
        with pytest.raises(TokenError) as error:
            source.token()
        told.append(error.value.msg)

    threads = [threading.Thread(target=work) for dummy in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert (told, len(asked)) == (["no access token"] * 20, 1)
    with pytest.raises(TokenError):
        source.token()
    assert len(asked) == 2


def test_an_expired_token_is_replaced():
    source = fetching(lasting=-1)
    assert [source.token(), source.token()] == ["t1", "t2"]


@given(st.text())
def test_a_usable_token_fits_into_a_header(token):
    fits = token != "" and token.isascii() and token.isprintable() and " " not in token
    assert bool(TOKEN.fullmatch(token)) == fits


def test_parameters_are_form_fields():
    given = {"a": 1, "b": True, "c": None, "d": "x"}
    assert checked_parameters(given) == (("a", "1"), ("b", "true"), ("d", "x"))
    assert checked_parameters(None) == ()
    for value in ({}, []):
        with pytest.raises(InvalidInput, match=r"^auth_parameters: "):
            checked_parameters({"a": value})


@pytest.mark.parametrize(
    ("asked", "granted", "missing"),
    [
        (("read", "write"), "read", ["write"]),
        (("read", "write"), "write read more", []),
        (("read",), "", ["read"]),
        (("read",), None, []),  # RFC 6749 section 5.1: as requested
        ((), "read", []),
    ],
)
def test_scopes_that_were_not_granted_are_known(asked, granted, missing):
    assert missing_scopes(CREDENTIALS._replace(scopes=asked), Token("t", 0, granted)) == missing


def test_a_scope_among_the_parameters_is_the_one_that_was_asked_for():
    credentials = CREDENTIALS._replace(scopes=("read",), parameters=(("scope", "a b"),))
    assert missing_scopes(credentials, Token("t", 0, "b")) == ["a"]
