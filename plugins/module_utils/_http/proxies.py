# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The proxies that environment variables name, and no others.

The operating system is never queried, unlike requests on macOS and Windows: on macOS that crashes a forked worker.
"""

from __future__ import annotations

import ipaddress
import re
from typing import Mapping, NamedTuple
from urllib.parse import urlsplit

_ENTRY = re.compile(r"(\[[^]]*\]|[^:]*)(?::([0-9]+))?")  # of NO_PROXY: a host and an optional port
_PORTS = {"http": 80, "https": 443}


class Proxy(NamedTuple):
    """A proxy and the environment variable that names it."""

    url: str
    variable: str


class Proxies(NamedTuple):
    """The proxies of an environment by the scheme of the URL that they are for, and the entries of NO_PROXY."""

    http: Proxy | None = None
    https: Proxy | None = None
    exceptions: tuple[str, ...] = ()

    def for_url(self, url: str) -> Proxy | None:
        """Return the proxy to use for a URL (one that urls.checked_url accepts)."""
        if not (self.http or self.https):
            return None
        parts = urlsplit(url)
        host, port = (parts.hostname or "").rstrip("."), parts.port or _PORTS[parts.scheme]
        if any(_matches(entry, host, port) for entry in self.exceptions):
            return None
        return getattr(self, parts.scheme)


def named_in(environment: Mapping[str, str]) -> Proxies:
    """Return the proxies that environment variables name.

    The lower-case form of a variable wins, even when it is empty. HTTP_PROXY is ignored under CGI, where the client
    can set it with a `Proxy` header; http_proxy is not.
    """
    listed = _first(environment, "no_proxy", "NO_PROXY")
    upper = () if "REQUEST_METHOD" in environment else ("HTTP_PROXY",)
    others = _first(environment, "all_proxy", "ALL_PROXY")
    return Proxies(
        _first(environment, "http_proxy", *upper) or others,
        _first(environment, "https_proxy", "HTTPS_PROXY") or others,
        tuple(entry for entry in re.split(r"[,\s]+", listed.url.lower()) if entry) if listed else (),
    )


def _first(environment: Mapping[str, str], *names: str) -> Proxy | None:
    """Return the value of the first variable that is set, and its name; None when that value is empty."""
    name = next((name for name in names if name in environment), None)
    value = environment[name].strip() if name else ""
    return Proxy(value, name) if value else None


def _matches(entry: str, host: str, port: int) -> bool:
    """Whether an entry of NO_PROXY covers the host: `*`, a name or a parent domain, an address, a network in CIDR form.

    Names and addresses may be followed by a port (`host:port`).
    """
    if entry == "*":
        return True
    split = _ENTRY.fullmatch(entry)
    name, number = split.groups() if split else (entry, None)
    if number and int(number) != port:
        return False
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        domain = name.lstrip("*").strip(".")
        return bool(domain) and f".{host}".endswith(f".{domain}")
    try:
        return address in ipaddress.ip_network(name.strip("[]"), strict=False)
    except ValueError:
        return False
