# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The connections: each address gets its share of the time, and each undocumented name exists."""

from __future__ import annotations

import ast
import http.client
import inspect
import re
import socket
from contextlib import ExitStack

import pytest
from ansible_collections.infrastructure.services.plugins.module_utils._http import connections
from ansible_collections.infrastructure.services.plugins.module_utils._http.connections import (
    MeteredConnection,
)
from ansible_collections.infrastructure.services.plugins.module_utils._http.exchange import Request
from ansible_collections.infrastructure.services.plugins.module_utils._http.tls_context import (
    ConnectionSettings,
)
from ansible_collections.infrastructure.services.plugins.module_utils._http.transport import (
    Transport,
)
from support.wire import answer, serving
from urllib3.connection import HTTPSConnection

# The names that the documentation of `connections` lists, and where each is.
UNDOCUMENTED = {
    "_new_conn": HTTPSConnection,
    "_dns_host": HTTPSConnection,
    "_tunnel": HTTPSConnection,
    "_tunnel_host": HTTPSConnection,
    "_tunnel_port": HTTPSConnection,
    "_read_next_chunk_size": http.client.HTTPResponse,
}


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


@pytest.mark.parametrize(("most", "connect_timeout", "share"), [(2.0, 0.8, 0.4), (0.2, 10.0, 0.2)])
def test_an_address_that_drops_packets_does_not_use_up_the_time(
    monkeypatch, swallowing, most, connect_timeout, share
):
    """The second address is tried once the first has used its share (RFC 8305 section 8)."""
    assert connections.MAX_ATTEMPT_DELAY == 2.0
    monkeypatch.setattr(connections, "MAX_ATTEMPT_DELAY", most)
    given, original = [], MeteredConnection._connect_to

    def connect_to(self, info, seconds):
        given.append(seconds)
        return original(self, info, seconds)

    monkeypatch.setattr(MeteredConnection, "_connect_to", connect_to)
    with serving(answer(200, {})) as wire:
        port = int(wire.url.rpartition(":")[2])
        way = socket.AF_INET, socket.SOCK_STREAM, 0, ""
        monkeypatch.setattr(
            socket, "getaddrinfo", lambda *_args: [(*way, swallowing), (*way, ("127.0.0.1", port))]
        )
        sender = Transport(ConnectionSettings(connect_timeout=connect_timeout))
        assert (
            sender.send_once(Request("POST", "http://two.example/a", {}, b"{}"), 60).status == 200
        )
        assert 0 < given[0] <= share
        assert share * 0.9 < given[1] < connect_timeout
        sender.close()


@pytest.mark.parametrize("name", UNDOCUMENTED)
def test_an_undocumented_name_exists(name):
    """A version of urllib3 or http.client that lacks one fails here, naming it."""
    connection = HTTPSConnection("service.example")
    connection.set_tunnel("other.example", 443)
    owner = connection if UNDOCUMENTED[name] is HTTPSConnection else UNDOCUMENTED[name]
    assert hasattr(owner, name)


def test_every_undocumented_name_is_documented_and_used():
    tree = ast.parse(inspect.getsource(connections))
    functions = {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}
    attributes = {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    names = {name for name in functions | attributes if re.match("_[a-z]", name)}
    assert names - {"_connect_to", "_connect_to_any"} == set(UNDOCUMENTED)
    assert set(re.findall("`(_[a-z_]+)`", connections.__doc__)) == set(UNDOCUMENTED)
