# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The HTTP adapter of requests, with connections that report to a meter, and without what urllib3 would log."""

from __future__ import annotations

import base64
import logging
import ssl
import threading
import warnings
from contextlib import ExitStack

try:
    from requests import PreparedRequest
    from requests.adapters import HTTPAdapter
    from requests.utils import get_auth_from_url
    from urllib3 import __version__ as version_of_urllib3
    from urllib3.connectionpool import HTTPConnectionPool, HTTPSConnectionPool
    from urllib3.exceptions import InsecureRequestWarning
except ImportError:  # reported by the transport when it is created
    HTTPAdapter = HTTPConnectionPool = HTTPSConnectionPool = object

from .sockets import metered


class MeteredAdapter(HTTPAdapter):
    """The adapter of requests, for its handling of proxies and certificates; its connections report to its meter."""

    def __init__(self, connect_timeout: float) -> None:
        self.meter, plain, tls = metered(connect_timeout)
        self._pools = {
            "http": type("MeteredHTTPPool", (HTTPConnectionPool,), {"ConnectionCls": plain}),
            "https": type("MeteredHTTPSPool", (HTTPSConnectionPool,), {"ConnectionCls": tls}),
        }
        super().__init__(max_retries=0, pool_maxsize=1)

    def route(self, url: str, proxy: str, context: ssl.SSLContext | None) -> tuple:
        """Return the connection pool for a URL and the target for the request line; raise what requests raises.

        `proxy`: its URL, empty for none; `context`: for TLS, to the service and to the proxy.
        """
        if context and version_of_urllib3.startswith("1."):
            context.check_hostname = False  # it never passes an address to OpenSSL, and checks name or address itself
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
        """Return Basic credentials in UTF-8 (RFC 7617 section 2.1); requests encodes them as Latin-1."""
        user, password = get_auth_from_url(proxy)
        pair = base64.b64encode(f"{user}:{password}".encode("utf-8", "replace")).decode("ascii")
        return {"Proxy-Authorization": f"Basic {pair}"} if user else {}


class _LoggingDisabled:
    """Log nothing: urllib3 quotes what servers send, secrets included, on standard error or in Ansible's log.

    Both settings are the whole process's: the first thread to enter makes them, the last one to leave restores them.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._inside = 0
        self._restore = ExitStack()

    def __enter__(self) -> None:
        with self._lock:
            if not self._inside:
                self._restore.callback(logging.disable, logging.root.manager.disable)
                logging.disable(logging.CRITICAL)
                self._restore.enter_context(warnings.catch_warnings())
                warnings.simplefilter("ignore", InsecureRequestWarning)  # reported once, as a warning of the task
            self._inside += 1

    def __exit__(self, *_error: object) -> None:
        with self._lock:
            self._inside -= 1
            if not self._inside:
                self._restore.close()


logging_disabled = _LoggingDisabled()
