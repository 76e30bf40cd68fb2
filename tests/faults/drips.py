"""Everything that can drip: each wait is short, but the whole never ends."""

from __future__ import annotations

import socket
import time
from itertools import repeat
from pathlib import Path

from support import CREATE, transport
from support.service import Peer

from .behaviors import END_OF_HEAD, PIECES, drips, head, never_answers, whole
from .case import ANSWER_CUT, LOST_AFTER_WORK, LOST_UNREAD, NOT_SENT, Case
from .lab import Authority, lab_of, run

PAUSE = 0.02  # seconds
SMALL_BUFFER = 4096  # bytes that the kernel buffers for a slow reader
HUGE = {"extra_attributes": {"note": "a" * (8 << 20)}}  # more than the kernel buffers


def _never_ending_handshake(peer: Peer) -> None:
    """Announce a TLS record of 16 KiB, and send it byte by byte."""
    peer.sock.recv(65536)
    peer.say(b"\x16\x03\x03\x40\x00")
    peer.drip(repeat(b"\x00", PIECES), PAUSE)


def _never_ending_connect(peer: Peer) -> None:
    """Accept CONNECT, then keep sending headers."""
    peer.sock.recv(65536)
    peer.say(b"HTTP/1.1 200 OK\r\nX-Long: ")
    peer.drip(repeat(b"a", PIECES), PAUSE)


def _slow_reader(peer: Peer) -> None:
    """Keep reading a little of the request at a time."""
    while not peer.service.stopping.wait(PAUSE) and peer.sock.recv(1024):
        pass


def _body(name: str, what: str, before: bytes, dripped: bytes) -> Case:
    return Case(name, what, ANSWER_CUT, service=drips(lambda envelope: before, dripped))


def _head(name: str, what: str, before: bytes, dripped: bytes) -> Case:
    return Case(name, what, LOST_AFTER_WORK, service=drips(lambda envelope: before, dripped))


_CHUNKED, _NO_BYTES = head("Transfer-Encoding: chunked"), b""
DRIPS = [
    _head("header", "a header line", b"HTTP/1.1 201 Created\r\nX-Long: ", b"a"),
    _head("interim", "100 Continue", _NO_BYTES, b"HTTP/1.1 100 Continue" + END_OF_HEAD),
    _body("body", "a body of known length", head("Content-Length: 9999"), b" "),
    _body("close-delimited", "a body of unknown length", head(), b" "),
    _body("chunks", "chunks", _CHUNKED, b"1\r\n \r\n"),
    _body("chunk-extension", "a chunk's extension", _CHUNKED + b"1;a=", b"a"),
    Case("silence", "nothing at all", LOST_AFTER_WORK, service=never_answers(Peer.hold)),
    Case(
        "tls-body",
        "a body over TLS",
        ANSWER_CUT,
        tls="server",
        service=drips(lambda envelope: head("Content-Length: 9999"), b" "),
    ),
    Case(
        "tls-handshake",
        "the TLS handshake",
        NOT_SENT,
        tls="script",
        service=_never_ending_handshake,
    ),
    Case(
        "connect",
        "a proxy's answer to CONNECT",
        NOT_SENT,
        tls="server",
        proxy=_never_ending_connect,
    ),
    Case(
        "slow-reader", "the request, read slowly", LOST_UNREAD, options=HUGE, service=_slow_reader
    ),
    Case(
        "token",
        "the token endpoint's answer",
        NOT_SENT,
        token_endpoint=drips(lambda body: whole(b"")[:-4], b"X: a\r\n", carried_out=False),
    ),
]


def endure(case: Case, directory: Path, authority: Authority, timeout: float) -> tuple:
    """Run a task of one attempt, which drips until its deadline; return its result and the seconds
    of the attempt.
    """
    seconds: list[float] = []
    real = transport.send_once

    def timed(*args):
        started = time.monotonic()
        try:
            return real(*args)
        finally:
            seconds.append(time.monotonic() - started)

    with lab_of(case, CREATE, directory, authority) as lab:
        lab.service.listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, SMALL_BUFFER)
        result = run(lab, case, timeout=timeout, retries=0, send_once=timed)
    return result, seconds[0]
