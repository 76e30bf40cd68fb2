# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The options that a call needs, and the headers that the user adds (RFC 9110 section 5)."""

from __future__ import annotations

import re
import secrets
from dataclasses import dataclass
from functools import cached_property
from typing import Mapping, NamedTuple

from .._errors import InvalidInput
from .._fields import text
from .._http.tls_context import ConnectionSettings
from .._http.urls import canonical_url
from .tokens import Credentials

# Headers that the collection sets, or that belong to one connection (RFC 9110 section 7.6.1).
_RESERVED = re.compile(
    "accept|accept-encoding|authorization|connection|content-encoding|content-length"
    "|content-type|expect|host|keep-alive|proxy-authorization|proxy-connection|te"
    "|traceparent|trailer|transfer-encoding|upgrade|user-agent",
    re.IGNORECASE,
)
# A token, RFC 9110 section 5.6.2.
_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_VALUE = re.compile(r"[ -~\xa0-\xff]*")  # printable Latin-1
_TRACEPARENT = re.compile(
    r"(?!ff)(?P<version>[0-9a-f]{2})-(?!0{32})(?P<trace>[0-9a-f]{32})"
    r"-(?!0{16})[0-9a-f]{16}-(?P<flags>[0-9a-f]{2})"
    r"(?P<more>-.*)?"  # of a later version
)


class Trace(NamedTuple):
    """The trace that the environment started (W3C Trace Context); each request is a span of it."""

    trace_id: str
    flags: str

    def traceparent(self) -> str:
        """Return the header for one request, with a new span id."""
        return f"00-{self.trace_id}-{secrets.token_hex(8)}-{self.flags}"


@dataclass(frozen=True)
class Settings:
    """The shared options, checked; hashable, so that they can be the key of a cache."""

    base_url: str
    access_token: str | None
    credentials: Credentials | None
    connection: ConnectionSettings
    http_agent: str
    headers: tuple[tuple[str, str], ...]  # those that the user adds
    trace: Trace | None  # from the environment
    timeout: float  # seconds, one attempt
    retries: int
    retry_max_delay: float  # seconds

    @cached_property
    def service(self) -> str:
        """The base_url by which ledgers and reports know the service."""
        return canonical_url(self.base_url)


def trace_of(traceparent: str) -> Trace | None:
    """Return the trace of a `traceparent` header, None if it is invalid or empty."""
    match = _TRACEPARENT.fullmatch(traceparent)
    if not match or (match["version"] == "00" and match["more"]):
        return None
    return Trace(match["trace"], match["flags"])


def checked_headers(headers: Mapping[str, object] | None) -> tuple[tuple[str, str], ...]:
    """Return the option `headers` without nulls; raise InvalidInput if one cannot be sent."""
    checked: list[tuple[str, str]] = []
    seen: dict[str, str] = {}
    for given, value in (headers or {}).items():
        name = str(given)
        other = seen.setdefault(name.lower(), name)
        problem = _header_problem(name, other)
        if problem:
            raise InvalidInput("headers", problem)
        if value is not None:
            checked.append((name, _checked_value(name, value)))
    return tuple(checked)


def _header_problem(name: str, other: str) -> str:
    """Return the problem with the name of a header, '' if there is none; `other`: its first name."""
    if not _NAME.fullmatch(name):
        return "contains a name that is empty or has a character that none can have"
    if _RESERVED.fullmatch(name):
        return f"{name} cannot be given: the collection or the connection sets it"
    if other is not name:
        return f"{other} and {name} are the same header, whatever the case; give it once"
    return ""


def _checked_value(name: str, value: object) -> str:
    try:
        checked = text(value)
    except TypeError as error:
        raise InvalidInput("headers", f"the value of {name}: {error}") from None
    if not _VALUE.fullmatch(checked):
        problem = "contains a line break, another control character or one that is not Latin-1"
        raise InvalidInput("headers", f"the value of {name} {problem}")
    return checked
