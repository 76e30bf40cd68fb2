# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""URLs given by users, what becomes part of one (RFC 3986), and the proxies that environment
variables name.

No message quotes a URL: it may contain a password. The operating system is never asked for proxies,
unlike by requests on macOS and Windows: on macOS that crashes a forked worker.
"""

from __future__ import annotations

import ipaddress
import os
import re
from functools import lru_cache
from typing import NamedTuple
from urllib.parse import SplitResult, quote, urlsplit
from urllib.request import getproxies_environment

from .._errors import AttemptFailed, InvalidInput

_CHARACTERS = re.compile(
    r"[A-Za-z0-9\-._~:/?#\[\]@!$&'()*+,;=%]*"
)  # appendix A: all that a URI may contain
_UNRESERVED = re.compile(r"[A-Za-z0-9\-._~]")  # section 2.3
_ESCAPED_DOT = re.compile(
    "%2e", re.IGNORECASE
)  # libraries remove a segment of such dots as one of dots
_ESCAPE = re.compile(r"%([0-9A-Fa-f]{2})")
_HOST_AND_PORT = re.compile(r"(\[[^\[\]]*:[^\[\]]*\]|[^\[\]:]+)(:[0-9]*)?")
_PORTS = {"http": 80, "https": 443}
_NO_SEGMENT = re.compile(r"[\x00-\x1f\x7f\ud800-\udfff]")

# What must hold for a URL, in this order, and the problem with one for which it does not.
_RULES = (
    (
        lambda parts: parts.scheme in ("http", "https") and parts.hostname,
        "is not an absolute URL: it must start with https:// or http:// and name a host",
    ),
    (
        lambda parts: "@" not in parts.netloc,
        "contains a user name or password; credentials have their own options",
    ),
    (
        lambda parts: not has_dot_segment(parts.path),
        "contains a path segment . or .. (%2e is a dot)",
    ),
    (
        lambda parts: parts.port != 0 and could_exist(parts),
        "names a host or a port that cannot exist",
    ),
)


def checked_url(option: str, url: str, allow_http: bool, query: bool = False) -> str:
    """Return `url` when it is an absolute http(s) URL that exposes no secret; raise InvalidInput
    otherwise.
    """
    if not _CHARACTERS.fullmatch(url):
        raise InvalidInput(
            option,
            "contains a space or another character that must be encoded in a URL (%20, IDNA)",
        )
    try:
        parts = urlsplit(url)
        problem = next((problem for holds, problem in _RULES if not holds(parts)), "")
    except ValueError:
        problem = "is not a URL: its host or port is malformed"
    if problem:
        raise InvalidInput(option, problem)
    if "#" in url or ("?" in url and not query):
        raise InvalidInput(option, "must not have a query or a fragment (? or #)")
    if parts.scheme == "http" and not (allow_http or _is_loopback(parts.hostname)):
        why = "http:// would send secrets in the clear (RFC 6750 section 5.3): use https://, or set allow_http to true"
        raise InvalidInput(option, why)
    return url


def has_dot_segment(path: str) -> bool:
    """Return whether a path has a segment that leads elsewhere (section 3.3), percent-encoded or
    not.
    """
    return any(_ESCAPED_DOT.sub(".", segment) in (".", "..") for segment in path.split("/"))


@lru_cache  # all assets of a task have the same one
def canonical_url(url: str) -> str:
    """Return the same form for all URLs of one service (RFC 3986 section 6.2).

    Scheme and host in lower case, an IPv6 address compressed, no trailing dot of the host, no
    default port, no trailing slash; unreserved characters are not percent-encoded, other
    percent-encodings are in upper case.
    """
    parts: SplitResult = urlsplit(_ESCAPE.sub(_normal, url))
    host = parts.hostname or ""
    host = f"[{ipaddress.ip_address(host).compressed}]" if ":" in host else host.rstrip(".")
    port = "" if parts.port in (None, _PORTS.get(parts.scheme)) else f":{parts.port}"
    return f"{parts.scheme}://{host}{port}{parts.path.rstrip('/')}"


def _normal(escape: re.Match) -> str:
    letter = chr(int(escape[1], 16))
    return letter if _UNRESERVED.fullmatch(letter) else escape[0].upper()


def path_segment(option: str, value: str) -> str:
    """Return the value as one path segment (section 3.3); raise InvalidInput for what cannot be
    one.
    """
    if value in ("", ".", ".."):
        raise InvalidInput(option, "must not be empty, . or ..")
    if _NO_SEGMENT.search(value):
        raise InvalidInput(option, "contains a line break or another control character")
    return quote(value, safe="")


def could_exist(parts: SplitResult) -> bool:
    """Whether a URL names a host that can exist, and nothing but a port after it.

    Each label of a name has 1 to 63 characters (RFC 1035), none percent-encoded; only an IPv6
    address has brackets.
    """
    host = parts.hostname or ""
    if not _HOST_AND_PORT.fullmatch(parts.netloc.rpartition("@")[2]):
        return False
    return ":" in host or (
        "%" not in host and all(0 < len(label) <= 63 for label in host.rstrip(".").split("."))
    )


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


class Proxies(NamedTuple):
    """The URLs of the proxies by the scheme of the URL that they are for, empty for none, and the
    value of NO_PROXY.
    """

    http: str = ""
    https: str = ""
    exceptions: str = ""

    def for_url(self, url: str) -> str:
        """Return the URL of the proxy to use for a URL (one that checked_url accepts), empty for
        none.
        """
        parts = urlsplit(url)
        host, port = (parts.hostname or "").rstrip("."), parts.port or _PORTS[parts.scheme]
        entries = self.exceptions.lower().replace(",", " ").split()
        return (
            ""
            if any(_covers(entry, host, port) for entry in entries)
            else getattr(self, parts.scheme)
        )


def named_in_environment() -> Proxies:
    """Return the proxies that environment variables name, without HTTP_PROXY under CGI, where
    clients can set it.
    """
    found = (
        getproxies_environment()
        if any(name[-6:].lower() == "_proxy" for name in os.environ)
        else {}
    )  # it is slow
    urls = [found.get(scheme, found.get("all", "")).strip() for scheme in _PORTS]
    return Proxies(
        *(url if "://" in url or not url else f"http://{url}" for url in urls), found.get("no", "")
    )


def require_usable_proxy(url: str) -> None:
    """Raise AttemptFailed for the URL of a proxy that is malformed or of an unsupported kind."""
    try:
        parts = urlsplit(url)
        is_usable = parts.scheme in _PORTS and parts.port != 0 and could_exist(parts)
    except ValueError:
        is_usable = False
    if not is_usable:
        why = "the proxy that the environment names is neither an http:// nor an https:// URL with a host and port"
        raise AttemptFailed(f"{why} that can exist", sent=False, hopeless=True)


def _covers(entry: str, host: str, port: int) -> bool:
    """Whether an entry of NO_PROXY covers the host: `*`, a name or a parent domain, an address, a
    network in CIDR form.

    Names and addresses may be followed by a port (`host:port`).
    """
    name = entry.removesuffix(f":{port}").strip("*.[]")
    try:
        return ipaddress.ip_address(host) in ipaddress.ip_network(name, strict=False)
    except ValueError:
        return entry == "*" or (name != "" and f".{host}".endswith(f".{name}"))
