# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The sockets: reads requests, lets the API answer, and executes the steps of the answer."""

from __future__ import annotations

import contextlib
import itertools
import socket
import socketserver
import ssl
import struct
import threading
from typing import Iterable

from . import admission, control, page
from .api import Api
from .messages import RefusalError, Request, Response
from .scripts import Script, script
from .settings import DEFAULT
from .wire import read_requests

_LINGER_RESET = struct.pack("ii", 1, 0)


class Connection(socketserver.BaseRequestHandler):
    """One connection of a client, from accept to its end."""

    server: Server

    def setup(self) -> None:
        """Register the connection for `stop`, and send every answer at once."""
        self.server.open.add(self)
        self.request.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def handle(self) -> None:
        """Answer requests until either side ends the connection."""
        with contextlib.suppress(OSError):  # the client has disconnected
            if self.server.ssl_context is not None:
                self.request = self.server.ssl_context.wrap_socket(self.request, server_side=True)
            number = next(self.server.numbers)
            try:
                for request, last in read_requests(self.request, self.server.prefix):
                    if not self._play(self._answer(request, number, last)):
                        break
            except RefusalError as refusal:
                self._play(script(None, Response(refusal.status, refusal.headers), close=True))

    def _answer(self, request: Request, number: int, last: bool) -> Script:
        """Return what happens on the wire for a request; a refused one is not logged."""
        server = self.server
        default_port = 443 if server.ssl_context is not None else 80
        refused = admission.refusal(
            request, self.request.getsockname()[:2], server.name, default_port
        )
        return script(None, refused, last) if refused else server.answer(request, number, last)

    def finish(self) -> None:
        """Close the socket here, since TLS and a reset have to be ended in their own ways."""
        self.server.open.discard(self)
        with contextlib.suppress(OSError):
            self.request.close()

    def end(self) -> None:
        """Wake the thread that serves this connection, so that it ends."""
        with contextlib.suppress(OSError):
            self.request.shutdown(socket.SHUT_RDWR)

    def _play(self, what: Script) -> bool:
        """Execute the steps of an answer; return whether another may follow."""
        for step in what.steps:
            self.server.pause(step.seconds)
            if step.data:
                self.request.sendall(step.data)
            if step.ending == "reset":
                self.request.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _LINGER_RESET)
            if step.ending:
                return False
        return True


class Server(socketserver.ThreadingTCPServer):
    """Listens on one address; a thread for each connection."""

    allow_reuse_address = True
    daemon_threads = True
    block_on_close = False
    request_queue_size = 1024

    def __init__(
        self, address: tuple[str, int], api: Api, prefix: str, ssl_context: ssl.SSLContext | None
    ) -> None:
        self.api = api
        self.name = address[0]
        self.prefix = prefix.rstrip("/")
        self.ssl_context = ssl_context
        self.stopping = threading.Event()
        self.numbers = itertools.count(1)
        self.open: set[Connection] = set()
        super().__init__(address, Connection)

    def answer(self, request: Request, number: int, close: bool) -> Script:
        """Return what happens on the wire; `close`: the request is the last of its connection."""
        if control.is_control(request):
            return script(None, control.handle(self.api, request), close)
        if page.is_page(request):
            return script(None, page.handle(request), close)
        return self.api.answer(request, number, close, self.pause)

    def pause(self, seconds: float) -> None:
        """Wait; raise ConnectionAbortedError if the server stops meanwhile."""
        if seconds and self.stopping.wait(seconds):
            raise ConnectionAbortedError

    def shutdown_request(self, request: object) -> None:
        """Let the handler end the connection: a FIN sent here would precede its reset."""


class Running:
    """A server that is running in a thread of this process; also a context manager."""

    def __init__(self, server: Server) -> None:
        self._server = server
        scheme = "https" if server.ssl_context is not None else "http"
        host, port = server.socket.getsockname()[:2]
        self.api = server.api
        self.url = f"{scheme}://{host}:{port}{server.prefix}"
        self._thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
        self._thread.start()

    def __enter__(self) -> Running:
        return self

    def __exit__(self, *_error: object) -> None:
        self.stop()

    def stop(self) -> None:
        """End every connection and stop listening."""
        self._server.stopping.set()
        self._server.shutdown()
        self._server.server_close()
        for connection in list(self._server.open):
            connection.end()
        self._thread.join()


def start(
    host: str = "127.0.0.1",
    port: int = 0,
    roles: Iterable[str] = (),
    prefix: str = "",
    ssl_context: ssl.SSLContext | None = None,
    **settings: object,
) -> Running:
    """Start a server in this process and return it; it listens when this returns.

    :param port: 0 picks a free one.
    :param roles: the ids of application roles that exist from the start.
    :param prefix: comes before every path of the service.
    :param ssl_context: serves https with it.
    :param settings: the switches of `Settings`.
    :raises OSError: the address is not available.
    :raises ValueError: there is no such setting, or it cannot have this value.
    """
    api = Api(DEFAULT.changed(settings), roles)
    return Running(Server((host, port), api, prefix, ssl_context))
