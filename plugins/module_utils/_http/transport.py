# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""One attempt at one request: what came back, or what is proven about what did not.

The exception class of requests proves nothing in either direction; what proves that a request was not processed
is that not one byte of it was handed to the socket (`Meter.sent`). This layer neither repeats nor follows redirects.
"""

from __future__ import annotations

import http.client
import logging
import re
import time
import warnings
from contextlib import contextmanager
from typing import Iterator, Mapping

try:
    import requests
    from requests.certs import where
    from urllib3 import Timeout
    from urllib3.exceptions import HTTPError, InsecureRequestWarning
except ImportError:
    requests = None

from .._errors import AttemptFailed, MissingLibrary
from . import causes, tls
from .messages import Answer, Request
from .proxies import Proxy
from .settings import ConnectionSettings
from .sockets import Meter, MeteredAdapter

MAX_BODY = 4 * 1024 * 1024  # bytes of an answer that are read
MAX_IDLE = 3.0  # seconds after which a kept-alive connection is not used again
_PROXY = re.compile(r"(https?://|(?!.*://))([^/@]*@)?(\[[^]/@]+\]|[^/@:\[])", re.IGNORECASE)


class Transport:
    """Sends single attempts over kept-alive connections; not shared between threads or over a fork."""

    def __init__(self, settings: ConnectionSettings) -> None:
        """Raise MissingLibrary, or InvalidInput for files of TLS that cannot be used."""
        if requests is None:
            raise MissingLibrary("the Python library requests (at least 2.31) is not installed")
        self._settings = settings
        if settings.ca_path or settings.client_cert or settings.client_key:
            tls.context(settings, where())
        self._meter = Meter(settings.connect_timeout)
        self._adapter = MeteredAdapter(self._meter)
        self._last_used = 0.0
        self._kept: set[str] = set()  # origins to which a connection should be open
        self._hasty: set[str] = set()  # origins that end connections without a word, maybe under the next request
        self._routes: dict[str, tuple] = {}  # by URL: the pool of connections, and what the request line says

    def close(self) -> None:
        """Close all connections; the next attempt opens a new one."""
        self._kept.clear()
        self._routes.clear()
        self._adapter.close()

    def send(self, request: Request, timeout: float) -> Answer:
        """Make one attempt, within `timeout` seconds from name look-up to last byte; raise AttemptFailed if no answer
        came.
        """
        if time.monotonic() - self._last_used > MAX_IDLE:
            self.close()
        origin = request.url.split("/", 3)[2]
        kept = origin in self._kept
        self._meter.start(timeout)
        try:
            with _unlogged():
                answer = self._read(self._open(request))
        except AttemptFailed:
            self.close()
            raise
        self._kept.add(origin)
        if kept and self._meter.peer:  # a new connection was needed
            self._hasty.add(origin)
        if answer.problem or origin in self._hasty:
            self.close()
        self._last_used = time.monotonic()
        return answer

    def _open(self, request: Request):
        """Send the request and read the header block."""
        try:
            pool, target = self._route_to(request.url)
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
        except (OSError, HTTPError, http.client.HTTPException) as error:
            raise self._failure(error) from None

    def _route_to(self, url: str) -> tuple:
        """Return what `MeteredAdapter.route` does; the files of TLS are read when they are needed first."""
        if url not in self._routes:
            proxy = _usable(self._settings.proxies.for_url(url))
            context = tls.context(self._settings, where()) if "https:" in (url[:6].lower(), proxy[:6].lower()) else None
            self._routes = {url: self._adapter.route(url, proxy, context)}
        return self._routes[url]

    def _read(self, response) -> Answer:
        """Read the body, at most MAX_BODY, and check that it is whole (RFC 9112 section 6.3)."""
        status, headers, meter = response.status, response.headers, self._meter
        if meter.ended:
            _leave(response)
            raise AttemptFailed("the connection ended inside the headers of the answer", sent=True)
        problem, cut, body = _framing_problem(headers), False, b""
        try:
            if not problem and status >= 200:
                response.enforce_content_length = True
                body = b"".join(_pieces(response))
                cut = meter.ended
        except (OSError, HTTPError, http.client.HTTPException) as error:
            problem, cut = "it took too long" if causes.is_timeout(error) else "the connection ended inside it", True
        _leave(response)
        if cut and _is_framed(headers):
            problem = problem or "the connection ended inside it"
        elif len(body) > MAX_BODY:
            problem = f"it is longer than {MAX_BODY} bytes"
        return Answer(status, headers, b"" if problem else body, problem, cut)

    def _failure(self, error: Exception) -> AttemptFailed:
        meter = self._meter
        if meter.sent:
            return AttemptFailed(causes.lost(error), sent=True)
        hopeless, why = causes.unsent(error, meter.phase, meter.peer)
        return AttemptFailed(why, sent=False, hopeless=hopeless)


@contextmanager
def _unlogged() -> Iterator[None]:
    """Log nothing meanwhile: urllib3 quotes the other side, secrets included, on standard error or in Ansible's log."""
    before = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", InsecureRequestWarning)  # said once, as a warning of the task
            yield
    finally:
        logging.disable(before)


def _usable(proxy: Proxy | None) -> str:
    """Return the URL of a proxy, empty for none; raise AttemptFailed for one of an unsupported kind."""
    if proxy is None:
        return ""
    if not _PROXY.match(proxy.url):
        why = f"the proxy that {proxy.variable} names is neither an http:// nor an https:// URL with a host"
        raise AttemptFailed(why, sent=False, hopeless=True)
    return proxy.url if "://" in proxy.url else f"http://{proxy.url}"


def _framing_problem(headers: Mapping[str, str]) -> str:
    """Say what is wrong with the headers that delimit the body, empty when nothing is."""
    length = headers.get("Content-Length")
    if length is not None and not (length.isascii() and length.isdigit()):
        return "its Content-Length is not a number"
    if length is not None and "Transfer-Encoding" in headers:
        return "it has both a Content-Length and a Transfer-Encoding"
    if headers.get("Transfer-Encoding", "chunked").strip().lower() != "chunked":
        return "its Transfer-Encoding is unknown"
    if headers.get("Content-Encoding", "identity").strip().lower() not in ("identity", ""):
        return "it is compressed, which was not asked for"
    return ""


def _is_framed(headers: Mapping[str, str]) -> bool:
    """Whether the headers say where the body ends; else the end of the connection does."""
    return "Content-Length" in headers or "Transfer-Encoding" in headers


def _leave(response) -> None:
    """Give the connection back, or close it when there may be more to read."""
    response.close()
    response.release_conn()


def _pieces(response) -> Iterator[bytes]:
    """Yield the body in pieces, one byte more than MAX_BODY at most."""
    left = MAX_BODY + 1
    while left > 0:
        piece = response.read(min(left, 65536), decode_content=False)
        if not piece:
            return
        left -= len(piece)
        yield piece
