# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The types of options and resource fields, their JSON, and how two values are compared."""

from __future__ import annotations

import json
import math
import os
import re
import sys
from contextlib import suppress
from datetime import datetime, timezone
from typing import Any, Callable, Dict, Iterable, NamedTuple, Tuple

from ansible.module_utils.common.validation import check_type_dict
from ansible.module_utils.parsing.convert_bool import boolean

from ._errors import InvalidInput
from ._secrets import printable

# ISO 8601; an unquoted YAML timestamp becomes this form as text.
_DATE_TIME = re.compile(
    r"\s*(\d{4})(-?)(\d\d)\2(\d\d)[T ]+(\d\d):?(\d\d)(?::?(\d\d)(?:[.,](\d{1,6})\d*)?)?"
    r" *(Z|[+-]\d\d(?::?\d\d)?)?\s*",
    re.ASCII | re.IGNORECASE,
)
# Python refuses too many digits.
_NUMBER = re.compile(r"\s*[+-]?\d{1,400}(\.\d+)?([eE][+-]?\d+)?\s*", re.ASCII)
_LONGEST_SHOWN = 100  # characters of a value in a message
_KINDS = {list: "a list", dict: "a dict", str: "a string", bool: "a boolean", int: "a number"}
ABSENT = object()
# json.dumps would make an encoder each time.
_encode = json.JSONEncoder(allow_nan=False, ensure_ascii=False, separators=(",", ":")).encode

Path = Tuple["str | int", ...]  # the keys, and the places in lists, that lead to a value
Option = Dict[str, Any]  # of an argument spec
Spec = Dict[str, Option]  # the argument spec of options
Asset = Dict[str, Any]  # the JSON of an asset, or a body
Params = Dict[str, Any]  # the options of a task


class Type(str):
    """An option type with the documented name of one of ansible-core's, and a rule of its own."""

    convert: Callable[[Any], object]
    needs: str

    def __new__(cls, documented: str, needs: str, convert: Callable[[Any], object]) -> Type:
        """`needs`: what a value must be; `convert`: returns it, or raises TypeError or ValueError."""
        self = super().__new__(cls, documented)
        self.needs = needs
        self.convert = convert
        return self

    def __call__(self, value: object) -> object:
        """Return the value in this type; raise TypeError."""
        try:
            return self.convert(value)
        except (TypeError, ValueError):
            # What is in a dict or list, or takes the place of one, may be a credential.
            has_parts = self in ("dict", "list") or isinstance(value, (dict, list))
            seen = _kind_of(value) if has_parts else shown(value)
            raise TypeError(f"must be {self.needs}, not {seen}") from None


def between(kind: Type, least: float, most: float = math.inf) -> Type:
    """Return the type of a number from `least` to `most`."""

    def convert(value: object) -> Any:
        number: Any = kind.convert(value)
        if not least <= number <= most:
            raise ValueError
        return number

    upto = f" to {most:g}" if most < math.inf else ""
    return Type(str(kind), f"{kind.needs} from {least:g}{upto}", convert)


def shown(value: object) -> str:
    """Return a value for a message, or only its kind if it is long.

    It is not cut off, since masking cannot find half a credential.
    """
    # `default` is for a date, or bytes.
    written = printable(json.dumps(value, ensure_ascii=False, default=str))
    return written if len(written) <= _LONGEST_SHOWN else _kind_of(value)


def _kind_of(value: object) -> str:
    return next((kind for known, kind in _KINDS.items() if isinstance(value, known)), "null")


def text(value: object) -> str:
    """Return a string; raise TypeError for a value whose spelling YAML or Python would choose."""
    if not isinstance(value, str):
        raise TypeError
    return str(value)


def number(value: object) -> int | float:
    """Return a finite number; raise TypeError or ValueError.

    A whole one is an int, so that 4 is sent as `4` and not as `4.0`.
    """
    if isinstance(value, str) and _NUMBER.fullmatch(value):
        value = float(value) if set(".eE") & set(value) else int(value)
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise TypeError
    # RFC 8259 section 6: many parsers read a greater one as infinity.
    if not abs(value) <= sys.float_info.max:
        raise ValueError
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _whole_number(value: object) -> int:
    found = number(value)
    if not isinstance(found, int):
        raise TypeError
    return found


def date_time(value: object) -> str:
    """Return an ISO 8601 date-time as `YYYY-MM-DDTHH:MM:SSZ` (docs/openapi.yaml).

    Without a zone it is UTC. Raises ValueError.
    """
    return _moment(value).replace(microsecond=0).isoformat().replace("+00:00", "Z")


def _moment(value: object) -> datetime:
    """Return an ISO 8601 date-time, in UTC, with its fraction of a second; raise ValueError."""
    match = _DATE_TIME.fullmatch(value) if isinstance(value, str) else None
    if not match:
        raise ValueError
    year, _dash, *numbers, zone = match.groups("00")
    zone = f"{zone}00" if zone[1:].isdigit() and len(zone) == 3 else zone.upper()
    text = f"{year} {' '.join(numbers)} {'Z' if zone == '00' else zone}"
    try:
        return datetime.strptime(text, "%Y %m %d %H %M %S %f %z").astimezone(timezone.utc)
    except OverflowError:
        raise ValueError from None


def _path(value: object) -> str:
    path = os.path.expanduser(os.path.expandvars(text(value)))
    # It raises ValueError for surrogates that are no bytes of a name (PEP 383).
    if b"\0" in os.fsencode(path):
        raise ValueError
    return os.path.abspath(path) if path else ""


def _list(value: Any) -> list[Any]:
    """Return a list; a text is split at commas, and its parts are stripped.

    ansible-core keeps the blanks, so that `base, nginx` would always name another class than
    `nginx`.
    """
    if isinstance(value, str):
        return [part for part in map(str.strip, value.split(",")) if part]
    return only_list(value)


def only_list(value: Any) -> list[Any]:
    """Return a list, which no text becomes; raise TypeError."""
    if not isinstance(value, list):
        raise TypeError
    return value


def _dict(value: Any) -> dict[Any, Any]:
    found = check_type_dict(value)
    if not isinstance(found, dict):  # JSON of another value
        raise TypeError
    return found


TEXT = Type(
    "str",
    "a string (write '0017', or {{ x | string }} for a number: without quotes, YAML makes 0017 the"
    " number 15 and yes the boolean true)",
    text,
)
NUMBER = Type("float", "a number", number)
WHOLE_NUMBER = Type("int", "a whole number", _whole_number)
BOOLEAN = Type("bool", "true or false", boolean)
DATE_TIME = Type("str", "a date-time such as 2026-01-02T03:04:05Z", date_time)
PATH = Type("path", "a path that can exist", _path)
LIST = Type("list", "a list", _list)
DICT = Type("dict", "a dict", _dict)


def fields(kind: Type, *names: str) -> Spec:
    """Return the argument spec of fields of one type."""
    return {name: {"type": kind} for name in names}


def list_of_dicts(options: Spec) -> dict[str, Any]:
    """Return the argument spec of a list of dicts with these suboptions."""
    return {"type": LIST, "elements": DICT, "options": options}


def prune(value: object) -> Any:
    """Return the JSON value without null members at any level: null means not given."""
    if isinstance(value, dict):
        return {key: prune(item) for key, item in value.items() if item is not None}
    if isinstance(value, list):
        return [prune(item) for item in value]
    return value


def overlay(below: Asset, above: Asset) -> Asset:
    """Return `below` overlaid with `above`: dicts key by key, everything else replaced.

    An empty dict in `above` also replaces.
    """
    overlaid = {**below, **above}
    for key, item in above.items():
        old = below.get(key)
        if isinstance(old, dict) and isinstance(item, dict) and item:
            overlaid[key] = overlay(old, item)
    return overlaid


class Difference(NamedTuple):
    """One field whose values differ between two assets."""

    path: Path
    wanted: object  # ABSENT where there is none, as in `found`
    found: object

    @property
    def field(self) -> str:
        """The field as people read it, such as `attributes.volumes[0].size_gb`."""
        return dotted(self.path)

    def describe(self, template: str) -> str:
        """Return the field and both values; `template`: `{wanted} asked for, {found} recorded`."""
        wanted, found = (
            "none" if value is ABSENT else shown(value) for value in (self.wanted, self.found)
        )
        return f"{self.field} ({template.format(wanted=wanted, found=found)})"

    def named(self, wanted: str, found: str) -> dict[str, object]:
        """Return the field as `name` and both values under these names, unless one is absent."""
        values = {"name": self.field, wanted: self.wanted, found: self.found}
        return {name: value for name, value in values.items() if value is not ABSENT}


def differences(
    wanted: object,
    found: object,
    option: Option | None = None,
    path: Path = (),
    both: bool = False,
) -> list[Difference]:
    """Return the fields of `wanted` that differ in `found`; if `both`, those of `found` as well.

    An empty dict or list differs from a full one. `option`: specifies both values; they are compared
    exactly where there is none. `path`: that of both values.
    """
    option = option or {}
    differing: list[Difference] = []
    if isinstance(wanted, dict) and isinstance(found, dict) and (wanted or both or not found):
        for key in {**wanted, **found} if both else wanted:
            values = wanted.get(key, ABSENT), found.get(key, ABSENT)
            inner = option.get("options", {}).get(key)
            differing += differences(*values, inner, (*path, str(key)), both)
    elif isinstance(wanted, list) and isinstance(found, list) and len(wanted) == len(found):
        element = {**option, "type": option.get("elements")}
        for index, item in enumerate(wanted):
            differing += differences(item, found[index], element, (*path, index), both)
    elif not _is_same(wanted, found, option.get("type")):
        differing.append(Difference(path, wanted, found))
    return differing


def option_at(option: Option, path: Path) -> Option:
    """Return the specification of a field of a specified value, {} if it has none."""
    for key in path:
        option = option.get("options", {}).get(key, {})
    return option


def dotted(path: Iterable[str | int]) -> str:
    """Return a path as people read it, such as `volumes[0].size_gb`."""
    steps = [f"[{step}]" if isinstance(step, int) else f".{step}" for step in path]
    return "".join(steps).removeprefix(".")


def value_at(asset: object, path: Iterable[str | int]) -> object:
    """Return the value of a field, ABSENT if there is none."""
    for key in path:
        asset = asset.get(key, ABSENT) if isinstance(asset, dict) else ABSENT
    return asset


def _is_same(one: object, other: object, kind: Type | None) -> bool:
    """Return whether two JSON values are equal: 4 and 4.0 are, 1 and true are not; where their type
    is known, also two texts of one moment, and a number and its text.
    """
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    if one == other or kind is None:
        return one == other
    convert = _moment if kind is DATE_TIME else kind.convert
    with suppress(TypeError, ValueError):
        return convert(one) == convert(other)
    return False


def encode(value: object, option: str) -> bytes:
    """Return the value as UTF-8 JSON; raise InvalidInput, naming `option`, if JSON has none."""
    try:
        return _encode(value).encode("utf-8")
    except (TypeError, ValueError, RecursionError):
        raise InvalidInput(
            option,
            "contains a value that JSON cannot represent (NaN, infinity, a date, a huge number, a"
            " lone surrogate, or hundreds of levels)",
        ) from None
