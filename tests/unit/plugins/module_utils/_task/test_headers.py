"""Headers that the user adds, and which of them can be sent."""

from __future__ import annotations

import pytest
from ansible_collections.infrastructure.services.plugins.module_utils._errors import InvalidInput
from ansible_collections.infrastructure.services.plugins.module_utils._task.options import (
    settings_from,
)
from support import CREATE, LEAST, UPDATE, run_task, validated
from support.wire import answer, serving

ASSET = {"id": "a1", "name": "web01", "attributes": {}}
RESERVED = [
    "authorization",
    "content-length",
    "content-type",
    "host",
    "proxy-authorization",
    "transfer-encoding",
    "upgrade",
    "user-agent",
]
CLIENT = {"access_token": None, "client_id": "c", "client_secret": "s3cret-s3cret"}


def checked_headers(headers):
    """Return the headers of a task."""
    given = {"base_url": "https://s", "access_token": "t", "headers": headers, **LEAST[CREATE]}
    return settings_from(validated(CREATE, given)).headers


def test_headers_keep_their_names_and_order_and_nulls_are_dropped():
    given = {
        "X-Tenant": "blue",
        "x-none": None,
        "X-Number": "4",
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
    assert list(checked_headers(given).items()) == list(kept.items())
    assert checked_headers(None) == checked_headers({}) == {}


@pytest.mark.parametrize("name", RESERVED)
def test_a_header_that_the_collection_sets_is_refused_by_name(name):
    with pytest.raises(InvalidInput, match=rf"^headers: {name.title()} cannot be given"):
        checked_headers({name.title(): "x"})


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
        "\x00",
        "\u20ac",
        "\ud800",
        True,
        [],
    ],
)
def test_a_value_that_cannot_be_sent_is_refused_without_being_shown(value):
    with pytest.raises(InvalidInput, match=r"^headers: .*X-Tenant") as refused:
        checked_headers({"X-Tenant": value})
    assert refused.value.msg.isprintable()


def test_a_header_that_is_given_twice_is_refused():
    """Which of both counts is up to the service."""
    with pytest.raises(InvalidInput, match=r"^headers: X-Tenant is given twice"):
        checked_headers({"x-tenant": "blue", "X-Other": "x", "X-Tenant": "blue"})


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
