"""Names, connections and proxies on the way to the service, and what statuses mean."""

from __future__ import annotations

from itertools import repeat

from support.service import Peer

from .behaviors import answers, drips, greets, head, never_answers, refuses, whole
from .case import (
    LOST_AFTER_WORK,
    LOST_UNREAD,
    NOT_SENT,
    NOT_SENT_NO_RETRY,
    REJECTED,
    REJECTED_TWICE,
    UNKNOWN_AFTER_WORK,
    Case,
)


def _status(status: str, expected, carried_out: bool = True) -> Case:
    code = status.split(maxsplit=1)[0]
    done = "after the work was done" if carried_out else "and nothing was done"
    script = answers(whole(b"", status=status), carried_out=carried_out)
    return Case(f"S{code} status-{code}", f"{status}, {done}", expected, script, says=code)


def _connect(name: str, what: str, expected, answer: bytes, end=Peer.fin, **more) -> Case:
    """A case in which the proxy answers CONNECT with this."""
    proxy = greets(answer, end)
    return Case(name, f"CONNECT: {what}", expected, tls="server", proxy=proxy, **more)


WAY = [
    Case(
        "W1 refused",
        "nothing listens",
        NOT_SENT,
        options={"base_url": "http://127.0.0.1:9"},
        says="refused",
    ),
    Case(
        "W2 no-such-host",
        "no such name",
        NOT_SENT_NO_RETRY,
        options={"base_url": "https://no-such-host"},
        says="does not exist",
    ),
    Case(
        "W3 name-later",
        "the name server has no answer for now",
        NOT_SENT,
        options={"base_url": "https://ask-later"},
        says="at the moment",
    ),
    Case(
        "W5 rst-unread",
        "a reset when the request has arrived, unread",
        LOST_UNREAD,
        service=lambda peer: peer.arrived() and peer.rst(),
    ),
    Case(
        "W6 rst-after-request-done",
        "a reset after the work was done",
        LOST_AFTER_WORK,
        service=never_answers(Peer.rst),
    ),
    Case(
        "W8 fin-after-request-done",
        "an end of stream after the work was done",
        LOST_AFTER_WORK,
        service=never_answers(Peer.fin),
    ),
    _connect(
        "P1 connect-403", "403", NOT_SENT_NO_RETRY, whole(b"", status="403 Forbidden"), says="403"
    ),
    _connect("P3 connect-502", "502", NOT_SENT, whole(b"", status="502 Bad Gateway"), says="502"),
    _connect("P4 connect-fin", "an end of stream", NOT_SENT, b"", says="proxy"),
    _connect(
        "P7 connect-garbage",
        "bytes that are not HTTP",
        NOT_SENT,
        b"SSH-2.0-OpenSSH_9.2\r\n",
        says="proxy",
    ),
    _connect(
        "P8 connect-rst-in-tls",
        "200, then a reset in the TLS handshake",
        NOT_SENT,
        whole(b"", status="200 OK"),
        lambda peer: peer.sock.recv(1) and peer.rst(),
    ),
    _connect(
        "P10 connect-endless",
        "200 and endless headers",
        NOT_SENT,
        b"HTTP/1.1 200 OK\r\n",
        lambda peer: peer.drip(repeat(b"X: a\r\n" * 100_000), 0),
        says="CONNECT",  # from Python 3.12 on, the standard library accepts no more than 100 headers
    ),
    Case(
        "P9 http-proxy-502",
        "an http proxy answers 502",
        LOST_UNREAD,
        says="502",
        proxy=refuses("502 Bad Gateway"),
    ),
]

STATUSES = [
    Case(
        "S401e status-401-endless",
        "401 with an endless body",
        REJECTED,
        says="401",
        service=drips(
            lambda body: head(status="401 Unauthorized"), b"a" * (1 << 20), 0, carried_out=False
        ),
    ),
    *(
        _status(status, REJECTED, carried_out=False)
        for status in ("401 Unauthorized", "403 Forbidden", "404 Not Found", "422 Unprocessable")
    ),
    _status("429 Too Many Requests", REJECTED_TWICE, carried_out=False),
    *(
        _status(status, LOST_AFTER_WORK)
        for status in ("408 Timeout", "502 Bad Gateway", "503 Unavailable", "504 Gateway Timeout")
    ),
    *(
        _status(status, UNKNOWN_AFTER_WORK)
        for status in ("500 Internal Server Error", "501 Not Implemented", "599 Odd", "600 Odd")
    ),
]
