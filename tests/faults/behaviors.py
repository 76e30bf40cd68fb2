"""What services, proxies and token endpoints do, right and wrong: scripts for `support.service`."""

from __future__ import annotations

import json
import os
from itertools import repeat
from typing import Callable, Union

from support.service import Peer, Script

END_OF_HEAD = b"\r\n\r\n"
PIECES = 1000  # of a drip; by default they take 20 seconds
Raw = Union[
    bytes, Callable[[bytes], bytes]
]  # an answer as sent, or a function that makes it from the envelope


def whole(body: bytes, *headers: str, status: str = "201 Created") -> bytes:
    """Return a good answer, delimited by its Content-Length."""
    return head(f"Content-Length: {len(body)}", *headers, status=status) + body


def chunked(body: bytes, size: int = 20) -> bytes:
    """Return a good answer in chunks of `size` bytes."""
    pieces = [body[at : at + size] for at in range(0, len(body), size)] + [b""]
    return head("Transfer-Encoding: chunked") + b"".join(
        b"%x\r\n%s\r\n" % (len(piece), piece) for piece in pieces
    )


def close_delimited(body: bytes) -> bytes:
    """Return a good answer that ends with the connection."""
    return head("Connection: close") + body


def head(*headers: str, status: str = "201 Created") -> bytes:
    """Return a status line and header block."""
    return "\r\n".join(
        [f"HTTP/1.1 {status}", "Content-Type: application/json", *headers, "", ""]
    ).encode("latin-1")


def answers(
    raw: Raw = whole, end: Callable[[Peer], None] | None = None, carried_out: bool = True
) -> Script:
    """Answer a request with `raw`; then `end` the connection, or keep it for another request."""

    def script(peer: Peer) -> bool:
        request = peer.request()
        if request:
            envelope = peer.service.carry_out(request) if carried_out else b"{}"
            peer.say(raw(envelope) if callable(raw) else raw)
        if request and end:
            end(peer)
        return bool(request and not end)

    return script


def once(first: Script, then: Script | None = None) -> Script:
    """Take the first turn with one script, and the others with another one, which answers well."""
    then = then or answers()
    return lambda peer: (first if peer.service.turns == 1 else then)(peer)


def refuses(status: str, *headers: str) -> Script:
    """Answer a request with an error and an empty body (as the service's errors are), and do
    nothing.
    """
    return answers(whole(b"", *headers, status=status), carried_out=False)


def drips(
    before: Callable[[bytes], bytes], dripped: bytes, pause: float = 0.02, carried_out: bool = True
) -> Script:
    """Carry out the request, send what `before` makes of the envelope, then send `dripped`
    repeatedly.
    """

    def script(peer: Peer) -> None:
        if request := peer.request():
            peer.say(before(peer.service.carry_out(request) if carried_out else b"{}"))
            peer.drip(repeat(dripped, PIECES), pause)

    return script


def never_answers(end: Callable[[Peer], None], carried_out: bool = True) -> Script:
    """Read the request, send nothing, and `end`."""
    return answers(b"", end, carried_out)


def corrupts_a_record(peer: Peer) -> None:
    """Carry out the request, then send a TLS record that was tampered with."""
    if request := peer.request():
        peer.service.carry_out(request)
        with_broken_seal = b"\x17\x03\x03\x00\x40" + bytes(64)
        os.write(peer.sock.fileno(), with_broken_seal)


def greets(raw: bytes, end: Callable[[Peer], None]) -> Script:
    """Send something before any request, as a server of another protocol or a proxy does, and
    `end`.
    """

    def script(peer: Peer) -> None:
        peer.sock.recv(65536)
        peer.say(raw)
        end(peer)

    return script


def grants(**fields: object) -> Script:
    """Act as a token endpoint that grants a token (RFC 6749 section 5.1); a field that is None is
    left out.
    """
    members = {
        "access_token": "granted-token",
        "token_type": "Bearer",
        "expires_in": 3600,
        **fields,
    }
    body = json.dumps(
        {name: value for name, value in members.items() if value is not None}
    ).encode()
    return answers(whole(body, status="200 OK"), carried_out=False)
