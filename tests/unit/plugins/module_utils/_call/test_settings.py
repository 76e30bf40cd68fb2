# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Headers that the user adds, and which of them can be sent; and the trace from the environment,
request by request.
"""

from __future__ import annotations

import re

import pytest
from ansible_collections.infrastructure.services.plugins.module_utils._call.settings import (
    checked_headers,
    trace_of,
)
from ansible_collections.infrastructure.services.plugins.module_utils._errors import InvalidInput
from hypothesis import given
from hypothesis import strategies as st
from support import CREATE, UPDATE, run_task
from support.wire import answer, serving

ASSET = {"id": "a1", "name": "web01", "attributes": {}}
RESERVED = [
    "accept",
    "accept-encoding",
    "authorization",
    "connection",
    "content-encoding",
    "content-length",
    "content-type",
    "expect",
    "host",
    "keep-alive",
    "proxy-authorization",
    "proxy-connection",
    "te",
    "traceparent",
    "trailer",
    "transfer-encoding",
    "upgrade",
    "user-agent",
]
CLIENT = {"access_token": None, "client_id": "c", "client_secret": "s3cret-s3cret"}
TRACE_ID = "4bf92f3577b34da6a3ce929d0e0e4736"


def test_headers_keep_their_names_and_order_and_nulls_are_dropped():
    given = {
        "X-Tenant": "blue",
        "x-none": None,
        "X-Number": 4,
        "X-Empty": "",
        "X-Latin": "caf\u00e9 \u00ff",
        5: "five",
    }
    kept = {
        "X-Tenant": "blue",
        "X-Number": "4",
        "X-Empty": "",
        "X-Latin": "caf\u00e9 \u00ff",
        "5": "five",
    }
    assert checked_headers(given) == tuple(kept.items())
    assert checked_headers(None) == checked_headers({}) == ()


@pytest.mark.parametrize("name", RESERVED)
@pytest.mark.parametrize("value", ["x", None])
def test_a_header_that_the_collection_sets_is_refused_by_name(name, value):
    for written in (name, name.upper(), name.title()):
        with pytest.raises(InvalidInput, match=rf"^headers: {written} cannot be given"):
            checked_headers({written: value})


@pytest.mark.parametrize(
    "name", ["", " ", "a b", "a:", "a\r\nb", "\u00e9", "a\x00", "(a)", "a\u2028"]
)
def test_a_name_that_is_not_an_http_token_is_refused(name):
    with pytest.raises(InvalidInput, match=r"^headers: "):
        checked_headers({name: "x"})


@pytest.mark.parametrize(
    "value",
    [
        "a\n",
        "a\r\nX: y",
        "\x00",
        "\x1f",
        "\x7f",
        "\x85",
        "\u20ac",
        "\u2028",
        "\ud800",
        True,
        [],
        {},
        ["a"],
    ],
)
def test_a_value_that_cannot_be_sent_is_refused_without_being_shown(value):
    with pytest.raises(InvalidInput, match=r"^headers: the value of X-Tenant") as refused:
        checked_headers({"X-Tenant": value})
    assert refused.value.msg.isprintable()


@pytest.mark.parametrize(("first", "second"), [("X-Tenant", "x-tenant"), ("x-TENANT", "X-Tenant")])
@pytest.mark.parametrize(
    "values", [("blue", "red"), ("blue", "blue"), ("blue", None), (None, "red")]
)
def test_a_header_that_is_given_twice_is_refused_by_both_names(first, second, values):
    """Which of both counts is up to the service."""
    with pytest.raises(InvalidInput, match=rf"^headers: {first} and {second} are the same header"):
        checked_headers({first: values[0], "X-Other": "x", second: values[1]})


@pytest.mark.parametrize("resource", [CREATE, UPDATE])
def test_headers_go_to_the_service_and_not_to_the_token_endpoint(resource):
    token = answer(200, {"access_token": "fetched-token", "token_type": "Bearer"})
    with serving(token, answer(429), answer(200, ASSET)) as wire:
        identity = {**CLIENT, "auth_url": f"{wire.url}/token"}
        headers = {"X-Tenant": "blue", "X-Latin": "caf\u00e9", "X-None": None}
        result = run_task(resource, base_url=wire.url, headers=headers, **identity)
    assert result["outcome"] == "accepted"
    assert [dict(request.headers).get("X-Tenant") for request in wire.sent] == [
        None,
        "blue",
        "blue",
    ]
    assert dict(wire.sent[-1].headers)["X-Latin"] == "caf\u00e9"
    assert not [request for request in wire.sent if "X-None" in dict(request.headers)]


def test_a_refused_header_sends_nothing():
    with serving() as wire:
        result = run_task(CREATE, base_url=wire.url, headers={"authorization": "Basic eA=="})
    assert (result["failed"], result["outcome"], wire.connections) == (True, "not_sent", 0)
    assert result["msg"] == (
        "headers: authorization cannot be given: the collection or the connection sets it."
        " Nothing was sent."
    )


VALID = {
    f"00-{TRACE_ID}-00f067aa0ba902b7-01": "01",
    f"00-{TRACE_ID}-00f067aa0ba902b7-00": "00",
    f"cc-{TRACE_ID}-00f067aa0ba902b7-01": "01",
    f"cc-{TRACE_ID}-00f067aa0ba902b7-01-what-the-future-will-be-like": "01",
}
INVALID = [
    "",
    " ",
    "x",
    f"ff-{TRACE_ID}-00f067aa0ba902b7-01",
    f"00-{TRACE_ID}-00f067aa0ba902b7-01-more",
    f"00-{'0' * 32}-00f067aa0ba902b7-01",
    f"00-{TRACE_ID}-{'0' * 16}-01",
    f"00-{TRACE_ID.upper()}-00f067aa0ba902b7-01",
    f"00-{TRACE_ID}-00f067aa0ba902b7",
    f"00-{TRACE_ID}-00f067aa0ba902b7-1",
    f"00-{TRACE_ID}-00f067aa0ba902b7-01\n",
    f" 00-{TRACE_ID}-00f067aa0ba902b7-01",
    f"cc-{TRACE_ID}-00f067aa0ba902b7-01.more",
]


@pytest.mark.parametrize(("traceparent", "flags"), VALID.items())
def test_each_attempt_continues_the_trace_with_a_span_of_its_own(monkeypatch, traceparent, flags):
    monkeypatch.setenv("TRACEPARENT", traceparent)
    with serving(answer(429), answer(429), answer(201, ASSET)) as wire:
        result = run_task(CREATE, base_url=wire.url)
    sent = [dict(request.headers)["traceparent"] for request in wire.sent]
    assert all(re.fullmatch(f"00-{TRACE_ID}-[0-9a-f]{{16}}-{flags}", header) for header in sent)
    assert len({*sent, traceparent}) == 4
    assert result["trace_id"] == TRACE_ID


def test_the_token_endpoint_receives_no_trace(monkeypatch):
    monkeypatch.setenv("TRACEPARENT", next(iter(VALID)))
    with serving(answer(200, {"access_token": "fetched-token"}), answer(201, ASSET)) as wire:
        identity = {**CLIENT, "auth_url": f"{wire.url}/token"}
        run_task(CREATE, base_url=wire.url, **identity)
    assert ["traceparent" in dict(request.headers) for request in wire.sent] == [False, True]


@pytest.mark.parametrize("traceparent", [*INVALID, None])
def test_without_a_valid_traceparent_none_is_sent(monkeypatch, traceparent):
    if traceparent is not None:
        monkeypatch.setenv("TRACEPARENT", traceparent)
    with serving(answer(201, ASSET)) as wire:
        result = run_task(CREATE, base_url=wire.url)
    assert "traceparent" not in dict(wire.sent[0].headers)
    assert "trace_id" not in result


@given(st.text())
def test_any_text_is_parsed_as_a_trace_or_none(text):
    trace = trace_of(text)
    assert trace is None or trace_of(trace.traceparent()) == trace
