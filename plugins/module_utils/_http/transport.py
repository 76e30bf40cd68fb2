# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""One attempt at one request: its answer, or what is proven when there is none.

The exception class of requests proves nothing either way; the only proof that a request was not
processed is that no byte of it was handed to the socket (`Meter.sent`). This layer neither retries
nor follows redirects.
"""

from __future__ import annotations

import base64
import http.client
import logging
import math
import platform
import re
import ssl
import sys
import time
from typing import Iterator

try:
    import requests
    import urllib3
    from requests import PreparedRequest
    from requests.adapters import HTTPAdapter
    from requests.certs import where
    from requests.structures import CaseInsensitiveDict
    from requests.utils import get_auth_from_url
    from urllib3 import Timeout
    from urllib3.exceptions import HTTPError, InvalidHeader
except ImportError:  # reported when a transport is created
    requests, HTTPAdapter = None, object

from .._errors import AttemptFailed, MissingLibrary
from . import causes, connecting, exchange
from .connecting import ConnectionSettings
from .exchange import Answer, Request
from .sockets import metered
from .urls import require_usable_proxy

REQUIRED = "requests>=2.31", "urllib3<3"  # as in requirements.txt
MAX_IDLE = 3.0  # seconds after which a kept-alive connection is not used again
# It quotes what servers send, secrets included, on standard error or in Ansible's log.
logging.getLogger("urllib3").setLevel(logging.CRITICAL + 1)


class _Adapter(HTTPAdapter):
    """The adapter of requests, for its handling of proxies and certificates; its connections are
    those of `metered`.
    """

    def __init__(self, pools: dict[str, type]) -> None:
        self._pools = pools
        super().__init__(max_retries=0, pool_maxsize=1)

    def init_poolmanager(self, *args, **kwargs) -> None:
        super().init_poolmanager(*args, **kwargs)
        self.poolmanager.pool_classes_by_scheme = self._pools

    def proxy_manager_for(self, *args, **kwargs):
        manager = super().proxy_manager_for(*args, **kwargs)
        manager.pool_classes_by_scheme = self._pools
        return manager

    def proxy_headers(self, proxy: str) -> dict:
        """Return Basic credentials in UTF-8 (RFC 7617 section 2.1); requests encodes them as
        Latin-1.
        """
        user, password = get_auth_from_url(proxy)
        pair = base64.b64encode(f"{user}:{password}".encode("utf-8", "replace")).decode("ascii")
        return {"Proxy-Authorization": f"Basic {pair}"} if user else {}


class Transport:
    """Sends single attempts over kept-alive connections; must not be shared between threads or
    across fork().
    """

    def __init__(self, settings: ConnectionSettings) -> None:
        """Raise MissingLibrary, or InvalidInput for TLS files that cannot be used."""
        require_libraries()
        self._settings = settings
        if settings.ca_path or settings.client_cert or settings.client_key:
            connecting.context(settings, where())
        self._meter, pools = metered(settings.connect_timeout)
        self._adapter = _Adapter(pools)
        self._last_used: dict[str, float] = {}  # when the connection to each origin was last used
        self._closes_early: set[str] = (
            set()
        )  # origins that close idle connections early, perhaps as one is used again
        self._routes: dict[
            str, tuple
        ] = {}  # by URL: the connection pool, and the target for the request line

    @property
    def has_sent(self) -> bool:
        """Whether a byte of the last attempt was handed to the socket."""
        return self._meter.sent

    def close(self) -> None:
        """Close all connections; the next attempt opens a new one."""
        self._last_used.clear()
        self._routes.clear()
        self._adapter.close()

    def send(self, request: Request, timeout: float) -> Answer:
        """Make one attempt, within `timeout` seconds from name look-up to the last byte; raise
        AttemptFailed.
        """
        origin = request.url.split("/", 3)[2]
        if time.monotonic() - self._last_used.get(origin, math.inf) > MAX_IDLE:
            self.close()
        is_reused = origin in self._last_used
        proxy = self._settings.proxies.for_url(request.url)
        self._meter.start(timeout, ", the proxy that the environment names" if proxy else "")
        try:
            answer = self._answer(request, proxy)
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

    def _answer(self, request: Request, proxy: str) -> Answer:
        """Send the request and read its answer; raise AttemptFailed."""
        try:
            response = self._open(request, proxy)
        except (
            InvalidHeader
        ):  # what urllib3 raises once it has read all headers, so it is an answer
            head = self._meter.whole_head()
            return Answer(
                head.status,
                CaseInsensitiveDict(head.headers.items()),
                problem="it has two Content-Lengths",
            )
        try:
            self._meter.whole_head()
            return self._read(response)
        finally:
            _release(response)

    def _open(self, request: Request, proxy: str):
        """Send the request and read the header block; raise AttemptFailed, or InvalidHeader for two
        Content-Lengths.
        """
        try:
            pool, target = self._route_to(request.url, proxy)
            return pool.request(
                request.method,
                target,
                body=request.body,
                headers=dict(request.headers),
                retries=self._adapter.max_retries,
                redirect=False,
                assert_same_host=False,
                timeout=Timeout(connect=None, read=None),  # the meter bounds every operation
                preload_content=False,
                decode_content=False,
            )
        except InvalidHeader:
            raise
        except (OSError, HTTPError, http.client.HTTPException, MemoryError) as error:
            raise causes.failure(error, self._meter) from None

    def _route_to(self, url: str, proxy: str) -> tuple:
        """Return the connection pool for a URL and the target for the request line; raise what
        requests raises.
        """
        if url not in self._routes:
            if proxy:
                require_usable_proxy(proxy)
            prepared = PreparedRequest()
            prepared.prepare_url(url, None)
            context = (
                self._context() if "https:" in (url[:6].lower(), proxy[:6].lower()) else None
            )  # also to the proxy
            adapter = self._adapter
            manager = (
                adapter.proxy_manager_for(proxy, proxy_ssl_context=context)
                if proxy
                else adapter.poolmanager
            )
            pool = manager.connection_from_url(prepared.url, {"ssl_context": context})
            self._routes = {
                url: (pool, adapter.request_url(prepared, {"all": proxy} if proxy else {}))
            }
        return self._routes[url]

    def _context(self) -> ssl.SSLContext:
        made = connecting.context(self._settings, where())
        if urllib3.__version__.startswith("1."):
            made.check_hostname = (
                False  # it never passes an address to OpenSSL, and checks name or address itself
            )
        return made

    def _read(self, response) -> Answer:
        """Read the body, and check that it is complete (RFC 9112 section 6.3) and not too long."""
        status, headers, meter = response.status, response.headers, self._meter
        (problem, length), cut, body = exchange.framing(headers), False, b""
        try:
            if not problem and status >= 200:
                response.enforce_content_length = True
                body = b"".join(_pieces(response, length))
                cut = meter.ended
                body = exchange.decoded(body, headers)
        except exchange.Unusable as error:
            problem = str(error)
        except (OSError, HTTPError, http.client.HTTPException) as error:
            problem, cut = causes.body_failure(error, meter)
        if cut and (length is not None or "Transfer-Encoding" in headers):
            problem = problem or "the connection ended too early"
        elif len(body) > exchange.MAX_ANSWER:
            problem = exchange.too_long()
        return Answer(status, headers, b"" if problem else body, problem, cut)


def require_libraries() -> None:
    """Raise MissingLibrary unless requests and its urllib3 have the hooks that `sockets` uses."""
    if requests and _version(requests) >= (2, 31) and _version(urllib3) < (3, 0):
        return
    found = (
        f"requests {requests.__version__} with urllib3 {urllib3.__version__}"
        if requests
        else "no requests"
    )
    raise MissingLibrary(
        f"the Python library requests >= 2.31 with urllib3 < 3 is needed, but {sys.executable} on {platform.node()} "
        f"has {found}; run there: {sys.executable} -m pip install {' '.join(map(repr, REQUIRED))}"
    )


def _version(library) -> tuple[int, ...]:
    return tuple(map(int, re.findall("[0-9]+", library.__version__)[:2]))


def _release(response) -> None:
    """Return the connection to the pool, or close it when there may be more to read."""
    if not response.closed:
        response.close()
    response.release_conn()


def _pieces(response, length: int | None) -> Iterator[bytes]:
    """Yield the body in pieces: `length` bytes where that is known; the meter ends one that is too
    long.
    """
    left = exchange.MAX_ANSWER if length is None else length
    while left > 0:
        piece = response.read(min(left, 65536), decode_content=False)
        if not piece:
            return
        left -= len(piece)
        yield piece
