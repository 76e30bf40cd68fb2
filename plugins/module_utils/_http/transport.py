# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""One attempt at one request: its answer, or what is proven without one.

The exceptions of requests prove nothing. Only one thing proves that a request was not processed: no
byte of it was handed to the socket (`Attempt.sent`). Each attempt has a connection of its own, so
nothing that arrives late becomes the answer to another request. This layer neither retries nor
follows redirects.

Files given as options are read before anything is sent, so that the error for a bad one names its
option.
"""

from __future__ import annotations

import http.client
import logging
import os
import platform
import re
import socket
import ssl
import sys
from contextlib import closing, contextmanager
from functools import lru_cache, partial
from typing import Any, Iterator, NamedTuple
from urllib.parse import urlsplit

try:
    import requests
    import urllib3
    from requests.adapters import HTTPAdapter
    from requests.structures import CaseInsensitiveDict
    from requests.utils import select_proxy, should_bypass_proxies
    from urllib3 import HTTPConnectionPool, HTTPSConnectionPool
    from urllib3.exceptions import HTTPError
except ImportError:
    # Reported when a transport is created; until then they are only names.
    globals().update(requests=None, HTTPAdapter=object, HTTPError=OSError)

from .._errors import AttemptFailed, InvalidInput, ServicesError
from . import MAX_ANSWER, Answer, Request
from .sockets import (
    TLS_ENDED,
    TOO_LONG,
    Attempt,
    PlainConnection,
    TimedTLSSocket,
    TLSConnection,
    Unusable,
)
from .urls import is_loopback

REQUIRED = "requests>=2.31"  # as in requirements.txt
# Bytes of a body to read at once: few, because compression may shorten a body to a thousandth.
_PIECE = 4096
# Content codings that requests decodes whatever else is installed, and as one layer.
_CODINGS = ("", "identity", "gzip", "deflate")
# TypeError: of requests, for the URL of a proxy without a host.
_ERRORS = (OSError, HTTPError, http.client.HTTPException, ValueError, TypeError, MemoryError)
# It would quote answers, and secrets in them, on standard error or in Ansible's log.
logging.getLogger("urllib3").setLevel(logging.CRITICAL + 1)


class ConnectionSettings(NamedTuple):
    """How to connect; hashable, so that a TLS context can be cached by its settings."""

    connect_timeout: float = 10.0  # seconds
    proxies: tuple[tuple[str, str], ...] = ()  # the schemes of URLs, and the URLs of their proxies
    validate_certs: bool = True
    ca_path: str | None = None
    client_cert: str | None = None
    client_key: str | None = None


def require_usable(settings: ConnectionSettings, url: str) -> None:
    """Raise ServicesError without requests, InvalidInput for TLS files that cannot be used.

    It creates the TLS context for a URL, so that threads do not create one each.
    """
    require_libraries()
    if url.startswith("https:"):
        tls_context(settings)


def send_once(settings: ConnectionSettings, request: Request, timeout: float) -> Answer:
    """Make one attempt with a connection of its own; raise AttemptFailed, or an error of `may_send`.

    `timeout`: seconds from the name look-up to the last byte. The caller asks `require_usable` first.
    """
    attempt = Attempt(request, timeout, settings.connect_timeout)
    proxy = proxy_for(request.url, dict(settings.proxies))
    has_tls = "https:" in (request.url[:6].lower(), proxy[:6].lower())
    adapter = OneConnection(attempt, tls_context(settings) if has_tls else None)
    body, problem, cut = b"", "", False
    try:
        with closing(adapter), adapter.answer(request, proxy, settings) as response:
            body = _whole_body(response.raw, attempt)
        cut = attempt.ended
    except Unusable as error:
        problem = str(error)
    except _ERRORS:
        cut = True
        problem = "it was cut off, or its framing or compression is malformed"
        if isinstance(attempt.error, socket.timeout):
            problem = "it took too long"
    if attempt.head is None:
        raise _no_answer(attempt)
    headers = CaseInsensitiveDict(attempt.head.headers.items())
    return Answer(attempt.head.status, headers, body, problem, cut)


class OneConnection(HTTPAdapter):
    """The adapter of one attempt, with a connection of its own; never retries."""

    def __init__(self, attempt: Attempt, context: ssl.SSLContext | None) -> None:
        self._attempt = attempt
        self._context = context
        self._pools: dict[str, Any] = {
            "http": partial(self._pool, HTTPConnectionPool, PlainConnection),
            "https": partial(self._pool, HTTPSConnectionPool, TLSConnection),
        }
        super().__init__(pool_connections=1, pool_maxsize=1, max_retries=0)

    def answer(
        self, request: Request, proxy: str, settings: ConnectionSettings
    ) -> requests.Response:
        """Send a request and read the header block of its answer."""
        prepared = requests.models.PreparedRequest()
        prepared.method = request.method
        prepared.url = request.url
        prepared.headers = CaseInsensitiveDict({**request.headers, "Connection": "close"})
        prepared.body = request.body or None
        prepared.prepare_content_length(prepared.body)
        # True would be the authorities that requests brings.
        verify: Any = None if settings.validate_certs else False
        return self.send(prepared, stream=True, verify=verify, proxies={"all": proxy})

    def _pool(self, pool: Any, connection: type, *arguments: Any, **options: Any) -> Any:
        """Return what makes the one connection of the attempt."""
        made = pool(*arguments, attempt=self._attempt, **options)
        made.ConnectionCls = connection
        return made

    def init_poolmanager(self, *arguments: Any, **options: Any) -> None:
        super().init_poolmanager(*arguments, ssl_context=self._context, **options)
        self.poolmanager.pool_classes_by_scheme = self._pools

    def proxy_manager_for(self, proxy: str, **options: Any) -> urllib3.ProxyManager:
        place = urlsplit(proxy).netloc.rpartition("@")[2]
        self._attempt.proxy = f"{place}, the proxy that the environment names"
        manager: urllib3.ProxyManager = super().proxy_manager_for(
            proxy,
            ssl_context=self._context,
            proxy_ssl_context=self._context,
            **options,
        )
        manager.pool_classes_by_scheme = self._pools
        return manager

    def cert_verify(self, *_arguments: Any) -> None:
        """Load no authorities for this connection: the context of the task has them."""


# Loading the authorities of the system and of requests takes about 75 ms.
@lru_cache(maxsize=8)
def tls_context(settings: ConnectionSettings) -> ssl.SSLContext:
    """Return the context for these settings, which threads may share; raise InvalidInput."""
    client_cert, client_key = settings.client_cert, settings.client_key
    if not settings.validate_certs:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    elif settings.ca_path:
        path = os.path.abspath(settings.ca_path)
        file, directory = (None, path) if os.path.isdir(path) else (path, None)
        with _reading("ca_path", path, "contains no certificate in PEM form"):
            context = ssl.create_default_context(cafile=file, capath=directory)
    else:
        from requests.utils import DEFAULT_CA_BUNDLE_PATH  # noqa: PLC0415 (only to send)

        context = ssl.create_default_context()
        context.load_verify_locations(DEFAULT_CA_BUNDLE_PATH)
    if not hasattr(urllib3, "BaseHTTPResponse"):
        # urllib3 1.26 never passes an address to OpenSSL, and checks it itself.
        context.check_hostname = False
    context.sslsocket_class = TimedTLSSocket
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    if client_key and not client_cert:
        raise InvalidInput("client_key", "needs client_cert as well")
    if client_cert:
        # Without a password OpenSSL would ask for one at the terminal.
        problem = "is not a certificate, or client_key is not its unencrypted key, in PEM form"
        with _reading("client_cert", "this file, or that of client_key,", problem):
            context.load_cert_chain(client_cert, client_key or None, password="")
    return context


@contextmanager
def _reading(option: str, file: str, problem: str) -> Iterator[None]:
    """Raise InvalidInput if OpenSSL cannot read a file, or cannot use it."""
    try:
        yield
    except ssl.SSLError:
        raise InvalidInput(option, problem) from None
    except OSError as error:
        raise InvalidInput(option, f"{file} cannot be read: {error.strerror}") from None


def _no_answer(attempt: Attempt) -> AttemptFailed:
    """Return why a connection brought no complete header block."""
    seen = attempt.error
    if not attempt.sent:
        if seen:
            return AttemptFailed("connecting timed out")
        return AttemptFailed(
            "requests cannot use this URL, or the proxy that the environment names", hopeless=True
        )
    why = "the connection was lost before a complete answer arrived, or what arrived is not HTTP"
    if isinstance(seen, socket.timeout):
        why = "no complete answer arrived in time"
    elif isinstance(seen, ssl.SSLError) and not isinstance(seen, TLS_ENDED):
        why = (
            f"TLS failed with {seen.reason}; the server may require a client certificate, or a"
            " different one (client_cert)"
        )
    return AttemptFailed(why, sent=True)


def proxy_for(url: str, proxies: dict[str, str]) -> str:
    """Return the proxy for a URL by the rules of requests, '' for none.

    A loopback host is never reached through a proxy.
    """
    host = urlsplit(url).hostname or ""
    if not proxies or is_loopback(host) or should_bypass_proxies(url, no_proxy=None):
        return ""
    return (select_proxy(url, proxies) or "").strip()


def _whole_body(raw: urllib3.BaseHTTPResponse, attempt: Attempt) -> bytes:
    """Return the decompressed body; raise Unusable if it is too long, cut off or malformed."""
    body = bytearray()
    if raw.headers.get("Content-Encoding", "").strip().lower() not in _CODINGS:
        raise Unusable("it is compressed in a way that was not asked for")
    framing = [name for name in ("Content-Length", "Transfer-Encoding") if name in raw.headers]
    if len(framing) > 1:
        raise Unusable("its Content-Length and Transfer-Encoding contradict each other")
    while piece := raw.read(_PIECE, decode_content=True):
        body += piece
        if len(body) > MAX_ANSWER:
            raise Unusable(TOO_LONG)
    if attempt.ended and framing:
        raise http.client.IncompleteRead(b"")
    return bytes(body)


def is_importable() -> bool:
    """Return whether requests can be imported here."""
    return requests is not None


def require_libraries() -> None:
    """Raise ServicesError unless requests is installed and new enough."""
    found = f"requests {requests.__version__}" if requests else "no requests"
    numbers = re.findall("[0-9]+", found)[:2]
    if (*map(int, numbers),) >= (2, 31):
        return
    raise ServicesError(
        f"the Python library requests >= 2.31 is needed, but {sys.executable} on {platform.node()}"
        f" has {found}; run there: {sys.executable} -m pip install '{REQUIRED}'"
    )
