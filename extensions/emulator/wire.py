# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""HTTP/1.1 on a socket: h11 reads the requests, and this file renders the answers.

A fault can cut such an answer anywhere.
"""

from __future__ import annotations

import socket
from email.utils import formatdate
from http import HTTPStatus
from typing import Iterator

import h11

from .messages import RefusalError, Request, Response

MAX_HEAD = 65536
MAX_BODY = 64 * 1024 * 1024


def read_requests(peer: socket.socket, prefix: str = "") -> Iterator[tuple[Request, bool]]:
    """Yield each request of a connection, and whether it is the client's last.

    Each is read by an h11 connection of its own, since h11 does not see the answers.

    :param prefix: comes before every path of the emulator. :raises RefusalError: the input is not a
    request, or too large; where the next one begins is unknown. :raises OSError: the client
    disconnected, perhaps in the middle of a request.
    """
    early = b""
    while True:
        connection = h11.Connection(h11.SERVER, max_incomplete_event_size=MAX_HEAD)
        if early:
            connection.receive_data(early)
        try:
            head, body = _read(peer, connection)
        except h11.RemoteProtocolError as error:
            raise RefusalError(error.error_status_hint) from None
        headers = tuple(
            (name.decode("ascii"), value.decode("latin-1"))
            for name, value in head.headers.raw_items()
        )
        request = Request(
            head.method.decode("ascii"), head.target.decode("ascii"), headers, body, prefix
        )
        yield request, connection.their_state is h11.MUST_CLOSE
        early = connection.trailing_data[0]


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
    lines = [
        f"HTTP/1.1 {response.status} {reason}",
        *(f"{name}: {value}" for name, value in headers),
        "",
        "",
    ]
    return "\r\n".join(lines).encode("latin-1"), body


def _read(peer: socket.socket, connection: h11.Connection) -> tuple[h11.Request, bytes]:
    """Return the head of one request and its body."""
    head = _next_event(peer, connection)
    if not isinstance(head, h11.Request):
        raise ConnectionAbortedError
    body = bytearray()
    while isinstance(data := _next_event(peer, connection), h11.Data):
        body += data.data
        if len(body) > MAX_BODY:
            raise RefusalError(413)
    return head, bytes(body)


def _next_event(peer: socket.socket, connection: h11.Connection) -> object:
    """Return the next event of h11, once enough data has arrived."""
    while (event := connection.next_event()) is h11.NEED_DATA:
        connection.receive_data(_receive(peer, connection))
    return event


def _receive(peer: socket.socket, connection: h11.Connection) -> bytes:
    if connection.they_are_waiting_for_100_continue:
        go_on = h11.InformationalResponse(status_code=100, headers=[], reason=b"Continue")
        peer.sendall(connection.send(go_on))
    data = peer.recv(65536)
    if not data:
        raise ConnectionAbortedError
    return data
