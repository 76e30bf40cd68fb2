"""One attempt over a real socket: the bytes that were sent, and how the bytes that came back are
read.
"""

from __future__ import annotations

import logging
import platform
import socket
import sys
import time
from types import SimpleNamespace

import pytest
from ansible_collections.infrastructure.services.plugins.module_utils._errors import (
    AttemptFailed,
    ServicesError,
)
from ansible_collections.infrastructure.services.plugins.module_utils._http import Request
from ansible_collections.infrastructure.services.plugins.module_utils._http import (
    transport as transport_module,
)
from ansible_collections.infrastructure.services.plugins.module_utils._http.transport import (
    ConnectionSettings,
    require_usable,
    send_once,
)
from support.wire import answer, running, serving


def request(url: str) -> Request:
    headers = {
        "Content-Type": "application/json",
        "User-Agent": "agent/1",
        "Authorization": "Bearer t",
    }
    return Request("POST", f"{url}/a", headers, b'{"b":1}')


def test_exactly_the_given_request_is_sent():
    with serving(answer(201, {"c": 2}, "X-Request-Id: r1")) as wire:
        got = send_once(ConnectionSettings(), request(wire.url), 5)
    (sent,) = wire.sent
    assert sent.line == "POST /a HTTP/1.1"
    assert sorted(sent.headers) == [
        ("Accept-Encoding", "identity"),
        ("Authorization", "Bearer t"),
        ("Connection", "close"),
        ("Content-Length", "7"),
        ("Content-Type", "application/json"),
        ("Host", wire.url.removeprefix("http://")),
        ("User-Agent", "agent/1"),
    ]
    assert sent.body == b'{"b":1}'
    assert (got.status, got.headers["x-request-id"], got.body) == (201, "r1", b'{"c": 2}')
    assert (got.problem, got.cut) == ("", False)


def test_a_look_up_that_took_too_long_sends_nothing(monkeypatch):
    real = socket.getaddrinfo

    def slow(*arguments):
        time.sleep(0.2)
        return real(*arguments)

    monkeypatch.setattr(socket, "getaddrinfo", slow)
    settings = ConnectionSettings(connect_timeout=0.1)
    with serving(answer(200)) as wire:
        with pytest.raises(AttemptFailed, match="connecting timed out") as failed:
            send_once(settings, request(wire.url.replace("127.0.0.1", "localhost")), 60)
        assert (failed.value.sent, failed.value.hopeless, wire.connections) == (False, False, 0)


def test_an_answer_may_take_longer_than_connecting_may():
    def late(_sent) -> bytes:
        time.sleep(0.7)
        return answer(201, {"c": 2})

    with running(late) as wire:
        assert send_once(ConnectionSettings(connect_timeout=0.5), request(wire.url), 60).body


@pytest.mark.parametrize(
    ("version", "found"),
    [
        (None, "has no requests;"),
        ("2.9.2", r"has requests 2\.9\.2;"),
    ],
)
def test_an_unsuitable_library_is_named_with_the_python_and_the_command(
    monkeypatch, version, found
):
    installed = version and SimpleNamespace(__version__=version)
    monkeypatch.setattr(transport_module, "requests", installed)
    with pytest.raises(ServicesError, match=found) as missing:
        require_usable(ConnectionSettings(), "")
    assert f"{sys.executable} on {platform.node()} has" in missing.value.msg
    assert f"{sys.executable} -m pip install 'requests>=2.31'" in missing.value.msg


def test_urllib3_logs_nothing_and_others_do_while_a_request_is_in_flight(caplog):
    """It would quote the malformed line. With `log_path`, Ansible logs the progress of a list
    meanwhile.
    """

    def choose(_sent):
        logging.getLogger("ansible").info("progress")
        return b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nmalformed, with the token\r\n\r\n{}"

    with running(choose) as wire, caplog.at_level(logging.DEBUG):
        send_once(ConnectionSettings(), request(wire.url), 10)
    assert caplog.messages == ["progress"]
