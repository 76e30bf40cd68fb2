"""A task from options to result: every error of ours becomes a failed task, and no secret is shown."""

from __future__ import annotations

import base64
import json
from urllib.parse import quote

import pytest
from support import CREATE, UPDATE, run_exactly, run_task
from support.wire import Last, answer, running, serving

SECRET = 's3cret/ü+"%'  # has another form in a URL, in a form field, in JSON and in Python
HIDDEN_BODY = "(hidden, because it contains a credential)"
HIDDEN = [SECRET, quote(SECRET, safe=""), json.dumps(SECRET)[1:-1]]


@pytest.mark.parametrize(("is_sent", "outcome"), [(True, "unknown"), (False, "not_sent")])
def test_a_request_in_which_our_code_fails_is_in_doubt_once_a_byte_was_sent(is_sent, outcome):
    def broken(_settings, request, _timeout):
        if is_sent:
            request.may_send()
        raise LookupError

    result = run_task(CREATE, base_url="https://service.example", send_once=broken)
    seen = (result["outcome"], result["failed"], result["request_attempts"])
    assert seen == (outcome, True, 1)
    assert "an unexpected LookupError in this collection. " in result["msg"]


@pytest.mark.parametrize("check_mode", [False, True])
@pytest.mark.parametrize(
    "last",
    [
        answer(200, {"name": SECRET, SECRET: [SECRET, "assertion-secret"]}),
        answer(403),
        Last(b""),
    ],
)
def test_a_secret_that_comes_back_is_hidden_in_every_form(last, check_mode):
    """As a value and as a key of the answer; values that other options state openly stay visible."""
    token = answer(200, {"access_token": "fetched-token"})
    with serving(token, last, token, last) as wire:
        options = {
            "base_url": wire.url,
            "auth_url": f"{wire.url}/token",
            "client_id": "c",
            "client_secret": SECRET,
            "id": "i",
            "auth_parameters": {"client_assertion": "assertion-secret", "audience": wire.url},
            "body": {"a": wire.url},
            "retries": 0,
        }
        result = run_exactly(UPDATE, options, check_mode)
        assert result["request"]["url"].startswith(wire.url)
        assert result["request"]["body"] == {"a": wire.url}
    shown = json.dumps(result, ensure_ascii=False)
    for secret in (*HIDDEN, "assertion-secret", *([] if check_mode else ["fetched-token"])):
        assert json.dumps(secret, ensure_ascii=False)[1:-1] not in shown


@pytest.mark.parametrize("option", ["access_token", "client_secret"])
@pytest.mark.parametrize(
    ("secret", "place"),
    [
        ("company0", "name: contains a credential of this task"),
        ("prod/web-1", "id: contains a credential of this task"),
        ("vault/x2", "attributes: contains a credential of this task"),
        ("password", "the interface: contains a credential of this task"),
        ("services", "the interface: contains a credential of this task"),
    ],
)
def test_a_task_with_a_secret_in_a_name_is_refused(option, secret, place):
    """As masking would change the name."""
    with serving() as wire:
        options = {
            "base_url": wire.url,
            "auth_url": f"{wire.url}/token",
            "client_id": "c",
            "id": "prod/web-1",
            "name": "company01",
            "attributes": {"password_location": "vault/x2"},
        }
        result = run_exactly(UPDATE, {**options, option: secret})
        assert wire.connections == 0
    assert (result["failed"], result["outcome"]) == (True, "not_sent")
    assert secret in ("password", "services") or result["msg"].startswith(place)
    assert secret not in json.dumps(result)


@pytest.mark.parametrize("scheme", ["http://", ""])
@pytest.mark.parametrize("variable", ["http_proxy", "HTTP_PROXY", "all_proxy"])
def test_the_login_at_a_proxy_is_hidden_when_the_proxy_echoes_it(monkeypatch, variable, scheme):
    def choose(sent):
        echo = "\n".join(f"{name}: {value}" for name, value in sent.headers)
        return answer(403, f"{echo} proxy/passw0rd proxy%2Fpassw0rd")

    with running(choose) as proxy:
        login = f"{scheme}user:proxy%2Fpassw0rd@"
        monkeypatch.setenv(variable, proxy.url.replace("http://", login))
        result = run_task(CREATE, base_url="http://service.example", allow_http=True)
    basic = base64.b64encode(b"user:proxy/passw0rd").decode()
    assert ("Proxy-Authorization", f"Basic {basic}") in proxy.sent[0].headers
    assert result["error_body"] == HIDDEN_BODY
    assert [form for form in (basic, "passw0rd") if form in json.dumps(result)] == []


def test_a_login_at_a_proxy_that_is_no_latin_1_sends_nothing(monkeypatch):
    with running(lambda sent: answer(403)) as proxy:
        monkeypatch.setenv("http_proxy", proxy.url.replace("http://", "http://user:p\udcff@"))
        result = run_task(CREATE, base_url="http://service.example", allow_http=True)
    assert (result["outcome"], result["request_attempts"], proxy.bytes_read) == ("not_sent", 1, 0)


def test_a_credential_in_a_header_is_hidden_without_its_scheme_too():
    with serving(answer(403, "no such key: abcdef-123456")) as wire:
        result = run_task(CREATE, base_url=wire.url, headers={"X-Auth": "Bearer abcdef-123456"})
    assert result["error_body"] == HIDDEN_BODY


@pytest.mark.parametrize(
    "said", [r'{"error":"\ud800"}', r'{"a\u202e":"\u009b31m\u007f"}', r'["\u2028"]']
)
def test_an_error_body_has_only_printable_characters(said):
    """Even those that JSON escapes: ansible-core 2.19 loses a result with a lone surrogate."""
    body = said.encode()
    whole = b"HTTP/1.1 403 No\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body)
    with serving(whole) as wire:
        result = run_task(CREATE, base_url=wire.url)
    assert result["error_body"].isprintable()
    assert result["outcome"] == "rejected"
