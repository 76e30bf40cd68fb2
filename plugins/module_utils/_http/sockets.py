# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Connections that keep to a deadline and record whether anything of a request was sent.

requests bounds each read, not the whole request, and its exceptions do not tell whether the request
was sent. Both can be known only at the socket, so before every operation the sockets of this
transport ask one `Meter` how much time is left, and they mark the request as sent there before they
hand its first byte to the kernel.
"""

from __future__ import annotations

import io
import socket
import ssl
import time
from typing import Callable

from .._errors import AttemptFailed
from .causes import Phase
from .connecting import look_up
from .exchange import MAX_ANSWER, TooLong
from .final_response import FinalResponse, Head

try:
    from urllib3.connectionpool import HTTPConnectionPool, HTTPSConnectionPool
    from urllib3.exceptions import NewConnectionError
except ImportError:  # reported by the transport when it is created
    HTTPConnectionPool = HTTPSConnectionPool = None

MAX_ATTEMPT_DELAY = 2.0  # seconds for one address, when there are more to try (RFC 8305 section 8)


class Meter:
    """The state of one attempt.

    Its deadline, its phase, how many bytes have arrived, and whether a byte of the request was
    handed to the kernel.
    """

    def __init__(self, connect_timeout: float) -> None:
        self.connect_timeout = connect_timeout
        self.start(0)

    def start(self, timeout: float, via: str = "") -> None:
        """Begin an attempt that may take `timeout` seconds; `via`: which proxy it uses, for
        messages.
        """
        self.via = via
        self.deadline = time.monotonic() + timeout
        self.phase = Phase.REQUEST
        self.peer = ""  # host and port of a new connection; empty on one that is reused
        self.sent = False
        self.ended = False  # the peer closed its side
        self.left_over = False  # bytes arrived after the end of the answer
        self.received = 0  # bytes, those of a proxy's answer to CONNECT included
        self.head: Head | None = None  # set once it is complete

    def left(self) -> float:
        """Return the seconds that are left; raise socket.timeout when none are."""
        left = self.deadline - time.monotonic()
        if left <= 0:
            raise socket.timeout("the time for this attempt is over")
        return left

    def whole_head(self) -> Head:
        """Return the status and the headers of the answer; raise AttemptFailed when the connection
        ended before.
        """
        if self.ended or self.head is None:
            raise AttemptFailed("the connection ended inside the headers of the answer", sent=True)
        return self.head

    def receive(self, count: int) -> None:
        """Count bytes that have arrived; raise TooLong when they are more than an answer may have."""
        self.received += count
        if self.received > MAX_ANSWER:
            raise TooLong(f"more than {MAX_ANSWER} bytes arrived")


class _Reader(io.RawIOBase):
    """The receiving side of a socket.

    Each read may take the time that is left; what arrives is counted, and an end of stream is
    recorded.
    """

    finished = False  # nothing more is to be read

    def __init__(self, sock, meter: Meter, flush: Callable[[], None]) -> None:
        self._sock, self.meter, self._flush = sock, meter, flush
        self._raw = sock.makefile("rb", buffering=0)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer) -> int | None:
        if self.finished:
            return None
        self._flush()
        self._sock.settimeout(self.meter.left())
        received = self._raw.readinto(buffer)
        if received == 0:
            self.meter.ended = True
        self.meter.receive(received or 0)
        return received

    def is_pending(self) -> bool:
        """Whether OpenSSL has buffered bytes; true where that cannot be determined (TLS within
        TLS).
        """
        is_tls = isinstance(self._sock, ssl.SSLSocket)
        return self._sock.pending() > 0 if is_tls else not isinstance(self._sock, socket.socket)

    def close(self) -> None:
        if not self.closed:
            self._raw.close()
            super().close()


class _Stream(io.BufferedReader):
    """An answer as it arrives; tells the meter whether bytes are left after it, in this buffer or
    in OpenSSL's.

    Polling the socket before it is used again would show neither.
    """

    def close(self) -> None:
        if not self.closed:
            self.raw.finished = True
            self.raw.meter.left_over |= bool(self.peek()) or self.raw.is_pending()
        super().close()


class _MeteredSocket:
    """A connected socket, plain or TLS; `counting` is off while a proxy is asked for a tunnel."""

    def __init__(self, sock, meter: Meter, counting: bool = True) -> None:
        self._sock, self._meter, self._counting = sock, meter, counting
        self._held = (
            b""  # the header block, until the body follows: sending both in one segment is faster
        )

    def __getattr__(self, name: str):
        return getattr(self._sock, name)

    def makefile(self, *args, **kwargs) -> _Stream:
        """Return the stream of the answer; must not fail, since http.client cannot close a response
        without one.
        """
        return _Stream(_Reader(self._sock, self._meter, self._flush))

    def sendall(self, data) -> None:
        data = self._held + bytes(data)
        if data.endswith(b"\r\n\r\n") and not self._held:
            self._held = data
        else:
            self._send(data)

    def _flush(self) -> None:
        """Send what is held back: the caller reads the answer, so no body follows."""
        if self._held:
            self._send(self._held)

    def _send(self, data: bytes) -> None:
        view, self._held = memoryview(data), b""
        while view:
            self._sock.settimeout(self._meter.left())
            if self._counting:
                self._meter.sent = True
            view = view[self._sock.send(view[:65536]) :]


class _MeteredConnection:
    """A mixin for both connection classes of urllib3; `metered` sets `meter`.

    The undocumented names of urllib3 1.26 to 2.x and of http.client that it uses, none of them used
    elsewhere: `_new_conn` opens the socket, so the look-up and every address can be bounded;
    `_tunnel` asks a proxy for a tunnel, which is not part of the request; `_dns_host` is the host
    to look up; `_tunnel_host` and `_tunnel_port` are the service behind the proxy.
    """

    meter: Meter
    response_class = FinalResponse

    def _new_conn(self):
        """Look up and connect, all addresses within one connect_timeout.

        An address that drops packets must not use up all of it: each but the last gets at most two
        seconds, as in RFC 8305 section 8, and at most its share.
        """
        meter = self.meter
        end = time.monotonic() + min(meter.connect_timeout, meter.left())
        meter.phase, meter.peer = Phase.LOOK_UP, f"{self._dns_host} port {self.port}{meter.via}"
        try:
            addresses = look_up(self._dns_host, self.port, end - time.monotonic())
            meter.phase = Phase.CONNECT
            for others, (family, kind, protocol, _name, address) in zip(
                range(len(addresses))[::-1], addresses
            ):
                left = end - time.monotonic()
                seconds = min(left / (others + 1), MAX_ATTEMPT_DELAY) if others else left
                try:
                    return self._connected(socket.socket(family, kind, protocol), address, seconds)
                except OSError:
                    if not others:
                        raise
        except (
            OSError
        ) as error:  # urllib3 would go on after some, such as ECONNRESET, to read an early answer
            raise NewConnectionError(self, meter.phase.value) from error

    def _connected(self, sock: socket.socket, address: tuple, seconds: float) -> socket.socket:
        try:
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            sock.settimeout(
                max(seconds, 0.001)
            )  # 0 would mean not to wait for the connection at all
            sock.connect(address)
            sock.settimeout(self.meter.left())  # for the TLS handshake, which it bounds as a whole
        except OSError:
            sock.close()
            raise
        self.meter.phase = Phase.TLS
        return sock

    def _tunnel(self):
        """Ask the proxy; its answer may come slowly too, and CONNECT contains nothing of the
        request.
        """
        meter, sock = self.meter, self.sock
        meter.phase = Phase.PROXY
        self.sock = _MeteredSocket(sock, meter, counting=False)
        try:
            super()._tunnel()
        finally:
            if self.sock is not None:
                self.sock = sock
        sock.settimeout(meter.left())
        meter.phase, meter.ended = Phase.TLS, False
        meter.peer = f"{self._tunnel_host} port {self._tunnel_port}{meter.via}"

    def connect(self) -> None:
        super().connect()
        self.is_verified = self.proxy_is_verified = (
            True  # else urllib3 warns; the task has its own warning
        )
        self.meter.phase = Phase.REQUEST
        self.sock = _MeteredSocket(self.sock, self.meter)


def metered(connect_timeout: float) -> tuple[Meter, dict[str, type]]:
    """Return a meter, and for each scheme the class of connection pools whose connections report to
    it.

    `connect_timeout`: seconds.
    """
    meter, pools = Meter(connect_timeout), {}
    for scheme, pool in (("http", HTTPConnectionPool), ("https", HTTPSConnectionPool)):
        connection = type(
            "MeteredConnection", (_MeteredConnection, pool.ConnectionCls), {"meter": meter}
        )
        pools[scheme] = type("MeteredPool", (pool,), {"ConnectionCls": connection})
    return meter, pools
