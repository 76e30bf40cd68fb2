"""Beyond the named cases: names, connections, TLS and proxies on the way to the service, and what
statuses mean.
"""

from __future__ import annotations

from itertools import repeat

from support.service import Peer

from .behaviors import answers, drips, greets, head, never_answers, refuses, unread, whole
from .case import (
    LOST_AFTER_WORK,
    LOST_BEFORE_WORK,
    LOST_UNREAD,
    NOT_SENT,
    NOT_SENT_NO_RETRY,
    REJECTED,
    REJECTED_TWICE,
    UNKNOWN_AFTER_WORK,
    UNKNOWN_BEFORE_WORK,
    Case,
)
from .messages import BRIEF


def _status(status: str, expected, carried_out: bool = False, **more) -> Case:
    code, done = (
        status.split(maxsplit=1)[0],
        "after the work was done" if carried_out else "and nothing was done",
    )
    script = answers(whole(b"", status=status), carried_out=carried_out)
    name = f"S{code}d status-{code}-done" if carried_out else f"S{code} status-{code}-undone"
    return Case(name, f"{status}, {done}", expected, service=script, says=code, **more)


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
        "W4 silent-before-request",
        "the connection is open, but nothing is read",
        LOST_UNREAD,
        options=BRIEF,
        service=unread(lambda peer: peer.service.stopping.wait(5)),
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
        "W7 rst-after-request-undone",
        "a reset, and nothing was done",
        LOST_BEFORE_WORK,
        service=never_answers(Peer.rst, carried_out=False),
    ),
    Case(
        "W8 fin-after-request-done",
        "an end of stream after the work was done",
        LOST_AFTER_WORK,
        service=never_answers(Peer.fin),
    ),
    Case(
        "W9 fin-after-request-undone",
        "an end of stream, and nothing was done",
        LOST_BEFORE_WORK,
        service=never_answers(Peer.fin, carried_out=False),
    ),
    Case(
        "W10 silent-after-request",
        "silence after the work was done",
        LOST_AFTER_WORK,
        options=BRIEF,
        service=never_answers(Peer.hold),
    ),
    Case(
        "W11 unknown-authority",
        "a certificate from an unknown authority",
        NOT_SENT_NO_RETRY,
        tls="server",
        options={"ca_path": None},
        says="certificate",
    ),
    Case(
        "W12 plain-behind-https",
        "the server does not speak TLS",
        NOT_SENT_NO_RETRY,
        tls="script",
        service=greets(b"HTTP/1.1 400 Bad Request\r\n\r\n", Peer.fin),
        says="TLS",
    ),
    Case(
        "W13 tls-fin-hello",
        "an end of stream after the first TLS message",
        NOT_SENT,
        tls="script",
        service=lambda peer: peer.sock.recv(65536) and peer.fin(),
    ),
    Case(
        "W14 tls-silent",
        "silence after the first TLS message",
        NOT_SENT,
        tls="script",
        options=BRIEF,
        service=unread(Peer.hold),
        says="handshake",
    ),
    Case(
        "W15 tls-fin-after-request",
        "an end of stream over TLS after the work was done",
        LOST_AFTER_WORK,
        tls="server",
        service=never_answers(Peer.fin),
    ),
    _connect(
        "P1 connect-403", "403", NOT_SENT_NO_RETRY, whole(b"", status="403 Forbidden"), says="403"
    ),
    _connect(
        "P2 connect-407",
        "407",
        NOT_SENT_NO_RETRY,
        whole(b"", status="407 Proxy Authentication Required"),
        says="407",
    ),
    _connect("P3 connect-502", "502", NOT_SENT, whole(b"", status="502 Bad Gateway"), says="502"),
    _connect("P4 connect-fin", "an end of stream", NOT_SENT, b"", says="proxy"),
    _connect("P5 connect-rst", "a reset", NOT_SENT, b"", Peer.rst, says="proxy"),
    _connect("P6 connect-silent", "silence", NOT_SENT, b"", Peer.hold, options=BRIEF, says="proxy"),
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
        _status(status, REJECTED)
        for status in (
            "400 Bad Request",
            "401 Unauthorized",
            "403 Forbidden",
            "404 Not Found",
            "405 Method Not Allowed",
            "409 Conflict",
            "410 Gone",
            "412 Precondition Failed",
            "413 Too Large",
            "415 Unsupported",
            "418 Teapot",
            "421 Misdirected",
            "422 Unprocessable",
            "423 Locked",
            "425 Too Early",
            "431 Too Large",
            "451 Legal",
        )
    ),
    _status("429 Too Many Requests", REJECTED_TWICE),
    *(
        _status(status, LOST_AFTER_WORK if done else LOST_BEFORE_WORK, done)
        for done in (False, True)
        for status in (
            "408 Request Timeout",
            "502 Bad Gateway",
            "503 Unavailable",
            "504 Gateway Timeout",
        )
    ),
    *(
        _status(status, UNKNOWN_AFTER_WORK if done else UNKNOWN_BEFORE_WORK, done)
        for done in (False, True)
        for status in (
            "500 Internal Server Error",
            "501 Not Implemented",
            "507 Insufficient Storage",
            "599 Odd",
            "600 Odd",
            "799 Odd",
        )
    ),
]
