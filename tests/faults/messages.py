"""Answers whose status line, header block or framing is wrong, and redirects."""

from __future__ import annotations

import gzip
import zlib
from itertools import repeat

from support.service import Peer

from .behaviors import (
    answers,
    chunked,
    close_delimited,
    corrupts_a_record,
    drips,
    ends_after,
    head,
    refuses,
    whole,
)
from .case import (
    ANSWER_CUT,
    ANSWER_UNUSABLE,
    LOST_AFTER_WORK,
    LOST_UNREAD,
    NOT_SENT,
    REJECTED,
    SUCCESS,
    UNKNOWN_AFTER_WORK,
    UNKNOWN_BEFORE_WORK,
    Case,
)

BRIEF = {"timeout": 0.5}  # seconds; for cases that last until the deadline
_MEGABYTE = b"a" * (1 << 20)
_BOMB = gzip.compress(bytes(200 << 20), compresslevel=1)
INTERIM = "100 Continue", "102 Processing", "103 Early Hints"


def _answer(name: str, what: str, expected, raw, end=None, **more) -> Case:
    return Case(name, what, expected, service=answers(raw, end), **more)


def _interim(status: str):
    return lambda envelope: head(status=status) + whole(envelope)


def _encoded(body: bytes, encoding: str) -> bytes:
    return whole(body, f"Content-Encoding: {encoding}", status="200 OK")


def _endless(peer: Peer) -> None:
    """Carry out the request and keep sending body data until the client stops reading."""
    if request := peer.request():
        peer.say(close_delimited(peer.service.carry_out(request)))
        peer.drip(repeat(_MEGABYTE), 0)


def _redirect(name: str, what: str, status: str, location, **more) -> Case:
    """`location`: computed from the port of the service."""

    def script(peer: Peer) -> object:
        return refuses(
            status, *(f"Location: {place}" for place in [location(peer.service.port)] if place)
        )(peer)

    expected = REJECTED if status.startswith(("307", "308")) else UNKNOWN_BEFORE_WORK
    return Case(name, what, expected, service=script, says=status[:3], **more)


HEADERS = [
    Case(
        "36 header-cut-fin",
        "the header block is cut by an end of stream",
        LOST_AFTER_WORK,
        service=ends_after(30, Peer.fin),
    ),
    Case(
        "37 header-cut-rst",
        "the header block is cut by a reset",
        LOST_AFTER_WORK,
        service=ends_after(30, Peer.rst),
    ),
    _answer("38 status-half", "a truncated status line", LOST_AFTER_WORK, b"HTTP/1.1 2", Peer.fin),
    _answer(
        "39 status-99",
        "status 99",
        LOST_AFTER_WORK,
        lambda body: whole(body, status="99 Low"),
        Peer.fin,
    ),
    _answer(
        "40 status-999",
        "status 999",
        UNKNOWN_AFTER_WORK,
        lambda body: whole(body, status="999 High"),
    ),
    _answer(
        "41 http2-preface",
        "HTTP/2 bytes",
        LOST_AFTER_WORK,
        b"\x00\x00\x12\x04" + bytes(23),
        Peer.fin,
    ),
    _answer(
        "42 ssh-banner", "an SSH banner", LOST_AFTER_WORK, b"SSH-2.0-OpenSSH_9.2\r\n", Peer.fin
    ),
    _answer("43 interim-102", "102 before the good answer", SUCCESS, _interim("102 Processing")),
    _answer("44 interim-103", "103 before the good answer", SUCCESS, _interim("103 Early Hints")),
    _answer(
        "44a interim-all",
        "100, 102 and 103, each twice, before the good answer",
        SUCCESS,
        lambda body: b"".join(head(status=status) for status in INTERIM * 2) + whole(body),
    ),
    _answer(
        "44b interim-alone",
        "103, then an end of stream",
        LOST_AFTER_WORK,
        head(status="103 Early Hints"),
        Peer.fin,
    ),
    _answer(
        "44c interim-104",
        "104, which no standard defines, as the final status",
        UNKNOWN_AFTER_WORK,
        head(status="104 Odd"),
        Peer.fin,
    ),
    _answer(
        "45 final-101",
        "101, as if to change the protocol",
        UNKNOWN_AFTER_WORK,
        head(status="101 Switching"),
        Peer.fin,
    ),
    Case(
        "46 endless-100",
        "endless 100 Continue",
        LOST_AFTER_WORK,
        options=BRIEF,
        service=drips(lambda body: b"", b"HTTP/1.1 100 Continue\r\n\r\n", pause=0.01),
    ),
    Case(
        "46a endless-103",
        "endless 103 Early Hints",
        LOST_AFTER_WORK,
        options=BRIEF,
        service=drips(
            lambda body: b"", head("Link: </a>", status="103 Early Hints") * 1000, pause=0
        ),
    ),
    Case(
        "46b endless-long-100",
        "endless 100 Continue with long headers",
        LOST_AFTER_WORK,
        says="not HTTP",
        service=drips(lambda body: b"", head(f"X: {'a' * 60_000}", status="100 Continue"), pause=0),
    ),
    _answer(
        "47 headers-101",
        "101 header lines",
        LOST_AFTER_WORK,
        lambda body: whole(body, *(f"X-{at}: a" for at in range(101))),
        Peer.fin,
    ),
    _answer(
        "48 header-line-70k",
        "a header line of 70,000 characters",
        LOST_AFTER_WORK,
        lambda body: whole(body, f"X-Long: {'a' * 70000}"),
        Peer.fin,
    ),
    _answer(
        "48a header-lines-60k",
        "90 header lines of 60,000 characters",
        LOST_AFTER_WORK,
        lambda body: whole(body, *[f"X-Long: {'a' * 60_000}"] * 90),
        Peer.fin,
        says="not HTTP",
    ),
]

FRAMING = [
    _answer(
        "49 cl-short",
        "Content-Length shorter than the body",
        ANSWER_UNUSABLE,
        lambda body: head(f"Content-Length: {len(body) - 9}") + body,
        Peer.fin,
    ),
    _answer(
        "50 cl-long",
        "Content-Length longer than the body",
        ANSWER_CUT,
        lambda body: head(f"Content-Length: {len(body) + 9}") + body,
        Peer.fin,
    ),
    _answer(
        "51 cl-negative",
        "Content-Length -2",
        ANSWER_CUT,
        lambda body: head("Content-Length: -2") + body,
        Peer.fin,
    ),
    _answer(
        "52 cl-text",
        "Content-Length ten",
        ANSWER_CUT,
        lambda body: head("Content-Length: ten") + body,
        Peer.fin,
    ),
    _answer(
        "52a cl-5001-digits",
        "Content-Length of 5,001 digits",
        ANSWER_CUT,
        says="malformed",
        raw=lambda body: head(f"Content-Length: {'9' * 5001}") + body,
        end=Peer.fin,
    ),
    _answer(
        "53 cl-two",
        "two different Content-Length headers",
        ANSWER_CUT,
        says="malformed",
        raw=lambda body: whole(body, f"Content-Length: {len(body) - 9}"),
        end=Peer.fin,
    ),
    _answer(
        "53a cl-twice",
        "the same Content-Length twice",
        SUCCESS,
        lambda body: whole(body, f"Content-Length: {len(body)}"),
    ),
    _answer(
        "54 cl-and-chunked",
        "Content-Length together with chunks",
        ANSWER_UNUSABLE,
        lambda body: chunked(body).replace(b"\r\n\r\n", b"\r\nContent-Length: 10\r\n\r\n", 1),
        says="its Content-Length and Transfer-Encoding contradict each other",
    ),
    _answer(
        "55 chunk-bad",
        "a chunk whose size is not a number",
        ANSWER_CUT,
        lambda body: head("Transfer-Encoding: chunked") + b"zz\r\n" + body,
        Peer.fin,
    ),
    _answer(
        "55a chunk-negative",
        "a chunk of -5 bytes",
        ANSWER_CUT,
        lambda body: head("Transfer-Encoding: chunked") + b"-5\r\n" + body,
        Peer.fin,
    ),
    Case(
        "55c chunk-endless",
        "a chunk of 2^63 bytes",
        ANSWER_UNUSABLE,
        says="longer than 4194304 bytes",
        service=drips(
            lambda body: head("Transfer-Encoding: chunked") + b"8000000000000000\r\n",
            _MEGABYTE,
            pause=0,
        ),
    ),
    Case(
        "55d trailer-endless",
        "endless trailers after the whole body",
        ANSWER_UNUSABLE,
        says="longer than 4194304 bytes",
        service=drips(lambda body: chunked(body)[:-2], b"X: a\r\n" * 100_000, pause=0),
    ),
    _answer("56 chunk-cut", "no last chunk", ANSWER_CUT, lambda body: chunked(body)[:-5], Peer.fin),
    Case(
        "57 chunk-ext-drip",
        "a chunk extension that never ends",
        ANSWER_CUT,
        options=BRIEF,
        says="too long",
        service=drips(lambda body: head("Transfer-Encoding: chunked") + b"9;a=", b"a"),
    ),
    _answer(
        "58 close-delimited-cut",
        "a body that ends with the connection, cut",
        ANSWER_CUT,
        lambda body: close_delimited(body)[:-9],
        Peer.fin,
    ),
    _answer(
        "59 tls-truncation",
        "the same over TLS, without a closing alert",
        ANSWER_CUT,
        lambda body: close_delimited(body)[:-9],
        Peer.fin,
        tls="server",
    ),
    Case(
        "60 tls-bad-record",
        "a TLS record that was tampered with, after the request",
        LOST_AFTER_WORK,
        tls="server",
        service=corrupts_a_record,
    ),
    Case(
        "61 tls-rst-hello",
        "a reset after the first TLS message",
        NOT_SENT,
        tls="script",
        service=lambda peer: peer.sock.recv(1) and peer.rst(),
    ),
    Case(
        "62 mtls-13",
        "TLS 1.3 requires a client certificate, but says so only after the request was sent",
        LOST_UNREAD,
        tls="mutual",
    ),
    _answer(
        "63 gzip-bomb",
        "20 MiB in 20 KiB of gzip",
        ANSWER_UNUSABLE,
        lambda body: _encoded(gzip.compress(bytes(20 << 20)), "gzip"),
        says="longer than",
    ),
    _answer(
        "63a gzip-bomb-200",
        "200 MiB of zeros in gzip",
        ANSWER_UNUSABLE,
        _encoded(_BOMB, "gzip"),
        says="longer than",
    ),
    _answer(
        "63b gzip",
        "a good answer in gzip, which was not requested",
        SUCCESS,
        lambda body: _encoded(gzip.compress(body), "gzip"),
    ),
    _answer(
        "63c deflate",
        "a good answer in deflate, which was not requested",
        SUCCESS,
        lambda body: _encoded(zlib.compress(body), "deflate"),
    ),
    _answer(
        "63d gzip-chunked",
        "a good answer in gzip and in chunks",
        SUCCESS,
        lambda body: chunked(gzip.compress(body)).replace(
            b"\r\n", b"\r\nContent-Encoding: gzip\r\n", 1
        ),
    ),
    _answer(
        "64 gzip-cut",
        "half of a gzip body",
        ANSWER_UNUSABLE,
        lambda body: _encoded(gzip.compress(body)[:-30], "gzip"),
        says="not JSON",
    ),
    _answer(
        "64a gzip-close-cut",
        "a gzip body that ends with the connection, cut",
        ANSWER_CUT,
        lambda body: head("Content-Encoding: gzip") + gzip.compress(body)[:-30],
        Peer.fin,
    ),
    _answer(
        "65 gzip-lie",
        "a plain body that claims to be gzip",
        ANSWER_CUT,
        lambda body: _encoded(body, "gzip"),
        says="malformed",
    ),
    _answer(
        "65a brotli",
        "an encoding that was not requested",
        ANSWER_UNUSABLE,
        lambda body: _encoded(body, "br"),
        says="compressed",
    ),
    _answer(
        "66 encodings-6",
        "six layers of encoding",
        ANSWER_UNUSABLE,
        lambda body: _encoded(body, ", ".join(["gzip"] * 6)),
        says="compressed",
    ),
    Case(
        "67 endless-body", "an endless body", ANSWER_UNUSABLE, service=_endless, says="longer than"
    ),
    _redirect(
        "68 redirect-301-get",
        "301, often followed with a GET",
        "301 Moved",
        lambda port: "/elsewhere",
    ),
    _redirect(
        "69 redirect-307-other-host",
        "307 to another host",
        "307 Temporary",
        lambda port: f"http://localhost:{port}/elsewhere",
    ),
    _redirect(
        "70 redirect-https-to-http",
        "308 from https to http",
        "308 Permanent",
        lambda port: f"http://127.0.0.1:{port}/elsewhere",
        tls="server",
    ),
    _redirect(
        "71 redirect-loop",
        "307 to the same address",
        "307 Temporary",
        lambda port: f"http://127.0.0.1:{port}/api/v1/services/compute/virtual_machines",
    ),
    _redirect("72 redirect-no-location", "302 without a Location", "302 Found", lambda port: ""),
    *(
        _answer(
            f"72{letter} redirect-{status[:3]}-done",
            f"{status} after the work was done",
            UNKNOWN_AFTER_WORK,
            whole(b"", "Location: /elsewhere", status=status),
            says=status[:3],
        )
        for letter, status in zip(
            "abcde",
            ("300 Multiple Choices", "301 Moved", "302 Found", "303 See Other", "304 Not Modified"),
        )
    ),
]
