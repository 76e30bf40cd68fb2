# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The types of resource fields, and how two values of a resource are compared (docs/openapi.yaml)."""

from __future__ import annotations

import json
import math
import re
import sys
from datetime import datetime, timedelta, timezone
from typing import Iterable, Iterator, NamedTuple

# ISO 8601, extended or basic; an unquoted YAML timestamp has this form too once it is converted to
# text.
_DATE_TIME = re.compile(
    r"(?P<year>\d{4})(?P<dash>-?)(?P<month>\d\d)(?P=dash)(?P<day>\d\d)"
    r"(?:[Tt]|[ ]+)(?P<hour>\d\d)(?P<colon>:?)(?P<minute>\d\d)(?:(?P=colon)(?P<second>\d\d)(?:[.,]\d+)?)?"
    r"[ ]*(?:[Zz]|(?P<sign>[+-])(?P<zone_hour>[01]\d|2[0-3])(?::?(?P<zone_minute>[0-5]\d))?)?",
    re.ASCII,
)
_NUMBER = re.compile(
    r"\s*[+-]?\d{1,400}(\.\d+)?([eE][+-]?\d+)?\s*", re.ASCII
)  # Python refuses too many digits
_INDEX = re.compile(r"\[\d+\]")
_LONGEST_SHOWN = 100  # characters of a value in a message
ABSENT = object()
_EXACT = 2**53  # above this a double cannot represent every integer


class Type(str):
    """An option type that documentation gives by the name of one of ansible-core's, converted by a
    rule of its own.
    """

    def __new__(cls, documented: str, convert) -> Type:
        self = super().__new__(cls, documented)
        self.convert = convert
        return self

    def __call__(self, value):
        return self.convert(value)


# The message of each error below is about an option and lacks only what the value is: `must be a
# number`.


def text(value: object) -> str:
    """Return a string; raise TypeError for a boolean, list or dict, whose spelling Python would
    choose.
    """
    if isinstance(value, bool) or not isinstance(value, (str, int, float)):
        raise TypeError("must be a string (a word such as yes, no, true or false needs quotes)")
    if isinstance(value, float):
        raise TypeError("must be a string: quote it, since 12.10 without quotes is the number 12.1")
    return str(value)


def number(value: object) -> int | float:
    """Return a finite number, as an int when it is whole, so that 4 is sent as `4` and not as
    `4.0`.

    Raises TypeError or ValueError.
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
    if abs(value) > sys.float_info.max:  # RFC 8259 section 6: many parsers read it as infinity
        raise ValueError("must be smaller, to be a JSON number")
    return value


def date_time(value: object) -> str:
    """Return an ISO 8601 date-time as `YYYY-MM-DDTHH:MM:SSZ` (docs/openapi.yaml); without a zone it
    is UTC.

    Raises ValueError.
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


def _moment(match: re.Match) -> datetime:
    """Return the moment that a date-time denotes, in UTC; raise ValueError or OverflowError."""
    parts = (int(match[name] or 0) for name in ("year", "month", "day", "hour", "minute", "second"))
    moment = datetime(*parts, tzinfo=timezone.utc)
    offset = timedelta(hours=int(match["zone_hour"] or 0), minutes=int(match["zone_minute"] or 0))
    return moment + offset if match["sign"] == "-" else moment - offset


DATE_TIME = Type("str", date_time)
SECONDS = Type("float", number)


def prune(value: object) -> object:
    """Return the value without null members, at every level: null means not given, which is not
    sent.
    """
    if isinstance(value, dict):
        return {key: prune(item) for key, item in value.items() if item is not None}
    return [prune(item) for item in value] if isinstance(value, list) else value


def overlay(below: object, above: object) -> object:
    """Return `below` overlaid with `above`: dicts key by key, everything else replaced, even by an
    empty dict.
    """
    if not (isinstance(below, dict) and isinstance(above, dict)):
        return above
    return {
        **below,
        **{key: overlay(below.get(key), item) if item else item for key, item in above.items()},
    }


class Difference(NamedTuple):
    """One field whose values differ between two assets."""

    field: str  # dotted, such as attributes.volumes[0].size_gb
    wanted: object
    found: object  # ABSENT where there is none

    def describe(self, template: str) -> str:
        """Return the field with both values; `template`: such as `{wanted} asked for, {found}
        recorded`.
        """
        return f"{self.field} ({template.format(wanted=_shown(self.wanted), found=_shown(self.found))})"

    def named(self, wanted: str, found: str) -> dict[str, object]:
        """Return the field as `name` and both values under these names, one that is absent left
        out.
        """
        values = {wanted: self.wanted, found: self.found}
        return {
            "name": self.field,
            **{name: value for name, value in values.items() if value is not ABSENT},
        }


def differences(
    wanted: object, found: object, instants: frozenset[str] = frozenset(), name: str = ""
) -> list[Difference]:
    """Return the fields of `wanted` that differ in `found`; further fields of `found` are ignored.

    An empty dict or list differs from a full one. `instants`: the dotted names of the date-times,
    which are compared as moments; list elements have no index there.
    """
    if isinstance(wanted, dict) and isinstance(found, dict) and (wanted or not found):
        pairs = [
            (item, found.get(key, ABSENT), f"{name}.{key}" if name else str(key))
            for key, item in wanted.items()
        ]
    elif isinstance(wanted, list) and isinstance(found, list) and len(wanted) == len(found):
        pairs = [(item, found[index], f"{name}[{index}]") for index, item in enumerate(wanted)]
    else:
        same = _same(wanted, found, _INDEX.sub("", name) in instants)
        return [] if same else [Difference(name, wanted, found)]
    return [
        difference
        for one, other, field in pairs
        for difference in differences(one, other, instants, field)
    ]


def unsent(
    known: object, sent: object, path: tuple[str, ...] = ()
) -> dict[tuple[str, ...], object]:
    """Return the fields that are known and not sent, by their path; a list is one field, null or
    empty is not known.
    """
    if not isinstance(known, dict) or not known:
        return {} if known in (None, [], {}) else {path: known}
    found: dict[tuple[str, ...], object] = {}
    for key, value in known.items():
        if not isinstance(sent, dict) or key not in sent:
            found.update(unsent(value, None, (*path, key)))
        elif isinstance(value, dict) and isinstance(sent[key], dict):
            found.update(unsent(value, sent[key], (*path, key)))
    return found


def leaves(
    value: object, path: tuple[str | int, ...] = ()
) -> Iterator[tuple[tuple[str | int, ...], object]]:
    """Yield each value that holds no others, by its path: keys as text, as in JSON, and places in
    lists as numbers.
    """
    if isinstance(value, dict) and value:
        for key, item in value.items():
            yield from leaves(item, (*path, str(key)))
    elif isinstance(value, list) and value:
        for index, item in enumerate(value):
            yield from leaves(item, (*path, index))
    else:
        yield path, value


def as_json(value: object) -> dict[tuple[str | int, ...], str]:
    """Return each value that holds no others as JSON, by its path; two values have the same ones if
    their JSON is.
    """
    return {path: json.dumps(item, ensure_ascii=False) for path, item in leaves(value)}


def dotted(path: Iterable[str | int]) -> str:
    """Return a path as people read it, such as `volumes[0].size_gb`; one key with a dot in it looks
    like two.
    """
    return "".join(
        f"[{step}]" if isinstance(step, int) else f".{step}" for step in path
    ).removeprefix(".")


def json_differences(
    one: object, other: object, absent: str = "none"
) -> list[tuple[str, str, str]]:
    """Return the fields whose JSON differs, with both values; `absent` stands for a missing one."""
    before, after = as_json(one), as_json(other)
    found = []
    for path in {**before, **after}:
        values = before.get(path, absent), after.get(path, absent)
        if values[0] != values[1]:
            found.append((dotted(path), *values))
    return found


def value_at(asset: object, path: Iterable[str]) -> object:
    """Return the value of a field, ABSENT where there is none."""
    for key in path:
        asset = asset.get(key, ABSENT) if isinstance(asset, dict) else ABSENT
    return asset


def date_time_fields(options: dict, name: str) -> frozenset[str]:
    """Return the dotted names of the date-times among the suboptions of an option."""
    found = {f"{name}.{key}" for key, option in options.items() if option["type"] is DATE_TIME}
    inner = (
        date_time_fields(option.get("options", {}), f"{name}.{key}")
        for key, option in options.items()
    )
    return frozenset(found.union(*inner))


def _same(one: object, other: object, is_instant: bool) -> bool:
    """Whether two JSON values are equal: 4 and 4.0 are, and one instant written in two ways; 1 and
    true are not.
    """
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    if is_instant and isinstance(one, str) and isinstance(other, str):
        try:
            return date_time(one) == date_time(other)
        except ValueError:
            return one == other
    return one == other


def _shown(value: object) -> str:
    text = "none" if value is ABSENT else json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= _LONGEST_SHOWN else f"{text[:_LONGEST_SHOWN]}..."
