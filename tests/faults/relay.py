# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A relay that carries one byte at a time, each in its own TCP segment; or a proxy; or a connection that is cut."""

from __future__ import annotations

import contextlib
import select
import socket
import socketserver
import struct
import threading

from .servers import PATIENCE

ALONE = 4096  # beyond that, the framing is over


class Relay(socketserver.ThreadingTCPServer):
    """Connects clients to a port of this machine; an end of stream and a reset are passed on as such."""

    block_on_close = True
    request_queue_size = 32

    def __init__(self, port: int, *, alone: int = ALONE, tunnel: bool = False) -> None:
        """`alone`: how many bytes of each direction travel alone; `tunnel`: expect a CONNECT first, as a proxy does."""
        super().__init__(("127.0.0.1", 0), _Wire)
        self.to, self.port = ("127.0.0.1", port), self.server_address[1]
        self.alone, self.tunnel = alone, tunnel
        self.url = f"http://127.0.0.1:{self.port}"  # as a proxy
        self.cut: tuple[int, bool] | None = None  # once: after how many bytes from the service, and whether by a reset
        self.open: set[socket.socket] = set()

    def __enter__(self) -> Relay:
        threading.Thread(target=self.serve_forever, args=(0.002,), daemon=True).start()
        return self

    def __exit__(self, *args) -> None:
        self.shutdown()
        for sock in list(self.open):
            with contextlib.suppress(OSError):
                sock.shutdown(socket.SHUT_RDWR)
        self.server_close()


class _CutError(Exception):
    """The connection ends here, by an end of stream."""


class _Wire(socketserver.BaseRequestHandler):
    server: Relay

    def handle(self) -> None:
        with socket.create_connection(self.server.to, PATIENCE) as far:
            target = {self.request: far, far: self.request}
            carried = dict.fromkeys(target, 0)
            for sock in target:
                sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self.server.open.update(target)
            try:
                if self.server.tunnel:
                    self._take_connect()
                while carried:
                    for source in select.select(list(carried), (), (), PATIENCE)[0]:
                        self._carry(source, target[source], carried, comes_back=source is far)
            except _CutError:
                self.request.close()
            except OSError:  # a reset on one side becomes a reset on the other
                for sock in target:
                    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                self.request.close()
            self.server.open.difference_update(target)

    def _take_connect(self) -> None:
        """Read a whole CONNECT, which may arrive in pieces, and accept it."""
        head = b""
        while not head.endswith(b"\r\n\r\n"):
            data = self.request.recv(65536)
            if not data:
                raise ConnectionResetError
            head += data
        self.request.sendall(b"HTTP/1.1 200 OK\r\n\r\n")

    def _carry(self, source, target, carried: dict[socket.socket, int], comes_back: bool) -> None:
        """Pass on what has arrived; at an end of stream drop the source."""
        data = source.recv(65536)
        if comes_back and self.server.cut and carried[source] + len(data) >= self.server.cut[0]:
            (at, by_reset), self.server.cut = self.server.cut, None
            target.sendall(data[:at - carried[source]])
            raise ConnectionResetError if by_reset else _CutError
        if not data:
            del carried[source]
            target.shutdown(socket.SHUT_WR)
            return
        size = 1 if carried[source] < self.server.alone else len(data)
        for at in range(0, len(data), size):
            target.sendall(data[at:at + size])
        carried[source] += len(data)
