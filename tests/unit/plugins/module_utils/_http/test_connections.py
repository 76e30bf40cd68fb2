"""The connections: each address gets its share of the time, and each undocumented name exists."""

from __future__ import annotations

import socket
import time
from contextlib import ExitStack

import pytest
from ansible_collections.infrastructure.services.plugins.module_utils._http import (
    Request,
)
from ansible_collections.infrastructure.services.plugins.module_utils._http.transport import (
    ConnectionSettings,
    send_once,
)
from support import ServicesError
from support.wire import answer, serving
from urllib3.connection import HTTPConnection, HTTPSConnection


@pytest.fixture
def swallowing():
    """Return an address whose backlog is full: the kernel drops what arrives."""
    with ExitStack() as stack:
        listener = stack.enter_context(socket.create_server(("127.0.0.2", 0), backlog=0))
        for _connection in range(4):
            waiting = stack.enter_context(socket.socket())
            waiting.setblocking(False)
            waiting.connect_ex(listener.getsockname())
        yield listener.getsockname()


def test_an_address_that_drops_packets_does_not_use_up_the_time(monkeypatch, swallowing):
    """The second address is tried once the first has used its share."""
    with serving(answer(200, {})) as wire:
        port = int(wire.url.rpartition(":")[2])
        way = socket.AF_INET, socket.SOCK_STREAM, 0, ""
        monkeypatch.setattr(
            socket, "getaddrinfo", lambda *_args: [(*way, swallowing), (*way, ("127.0.0.1", port))]
        )
        settings = ConnectionSettings(connect_timeout=0.8)
        began = time.monotonic()
        assert (
            send_once(settings, Request("POST", "http://two.example/a", {}, b"{}"), 60).status
            == 200
        )
    assert 0.36 < time.monotonic() - began < 30


@pytest.mark.parametrize("name", ["_new_conn", "_dns_host", "_tunnel"])
def test_an_undocumented_name_exists(name):
    """A version of urllib3 that lacks one fails here, naming it."""
    assert hasattr(HTTPSConnection("service.example"), name)


def test_a_urllib3_that_opens_connections_in_another_way_sends_nothing(monkeypatch):
    """Nothing could be proven about its bytes."""

    def connect(self):
        self.sock = socket.create_connection((self.host, self.port))

    monkeypatch.setattr(HTTPConnection, "connect", connect)
    with serving(answer(200, {})) as wire:
        with pytest.raises(ServicesError, match="urllib3"):
            send_once(ConnectionSettings(), Request("POST", wire.url, {}, b"{}"), 60)
        assert wire.bytes_read == 0
