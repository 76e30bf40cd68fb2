# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""URLs that users give, segments of their paths (RFC 3986), and proxies from the environment.

No message quotes a URL: it may contain a password.
"""

from __future__ import annotations

import ipaddress
import os
import re
from urllib.parse import urlsplit

from .._errors import InvalidInput

# The characters of a URI: appendix A.
_CHARACTERS = re.compile(r"[A-Za-z0-9\-._~:/?#\[\]@!$&'()*+,;=%]*")
_HOST_AND_PORT = re.compile(r"(\[[^\[\]]*:[^\[\]]*\]|[^\[\]:%]+)(:[0-9]*)?")
PORTS = {"http": 80, "https": 443}
API = "/api/v1"  # the start of every path of the service (docs/openapi.yaml)


def checked_url(option: str, url: str, allow_http: bool, query: bool = False) -> str:
    """Return the URL if it is an absolute http(s) URL that exposes no secret; raise InvalidInput.

    `query`: whether it may have one.
    """
    try:
        parts = urlsplit(url)
        port = parts.port
        canonical_url(url)  # an address between brackets has to be one
    except ValueError:
        raise InvalidInput(option, "is not a URL: its host or port is malformed") from None
    is_absolute = parts.scheme in PORTS and _HOST_AND_PORT.fullmatch(parts.netloc) and port != 0
    is_secure = parts.scheme == "https" or allow_http or is_loopback(parts.hostname or "")
    problems = {
        "contains a space or another character that must be encoded in a URL (%20, IDNA)": (
            not _CHARACTERS.fullmatch(url)
        ),
        "contains a user name or password; credentials have their own options": (
            "@" in parts.netloc
        ),
        "is not an absolute URL: it must start with https:// or http:// and name a host": (
            not is_absolute
        ),
        "must not have a query or a fragment (? or #)": "#" in url or ("?" in url and not query),
        (
            "http:// would send secrets in the clear (RFC 6750 section 5.3): use https://, or set"
            " allow_http to true"
        ): not is_secure,
    }
    for problem, is_there in problems.items():
        if is_there:
            raise InvalidInput(option, problem)
    return url


def canonical_url(url: str) -> str:
    """Return the same form for all URLs of one service (RFC 3986 section 6.2).

    Scheme and host in lower case, an IPv6 address compressed, no trailing dot of the host, no
    default port, no trailing slash.
    """
    parts = urlsplit(url)
    host = parts.hostname or ""
    host = f"[{ipaddress.ip_address(host).compressed}]" if ":" in host else host.rstrip(".")
    port = "" if parts.port in (None, PORTS.get(parts.scheme)) else f":{parts.port}"
    return f"{parts.scheme}://{host}{port}{parts.path.rstrip('/')}"


def service_url(option: str, url: str, allow_http: bool = True) -> str:
    """Return the base URL of a service in its canonical form; raise InvalidInput."""
    url = canonical_url(checked_url(option, url, allow_http))
    if url.lower().endswith(API):
        right = url[: -len(API)].rstrip("/")
        raise InvalidInput(
            option, f"must not end in {API}, which every path starts with; give {right}"
        )
    return url


def is_loopback(host: str) -> bool:
    """Return whether a host is this one."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def proxies_in_environment() -> dict[str, str]:
    """Return the URLs of the proxies in environment variables by scheme, small letters first.

    requests would read the whole environment for each request, and go on to ask the operating
    system: on macOS that crashes a forked worker.
    """
    found = {
        scheme: os.environ.get(f"{scheme}_proxy", os.environ.get(f"{scheme.upper()}_PROXY"))
        for scheme in ("http", "https", "all")
    }
    return {name: url if "://" in url else f"http://{url}" for name, url in found.items() if url}
