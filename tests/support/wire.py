"""The server of the tests with prepared answers, for tests that look at each request as it was
sent.
"""

from __future__ import annotations

import json
from collections.abc import Callable

from .service import Peer, Received, Service

Chooser = Callable[["Sent"], bytes]


class Last(bytes):
    """A complete or partial answer, after which the server closes the connection."""


class Silence(bytes):
    """No answer until the client closes the connection."""


class Sent:
    """One request as received: its first line, its headers in order, its body, and the connection
    it arrived on.
    """

    def __init__(self, received: Received) -> None:
        self.line, self.headers, self.body, self.connection = received
        self.target = received.path

    @property
    def case(self) -> str:
        """The first segment of the path."""
        return self.target.split("/")[1]


class Wire(Service):
    """`choose`: returns the answer to a request; `sent`: the requests so far; `left`: clients that
    left a Silence.
    """

    def __init__(self, choose: Chooser) -> None:
        super().__init__(self._answer)
        self.choose = choose
        self.sent: list[Sent] = []
        self.left = 0

    def sent_by(self, case: str) -> list[Sent]:
        """Return the requests of one case."""
        return [sent for sent in self.sent if sent.case == case]

    def _answer(self, peer: Peer) -> bool:
        received = peer.request()
        if not received:
            return False
        sent = Sent(received)
        self.sent.append(sent)
        answer = self.choose(sent)
        peer.say(answer)
        if isinstance(answer, Silence):
            peer.hold()
            self.left += 1
        return not isinstance(answer, (Last, Silence))


def in_turn(*answers: bytes) -> Chooser:
    """Give each request the next answer; when there is none left, close the connection."""
    left = list(answers)
    return lambda sent: left.pop(0) if left else Last()


def serving(*answers: bytes) -> Wire:
    """Return a server that gives these answers, one per request; a request beyond them gets none."""
    return running(in_turn(*answers))


def running(choose: Chooser) -> Wire:
    """Return a server that answers with what `choose` returns; it runs while it is entered."""
    return Wire(choose)


def answer(status: int, value: object = None, *headers: str) -> bytes:
    """Return a complete answer; its body is `value` as JSON, or empty."""
    body = b"" if value is None else json.dumps(value).encode()
    lines = [f"HTTP/1.1 {status} -", f"Content-Length: {len(body)}", *headers, "", ""]
    return "\r\n".join(lines).encode("latin-1") + body
