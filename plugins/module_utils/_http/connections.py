# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The connections of urllib3, and all undocumented names of urllib3 and http.client that we use.

`_new_conn` opens the socket, so the look-up and each address can be bounded. `_dns_host` is the host
to look up. `_tunnel` asks a proxy for a tunnel, which is not part of the request; `_tunnel_host` and
`_tunnel_port` are the service behind the proxy. `_read_next_chunk_size` reads the size of a chunk.
"""

from __future__ import annotations

import http.client
import socket
import time
from contextlib import suppress
from typing import Sequence

from .sockets import AddressInfo, Head, Meter, MeteredSocket, MeteredStream, Phase, look_up

try:
    from urllib3 import HTTPConnectionPool, HTTPSConnectionPool
    from urllib3.connection import HTTPConnection, HTTPSConnection
    from urllib3.exceptions import NewConnectionError
except ImportError:
    # A transport reports it; until then these are only bases of classes.
    globals().update(HTTPConnection=object, HTTPSConnection=object)

# Seconds for one address, if there are more to try (RFC 8305 section 8).
MAX_ATTEMPT_DELAY = 2.0


class FinalResponse(http.client.HTTPResponse):
    """The final answer: interim ones are skipped (RFC 9110 15.2); http.client skips only 100."""

    fp: MeteredStream

    def begin(self) -> None:
        meter = self.fp.raw.meter
        super().begin()
        while self.status in (102, 103):
            # begin() does nothing once they are set.
            vars(self).update(headers=None)
            super().begin()
        meter.head = Head(self.status, self.headers)
        if self.length == 0:
            # A 204 or 304 has no body, whatever its headers say (RFC 9112 section 6.3).
            self.chunked = False
            # Ends the answer; otherwise its connection would not be kept alive.
            self.read(0)

    def _read_next_chunk_size(self) -> int:
        """Return the size; raise ValueError, which http.client turns into IncompleteRead.

        http.client accepts a minus sign: -1 would read to the end of the connection, and other
        numbers raise errors.
        """
        size: int = vars(http.client.HTTPResponse)["_read_next_chunk_size"](self)
        if size < 0:
            raise ValueError("a chunk has a negative size")
        return size


class MeteredConnection(HTTPConnection):
    """A connection that reports to a meter."""

    meter: Meter  # set by `metered_pools`
    response_class = FinalResponse

    def _new_conn(self) -> socket.socket:
        """Look up the host and connect, all within one connect_timeout.

        urllib3 would go on after some errors, such as ECONNRESET, to read an early answer.
        """
        meter = self.meter
        end = time.monotonic() + min(meter.connect_timeout, meter.left())
        meter.reach(Phase.LOOK_UP, self._dns_host, self.port)
        try:
            addresses = look_up(self._dns_host, self.port, end - time.monotonic())
            meter.phase = Phase.CONNECT
            return self._connect_to_any(addresses, end)
        except OSError as error:
            raise NewConnectionError(self, meter.phase.value) from error

    def _connect_to_any(self, addresses: Sequence[AddressInfo], end: float) -> socket.socket:
        """Return a connection to the first address that accepts one before `end`.

        An address that drops packets must not use up the time: each but the last gets at most
        MAX_ATTEMPT_DELAY, and at most its share.
        """
        *others, last = addresses
        for number, address in enumerate(others):
            share = (end - time.monotonic()) / (len(addresses) - number)
            with suppress(OSError):
                return self._connect_to(address, min(share, MAX_ATTEMPT_DELAY))
        return self._connect_to(last, end - time.monotonic())

    def _connect_to(self, info: AddressInfo, seconds: float) -> socket.socket:
        family, kind, protocol, _name, address = info
        sock = socket.socket(family, kind, protocol)
        try:
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            # 0 would not wait for the connection at all.
            sock.settimeout(max(seconds, 0.001))
            sock.connect(address)
            # For the TLS handshake, which it bounds as a whole.
            sock.settimeout(self.meter.left())
        except OSError:
            sock.close()
            raise
        self.meter.phase = Phase.TLS
        return sock

    def _tunnel(self) -> None:
        """Ask the proxy, whose answer may come slowly; CONNECT contains nothing of the request."""
        meter = self.meter
        sock = self.sock
        meter.phase = Phase.PROXY
        asking = self.sock = MeteredSocket(sock, meter, counting=False)
        try:
            super()._tunnel()
        except (OSError, http.client.HTTPException):
            asking.close_now()
            raise
        self.sock = sock
        sock.settimeout(meter.left())
        meter.ended = False
        meter.reach(Phase.TLS, self._tunnel_host, self._tunnel_port)

    def connect(self) -> None:
        super().connect()
        # Otherwise urllib3 warns; the task has a warning of its own.
        self.is_verified = self.proxy_is_verified = True
        self.meter.phase = Phase.REQUEST
        self.sock = MeteredSocket(self.sock, self.meter)


class MeteredTLSConnection(MeteredConnection, HTTPSConnection):
    """A connection with TLS that reports to a meter."""


def metered_pools(meter: Meter) -> dict[str, type[HTTPConnectionPool]]:
    """Return for each scheme the class of connection pools whose connections report to the meter."""
    plain = type("Connection", (MeteredConnection,), {"meter": meter})
    tls = type("TLSConnection", (MeteredTLSConnection,), {"meter": meter})
    return {
        "http": type("Pool", (HTTPConnectionPool,), {"ConnectionCls": plain}),
        "https": type("TLSPool", (HTTPSConnectionPool,), {"ConnectionCls": tls}),
    }
