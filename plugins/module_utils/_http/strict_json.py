# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Strict decoding of JSON (RFC 8259)."""

from __future__ import annotations

import json
import math
from typing import Any

MAX_DEPTH = 64
# Brackets, commas and colons in an answer: each may take 180 bytes of memory.
MAX_SIGNS = 300_000
# Ansible turns dicts with such a key into its own objects.
_RESERVED = {"__ansible_type", "__ansible_unsafe", "__ansible_vault"}
_NOT_UTF_8 = "it is not UTF-8, or contains a lone surrogate"
_TOO_DEEP = f"it is nested deeper than {MAX_DEPTH} levels"


class InvalidJSON(ValueError):
    """The bytes are not the JSON object that the interface promises."""


def decode_object(raw: bytes) -> dict[str, Any]:
    """Return the JSON object in `raw`; raise InvalidJSON for anything else, and quote none of it."""
    value = decode_any(raw)
    if not isinstance(value, dict):
        raise InvalidJSON("it is JSON, but not an object")
    return value


def decode_any(raw: bytes) -> Any:
    """Return the JSON value in `raw`; raise InvalidJSON, and quote none of it."""
    if sum(map(raw.count, (b"{", b"[", b",", b":"))) > MAX_SIGNS:
        raise InvalidJSON(f"it has more than {MAX_SIGNS:,} parts")
    try:
        return decode(raw.decode("utf-8"))
    except UnicodeError:
        raise InvalidJSON(_NOT_UTF_8) from None
    except json.JSONDecodeError as error:
        raise InvalidJSON(f"it is not JSON ({error.msg} at character {error.pos})") from None


def decode(text: str) -> Any:
    """Return the JSON value of a text; raise JSONDecodeError, or InvalidJSON if it is not strict."""
    try:
        value = json.loads(
            text,
            parse_constant=_no_constant,
            parse_float=_finite,
            object_pairs_hook=_unique_members,
        )
        if "\\u" in text:
            json.dumps(value, ensure_ascii=False).encode("utf-8")
    except (InvalidJSON, json.JSONDecodeError):
        raise
    except UnicodeError:
        raise InvalidJSON(_NOT_UTF_8) from None
    except RecursionError:
        raise InvalidJSON(_TOO_DEEP) from None
    except ValueError:  # of int: a limit of Python, since it takes long
        raise InvalidJSON("it contains an integer of more than 4300 digits") from None
    if _is_deeper(value, MAX_DEPTH):
        raise InvalidJSON(_TOO_DEEP)
    return value


def _is_deeper(value: object, levels: int) -> bool:
    """Return whether objects and arrays are nested deeper than so many levels."""
    if not isinstance(value, (dict, list)):
        return False
    inner = value.values() if isinstance(value, dict) else value
    return levels == 0 or any(_is_deeper(item, levels - 1) for item in inner)


def _no_constant(name: str) -> None:
    raise InvalidJSON(f"it contains {name}, which is not JSON")


def _finite(digits: str) -> float:
    number = float(digits)
    if not math.isfinite(number):
        raise InvalidJSON("it contains a number beyond the range of a double")
    return number


def _unique_members(pairs: list[tuple[str, object]]) -> dict[str, object]:
    """Return the members of a JSON object; raise InvalidJSON for a repeated or reserved key."""
    members = dict(pairs)
    for key in _RESERVED & members.keys():
        raise InvalidJSON(f"it contains the key {key}, which Ansible reserves")
    if len(members) != len(pairs):
        raise InvalidJSON("it contains the same key twice in one object")
    return members
