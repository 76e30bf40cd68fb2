# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""HTTP/1.1 on a byte stream: one request in, one answer out (RFC 9112), with nothing normalised on the way in."""

from __future__ import annotations

import re
from email.utils import formatdate
from http import HTTPStatus
from typing import BinaryIO

from .messages import RefusalError, Request, Response

MAX_LINE = 65536
MAX_HEADERS = 200
MAX_BODY = 64 * 1024 * 1024
_REQUEST_LINE = re.compile(rb"([!#$%&'*+.^_`|~0-9A-Za-z-]+) ([!-~]+) HTTP/([0-9.]+)")


def read_head(stream: BinaryIO) -> Request | None:
    """Return the request without its body, None when the stream ends before its blank line.

    :raises RefusalError: what is there is not the head of an HTTP/1.1 request.
    """
    line = _line(stream)
    if line is None:
        return None
    match = _REQUEST_LINE.fullmatch(line)
    if not match:
        raise RefusalError(400)
    if match[3] != b"1.1":
        raise RefusalError(505)
    headers = []
    while line := _line(stream):
        name, colon, value = line.partition(b":")
        if not colon or not name or name != name.strip() or len(headers) >= MAX_HEADERS:
            raise RefusalError(400)
        headers.append((name.decode("latin-1"), value.strip().decode("latin-1")))
    if line is None:
        return None
    return Request(match[1].decode("ascii"), match[2].decode("ascii"), tuple(headers))


def read_body(stream: BinaryIO, head: Request) -> bytes | None:
    """Return the body that the head announces, None when the stream ends inside it.

    :raises RefusalError: its length is missing, malformed or too large.
    """
    if head.header("transfer-encoding"):
        raise RefusalError(411)
    length = head.header("content-length") or "0"
    if not re.fullmatch("[0-9]{1,18}", length):
        raise RefusalError(400)
    if int(length) > MAX_BODY:
        raise RefusalError(413)
    body = stream.read(int(length))
    return body if len(body) == int(length) else None


def wants_close(head: Request) -> bool:
    """Whether the client will send no further request on this connection (RFC 9112 section 9.3)."""
    return "close" in head.header("connection").lower()


def render(response: Response, close: bool = False) -> tuple[bytes, bytes]:
    """Return the head of the answer, its blank line included, and the body."""
    try:
        reason = HTTPStatus(response.status).phrase
    except ValueError:
        reason = ""
    headers = [("Date", formatdate(usegmt=True)), *response.headers]
    body = response.body if response.has_body else b""
    if response.has_body:
        headers.append(("Content-Length", str(len(body))))
    if close:
        headers.append(("Connection", "close"))
    lines = [f"HTTP/1.1 {response.status} {reason}", *(f"{name}: {value}" for name, value in headers), "", ""]
    return "\r\n".join(lines).encode("latin-1"), body


def _line(stream: BinaryIO) -> bytes | None:
    """Return one line without its end, None when the stream ends before the line does."""
    line = stream.readline(MAX_LINE + 1)
    if len(line) > MAX_LINE:
        raise RefusalError(431)
    return line.rstrip(b"\r\n") if line.endswith(b"\n") else None
