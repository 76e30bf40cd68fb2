# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The types of resource fields, and how two values of a resource are compared (docs/openapi.yaml)."""

from __future__ import annotations

import json
import math
import re
import sys
from contextlib import suppress
from datetime import datetime, timedelta, timezone
from typing import Any, Callable, Dict, Iterable, Iterator, Match, NamedTuple, Tuple

# ISO 8601, extended or basic; an unquoted YAML timestamp becomes this form as text.
_DATE_TIME = re.compile(
    r"(?P<year>\d{4})(?P<dash>-?)(?P<month>\d\d)(?P=dash)(?P<day>\d\d)"
    r"(?:[Tt]|[ ]+)(?P<hour>\d\d)(?P<colon>:?)(?P<minute>\d\d)"
    r"(?:(?P=colon)(?P<second>\d\d)(?:[.,]\d+)?)?"
    r"[ ]*(?:[Zz]|(?P<sign>[+-])(?P<zone_hour>[01]\d|2[0-3])(?::?(?P<zone_minute>[0-5]\d))?)?",
    re.ASCII,
)
# Python refuses too many digits.
_NUMBER = re.compile(r"\s*[+-]?\d{1,400}(\.\d+)?([eE][+-]?\d+)?\s*", re.ASCII)
_PARTS = ("year", "month", "day", "hour", "minute", "second", "zone_hour", "zone_minute")
_INDEX = re.compile(r"\[\d+\]")
_LONGEST_SHOWN = 100  # characters of a value in a message
ABSENT = object()
_EXACT = 2**53  # above this a double cannot represent every integer

Path = Tuple[str, ...]  # the keys that lead to a field
DeepPath = Tuple["str | int", ...]  # the same, with places in lists
Spec = Dict[str, Dict[str, Any]]  # the argument spec of options
Asset = Dict[str, Any]  # the JSON of an asset, or a body
Params = Dict[str, Any]  # the options of a task


class Type(str):
    """An option type with the documented name of one of ansible-core's, and a rule of its own."""

    convert: Callable[[object], object]

    def __new__(cls, documented: str, convert: Callable[[object], object]) -> Type:
        """`convert`: returns a value that can be used; raises TypeError or ValueError."""
        self = super().__new__(cls, documented)
        self.convert = convert
        return self

    def __call__(self, value: object) -> object:
        return self.convert(value)


# The errors below do not quote the value; the caller adds it: `must be a number, not yes`.


def text(value: object) -> str:
    """Return a string; raise TypeError for a value whose spelling Python would choose."""
    if isinstance(value, bool) or not isinstance(value, (str, int, float)):
        raise TypeError("must be a string (a word such as yes, no, true or false needs quotes)")
    if isinstance(value, float):
        raise TypeError("must be a string: quote it, since 12.10 without quotes is the number 12.1")
    return str(value)


def number(value: object) -> int | float:
    """Return a finite number; raise TypeError or ValueError.

    A whole one is an int, so that 4 is sent as `4` and not as `4.0`.
    """
    if isinstance(value, str) and _NUMBER.fullmatch(value):
        value = float(value) if set(".eE") & set(value) else int(value)
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise TypeError("must be a number")
    if isinstance(value, float):
        if not math.isfinite(value):
            raise ValueError("must be a finite number")
        if value.is_integer() and abs(value) <= _EXACT:
            return int(value)
    # RFC 8259 section 6: many parsers read it as infinity.
    if abs(value) > sys.float_info.max:
        raise ValueError("must be smaller, to be a JSON number")
    return value


def date_time(value: object) -> str:
    """Return an ISO 8601 date-time as `YYYY-MM-DDTHH:MM:SSZ` (docs/openapi.yaml).

    Without a zone it is UTC. Raises ValueError.
    """
    match = _DATE_TIME.fullmatch(value.strip()) if isinstance(value, str) else None
    problem = "must be a date-time such as 2026-01-02T03:04:05Z"
    if not match:
        raise ValueError(problem)
    try:
        return _moment(match).isoformat().replace("+00:00", "Z")
    except OverflowError:
        raise ValueError(f"{problem}, in the years 1 to 9999") from None
    except ValueError as error:
        raise ValueError(f"{problem} ({error})") from None


def _moment(match: Match[str]) -> datetime:
    """Return the moment that a date-time denotes, in UTC; raise ValueError or OverflowError."""
    part = {name: int(digits or 0) for name, digits in match.groupdict().items() if name in _PARTS}
    offset = timedelta(hours=part.pop("zone_hour"), minutes=part.pop("zone_minute"))
    moment = datetime(**part, tzinfo=timezone.utc)
    return moment + offset if match["sign"] == "-" else moment - offset


DATE_TIME = Type("str", date_time)
SECONDS = Type("float", number)


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

    field: str  # dotted, such as attributes.volumes[0].size_gb
    wanted: object
    found: object  # ABSENT where there is none

    def describe(self, template: str) -> str:
        """Return the field and both values; `template`: `{wanted} asked for, {found} recorded`."""
        values = template.format(
            wanted=_text_of_value(self.wanted), found=_text_of_value(self.found)
        )
        return f"{self.field} ({values})"

    def named(self, wanted: str, found: str) -> dict[str, object]:
        """Return the field as `name` and both values under these names, unless one is absent."""
        values = {"name": self.field, wanted: self.wanted, found: self.found}
        return {name: value for name, value in values.items() if value is not ABSENT}


def differences(
    wanted: object, found: object, instants: frozenset[str] = frozenset(), name: str = ""
) -> list[Difference]:
    """Return the fields of `wanted` that differ in `found`; further fields of `found` are ignored.

    An empty dict or list differs from a full one. `instants`: the dotted names of the date-times,
    which are compared as moments; list elements have no index there.
    """
    differing: list[Difference] = []
    if isinstance(wanted, dict) and isinstance(found, dict) and (wanted or not found):
        for key, item in wanted.items():
            inner = f"{name}.{key}" if name else str(key)
            differing += differences(item, found.get(key, ABSENT), instants, inner)
    elif isinstance(wanted, list) and isinstance(found, list) and len(wanted) == len(found):
        for index, item in enumerate(wanted):
            differing += differences(item, found[index], instants, f"{name}[{index}]")
    elif not _same(wanted, found, _INDEX.sub("", name) in instants):
        differing.append(Difference(name, wanted, found))
    return differing


def unsent(known: object, sent: object, path: Path = ()) -> dict[Path, object]:
    """Return the fields that are known and not sent, by their path.

    A list is one field; null or empty is not known.
    """
    if known in (None, [], {}):
        return {}
    if not isinstance(known, dict):
        return {path: known}
    found: dict[Path, object] = {}
    for key, value in known.items():
        if not isinstance(sent, dict) or key not in sent:
            found.update(unsent(value, None, (*path, key)))
        elif isinstance(value, dict) and isinstance(sent[key], dict):
            found.update(unsent(value, sent[key], (*path, key)))
    return found


def leaves(value: object, path: DeepPath = ()) -> Iterator[tuple[DeepPath, object]]:
    """Yield each value that holds no others, by its path; keys are text, as in JSON."""
    if isinstance(value, dict) and value:
        for key, item in value.items():
            yield from leaves(item, (*path, str(key)))
    elif isinstance(value, list) and value:
        for index, item in enumerate(value):
            yield from leaves(item, (*path, index))
    else:
        yield path, value


def json_leaves(value: object) -> dict[DeepPath, str]:
    """Return each value that holds no others as JSON, by its path."""
    return {path: json.dumps(item, ensure_ascii=False) for path, item in leaves(value)}


def dotted(path: Iterable[str | int]) -> str:
    """Return a path as people read it, such as `volumes[0].size_gb`."""
    steps = [f"[{step}]" if isinstance(step, int) else f".{step}" for step in path]
    return "".join(steps).removeprefix(".")


def json_differences(
    one: object, other: object, absent: str = "none"
) -> list[tuple[str, str, str]]:
    """Return the fields whose JSON differs, with both values; `absent` stands for a missing one."""
    before = json_leaves(one)
    after = json_leaves(other)
    found = []
    for path in {**before, **after}:
        values = before.get(path, absent), after.get(path, absent)
        if values[0] != values[1]:
            found.append((dotted(path), *values))
    return found


def value_at(asset: object, path: Iterable[str]) -> object:
    """Return the value of a field, ABSENT if there is none."""
    for key in path:
        asset = asset.get(key, ABSENT) if isinstance(asset, dict) else ABSENT
    return asset


def date_time_fields(options: Spec, name: str) -> frozenset[str]:
    """Return the dotted names of the date-times among the suboptions of an option."""
    found: set[str] = set()
    for key, option in options.items():
        if option["type"] is DATE_TIME:
            found.add(f"{name}.{key}")
        found |= date_time_fields(option.get("options", {}), f"{name}.{key}")
    return frozenset(found)


def _same(one: object, other: object, is_instant: bool) -> bool:
    """Return whether two JSON values are equal: 4 and 4.0 are, 1 and true are not.

    `is_instant`: one moment written in two ways is equal.
    """
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    if is_instant and isinstance(one, str) and isinstance(other, str):
        with suppress(ValueError):
            return date_time(one) == date_time(other)
    return one == other


def _text_of_value(value: object) -> str:
    text = "none" if value is ABSENT else json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= _LONGEST_SHOWN else f"{text[:_LONGEST_SHOWN]}..."
