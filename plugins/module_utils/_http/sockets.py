# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Sockets that keep to a deadline and record whether anything of a request was sent.

requests bounds each read, not the whole request, and its exceptions do not tell whether the request
was sent. Both are known only at the socket. So before every operation a socket asks one `Meter` how
much time is left, and it marks the request as sent before it hands the first byte to the kernel.
"""

from __future__ import annotations

import io
import socket
import ssl
import threading
import time
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeout
from enum import Enum
from http.client import HTTPMessage
from typing import TYPE_CHECKING, Any, Callable, NamedTuple, Sequence, Tuple

from .._errors import AttemptFailed
from .exchange import MAX_ANSWER, TooLong

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer, WriteableBuffer

# An address as socket.getaddrinfo returns it: family, kind, protocol, name, and the address.
AddressInfo = Tuple[socket.AddressFamily, socket.SocketKind, int, str, Tuple[object, ...]]
_PIECE = 65536  # bytes to hand to the kernel at once


class Phase(Enum):
    """A phase of an attempt: a new connection starts with LOOK_UP, a kept-alive one with REQUEST."""

    LOOK_UP = "look-up"
    CONNECT = "connect"
    PROXY = "proxy"
    TLS = "tls"
    REQUEST = "request"


class Head(NamedTuple):
    """The status and the headers of an answer."""

    status: int
    headers: HTTPMessage


class Meter:
    """The state of one attempt: its deadline, its phase, and which bytes were sent and received."""

    def __init__(self, connect_timeout: float) -> None:
        self.connect_timeout = connect_timeout  # seconds
        self.start(0)

    def start(self, timeout: float, via: str = "") -> None:
        """Start an attempt of `timeout` seconds; `via`: the origin of the address, for messages."""
        self.via = via
        self.deadline = time.monotonic() + timeout
        self.phase = Phase.REQUEST
        # Host and port of a new connection; empty on one that is reused.
        self.peer = ""
        # Whether a byte of the request was handed to the kernel.
        self.sent = False
        self.ended = False  # the peer closed its side
        self.left_over = False  # bytes arrived after the end of the answer
        self.received = 0  # bytes, including a proxy's answer to CONNECT
        self.head: Head | None = None  # of the answer, once it is complete

    def left(self) -> float:
        """Return the seconds that are left; raise socket.timeout if there are none."""
        left = self.deadline - time.monotonic()
        if left <= 0:
            raise socket.timeout("the time for this attempt is over")
        return left

    def whole_head(self) -> Head:
        """Return the status and the headers; raise AttemptFailed if the connection ended before."""
        if self.ended or self.head is None:
            raise AttemptFailed("the connection ended inside the headers of the answer", sent=True)
        return self.head

    def reach(self, phase: Phase, host: str | None, port: int | None) -> None:
        """Enter a phase in which this peer is contacted."""
        self.phase = phase
        self.peer = f"{host} port {port}{self.via and f', {self.via}'}"

    def count_received(self, count: int) -> None:
        """Count bytes that arrived; raise TooLong if they are more than an answer may have."""
        self.received += count
        if self.received > MAX_ANSWER:
            raise TooLong(f"more than {MAX_ANSWER} bytes arrived")


class _Reader(io.RawIOBase):
    """The receiving side of a socket; each read may take the time that is left."""

    finished = False  # whether reading has ended

    def __init__(self, sock: socket.socket, meter: Meter, flush: Callable[[], None]) -> None:
        self._sock = sock
        self.meter = meter
        self._flush = flush
        self._raw = sock.makefile("rb", buffering=0)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: WriteableBuffer) -> int | None:
        if self.finished:
            return None
        self._flush()
        self._sock.settimeout(self.meter.left())
        received = self._raw.readinto(buffer)
        if received == 0:
            self.meter.ended = True
        self.meter.count_received(received or 0)
        return received

    def is_pending(self) -> bool:
        """Return whether OpenSSL has buffered bytes; True if that is unknown (TLS within TLS)."""
        if isinstance(self._sock, ssl.SSLSocket):
            return self._sock.pending() > 0
        return not isinstance(self._sock, socket.socket)

    def close(self) -> None:
        if not self.closed:
            self._raw.close()
            super().close()


class MeteredStream(io.BufferedReader):
    """An answer as it arrives; records whether bytes are left in its buffer or in OpenSSL's.

    Polling the socket before its next use would show neither.
    """

    raw: _Reader

    def close(self) -> None:
        if not self.closed:
            self.raw.finished = True
            self.raw.meter.left_over |= bool(self.peek()) or self.raw.is_pending()
        super().close()


class MeteredSocket:
    """A connected socket, plain or TLS; `counting` is off while a proxy is asked for a tunnel."""

    def __init__(self, sock: socket.socket, meter: Meter, counting: bool = True) -> None:
        self._sock = sock
        self._meter = meter
        self._counting = counting
        # The header block, until the body follows: sending both in one segment is faster.
        self._held = b""

    def __getattr__(self, name: str) -> Any:
        return getattr(self._sock, name)

    def makefile(self, *_arguments: object, **_options: object) -> MeteredStream:
        """Return the stream of the answer; never fail: http.client could not close the response."""
        return MeteredStream(_Reader(self._sock, self._meter, self._flush))

    def close_now(self) -> None:
        """Close the socket although its answer is open: Python 3.9 and 3.10 leave a proxy's open."""
        file = self._sock.detach()
        if file != -1:
            socket.close(file)

    def sendall(self, data: ReadableBuffer) -> None:
        whole = self._held + bytes(data)
        if whole.endswith(b"\r\n\r\n") and not self._held:
            self._held = whole
        else:
            self._hand_over(whole)

    def _flush(self) -> None:
        """Send the held header block: the caller reads the answer, so no body follows."""
        if self._held:
            self._hand_over(self._held)

    def _hand_over(self, data: bytes) -> None:
        view = memoryview(data)
        self._held = b""
        while view:
            self._sock.settimeout(self._meter.left())
            if self._counting:
                self._meter.sent = True
            view = view[self._sock.send(view[:_PIECE]) :]


def look_up(host: str, port: int, seconds: float) -> Sequence[AddressInfo]:
    """Return the addresses of a host, as socket.getaddrinfo does, within `seconds`.

    The C library has no timeout for it. So it runs in a thread, which is abandoned if it is late.
    Raises socket.gaierror or socket.timeout.
    """
    # An address: nothing to look up.
    if host.replace(".", "").isdigit() or ":" in host:
        return socket.getaddrinfo(host, port, 0, socket.SOCK_STREAM)
    found: Future[Sequence[AddressInfo]] = Future()
    try:
        threading.Thread(target=_resolve, args=(host, port, found), daemon=True).start()
    except RuntimeError:
        # A limit on threads; better without a time limit than not at all.
        _resolve(host, port, found)
    try:
        return found.result(seconds)
    except FutureTimeout:
        raise socket.timeout("the name look-up took too long") from None


def _resolve(host: str, port: int, found: Future[Sequence[AddressInfo]]) -> None:
    try:
        found.set_result(socket.getaddrinfo(host, port, 0, socket.SOCK_STREAM))
    except UnicodeError:
        found.set_exception(socket.gaierror(socket.EAI_NONAME, "not a host name"))
    except OSError as error:
        found.set_exception(error)
