# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A request and its answer: where the body ends (RFC 9112 section 6.3), and how it is compressed."""

from __future__ import annotations

import zlib
from contextlib import suppress
from typing import Mapping, NamedTuple, Protocol

# Bytes to receive in one attempt: status line, headers, interim answers, chunk sizes, trailers,
# body, and the answer of a proxy to CONNECT. Also the limit of a decompressed body.
MAX_ANSWER = 4 * 1024 * 1024
TOO_LONG = f"it is longer than {MAX_ANSWER} bytes"
# The wbits argument of zlib: with a gzip header, a zlib header, or no header, which some servers
# send as deflate.
_WINDOWS = {"gzip": (31,), "x-gzip": (31,), "deflate": (15, -15)}


class Request(NamedTuple):
    """A request as it is sent, except for the headers that follow from its URL and body."""

    method: str
    url: str
    headers: Mapping[str, str]
    body: bytes
    origin: str = ""  # of the URL, for messages


class Answer(NamedTuple):
    """An answer whose header block is complete."""

    status: int
    headers: Mapping[str, str]
    body: bytes = b""
    problem: str = ""  # why the body cannot be relied on; '' if it can
    # Whether it was cut off, or may have been, since only the end of the connection delimits it.
    cut: bool = False


class Sender(Protocol):
    """A transport: it makes single attempts."""

    @property
    def has_sent(self) -> bool:
        """Whether a byte of the last attempt was handed to the socket."""

    def send_once(self, request: Request, timeout: float) -> Answer:
        """Make one attempt within `timeout` seconds; raise AttemptFailed."""


class TooLong(OSError):
    """More than MAX_ANSWER bytes arrived; urllib3 closes the connection after an OSError."""


class Unusable(ValueError):
    """The body cannot be decoded."""


def body_framing(headers: Mapping[str, str]) -> tuple[str, int | None]:
    """Return the problem with the headers that delimit and encode the body, and the length.

    The problem is '' if there is none; the length is None if no header gives it. Equal lengths
    count as one.
    """
    lengths = _content_lengths(headers)
    if not all(length.isascii() and length.isdigit() for length in lengths):
        return "its Content-Length is not a number", None
    problem = _framing_problem(headers, lengths)
    length = None
    if lengths and not problem:
        length = _number(lengths.pop())
        if length > MAX_ANSWER:
            return TOO_LONG, None
    return problem, length


def _framing_problem(headers: Mapping[str, str], lengths: set[str]) -> str:
    if len(lengths) > 1:
        return "it has two Content-Lengths"
    if lengths and "Transfer-Encoding" in headers:
        return "it has both a Content-Length and a Transfer-Encoding"
    if headers.get("Transfer-Encoding", "chunked").strip().lower() != "chunked":
        return "its Transfer-Encoding is unknown"
    if _coding(headers) not in ("identity", "", *_WINDOWS):
        return "it is compressed in a way that was not asked for"
    return ""


def decoded(body: bytes, headers: Mapping[str, str]) -> bytes:
    """Return the decompressed body, at most one byte more than MAX_ANSWER; raise Unusable.

    Compression is never requested, but gateways may compress anyway (RFC 9110 section 12.5.3).
    """
    windows = _WINDOWS.get(_coding(headers))
    if not windows or not body:
        return body
    for window in windows:
        with suppress(zlib.error):
            return _decompressed(body, window)
    raise Unusable("it is not compressed as its headers say")


def _decompressed(body: bytes, window: int) -> bytes:
    """Return the body, one member of compressed data (RFC 1952 2.2); raise Unusable for more."""
    decoder = zlib.decompressobj(window)
    plain = decoder.decompress(body, MAX_ANSWER + 1)
    if not decoder.eof and len(plain) <= MAX_ANSWER:
        raise Unusable("its compressed data is cut off")
    if decoder.unused_data:
        raise Unusable("there is more after its compressed data")
    return plain


def _coding(headers: Mapping[str, str]) -> str:
    return headers.get("Content-Encoding", "").strip().lower()


def _content_lengths(headers: Mapping[str, str]) -> set[str]:
    """Return the distinct lengths; urllib3 joins header lines of one name with commas."""
    if "Content-Length" not in headers:
        return set()
    return {length.strip() for length in headers["Content-Length"].split(",")}


def _number(digits: str) -> int:
    """Return the number, or a large one for thousands of digits, for which int() raises an error."""
    return int(digits.lstrip("0")[:20] or "0")
