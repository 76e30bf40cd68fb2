"""What a page of somebody else can send from a browser on this machine has no effect, and reads
nothing.
"""

from __future__ import annotations

import json
from urllib.parse import urlsplit

import pytest
from emulator.admission import refusal
from emulator.messages import Request

ADDRESS = ("127.0.0.1", 8080)


def status(
    host: str,
    address: tuple[str, int] = ADDRESS,
    name: str = "127.0.0.1",
    port: int = 80,
) -> int | None:
    answer = refusal(Request("GET", "/", (("Host", host),)), address, name, port)
    return answer and answer.status


@pytest.mark.parametrize("host", ["127.0.0.1", "LocalHost", "127.9.9.9", "[::1]"])
def test_a_loopback_name_or_address_with_the_port_is_answered(host):
    assert status(f"{host}:8080") is None


@pytest.mark.parametrize(
    "host",
    [
        "evil.example:8080",
        "127.0.0.1.evil.example:8080",
        "127.0.0.1",
        "127.0.0.1:8081",
        "",
        "127.0.0.1:8080, evil.example",
        "192.0.2.1:8080",
        "0.0.0.0:8080",
        "[::2]:8080",
        "localhost:99999",
    ],
)
def test_any_other_host_is_refused(host):
    assert status(host) == 421


def test_the_address_that_it_listens_on_is_answered():
    assert status("192.0.2.7:8080", address=("192.0.2.7", 8080), name="0.0.0.0") is None
    assert status("ci-host:8080", address=("192.0.2.7", 8080), name="ci-host") is None
    assert status("other:8080", address=("192.0.2.7", 8080), name="0.0.0.0") == 421
    assert status("localhost", address=("127.0.0.1", 80)) is None
    assert status("localhost", address=("127.0.0.1", 443), port=443) is None


FAULT = json.dumps({"kind": "drop", "count": 0})


def request(emulator, line: str, body: str = "", **headers: str) -> bytes:
    fields = {"Host": "HERE", "Connection": "close", "Content-Length": str(len(body)), **headers}
    head = "".join(f"{name.replace('_', '-')}: {value}\r\n" for name, value in fields.items())
    return emulator.converse(f"{line} HTTP/1.1\r\n{head}\r\n{body}".encode())


@pytest.mark.parametrize(
    ("line", "headers", "expected"),
    [
        ("POST /_emulator/reset", {"Content_Type": "text/plain"}, 415),
        (
            "POST /_emulator/faults",
            {"Content_Type": "application/json", "Origin": "http://evil.example"},
            403,
        ),
        (
            "OPTIONS /_emulator/faults",
            {"Origin": "http://evil.example", "Access_Control_Request_Method": "POST"},
            403,
        ),
        ("GET /_emulator/requests", {"Host": "evil.example:PORT"}, 421),
        ("POST /oauth/token", {"Host": "evil.example:PORT"}, 421),
        (
            "POST /oauth/token",
            {"Content_Type": "application/x-www-form-urlencoded", "Origin": "http://evil.example"},
            403,
        ),
    ],
)
def test_a_page_in_a_browser_neither_drives_nor_reads_it(emulator, line, headers, expected):
    secret = request(emulator, "PUT /api/x", Authorization="Bearer a-token-of-somebody")
    assert secret.startswith(b"HTTP/1.1 404 ")
    port = str(urlsplit(emulator.url).port)
    answer = request(
        emulator,
        line,
        FAULT,
        **{name: value.replace("PORT", port) for name, value in headers.items()},
    )
    assert answer.startswith(f"HTTP/1.1 {expected} ".encode())
    assert b"a-token-of-somebody" not in answer
    assert b"access-control-" not in answer.lower()
    assert json.loads(answer.partition(b"\r\n\r\n")[2])["message"]
    assert len(emulator.conversation()) == 1
    assert emulator.running.api.faults == ()


def test_a_proxy_that_forwards_a_request_is_answered(emulator):
    """Its target has absolute form, and its Host is that of the service."""
    answer = request(
        emulator, "GET http://infrastructure.example.com/none", Host="infrastructure.example.com"
    )
    assert answer.startswith((b"HTTP/1.1 401 ", b"HTTP/1.1 404 "))
    assert len(emulator.conversation()) == 1
