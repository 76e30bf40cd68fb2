# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Requests and responses as plain data, and the strict JSON parser that the whole emulator shares."""

from __future__ import annotations

import json
import math
import re
from dataclasses import dataclass

JSON = "application/json"
MAX_DEPTH = 200
TOO_DEEP = f"nested deeper than {MAX_DEPTH} levels"
_AUTHORITY = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://[^/?#]*")


@dataclass(frozen=True)
class Request:
    """One request as it was on the wire: `target` and `headers` are unchanged.

    `prefix` comes before every path of the emulator.
    """

    method: str
    target: str
    headers: tuple[tuple[str, str], ...] = ()
    body: bytes = b""
    prefix: str = ""

    @property
    def path(self) -> str:
        """The percent-encoded path below the prefix, "" when it is not below it.

        The target has origin form, or, through a proxy, absolute form (RFC 9112 section 3.2).
        """
        path = _AUTHORITY.sub("", self.target, count=1).partition("?")[0]
        return path[len(self.prefix) :] if path.startswith(f"{self.prefix}/") else ""

    def header(self, name: str) -> str:
        """The value of a header, the values of a repeated one joined by a comma, "" when there is
        none.
        """
        return ", ".join(value for key, value in self.headers if key.lower() == name)

    @property
    def is_absolute(self) -> bool:
        """Whether the target has absolute form, as for a proxy (RFC 9112 section 3.2.2)."""
        return _AUTHORITY.match(self.target) is not None

    @property
    def media_type(self) -> str:
        """The Content-Type without its parameters, in lower case."""
        return self.header("content-type").partition(";")[0].strip().lower()


@dataclass(frozen=True)
class Response:
    """One answer; `applied` says whether it changed the store."""

    status: int
    headers: tuple[tuple[str, str], ...] = ()
    body: bytes = b""
    applied: bool = False

    @property
    def has_body(self) -> bool:
        """Whether a message with this status has a body (RFC 9110 section 6.4.1)."""
        return self.status >= 200 and self.status not in (204, 304)


class RefusalError(Exception):
    """The request is refused with this status, these headers and an empty body."""

    def __init__(self, status: int, *headers: tuple[str, str]) -> None:
        super().__init__(status)
        self.status = status
        self.headers = headers


def json_response(status: int, value: object, applied: bool = False) -> Response:
    """Return an answer that carries the value as JSON."""
    return Response(status, (("Content-Type", JSON),), json.dumps(value).encode("ascii"), applied)


def is_whole(value: object, least: float = -math.inf, most: float = math.inf) -> bool:
    """Whether the value is a whole number in this range; Python's True and False are not."""
    return isinstance(value, int) and not isinstance(value, bool) and least <= value <= most


def read_json(raw: bytes) -> object:
    """Parse JSON; raise ValueError for what RFC 8259 does not allow or leaves open.

    That is: any encoding but UTF-8, NaN and infinity in any spelling, a duplicate key in an object,
    an integer too long for Python to parse, and nesting deeper than MAX_DEPTH.
    """
    try:
        value = json.loads(
            raw.decode("utf-8"),
            parse_constant=_refuse,
            parse_float=_finite,
            object_pairs_hook=_unique,
        )
    except RecursionError:
        raise ValueError(TOO_DEEP) from None
    if _too_deep(raw, value):
        raise ValueError(TOO_DEEP)
    return value


def _too_deep(raw: bytes, value: object) -> bool:
    if raw.count(b"{") + raw.count(b"[") <= MAX_DEPTH:
        return False
    layer = [value]
    for _level in range(MAX_DEPTH + 1):
        inner = [
            item.values() if isinstance(item, dict) else item
            for item in layer
            if isinstance(item, (dict, list))
        ]
        layer = [item for items in inner for item in items]
    return bool(layer)


def _refuse(name: str) -> None:
    raise ValueError(f"{name} is not JSON")


def _finite(digits: str) -> float:
    number = float(digits)
    if math.isinf(number):
        raise ValueError("a number beyond the range of a double")
    return number


def _unique(pairs: list[tuple[str, object]]) -> dict[str, object]:
    members = dict(pairs)
    if len(members) < len(pairs):
        raise ValueError("a duplicate key in an object")
    return members
