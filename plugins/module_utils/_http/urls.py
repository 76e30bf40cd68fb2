# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""URLs that users give, segments of their paths (RFC 3986), and proxies from the environment.

No message quotes a URL: it may contain a password. The operating system is never asked for proxies,
unlike by requests on macOS and Windows: on macOS that crashes a forked worker.
"""

from __future__ import annotations

import ipaddress
import os
import re
from functools import lru_cache
from typing import Match, NamedTuple
from urllib.parse import SplitResult, quote, urlsplit
from urllib.request import getproxies_environment

from .._errors import AttemptFailed, InvalidInput

# The characters of a URI: appendix A.
_CHARACTERS = re.compile(r"[A-Za-z0-9\-._~:/?#\[\]@!$&'()*+,;=%]*")
_UNRESERVED = re.compile(r"[A-Za-z0-9\-._~]")  # section 2.3
# Libraries remove a segment of such dots as one of dots.
_ESCAPED_DOT = re.compile("%2e", re.IGNORECASE)
_ESCAPE = re.compile(r"%([0-9A-Fa-f]{2})")
_HOST_AND_PORT = re.compile(r"(\[[^\[\]]*:[^\[\]]*\]|[^\[\]:]+)(:[0-9]*)?")
_PORTS = {"http": 80, "https": 443}
_NO_SEGMENT = re.compile(r"[\x00-\x1f\x7f\ud800-\udfff]")


def checked_url(option: str, url: str, allow_http: bool, query: bool = False) -> str:
    """Return the URL if it is an absolute http(s) URL that exposes no secret; raise InvalidInput.

    `query`: whether it may have one.
    """
    if not _CHARACTERS.fullmatch(url):
        why = "contains a space or another character that must be encoded in a URL (%20, IDNA)"
        raise InvalidInput(option, why)
    try:
        parts = urlsplit(url)
        problem = _url_problem(parts)
    except ValueError:
        raise InvalidInput(option, "is not a URL: its host or port is malformed") from None
    if not problem and ("#" in url or ("?" in url and not query)):
        problem = "must not have a query or a fragment (? or #)"
    if problem:
        raise InvalidInput(option, problem)
    if parts.scheme == "http" and not (allow_http or _is_loopback(parts.hostname or "")):
        why = "http:// would send secrets in the clear (RFC 6750 section 5.3)"
        raise InvalidInput(option, f"{why}: use https://, or set allow_http to true")
    return url


def _url_problem(parts: SplitResult) -> str:
    """Return the problem with a URL, '' if there is none; raise ValueError for a malformed port."""
    if parts.scheme not in _PORTS or not parts.hostname:
        return "is not an absolute URL: it must start with https:// or http:// and name a host"
    if "@" in parts.netloc:
        return "contains a user name or password; credentials have their own options"
    if _has_dot_segment(parts.path):
        return "contains a path segment . or .. (%2e is a dot)"
    if not _could_exist(parts):
        return "names a host or a port that cannot exist"
    return ""


def _has_dot_segment(path: str) -> bool:
    """Return whether a segment leads elsewhere (section 3.3), percent-encoded or not."""
    segments = _ESCAPED_DOT.sub(".", path).split("/")
    return "." in segments or ".." in segments


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


def recorded_url(option: str, url: str) -> str:
    """Return a base_url as the ledger records it; raise InvalidInput.

    `http://` is allowed, because nothing is sent.
    """
    return canonical_url(checked_url(option, url, allow_http=True))


def _normal(escape: Match[str]) -> str:
    letter = chr(int(escape[1], 16))
    return letter if _UNRESERVED.fullmatch(letter) else escape[0].upper()


def path_segment(option: str, value: str) -> str:
    """Return the value as one path segment (section 3.3); raise InvalidInput if it cannot be one."""
    if value in ("", ".", ".."):
        raise InvalidInput(option, "must not be empty, . or ..")
    if _NO_SEGMENT.search(value):
        raise InvalidInput(option, "contains a line break or another control character")
    return quote(value, safe="")


def _could_exist(parts: SplitResult) -> bool:
    """Return whether a URL names a host and a port that can exist, and nothing after them.

    Each label of a name has 1 to 63 characters (RFC 1035), none percent-encoded; only an IPv6
    address has brackets. Raises ValueError for a malformed port.
    """
    host = parts.hostname or ""
    if parts.port == 0 or not _HOST_AND_PORT.fullmatch(parts.netloc.rpartition("@")[2]):
        return False
    labels = host.rstrip(".").split(".")
    is_name = "%" not in host and all(0 < len(label) <= 63 for label in labels)
    return ":" in host or is_name


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


class Proxies(NamedTuple):
    """The proxy URL for each scheme, '' for a direct connection, and NO_PROXY."""

    http: str = ""
    https: str = ""
    exceptions: str = ""

    def for_url(self, url: str) -> str:
        """Return the proxy for a URL that checked_url accepts, '' for a direct connection."""
        parts = urlsplit(url)
        host = (parts.hostname or "").rstrip(".")
        port = parts.port or _PORTS[parts.scheme]
        entries = self.exceptions.lower().replace(",", " ").split()
        if any(_covers(entry, host, port) for entry in entries):
            return ""
        return self.https if parts.scheme == "https" else self.http


def named_in_environment() -> Proxies:
    """Return the proxies in environment variables.

    HTTP_PROXY is ignored under CGI, where clients can set it.
    """
    if not any(name[-6:].lower() == "_proxy" for name in os.environ):
        return Proxies()  # a shortcut: getproxies_environment is slow
    found = getproxies_environment()
    http, https = [_with_scheme(found.get(scheme, found.get("all", ""))) for scheme in _PORTS]
    return Proxies(http, https, found.get("no", ""))


def _with_scheme(url: str) -> str:
    url = url.strip()
    return url if "://" in url or not url else f"http://{url}"


def require_usable_proxy(url: str) -> None:
    """Raise AttemptFailed for a proxy URL that is malformed or of an unsupported kind."""
    try:
        parts = urlsplit(url)
        is_usable = parts.scheme in _PORTS and _could_exist(parts)
    except ValueError:
        is_usable = False
    if not is_usable:
        why = "the proxy that the environment names is neither an http:// nor an https:// URL"
        what = "with a host and port that can exist"
        raise AttemptFailed(f"{why} {what}", sent=False, hopeless=True)


def _covers(entry: str, host: str, port: int) -> bool:
    """Return whether an entry of NO_PROXY covers the host.

    An entry is `*`, a name or a parent domain, an address, or a network in CIDR form. Names and
    addresses may be followed by a port (`host:port`). The last group of an IPv6 address without
    brackets looks like a port, so such an entry is also tried as a whole.
    """
    without_port = entry.removesuffix(f":{port}")
    return entry == "*" or any(
        _is_within(host, name.strip("*.[]")) for name in (entry, without_port)
    )


def _is_within(host: str, name: str) -> bool:
    """Return whether a host is in a network, or has a name or one below it."""
    try:
        return ipaddress.ip_address(host) in ipaddress.ip_network(name, strict=False)
    except ValueError:
        return name != "" and f".{host}".endswith(f".{name}")
