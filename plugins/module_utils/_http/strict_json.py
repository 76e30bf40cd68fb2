# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Strict JSON (RFC 8259): encoding and decoding."""

from __future__ import annotations

import json
import math
from typing import Any

from .._errors import InvalidInput

MAX_DEPTH = 64
MAX_INTEGER_DIGITS = 4300
# Brackets, commas and colons in an answer: each may take 180 bytes of memory.
MAX_SIGNS = 300_000
# Ansible turns dicts with such a key into its own objects.
_RESERVED = {"__ansible_type", "__ansible_unsafe", "__ansible_vault"}
_NOT_UTF_8 = "it is not UTF-8, or contains a lone surrogate"
_TOO_DEEP = f"it is nested deeper than {MAX_DEPTH} levels"
# json.dumps would make an encoder each time
_encode = json.JSONEncoder(allow_nan=False, ensure_ascii=False, separators=(",", ":")).encode


class InvalidJSON(ValueError):
    """The bytes are not the JSON object that the interface promises."""


def encode(value: object, option: str) -> bytes:
    """Return the value as UTF-8 JSON; raise InvalidInput, naming `option`, if JSON has none."""
    try:
        if depth(value) > MAX_DEPTH:
            raise InvalidInput(option, f"is nested deeper than {MAX_DEPTH} levels")
        return _encode(value).encode("utf-8")
    except UnicodeEncodeError:
        why = "contains a character that UTF-8 cannot encode (a lone surrogate)"
        raise InvalidInput(option, why) from None
    except (TypeError, ValueError):
        why = "contains a value that JSON cannot represent (NaN, infinity, a date, a huge number)"
        raise InvalidInput(option, why) from None


def decode_object(raw: bytes) -> dict[str, Any]:
    """Return the JSON object in `raw`; raise InvalidJSON for anything else, and quote none of it."""
    if sum(map(raw.count, (b"{", b"[", b",", b":"))) > MAX_SIGNS:
        raise InvalidJSON(f"it has more than {MAX_SIGNS:,} parts")
    try:
        value = decode(raw.decode("utf-8"))
    except UnicodeError:
        raise InvalidJSON(_NOT_UTF_8) from None
    except json.JSONDecodeError as error:
        raise InvalidJSON(f"it is not JSON ({error.msg} at character {error.pos})") from None
    if not isinstance(value, dict):
        raise InvalidJSON("it is JSON, but not an object")
    return value


def decode(text: str) -> Any:
    """Return the JSON value of a text; raise JSONDecodeError, or InvalidJSON if it is not strict."""
    try:
        value = json.loads(
            text,
            parse_constant=_no_constant,
            parse_float=_finite,
            parse_int=_bounded,
            object_pairs_hook=unique_members,
        )
        if "\\u" in text:
            json.dumps(value, ensure_ascii=False).encode("utf-8")
    except UnicodeError:
        raise InvalidJSON(_NOT_UTF_8) from None
    except RecursionError:
        raise InvalidJSON(_TOO_DEEP) from None
    if depth(value) > MAX_DEPTH:
        raise InvalidJSON(_TOO_DEEP)
    return value


def depth(value: object) -> int:
    """Return how deep objects and arrays are nested; MAX_DEPTH + 1 for more than MAX_DEPTH."""
    levels = 0
    layer = [value]
    while levels <= MAX_DEPTH:
        inner: list[object] = []
        containers = [item for item in layer if isinstance(item, (dict, list))]
        if not containers:
            break
        for item in containers:
            inner += item.values() if isinstance(item, dict) else item
        levels = levels + 1
        layer = inner
    return levels


def _no_constant(name: str) -> None:
    raise InvalidJSON(f"it contains {name}, which is not JSON")


def _finite(digits: str) -> float:
    number = float(digits)
    if not math.isfinite(number):
        raise InvalidJSON("it contains a number beyond the range of a double")
    return number


def _bounded(digits: str) -> int:
    if len(digits.lstrip("-")) > MAX_INTEGER_DIGITS:
        raise InvalidJSON(f"it contains an integer of more than {MAX_INTEGER_DIGITS} digits")
    try:
        return int(digits)
    except ValueError:
        why = "it contains an integer of more digits than PYTHONINTMAXSTRDIGITS allows"
        raise InvalidJSON(why) from None


def unique_members(pairs: list[tuple[str, object]]) -> dict[str, object]:
    """Return the members of a JSON object; raise InvalidJSON for a repeated or reserved key."""
    members = dict(pairs)
    for key in _RESERVED & members.keys():
        raise InvalidJSON(f"it contains the key {key}, which Ansible reserves")
    if len(members) != len(pairs):
        raise InvalidJSON("it contains the same key twice in one object")
    return members
