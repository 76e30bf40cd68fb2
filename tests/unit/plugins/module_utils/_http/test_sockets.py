"""The first byte: it is handed over after the connection is ready, while there is time, and if the
task still may send it.
"""

from __future__ import annotations

import socket
import ssl
import time
from types import SimpleNamespace

import pytest
import trustme
from ansible_collections.infrastructure.services.plugins.module_utils._errors import (
    AttemptFailed,
    InvalidInput,
)
from ansible_collections.infrastructure.services.plugins.module_utils._http import (
    Request,
    sockets,
)
from ansible_collections.infrastructure.services.plugins.module_utils._http.transport import (
    ConnectionSettings,
    send_once,
)
from faults.behaviors import answers
from faults.relay import Relay
from support.service import Peer, Service
from urllib3.connection import HTTPConnection

BODY = b'{"name": "web01"}'


class LeaseEndedError(InvalidInput):
    """The clock was looked at, and says no."""


class Way:
    """A service, how it is reached, and what was seen at the first byte of the request."""

    def __init__(self, service: Service, settings: ConnectionSettings, url: str) -> None:
        self.service, self.settings, self.url = service, settings, url
        self.asked: list[int] = []  # bytes that the service had read

    def send(self, *, allowed: bool = True) -> int:
        """Make an attempt; return the status."""

        def may_send() -> None:
            self.asked.append(self.service.bytes_read)
            if not allowed:
                raise LeaseEndedError("ledger", "the lease has ended")

        request = Request("POST", f"{self.url}/a", {}, BODY, may_send=may_send)
        return send_once(self.settings, request, 10).status


@pytest.fixture(params=["http", "https", "tunnel"])
def way(request, tmp_path):
    authority = trustme.CA()
    authority.cert_pem.write_to_path(str(tmp_path / "ca.pem"))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1", "0.0.0.0").configure_cert(context)
    is_tls = request.param != "http"
    with Service(answers(), tls=context if is_tls else None) as service:
        url = service.url
        with Service(Relay(service.port)) as proxy:
            settings = ConnectionSettings(ca_path=str(tmp_path / "ca.pem"))
            if request.param == "tunnel":
                settings = settings._replace(proxies=(("https", proxy.url),))
                url = url.replace("127.0.0.1", "0.0.0.0")
            yield Way(service, settings, url)


def test_the_last_question_comes_when_the_connection_is_ready(way):
    """TLS handshake and CONNECT are not part of the request."""
    assert way.send() == 201
    assert way.asked == [0]


def test_a_request_that_may_not_be_sent_any_more_is_not_sent(way):
    with pytest.raises(LeaseEndedError):
        way.send(allowed=False)
    assert way.send() == 201
    assert len(way.service.received) == 1
    assert way.asked == [0, 0]


@pytest.mark.parametrize("way", ["https", "tunnel"], indirect=True)
def test_a_connection_that_never_gets_ready_asks_nothing(way):
    way.service.tls, way.service.script = None, lambda peer: peer.sock.recv(1) and peer.rst()
    with pytest.raises(AttemptFailed, match="lost during the TLS handshake") as failed:
        way.send()
    assert (failed.value.sent, way.asked) == (False, [])


def test_nothing_is_handed_over_when_the_time_is_up(monkeypatch):
    """The connection is ready, but too late."""
    real, passed = HTTPConnection.connect, [0]

    def connect(connection):
        real(connection)
        passed[0] = 1000

    monkeypatch.setattr(HTTPConnection, "connect", connect)
    clock = SimpleNamespace(monotonic=lambda: time.monotonic() + passed[0])
    monkeypatch.setattr(sockets, "time", clock)
    with Service(Peer.hold) as service, pytest.raises(AttemptFailed, match="timed out") as failed:
        send_once(ConnectionSettings(), Request("POST", service.url, {}, BODY), 60)
    assert (failed.value.sent, service.bytes_read) == (False, 0)


def test_a_byte_counts_before_the_kernel_takes_it(monkeypatch):
    def send(*_arguments):
        raise ConnectionResetError("scripted")

    with Service(Peer.hold) as service, monkeypatch.context() as patched:
        patched.setattr(socket.socket, "send", send)
        with pytest.raises(AttemptFailed) as failed:
            send_once(ConnectionSettings(), Request("POST", service.url, {}, BODY), 10)
    assert (failed.value.sent, service.bytes_read) == (True, 0)
