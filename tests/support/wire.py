# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A server that gives prepared answers and records every byte it receives."""

from __future__ import annotations

import contextlib
import json
import socketserver
import threading
from collections.abc import Callable, Iterator, Mapping
from itertools import takewhile

Chooser = Callable[["Sent"], bytes]


class Last(bytes):
    """A complete or partial answer, after which the server closes the connection."""


class Silence(bytes):
    """No answer until the client closes the connection."""


class Sent:
    """One request as received: its first line, its headers in order, its body, and the connection it arrived on."""

    def __init__(self, head: bytes, body: bytes, connection: int) -> None:
        self.line, *lines = head.decode("latin-1").splitlines()
        self.headers = [tuple(line.split(": ", 1)) for line in lines if line]
        self.body, self.connection = body, connection

    @property
    def target(self) -> str:
        return self.line.split(" ")[1]

    @property
    def case(self) -> str:
        """The first segment of the path."""
        return self.target.split("/")[1]


class Wire(socketserver.ThreadingTCPServer):
    """`sent`: the requests so far; `connections`: how many were opened, with or without a request."""

    daemon_threads = True
    request_queue_size = 32

    def __init__(self, choose: Chooser) -> None:
        """`choose` returns the answer to a request."""
        super().__init__(("127.0.0.1", 0), _Connection)
        self.url = f"http://127.0.0.1:{self.server_address[1]}"
        self.choose = choose
        self.sent: list[Sent] = []
        self.connections = 0

    def sent_by(self, case: str) -> list[Sent]:
        """Return the requests of one case."""
        return [sent for sent in self.sent if sent.case == case]


class _Connection(socketserver.StreamRequestHandler):
    timeout = 10
    disable_nagle_algorithm = True

    def handle(self) -> None:
        self.server.connections += 1
        number = self.server.connections
        while head := b"".join(takewhile(lambda line: line not in (b"", b"\r\n"), self.rfile)):
            length = [line for line in head.splitlines() if line.lower().startswith(b"content-length:")]
            body = self.rfile.read(int(length[0].split(b":")[1])) if length else b""
            self.server.sent.append(Sent(head, body, number))
            said = self.server.choose(self.server.sent[-1])
            self.wfile.write(said)
            if isinstance(said, Silence):
                with contextlib.suppress(OSError):
                    self.rfile.read(1)
            if isinstance(said, (Last, Silence)):
                return


def in_turn(*answers: bytes) -> Chooser:
    """Give each request the next answer."""
    left = list(answers)
    return lambda sent: left.pop(0)


def by_case(answers: Mapping[str, tuple[bytes, ...]]) -> Chooser:
    """Give each request the next answer of its case; when there is none left, close the connection."""
    left = {case: list(given) for case, given in answers.items()}
    return lambda sent: left[sent.case].pop(0) if left.get(sent.case) else Last()


@contextlib.contextmanager
def serving(*answers: bytes) -> Iterator[Wire]:
    """Run a server that gives these answers, one per request; a request beyond them gets none."""
    with running(in_turn(*answers)) as wire:
        yield wire


@contextlib.contextmanager
def running(choose: Chooser) -> Iterator[Wire]:
    """Run a server that answers with what `choose` returns."""
    with Wire(choose) as wire:
        thread = threading.Thread(target=wire.serve_forever, args=(0.02,), daemon=True)
        thread.start()
        try:
            yield wire
        finally:
            wire.shutdown()
            thread.join()


def answer(status: int, value: object = None, *headers: str) -> bytes:
    """Return a complete answer; its body is `value` as JSON, or empty."""
    body = b"" if value is None else json.dumps(value).encode()
    lines = [f"HTTP/1.1 {status} -", f"Content-Length: {len(body)}", *headers, "", ""]
    return "\r\n".join(lines).encode("latin-1") + body
