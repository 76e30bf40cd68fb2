# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A server that gives prepared answers in turn and keeps every byte that it was sent."""

from __future__ import annotations

import contextlib
import json
import socketserver
import threading
from typing import Iterator


class Last(bytes):
    """An answer, or what there is of one, after which the server ends the connection."""


class Sent:
    """One request as it came: its first line, its headers in their order, its body, and the connection it came on."""

    def __init__(self, head: bytes, body: bytes, connection: int) -> None:
        self.line, *lines = head.decode("latin-1").splitlines()
        self.headers = [tuple(line.split(": ", 1)) for line in lines if line]
        self.body, self.connection = body, connection

    @property
    def target(self) -> str:
        return self.line.split(" ")[1]


class Wire(socketserver.ThreadingTCPServer):
    """`sent`: the requests so far; `connections`: how many were opened, with or without a request."""

    daemon_threads = True

    def __init__(self, answers: tuple[bytes, ...]) -> None:
        super().__init__(("127.0.0.1", 0), _Connection)
        self.url = f"http://127.0.0.1:{self.server_address[1]}"
        self.answers = list(answers)
        self.sent: list[Sent] = []
        self.connections = 0


class _Connection(socketserver.StreamRequestHandler):
    timeout = 10

    def handle(self) -> None:
        self.server.connections += 1
        number = self.server.connections
        while head := self._head():
            length = [line for line in head.splitlines() if line.lower().startswith(b"content-length:")]
            body = self.rfile.read(int(length[0].split(b":")[1])) if length else b""
            self.server.sent.append(Sent(head, body, number))
            said = self.server.answers.pop(0)
            self.wfile.write(said)
            if isinstance(said, Last):
                return

    def _head(self) -> bytes:
        """Return the lines of a header block, nothing when the other side ends the connection."""
        lines = []
        while (line := self.rfile.readline()) not in (b"\r\n", b""):
            lines.append(line)
        return b"".join(lines)


@contextlib.contextmanager
def serving(*answers: bytes) -> Iterator[Wire]:
    """Run a server that gives these answers, one for each request; a request beyond them gets none."""
    with Wire(answers) as wire:
        thread = threading.Thread(target=wire.serve_forever, args=(0.02,), daemon=True)
        thread.start()
        try:
            yield wire
        finally:
            wire.shutdown()
            thread.join()


def answer(status: int, value: object = None, *headers: str) -> bytes:
    """Return a whole answer; its body is `value` as JSON, or empty."""
    body = b"" if value is None else json.dumps(value).encode()
    lines = [f"HTTP/1.1 {status} -", f"Content-Length: {len(body)}", *headers, "", ""]
    return "\r\n".join(lines).encode("latin-1") + body
