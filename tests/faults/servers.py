# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A service that misbehaves as scripted, and records what it read and what it really did.

A script takes one turn on a `Peer`, the connection as the service sees it: usually a request and its answer. It returns
whether another turn may follow on the same connection. Nothing here waits longer than PATIENCE.
"""

from __future__ import annotations

import contextlib
import json
import socket
import socketserver
import ssl
import struct
import sys
import threading
import time
from typing import Callable, Iterator, NamedTuple

PATIENCE = 10.0  # seconds that any one operation of a server may take
_RESET_ON_CLOSE = struct.pack("ii", 1, 0)  # SO_LINGER on, for 0 seconds


class Received(NamedTuple):
    """A complete request as the application read it; header names in lower case."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes


class Peer:
    """One connection, from accept to its end."""

    def __init__(self, service: Service, sock: socket.socket) -> None:
        sock.settimeout(PATIENCE)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.service, self.sock = service, sock
        self._unread = b""

    def secure(self, context: ssl.SSLContext) -> None:
        """Do the server's side of the TLS handshake; not if the client is gone: wrap_socket would leak it."""
        self.sock.getpeername()
        self.sock = context.wrap_socket(self.sock, server_side=True)

    def request(self) -> Received | None:
        """Read and record one complete request; None if the client closed the connection first."""
        while b"\r\n\r\n" not in self._unread:
            if not self._read():
                return None
        head, dummy, self._unread = self._unread.partition(b"\r\n\r\n")
        first, *lines = head.decode("latin-1").split("\r\n")
        headers = {name.lower(): value.strip() for name, dummy, value in (line.partition(":") for line in lines)}
        length = int(headers.get("content-length", 0))
        while len(self._unread) < length:
            if not self._read():
                return None
        body, self._unread = self._unread[:length], self._unread[length:]
        method, path, dummy = first.split(" ")
        self.service.received.append(Received(method, path, headers, body))
        return self.service.received[-1]

    def _read(self) -> int:
        data = self.sock.recv(65536)
        self._unread += data
        self.service.bytes_read += len(data)
        return len(data)

    def arrived(self) -> bool:
        """Wait until something has arrived, and leave it unread."""
        return bool(self.sock.recv(1, socket.MSG_PEEK))

    def say(self, data: bytes) -> None:
        self.sock.sendall(data)

    def say_at_once(self, data: bytes) -> None:
        """Say the data so that all of it arrives together, also what TLS divides into several records."""
        self.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_CORK, 1)
        self.say(data)
        self.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_CORK, 0)

    def drip(self, data: bytes | Iterator[bytes], pause: float) -> None:
        """Send the data in pieces (bytes: one at a time), `pause` seconds apart, while the service runs."""
        for piece in (data[at:at + 1] for at in range(len(data))) if isinstance(data, bytes) else data:
            self.say(piece)
            if self.service.stopping.wait(pause):
                return

    def hold(self) -> None:
        """Send nothing until the client goes away or the service stops."""
        while self.sock.recv(65536):
            pass

    def fin(self) -> None:
        """Close our side without a TLS closure alert, as a process that dies does."""
        socket.socket.shutdown(self.sock, socket.SHUT_WR)
        self.hold()

    def rst(self) -> None:
        self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET_ON_CLOSE)
        self.sock.close()


Script = Callable[[Peer], object]


class Service(socketserver.ThreadingTCPServer):
    """Handles its first `times` turns with `script` (None: all of them) and the others with `after`.

    `received`: complete requests; `done`: those that were carried out; `envelopes`: the result of each, as JSON.
    """

    block_on_close = True
    request_queue_size = 32

    def __init__(self, script: Script, *, times: int | None = None, after: Script | None = None,
                 tls: ssl.SSLContext | None = None) -> None:
        super().__init__(("127.0.0.1", 0), _Connection)
        self.scheme, self.port = "https" if tls else "http", self.server_address[1]
        self.tls, self.stopping = tls, threading.Event()
        self.received: list[Received] = []
        self.done: list[Received] = []
        self.envelopes: list[bytes] = []
        self.bytes_read, self.turns = 0, 0
        self._script, self._times, self._after = script, times, after
        self._open: set[Peer] = set()

    @property
    def url(self) -> str:
        return f"{self.scheme}://127.0.0.1:{self.port}"

    def carry_out(self, request: Received) -> bytes:
        """Do what a request asks for, and return the envelope (docs/openapi.yaml) as JSON."""
        self.done.append(request)
        asked = json.loads(request.body)
        identifier = request.path.rpartition("/")[2] if request.method == "PUT" else f"vm-{len(self.done)}"
        envelope = dict.fromkeys(("description", "service", "platform", "region", "tenant"))
        envelope.update(id=identifier, name=asked.get("name"), attributes=asked.get("attributes", {}))
        self.envelopes.append(json.dumps(envelope).encode())
        return self.envelopes[-1]

    def forget(self) -> None:
        """Discard what was received and done; connections stay open."""
        self.bytes_read = 0
        for record in (self.received, self.done, self.envelopes):
            record.clear()

    def begin(self, script: Script, times: int | None = None) -> None:
        """End all connections and start over with another script."""
        self._end_connections()
        until = time.monotonic() + PATIENCE
        while self._open and time.monotonic() < until:
            time.sleep(0.0005)
        self._script, self._times, self.turns = script, times, 0
        self.forget()

    def turn(self, peer: Peer) -> object:
        """Take the next turn."""
        self.turns += 1
        return (self._script if self._times is None or self.turns <= self._times else self._after)(peer)

    def handle_error(self, request, client_address) -> None:
        """Make an error in a script end its thread, so that pytest reports it."""
        raise sys.exc_info()[1]

    def __enter__(self) -> Service:
        threading.Thread(target=self.serve_forever, args=(0.002,), daemon=True).start()
        return self

    def __exit__(self, *args) -> None:
        """Wake and join every thread, so that what is recorded is final."""
        self.stopping.set()
        self.shutdown()
        self._end_connections()
        self.server_close()

    def _end_connections(self) -> None:
        for peer in list(self._open):
            with contextlib.suppress(OSError):
                socket.socket.shutdown(peer.sock, socket.SHUT_RDWR)


class _Connection(socketserver.BaseRequestHandler):
    server: Service

    def handle(self) -> None:
        peer = Peer(self.server, self.request)
        self.server._open.add(peer)
        with contextlib.suppress(OSError):  # the client went away: there is nothing left to send
            if self.server.tls:
                peer.secure(self.server.tls)
            while self.server.turn(peer) and not self.server.stopping.is_set():
                pass
        self.server._open.discard(peer)
        with contextlib.suppress(OSError):
            peer.sock.close()
