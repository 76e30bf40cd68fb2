# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""One attempt at one request: its answer, or what is proven without one.

The exceptions of requests prove nothing. Only one thing proves that a request was not processed: no
byte of it was handed to the socket (`Meter.sent`). This layer neither retries nor follows
redirects.
"""

from __future__ import annotations

import http.client
import logging
import math
import platform
import re
import ssl
import sys
import time
from types import ModuleType
from typing import Iterator, NamedTuple
from urllib.parse import urlsplit

try:
    import requests
    import urllib3
    from requests.structures import CaseInsensitiveDict
    from requests.utils import DEFAULT_CA_BUNDLE_PATH, get_auth_from_url
    from urllib3.exceptions import HTTPError, InvalidHeader
except ImportError:  # reported when a transport is created
    globals().update(requests=None)

from .._errors import AttemptFailed, MissingLibrary
from . import exchange, failures
from .connections import metered_pools
from .exchange import Answer, Request
from .sockets import Meter
from .tls_context import ConnectionSettings, tls_context
from .urls import require_usable_proxy

REQUIRED = "requests>=2.31", "urllib3<3"  # as in requirements.txt
MAX_IDLE = 3.0  # seconds after which a kept-alive connection is not used again
_PIECE = 65536  # bytes of a body to read at once
_PROXY = "the proxy that the environment names"
# It would quote answers, and secrets in them, on standard error or in Ansible's log.
logging.getLogger("urllib3").setLevel(logging.CRITICAL + 1)


class _Route(NamedTuple):
    """The way to a URL: a pool of connections, and the target for the request line."""

    url: str
    pool: urllib3.HTTPConnectionPool
    target: str


class Transport:
    """Sends single attempts over kept-alive connections; for one thread of one process."""

    def __init__(self, settings: ConnectionSettings) -> None:
        """Raise MissingLibrary, or InvalidInput for TLS files that cannot be used."""
        require_libraries()
        self._settings = settings
        if settings.ca_path or settings.client_cert or settings.client_key:
            self._tls_context()
        self._meter = Meter(settings.connect_timeout)
        self._pools = metered_pools(self._meter)
        # By the URL of the proxy, '' for a direct connection, and whether there is TLS.
        self._managers: dict[tuple[str, bool], urllib3.PoolManager] = {}
        self._last_route: _Route | None = None  # all creations have one URL
        # When the connection to each origin was last used.
        self._last_used: dict[str, float] = {}
        # Origins that close idle connections early, perhaps as one is used again.
        self._closes_early: set[str] = set()

    @property
    def has_sent(self) -> bool:
        """Whether a byte of the last attempt was handed to the socket."""
        return self._meter.sent

    def close(self) -> None:
        """Close all connections; the next attempt opens a new one."""
        self._last_used.clear()
        self._last_route = None
        for manager in self._managers.values():
            manager.clear()

    def send_once(self, request: Request, timeout: float) -> Answer:
        """Make one attempt; raise AttemptFailed.

        `timeout`: seconds from the name look-up to the last byte.
        """
        origin = request.url.split("/", 3)[2]
        if time.monotonic() - self._last_used.get(origin, math.inf) > MAX_IDLE:
            self.close()
        is_reused = origin in self._last_used
        proxy = self._settings.proxies.for_url(request.url)
        self._meter.start(timeout, _PROXY if proxy else request.origin)
        try:
            answer = self._exchange(request, proxy)
        except AttemptFailed:
            self.close()
            raise
        self._last_used[origin] = time.monotonic()
        if is_reused and self._meter.peer:  # a new connection was needed
            self._closes_early.add(origin)
        is_last = answer.status < 200 or "close" in answer.headers.get("Connection", "").lower()
        if is_last or answer.problem or self._meter.left_over or origin in self._closes_early:
            self.close()
        return answer

    def _exchange(self, request: Request, proxy: str) -> Answer:
        """Send the request and read its answer; raise AttemptFailed."""
        try:
            response = self._send_request(request, proxy)
        except InvalidHeader:
            # urllib3 has read all headers, so it is an answer.
            head = self._meter.whole_head()
            problem = "it has two Content-Lengths"
            return Answer(head.status, CaseInsensitiveDict(head.headers.items()), problem=problem)
        try:
            self._meter.whole_head()
            return self._read_body(response)
        finally:
            if not response.closed:  # there may be more to read
                response.close()
            response.release_conn()

    def _send_request(self, request: Request, proxy: str) -> urllib3.BaseHTTPResponse:
        """Send the request and read the header block.

        Raises AttemptFailed, or InvalidHeader for two Content-Lengths.
        """
        try:
            route = self._route(request.url, proxy)
            return route.pool.request(
                request.method,
                route.target,
                body=request.body,
                headers=dict(request.headers),
                retries=False,
                redirect=False,
                assert_same_host=False,
                timeout=None,  # the meter bounds every operation
                preload_content=False,
                decode_content=False,
                enforce_content_length=True,
            )
        except InvalidHeader:
            raise
        except (OSError, HTTPError, http.client.HTTPException, MemoryError) as error:
            raise failures.failed_attempt(error, self._meter) from None

    def _route(self, url: str, proxy: str) -> _Route:
        """Return the way to a URL; raise AttemptFailed."""
        if self._last_route is None or self._last_route.url != url:
            self._last_route = self._new_route(url, proxy)
        return self._last_route

    def _new_route(self, url: str, proxy: str) -> _Route:
        parts = urlsplit(url)
        is_tls = parts.scheme == "https" or proxy[:6].lower() == "https:"
        pool = self._manager(proxy, is_tls).connection_from_url(url)
        if proxy and parts.scheme == "http":
            return _Route(url, pool, url)
        query = f"?{parts.query}" if parts.query else ""
        return _Route(url, pool, f"{parts.path or '/'}{query}")

    def _manager(self, proxy: str, is_tls: bool) -> urllib3.PoolManager:
        """Return the pools of connections through a proxy, or of direct ones; raise AttemptFailed."""
        key = proxy, is_tls
        if key not in self._managers:
            if proxy:
                require_usable_proxy(proxy)
            context = self._tls_context() if is_tls else None
            manager = urllib3.PoolManager(ssl_context=context)
            if proxy:
                headers = _proxy_headers(proxy)
                manager = urllib3.ProxyManager(
                    proxy, proxy_headers=headers, proxy_ssl_context=context, ssl_context=context
                )
            manager.pool_classes_by_scheme = self._pools
            self._managers[key] = manager
        return self._managers[key]

    def _tls_context(self) -> ssl.SSLContext:
        context = tls_context(self._settings, DEFAULT_CA_BUNDLE_PATH)
        if _version(urllib3).startswith("1."):
            # It never passes an address to OpenSSL, and checks name or address itself.
            context.check_hostname = False
        return context

    def _read_body(self, response: urllib3.BaseHTTPResponse) -> Answer:
        """Read the body, and check that it is complete (RFC 9112 section 6.3) and not too long."""
        status = response.status
        headers = response.headers
        meter = self._meter
        problem, length = exchange.body_framing(headers)
        cut = False
        body = b""
        try:
            if not problem and status >= 200:
                body = b"".join(_pieces(response, length))
                cut = meter.ended
                body = exchange.decoded(body, headers)
        except exchange.Unusable as error:
            problem = str(error)
        except (OSError, HTTPError, http.client.HTTPException) as error:
            problem, cut = failures.body_problem(error, meter)
        if cut and (length is not None or "Transfer-Encoding" in headers):
            problem = problem or "the connection ended too early"
        elif len(body) > exchange.MAX_ANSWER:
            problem = exchange.TOO_LONG
        return Answer(status, headers, b"" if problem else body, problem, cut)


def require_libraries() -> None:
    """Raise MissingLibrary unless requests and urllib3 have the hooks that `connections` uses."""
    found = "no requests"
    if requests:
        if _numbers(_version(requests)) >= (2, 31) and _numbers(_version(urllib3)) < (3, 0):
            return
        found = f"requests {_version(requests)} with urllib3 {_version(urllib3)}"
    raise MissingLibrary(
        "the Python library requests >= 2.31 with urllib3 < 3 is needed, but"
        f" {sys.executable} on {platform.node()} has {found}; run there:"
        f" {sys.executable} -m pip install {' '.join(map(repr, REQUIRED))}"
    )


def _version(library: ModuleType) -> str:
    return str(library.__version__)


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(map(int, re.findall("[0-9]+", version)[:2]))


def _proxy_headers(proxy: str) -> dict[str, str]:
    """Return Basic credentials in UTF-8 (RFC 7617 section 2.1), if the URL has any."""
    user, password = get_auth_from_url(proxy)
    if not user:
        return {}
    # urllib3 encodes them as Latin-1.
    pair = f"{user}:{password}".encode("utf-8", "replace").decode("latin-1")
    (credentials,) = urllib3.make_headers(proxy_basic_auth=pair).values()
    return {"Proxy-Authorization": credentials}


def _pieces(response: urllib3.BaseHTTPResponse, length: int | None) -> Iterator[bytes]:
    """Yield the body in pieces, `length` bytes if that is known; the meter limits it otherwise."""
    left = exchange.MAX_ANSWER if length is None else length
    while left > 0:
        piece = response.read(min(left, _PIECE), decode_content=False)
        if not piece:
            return
        left -= len(piece)
        yield piece
