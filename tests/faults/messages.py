"""Answers whose status line, header block or framing is wrong, and redirects."""

from __future__ import annotations

import gzip
from itertools import repeat

from support.service import Peer

from .behaviors import (
    answers,
    chunked,
    close_delimited,
    corrupts_a_record,
    drips,
    head,
    refuses,
    whole,
)
from .case import (
    ANSWER_CUT,
    ANSWER_UNUSABLE,
    LOST_AFTER_WORK,
    SUCCESS,
    UNKNOWN_AFTER_WORK,
    UNKNOWN_BEFORE_WORK,
    Case,
)

_MEGABYTE = b"a" * (1 << 20)
INTERIM = "100 Continue", "102 Processing", "103 Early Hints"


def _answer(name: str, what: str, expected, raw, end=None, **more) -> Case:
    return Case(name, what, expected, service=answers(raw, end), **more)


def _encoded(body: bytes, encoding: str) -> bytes:
    return whole(body, f"Content-Encoding: {encoding}", status="200 OK")


def _endless(peer: Peer) -> None:
    """Carry out the request and keep sending body data until the client stops reading."""
    if request := peer.request():
        peer.say(close_delimited(peer.service.carry_out(request)))
        peer.drip(repeat(_MEGABYTE), 0)


HEADERS = [
    _answer(
        "39 status-99",
        "status 99",
        LOST_AFTER_WORK,
        lambda body: whole(body, status="99 Low"),
        Peer.fin,
    ),
    _answer(
        "41 http2-preface",
        "HTTP/2 bytes",
        LOST_AFTER_WORK,
        b"\x00\x00\x12\x04" + bytes(23),
        Peer.fin,
    ),
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
        "45 final-101",
        "101, as if to change the protocol",
        UNKNOWN_AFTER_WORK,
        head(status="101 Switching"),
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
        "52a cl-5001-digits",
        "Content-Length of 5,001 digits",
        ANSWER_CUT,
        says="malformed",
        raw=lambda body: head(f"Content-Length: {'9' * 5001}") + body,
        end=Peer.fin,
    ),
    _answer(
        "54 cl-and-chunked",
        "Content-Length together with chunks",
        ANSWER_UNUSABLE,
        lambda body: chunked(body).replace(b"\r\n\r\n", b"\r\nContent-Length: 10\r\n\r\n", 1),
        says="its Content-Length and Transfer-Encoding contradict each other",
    ),
    Case(
        "55d trailer-endless",
        "endless trailers after the whole body",
        ANSWER_UNUSABLE,
        says="longer than 4194304 bytes",
        service=drips(lambda body: chunked(body)[:-2], b"X: a\r\n" * 100_000, pause=0),
    ),
    Case(
        "60 tls-bad-record",
        "a TLS record that was tampered with, after the request",
        LOST_AFTER_WORK,
        tls="server",
        service=corrupts_a_record,
    ),
    _answer(
        "63 gzip-bomb",
        "20 MiB in 20 KiB of gzip",
        ANSWER_UNUSABLE,
        lambda body: _encoded(gzip.compress(bytes(20 << 20)), "gzip"),
        says="longer than",
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
    Case(
        "67 endless-body", "an endless body", ANSWER_UNUSABLE, service=_endless, says="longer than"
    ),
    Case(
        "72 redirect-no-location",
        "302 without a Location",
        UNKNOWN_BEFORE_WORK,
        service=refuses("302 Found"),
        says="302",
    ),
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
