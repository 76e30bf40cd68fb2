"""Any other request, as a module on a target sends it: what is at the socket, and the result."""

from __future__ import annotations

import json

import pytest
from ansible_collections.infrastructure.services.plugins.module_utils._task.api_request import (
    API_REQUEST,
    send_request,
)
from ansible_collections.infrastructure.services.plugins.module_utils._task.module import run_module
from support.front import printed
from support.wire import Last, answer, serving

TOKEN = "token-of-the-tests"
PATH = "/api/v1/things/1"
MACHINES = "/api/v1/services/compute/virtual_machines"
ROLE = "/api/v1/services/cassandra/application_roles"
READS = ("GET", "HEAD")
METHODS = (*READS, "PUT", "DELETE", "POST", "PATCH")


def request(*answers: bytes, check_mode: bool = False, **options) -> tuple[dict, list]:
    """Return what the module prints and the requests, given these answers."""
    given = {"path": PATH, "access_token": TOKEN, "retry_max_delay": 0, **options}
    with serving(*answers) as wire:
        result = printed(
            lambda: run_module(API_REQUEST, send_request),
            {"base_url": f"{wire.url}/prefix", **given},
            check_mode=check_mode,
        )
        return result, wire.sent


def raw(body: bytes, *headers: str) -> bytes:
    """Return a 200 whose end only the end of the connection tells."""
    return Last("\r\n".join(["HTTP/1.1 200 -", *headers, "", ""]).encode() + body)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("check_mode", [False, True])
def test_a_success(method, check_mode):
    said = (
        b"HTTP/1.1 200 -\r\nContent-Length: 400\r\n\r\n" if method == "HEAD" else answer(200, [1])
    )
    result, sent = request(Last(said), check_mode=check_mode, method=method, body={"a": None})
    is_sent = method in READS or not check_mode
    assert [each.line for each in sent] == [f"{method} /prefix{PATH} HTTP/1.1"] * is_sent
    assert [each.body for each in sent] == [b'{"a":null}'] * is_sent
    assert result["json"] == ([1] if is_sent and method != "HEAD" else None)
    assert result["changed"] is (method not in READS)
    assert result["outcome"] == ("accepted" if is_sent else "not_sent")
    assert (result["status"], result["request_attempts"]) == ((200, 1) if is_sent else (None, 0))
    assert result["request"]["method"] == method
    assert result["request"]["url"].endswith(f"/prefix{PATH}")
    assert result["request"]["body"] == {"a": None}
    assert "warnings" not in result


# What the service says, the outcome, and how often a method that is safe to repeat is sent, and
# another one.
FAULTS = {
    "lost": (Last(), "unknown", 2, 1),
    "429": (answer(429), "rejected", 2, 2),
    "503": (answer(503), "unknown", 2, 1),
    "308": (answer(308), "rejected", 1, 1),
}


@pytest.mark.parametrize("method", ["GET", "DELETE", "PATCH"])
@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault(method, fault):
    said, outcome, safe, unsafe = FAULTS[fault]
    result, sent = request(said, said, said, method=method, retries=1)
    assert len(sent) == result["request_attempts"] == (unsafe if method == "PATCH" else safe)
    assert (result["failed"], result["changed"], result["outcome"]) == (True, False, outcome)
    assert result["msg"].startswith(f"request {PATH}: {method} http://")


@pytest.mark.parametrize("method", ["GET", "DELETE", "PATCH"])
def test_what_was_accepted_and_cannot_be_used(method):
    result, _sent = request(answer(200, 1, "Content-Encoding: x"), method=method)
    assert (result["failed"], result["outcome"]) == (True, "accepted")
    assert result["changed"] is (method not in READS)


@pytest.mark.parametrize(
    "headers",
    [
        [],
        ["Content-Length: 9", "Content-Encoding: gzip"],
        ["Transfer-Encoding: chunked"],
    ],
    ids=" ".join,
)
def test_an_answer_to_head_has_no_body(headers):
    result, sent = request(raw(b"", *headers), method="HEAD")
    assert (result["outcome"], result.get("json", 0), len(sent)) == ("accepted", None, 1)


@pytest.mark.parametrize(
    ("said", "value"),
    [
        (answer(204), None),
        (answer(200, {"a": [1.5, "é", None]}), {"a": [1.5, "é", None]}),
        (answer(200, 12), 12),
        (raw(b"[]"), []),
    ],
    ids=str,
)
def test_any_json_or_an_empty_body_is_a_success(said, value):
    result, _sent = request(said)
    assert result["outcome"] == "accepted"
    assert result["json"] == value


@pytest.mark.parametrize(
    "said",
    [
        raw(b"12"),
        raw(b"[1", "Content-Length: 9"),
        answer(200, {"a": 1})[:-1] + b"!",
        answer(200, 1).replace(b"\r\n\r\n1", b"\r\n\r\n\xff"),
    ],
    ids=str,
)
def test_what_may_be_cut_off_or_is_not_json_is_no_success(said):
    result, _sent = request(said, method="POST")
    assert (result["failed"], result["outcome"], result["changed"]) == (True, "accepted", True)
    assert "json" not in result


@pytest.mark.parametrize(
    "path",
    [
        "/api/v2/things",
        "https://elsewhere.example.com/api/v1/things",
        f"{PATH}?a=1",
        f"{PATH}%2523a",
        "/api/v1/../v2",
        "/api/v1/%2e%2E/v2",
        "/api/v1/%252e%252e/v2",
        "/api/v1/x%2f..%2fy",
        "/api/v1/..;a/v2",
        "/api/v1/a%2Fb%3Bc/d",
        "/api/v1//compute",
        "/api/v1/compute%20/machines",
        "/api/v1/a b",
        "/api/v1/{id}",
        "/api/v1/%zz",
        ["/api/v1/a"],
    ],
)
def test_a_path_that_is_refused(path):
    result, sent = request(path=path, method="POST")
    assert (result["outcome"], sent) == ("not_sent", [])
    assert result["msg"].startswith("path: must be a path that starts with /api/v1/")


@pytest.mark.parametrize(
    "path", ["/api/v1/", "/api/v1/a..b/...", "/api/v1/a%2Fb%20c=1,2/@:$é".replace("é", "%C3%A9")]
)
def test_a_path_is_sent_as_it_is(path):
    _result, (sent,) = request(answer(200), path=path)
    assert sent.line == f"GET /prefix{path} HTTP/1.1"


@pytest.mark.parametrize(
    ("method", "path", "module"),
    [
        ("POST", MACHINES, "compute_virtual_machine"),
        ("POST", MACHINES.replace("_", "%255f"), "compute_virtual_machine"),
        ("POST", f"{MACHINES}%2F", "compute_virtual_machine"),
        ("PUT", f"{ROLE}/role-0001", "cassandra_application_role"),
        ("PUT", f"{ROLE}/a%2Fb", "cassandra_application_role"),
    ],
)
def test_a_request_that_has_a_module_is_refused(method, path, module):
    result, sent = request(method=method, path=path)
    assert (result["outcome"], sent) == ("not_sent", [])
    assert f"path: use the module infrastructure.services.{module} for {method} /" in result["msg"]


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", MACHINES),
        ("DELETE", f"{MACHINES}/1/disks/2"),
        ("POST", f"{MACHINES}/1/start"),
        ("PATCH", f"{ROLE}/role-0001"),
        ("PUT", f"{ROLE}/role-0001/grants"),
    ],
)
def test_another_request_on_the_same_resource_is_sent(method, path):
    result, sent = request(answer(204), method=method, path=path)
    assert (result["outcome"], len(sent)) == ("accepted", 1)


def test_the_query_and_the_body_as_they_are_sent():
    query = {
        "team": ["web & shop", None, 7],
        "all": True,
        "none": None,
        "old": [False],
        "ratio": 1.5,
        "empty": "",
        "ä{": "?#",
    }
    result, (sent,) = request(answer(200), query=query)
    expected = "team=web%20%26%20shop&team=7&all=true&old=false&ratio=1.5&empty=&%C3%A4%7B=%3F%23"
    assert sent.target == f"/prefix{PATH}?{expected}"
    assert result["request"]["url"].endswith(sent.target)
    assert sent.body == b""
    for body in ("text", 0, False, [], {"a": {"b": "ü"}}):
        _result, (sent,) = request(answer(200), method="POST", body=body)
        assert json.loads(sent.body) == body


@pytest.mark.parametrize(
    ("options", "fault"),
    [
        ({"method": "get"}, "method: must be one of POST, PATCH, "),
        ({"body": {"a": TOKEN}}, "body: contains a credential"),
        ({"path": f"{PATH}/{TOKEN.replace('-', '%2D')}"}, "path: contains a credential"),
        ({"body": ["********"]}, "body: contains a mask of a secret"),
        ({"timeot": 1}, "timeot: there is no such option (did you mean timeout?)"),
    ],
)
def test_an_option_that_is_refused(options, fault):
    result, sent = request(**options)
    assert (result["outcome"], result["changed"], sent) == ("not_sent", False, [])
    assert result["msg"].startswith(fault)
    assert TOKEN not in json.dumps(result["msg"])


def test_what_belongs_to_a_ledger_is_ignored():
    result, sent = request(answer(200, 1), timeout=1000, ledger="/no/such/ledger.db")
    assert (result["json"], len(sent)) == (1, 1)


def test_check_mode_needs_no_token_unless_it_sends():
    result, _sent = request(check_mode=True, method="DELETE", access_token=None)
    assert (result["changed"], result["outcome"], result["json"]) == (True, "not_sent", None)
    result, _sent = request(check_mode=True, access_token=None)
    assert result["msg"].startswith("access_token: is missing")


def test_a_credential_is_masked_wherever_it_comes_back():
    result, _sent = request(answer(200, {"a": [f"x {TOKEN}"], TOKEN: TOKEN}))
    assert TOKEN not in json.dumps(result)
    result, _sent = request(answer(400, {"a": TOKEN}))
    assert (TOKEN in json.dumps(result), "hidden" in result["error_body"]) == (False, True)
