# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Beyond the named cases: names, connections, TLS and proxies on the way to the service, and what statuses mean."""

from __future__ import annotations

from .behaviours import answers, greets, never_answers, refuses, unread, whole
from .case import (
    IN_DOUBT_DONE,
    IN_DOUBT_UNDONE,
    LOST_DONE,
    LOST_UNDONE,
    LOST_UNREAD,
    REJECTED,
    REJECTED_TWICE,
    UNSENT,
    UNSENT_HOPELESS,
    Case,
)
from .messages import BRIEF
from .servers import Peer


def _status(status: str, expected, carried_out: bool = False, **more) -> Case:
    code, done = status.split(maxsplit=1)[0], "after the work was done" if carried_out else "and nothing was done"
    script = answers(whole(b"", status=status), carried_out=carried_out)
    name = f"status-{code}-{'done' if carried_out else 'undone'}"
    number = f"S{code}d" if carried_out else f"S{code}"
    return Case(number, name, f"{status}, {done}", *expected, script=script, says=code, **more)


def _connect(number: str, name: str, what: str, expected, answer: bytes, end=Peer.fin, **more) -> Case:
    """A case in which the proxy answers CONNECT with this."""
    proxy = greets(answer, end)
    return Case(number, f"connect-{name}", f"CONNECT: {what}", *expected, tls="server", proxy=proxy, **more)


WAY = [
    Case("W1", "refused", "nothing listens", *UNSENT, options={"base_url": "http://127.0.0.1:9"}, says="refused"),
    Case("W2", "no-such-host", "no such name", *UNSENT_HOPELESS, options={"base_url": "https://no-such-host"},
         says="does not exist"),
    Case("W3", "name-later", "the name server has no answer for now", *UNSENT, options={"base_url": "https://ask-later"},
         says="at the moment"),
    Case("W4", "silent-before-request", "the connection is open, but nothing is read", *LOST_UNREAD, options=BRIEF,
         script=unread(lambda peer: peer.service.stopping.wait(5))),
    Case("W5", "rst-unread", "a reset when the request has arrived, unread", *LOST_UNREAD,
         script=lambda peer: peer.arrived() and peer.rst()),
    Case("W6", "rst-after-request-done", "a reset after the work was done", *LOST_DONE, script=never_answers(Peer.rst)),
    Case("W7", "rst-after-request-undone", "a reset, and nothing was done", *LOST_UNDONE,
         script=never_answers(Peer.rst, carried_out=False)),
    Case("W8", "fin-after-request-done", "an end of stream after the work was done", *LOST_DONE,
         script=never_answers(Peer.fin)),
    Case("W9", "fin-after-request-undone", "an end of stream, and nothing was done", *LOST_UNDONE,
         script=never_answers(Peer.fin, carried_out=False)),
    Case("W10", "silent-after-request", "silence after the work was done", *LOST_DONE, options=BRIEF,
         script=never_answers(Peer.hold)),
    Case("W11", "unknown-authority", "a certificate from an unknown authority", *UNSENT_HOPELESS, tls="server",
         options={"ca_path": None}, says="certificate"),
    Case("W12", "plain-behind-https", "the server does not speak TLS", *UNSENT_HOPELESS, tls="script",
         script=greets(b"HTTP/1.1 400 Bad Request\r\n\r\n", Peer.fin), says="TLS"),
    Case("W13", "tls-fin-hello", "an end of stream after the first TLS message", *UNSENT, tls="script",
         script=lambda peer: peer.sock.recv(65536) and peer.fin()),
    Case("W14", "tls-silent", "silence after the first TLS message", *UNSENT, tls="script", options=BRIEF,
         script=unread(Peer.hold), says="handshake"),
    Case("W15", "tls-fin-after-request", "an end of stream over TLS after the work was done", *LOST_DONE, tls="server",
         script=never_answers(Peer.fin)),
    _connect("P1", "403", "403", UNSENT_HOPELESS, whole(b"", status="403 Forbidden"), says="403"),
    _connect("P2", "407", "407", UNSENT_HOPELESS, whole(b"", status="407 Proxy Authentication Required"), says="407"),
    _connect("P3", "502", "502", UNSENT, whole(b"", status="502 Bad Gateway"), says="502"),
    _connect("P4", "fin", "an end of stream", UNSENT, b"", says="proxy"),
    _connect("P5", "rst", "a reset", UNSENT, b"", Peer.rst, says="proxy"),
    _connect("P6", "silent", "silence", UNSENT, b"", Peer.hold, options=BRIEF, says="proxy"),
    _connect("P7", "garbage", "bytes that are not HTTP", UNSENT, b"SSH-2.0-OpenSSH_9.2\r\n", says="proxy"),
    _connect("P8", "rst-in-tls", "200, then a reset in the TLS handshake", UNSENT, whole(b"", status="200 OK"),
             lambda peer: peer.sock.recv(1) and peer.rst()),
    Case("P9", "http-proxy-502", "an http proxy answers 502", *LOST_UNREAD, says="502",
         proxy=refuses("502 Bad Gateway")),
]

STATUSES = [
    *(_status(status, REJECTED) for status in (
        "400 Bad Request", "401 Unauthorized", "403 Forbidden", "404 Not Found", "405 Method Not Allowed",
        "409 Conflict", "410 Gone", "412 Precondition Failed", "413 Too Large", "415 Unsupported", "418 Teapot",
        "421 Misdirected", "422 Unprocessable", "423 Locked", "425 Too Early", "431 Too Large", "451 Legal")),
    _status("429 Too Many Requests", REJECTED_TWICE),
    *(_status(status, LOST_DONE if done else LOST_UNDONE, done) for done in (False, True) for status in (
        "408 Request Timeout", "502 Bad Gateway", "503 Unavailable", "504 Gateway Timeout")),
    *(_status(status, IN_DOUBT_DONE if done else IN_DOUBT_UNDONE, done) for done in (False, True) for status in (
        "500 Internal Server Error", "501 Not Implemented", "507 Insufficient Storage", "599 Odd", "600 Odd",
        "799 Odd")),
]
