# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Connections that know the time and count what they are handed.

requests bounds each read, not the whole request, and its exceptions do not tell whether the request was sent.
Both are known only at the socket, so the sockets of this transport ask one `Meter` how much time is left before
every operation, and tell it before the kernel may take a byte of the request.
"""

from __future__ import annotations

import base64
import io
import queue
import socket
import ssl
import threading
import time
from enum import Enum

try:
    from requests import PreparedRequest
    from requests.adapters import HTTPAdapter
    from requests.utils import get_auth_from_url
    from urllib3.connection import HTTPConnection, HTTPSConnection
    from urllib3.connectionpool import HTTPConnectionPool, HTTPSConnectionPool
    from urllib3.exceptions import NewConnectionError
except ImportError:  # said by the transport when it is made
    HTTPAdapter = HTTPConnection = HTTPSConnection = HTTPConnectionPool = HTTPSConnectionPool = object

LONGEST_WAIT = 86400.0  # seconds; what one socket operation may be given (the C library's limit is higher)


class Phase(Enum):
    """Where an attempt is: one on a kept-alive connection begins with REQUEST, one on a new connection with LOOK_UP."""

    LOOK_UP = "look-up"
    CONNECT = "connect"
    PROXY = "proxy"
    TLS = "tls"
    REQUEST = "request"


class Meter:
    """What one attempt has used: its time, how far it came, and whether a byte of the request left our hands."""

    def __init__(self, connect_timeout: float) -> None:
        self.connect_timeout = connect_timeout
        self.start(0)

    def start(self, timeout: float) -> None:
        """Begin an attempt that may take `timeout` seconds."""
        self.deadline = time.monotonic() + timeout
        self.phase = Phase.REQUEST
        self.peer = ""  # whom a new connection goes to
        self.sent = False
        self.ended = False  # the peer closed its side

    def left(self) -> float:
        """Return the seconds that are left; raise socket.timeout when there are none."""
        left = self.deadline - time.monotonic()
        if left <= 0:
            raise socket.timeout("the time for this attempt is over")
        return min(left, LONGEST_WAIT)


class _Reader(io.RawIOBase):
    """The receiving side of a socket: each read gets the time that is left, an end of stream is remembered."""

    def __init__(self, sock, meter: Meter) -> None:
        self._sock, self._meter = sock, meter
        self._raw = sock.makefile("rb", buffering=0)

    def readable(self) -> bool:
        return True

    def fileno(self) -> int:
        return self._raw.fileno()

    def readinto(self, buffer) -> int | None:
        self._sock.settimeout(self._meter.left())
        received = self._raw.readinto(buffer)
        if received == 0:
            self._meter.ended = True
        return received

    def close(self) -> None:
        if not self.closed:
            self._raw.close()
            super().close()


class _MeteredSocket:
    """A connected socket, plain or TLS; `counting` is off while a proxy is asked for a tunnel."""

    def __init__(self, sock, meter: Meter, counting: bool = True) -> None:
        self._sock, self._meter, self._counting = sock, meter, counting
        self._held = b""  # the header block, until the body comes: one segment for both is faster

    def __getattr__(self, name: str):
        return getattr(self._sock, name)

    def makefile(self, *args, **kwargs) -> io.BufferedReader:
        self._send(self._held)  # the answer is awaited, so nothing more comes
        return io.BufferedReader(_Reader(self._sock, self._meter))

    def sendall(self, data) -> None:
        data = self._held + bytes(data)
        if data.endswith(b"\r\n\r\n") and not self._held:
            self._held = data
        else:
            self._send(data)

    def _send(self, data: bytes) -> None:
        view, self._held = memoryview(data), b""
        while view:
            self._sock.settimeout(self._meter.left())
            if self._counting:
                self._meter.sent = True
            view = view[self._sock.send(view[:65536]) :]


def look_up(host: str, port: int, seconds: float) -> list[tuple]:
    """Return what socket.getaddrinfo does, within `seconds`; raise socket.gaierror or socket.timeout.

    The C library's look-up cannot be given a time, so it runs in a thread that is left behind when it takes too long.
    """
    if host.replace(".", "").isdigit() or ":" in host:  # an address: nothing to look up
        return socket.getaddrinfo(host, port, 0, socket.SOCK_STREAM)
    answers = queue.SimpleQueue()

    def ask() -> None:
        try:
            answers.put(socket.getaddrinfo(host, port, 0, socket.SOCK_STREAM))
        except (OSError, UnicodeError) as error:
            answers.put(error)

    threading.Thread(target=ask, daemon=True).start()
    try:
        answer = answers.get(timeout=seconds)
    except queue.Empty:
        raise socket.timeout("the name look-up took too long") from None
    if isinstance(answer, UnicodeError):
        raise socket.gaierror(socket.EAI_NONAME, "not a host name") from answer
    if isinstance(answer, OSError):
        raise answer
    return answer


class _MeteredConnection:
    """What both kinds of urllib3 connection are given; `meter` comes with the class."""

    meter: Meter

    def _new_conn(self):
        """Look up and connect, all addresses within one connect_timeout."""
        meter = self.meter
        end = time.monotonic() + min(meter.connect_timeout, meter.left())
        meter.phase, meter.peer = Phase.LOOK_UP, f"{self._dns_host} port {self.port}"
        failure: OSError | None = None
        try:
            addresses = look_up(self._dns_host, self.port, end - time.monotonic())
        except OSError as error:
            raise NewConnectionError(self, "look-up") from error
        meter.phase = Phase.CONNECT
        for family, kind, protocol, _name, address in addresses:
            try:
                return self._connected(socket.socket(family, kind, protocol), address, end - time.monotonic())
            except OSError as error:
                failure = error
        raise NewConnectionError(self, "connect") from failure

    def _connected(self, sock: socket.socket, address: tuple, seconds: float) -> socket.socket:
        try:
            if seconds <= 0:
                raise socket.timeout("no time is left to connect")
            for option in self.socket_options or ():
                sock.setsockopt(*option)
            sock.settimeout(seconds)
            sock.connect(address)
            sock.settimeout(self.meter.left())  # for the TLS handshake, which keeps to it as a whole
        except OSError:
            sock.close()
            raise
        self.meter.phase = Phase.TLS
        return sock

    def _tunnel(self):
        """Ask the proxy; its answer may drip too, and nothing of the request is in the question."""
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

    def connect(self) -> None:
        super().connect()
        self.meter.phase = Phase.REQUEST
        self.sock = _MeteredSocket(self.sock, self.meter)


class MeteredAdapter(HTTPAdapter):
    """The adapter of requests for its proxies and certificates; its connections report to one meter."""

    def __init__(self, meter: Meter) -> None:
        plain = type("MeteredHTTPConnection", (_MeteredConnection, HTTPConnection), {"meter": meter})
        tls = type("MeteredHTTPSConnection", (_MeteredConnection, HTTPSConnection), {"meter": meter})
        self._pools = {
            "http": type("MeteredHTTPPool", (HTTPConnectionPool,), {"ConnectionCls": plain}),
            "https": type("MeteredHTTPSPool", (HTTPSConnectionPool,), {"ConnectionCls": tls}),
        }
        super().__init__(max_retries=0, pool_maxsize=1)

    def route(self, url: str, proxy: str, context: ssl.SSLContext | None) -> tuple:
        """Return the pool of connections for a URL, and what the request line says; raise what requests does.

        `proxy`: its URL, empty for none; `context`: for TLS, to the service and to the proxy.
        """
        prepared = PreparedRequest()
        prepared.prepare_url(url, None)
        manager = self.proxy_manager_for(proxy, proxy_ssl_context=context) if proxy else self.poolmanager
        pool = manager.connection_from_url(prepared.url, {"ssl_context": context})
        return pool, self.request_url(prepared, {"all": proxy} if proxy else {})

    def init_poolmanager(self, *args, **kwargs) -> None:
        super().init_poolmanager(*args, **kwargs)
        self.poolmanager.pool_classes_by_scheme = self._pools

    def proxy_manager_for(self, *args, **kwargs):
        manager = super().proxy_manager_for(*args, **kwargs)
        manager.pool_classes_by_scheme = self._pools
        return manager

    def proxy_headers(self, proxy: str) -> dict:
        """Return Basic credentials in UTF-8 (RFC 7617 section 2.1); requests knows only Latin-1."""
        user, password = get_auth_from_url(proxy)
        pair = base64.b64encode(f"{user}:{password}".encode("utf-8", "replace")).decode("ascii")
        return {"Proxy-Authorization": f"Basic {pair}"} if user else {}
