"""The server of the tests: it does what a script says, and records what it read and what it really
did.

A script takes one turn on a `Peer`, the connection as the service sees it: usually a request and
its answer. It returns whether another turn may follow on the same connection. Nothing here waits
longer than PATIENCE.
"""

from __future__ import annotations

import contextlib
import json
import socket
import ssl
import struct
import threading
from typing import Callable, Iterator, NamedTuple

THREAD = "service"  # the name of its threads
PATIENCE = 60.0  # seconds that any one operation of a server may take
_RESET_ON_CLOSE = struct.pack("ii", 1, 0)  # SO_LINGER on, for 0 seconds


class Received(NamedTuple):
    """A complete request, and the number of the connection on which it arrived."""

    line: str
    header_lines: list[tuple[str, str]]  # in order
    body: bytes
    connection: int

    @property
    def method(self) -> str:
        return self.line.split(" ")[0]

    @property
    def path(self) -> str:
        return self.line.split(" ")[1]

    @property
    def headers(self) -> dict[str, str]:
        """The headers by their names in lower case."""
        return {name.lower(): value for name, value in self.header_lines}


class Peer:
    """One connection, from accept to its end."""

    def __init__(self, service: Service, sock: socket.socket, number: int) -> None:
        sock.settimeout(PATIENCE)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.service, self.sock, self.number = service, sock, number
        self._unread = b""

    def secure(self, context: ssl.SSLContext) -> None:
        """Do the server's side of the TLS handshake.

        If it fails, read to the end: the reset of an early close might overtake the alert that says
        why.
        """
        self.sock.getpeername()  # fails if the client is gone: wrap_socket would leak the socket
        with self.sock.dup() as rest:
            try:
                self.sock = context.wrap_socket(self.sock, server_side=True)
            except ssl.SSLError:
                while rest.recv(65536):
                    pass
                raise

    def request(self) -> Received | None:
        """Read and record one complete request; None if the client closed the connection first."""
        while b"\r\n\r\n" not in self._unread:
            if not self._read():
                return None
        head, dummy, self._unread = self._unread.partition(b"\r\n\r\n")
        first, *lines = head.decode("latin-1").split("\r\n")
        pairs = [
            (name, value.removeprefix(" "))
            for name, dummy, value in (line.partition(":") for line in lines)
        ]
        received = Received(first, pairs, b"", self.number)
        length = int(received.headers.get("content-length", 0))
        while len(self._unread) < length:
            if not self._read():
                return None
        body, self._unread = self._unread[:length], self._unread[length:]
        self.service.received.append(received._replace(body=body))
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

    def drip(self, data: Iterator[bytes], pause: float) -> None:
        """Send the pieces, `pause` seconds apart, while the service runs."""
        for piece in data:
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


class Service:
    """Serves while it is entered; with `tls`, only after a handshake.

    `received`: complete requests; `done`: those that were carried out; `envelopes`: the result of
    each, as JSON; `turns`: how many were begun; `connections`: how many were accepted, with or
    without a request.
    """

    def __init__(self, script: Script, *, tls: ssl.SSLContext | None = None) -> None:
        self.listener = socket.create_server(("127.0.0.1", 0), backlog=128)
        self.port, self.scheme = self.listener.getsockname()[1], "https" if tls else "http"
        self.script, self.tls, self.stopping = script, tls, threading.Event()
        self.turns = self.connections = 0
        self.forget()
        self._open: dict[Peer, threading.Thread] = {}
        self._accepting = threading.Thread(target=self._accept, name=THREAD, daemon=True)
        self._last = None  # the address of the last connection

    @property
    def url(self) -> str:
        return f"{self.scheme}://127.0.0.1:{self.port}"

    def carry_out(self, request: Received) -> bytes:
        """Do what a request asks for, and return the envelope (docs/openapi.yaml) as JSON."""
        self.done.append(request)
        asked = json.loads(request.body)
        identifier = (
            request.path.rpartition("/")[2] if request.method == "PUT" else f"vm-{len(self.done)}"
        )
        envelope = dict.fromkeys(("description", "service", "platform", "region", "tenant"))
        envelope.update(
            id=identifier, name=asked.get("name"), attributes=asked.get("attributes", {})
        )
        self.envelopes.append(json.dumps(envelope).encode())
        return self.envelopes[-1]

    def forget(self) -> None:
        """Discard what was received and done; connections stay open."""
        self.received: list[Received] = []
        self.done: list[Received] = []
        self.envelopes: list[bytes] = []
        self.bytes_read = 0

    def begin(self, script: Script) -> None:
        """End all connections and start over with another script."""
        self._end_connections()
        self.script, self.turns = script, 0
        self.forget()

    def __enter__(self) -> Service:
        self._accepting.start()
        return self

    def __exit__(self, *args) -> None:
        """Accept what has arrived, and let every connection come to its end, so that what is
        recorded is final.
        """
        self.stopping.set()
        with self.listener, socket.socket() as last:
            last.bind(("127.0.0.1", 0))
            self._last = last.getsockname()
            last.connect(self.listener.getsockname())
            self._accepting.join()
        self._end_connections()

    def _accept(self) -> None:
        while True:
            sock, address = self.listener.accept()
            if address == self._last:
                sock.close()
                return
            self.connections += 1
            peer = Peer(self, sock, self.connections)
            thread = threading.Thread(target=self._talk, args=[peer], name=THREAD, daemon=True)
            self._open[peer] = thread
            thread.start()

    def _talk(self, peer: Peer) -> None:
        with contextlib.suppress(OSError):  # the client went away: there is nothing left to send
            if self.tls:
                peer.secure(self.tls)
            while self._turn(peer) and not self.stopping.is_set():
                pass
        with contextlib.suppress(OSError):
            peer.sock.close()
        del self._open[peer]

    def _turn(self, peer: Peer) -> object:
        self.turns += 1
        return self.script(peer)

    def _end_connections(self) -> None:
        """End them, which leaves readable what has arrived."""
        for peer, thread in list(self._open.items()):
            with contextlib.suppress(OSError):
                socket.socket.shutdown(peer.sock, socket.SHUT_RDWR)
            thread.join(PATIENCE)
