# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The plan of a list: the fields that all new assets share, those of each asset, the changes.

A line that does not fit ends in the number of fields that are left.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from itertools import chain
from typing import Any, Iterable, Mapping

from ...module_utils._call.operation import Operation
from ...module_utils._errors import ACCEPTED
from ...module_utils._resources.planning import ENVELOPE
from ...module_utils._secrets import printable
from .assets import NOT_LISTED, PLANNED, UNCHANGED, Asset, Field, Run, counted, tally
from .screen import EMPTY, commands
from .text import shortened, shown, text, wrapped

MARKS = {"in doubt": "?", "differs": "!", "to update": "~", "to create": "+", NOT_LISTED: "."}
# Instead of mark and name, before the fields that all new assets share.
_SHARED = "each:"
# The fields that people look for.
_FIRST = ("ip", "team", "cpu", "vm_ram", "operating_system")
_MOST_PLANNED = 40  # assets
_AROUND_NAME = 6  # columns, for the mark and for spaces
_UNKNOWN = "nothing else is known of it: a service that replaces drops the rest"
_NO_LIMIT = sys.maxsize
Fields = Mapping[str, object]


@dataclass(frozen=True)
class NewAssets:
    """The new assets of a list: the fields that all share, and the others of each by its name."""

    shared: Fields
    own: Mapping[str, Fields]


def new_assets(assets: Iterable[Asset]) -> NewAssets:
    """Return the fields of the new ones among the assets of a list."""
    bodies = {asset.name: asset.body or {} for asset in assets if asset.plan == "create"}
    shared, own = own_fields(bodies.values())
    return NewAssets(shared, dict(zip(bodies, own)))


def own_fields(bodies: Iterable[Mapping[str, Any]]) -> tuple[Fields, list[Fields]]:
    """Return the fields that several bodies have in common, and the others of each body."""
    every = [_fields(body) for body in bodies]
    if len(every) < 2:
        return {}, every
    shared = every[0]
    for fields in every[1:]:
        shared = {name: value for name, value in shared.items() if _has(fields, name, value)}
    return shared, [_without(fields, shared) for fields in every]


def _has(fields: Fields, name: str, value: object) -> bool:
    """Return whether a field has this value, written in the same way: 1 is not true."""
    return name in fields and fields[name] == value and repr(fields[name]) == repr(value)


def _without(fields: Fields, others: Fields) -> Fields:
    return {name: value for name, value in fields.items() if name not in others}


def _fields(body: Mapping[str, Any]) -> Fields:
    """Return the fields of a new asset, attributes by their own names, the usual ones first."""
    fields = {**(body.get("attributes") or {}), **_without(body, {"attributes": None})}
    first = {name: fields[name] for name in _FIRST if name in fields}
    return _without({**first, **fields}, {"name": None})


def note(asset: Asset, new: NewAssets, width: int = _NO_LIMIT) -> str:
    """Return the plan of an asset in words; `width`: for the fields of a new one, in columns."""
    return "; ".join(_parts(asset, new, width))


def _parts(asset: Asset, new: NewAssets, width: int) -> list[str]:
    if asset.plan == "create":
        return [fitted(_texts(new.own[asset.name]), width)]
    if asset.plan == "in_doubt":
        how = "accepted, its answer was lost" if asset.outcome == ACCEPTED else "sent, no answer"
        return [f"in doubt since {asset.since.replace('T', ' ')[:16]}: {how}"]
    if asset.plan == "differs":
        changes = [_change(each, "not", "recorded,", " listed") for each in asset.changes]
        return [f"{'; '.join(changes)}: the service cannot update it"]
    if asset.plan == "update":
        changes = [_change(each, "not known", "->") for each in asset.changes]
        parts = [", ".join(changes) or "sent again as it is (force)", risk(asset)]
        return [part for part in parts if part]
    return ["recorded, not listed: left alone"]


def risk(asset: Asset) -> str:
    """Return the fields that an update drops if the service replaces, '' if there are none."""
    names = [field_name(each) for each in asset.unsent]
    if not names:
        return "" if asset.known else _UNKNOWN
    are, them = ("are", "them") if names[1:] else ("is", "it")
    return f"{printable(', '.join(names))} {are} known and not sent: send: complete keeps {them}"


def _change(change: Field, unknown: str, between: str, end: str = "") -> str:
    old = text(change["old"]) if "old" in change else unknown
    return printable(f"{field_name(change)} {old} {between} {text(change.get('new'))}{end}")


def field_name(field: Field) -> str:
    """Return what a field is called: an attribute by its own name, unless the envelope has that."""
    name = field["name"].removeprefix("attributes.")
    return field["name"] if name in ENVELOPE else name


def _texts(fields: Fields) -> list[str]:
    return [f"{printable(name)} {shown(value)}" for name, value in fields.items()]


def fitted(fields: list[str], width: int) -> str:
    """Return as many fields as fit into a width, then how many are left."""
    for number in range(len(fields), 1, -1):
        line = f"{', '.join(fields[:number])}{_more(len(fields) - number)}"
        if len(line) <= width:
            return line
    end = _more(len(fields) - 1)
    return f"{shortened(fields[0], width - len(end))}{end}" if fields else ""


def _more(number: int) -> str:
    return f", {number} more" if number > 0 else ""


def plan_lines(operation: Operation, assets: list[Asset], width: int) -> list[str]:
    """Return the plan of a list: a line of counts, then each asset that is not unchanged.

    `width`: in columns.
    """
    new = new_assets(assets)
    order = [*MARKS]
    marked = [asset for asset in assets if asset.result in MARKS]
    listed = sorted(marked, key=lambda asset: order.index(asset.result))
    longest = max((len(asset.name) for asset in listed), default=0)
    column = min(longest, width // 2)
    room = width - column - _AROUND_NAME
    counts = counted(tally(operation, assets, is_plan=True))
    lines = [f"{operation.noun}s: {counts or EMPTY}"]
    if new.shared:
        lines += _row(_SHARED, [fitted(_texts(new.shared), room)], column, room)
    for asset in listed[:_MOST_PLANNED]:
        begin = f"{MARKS[asset.result]} {shortened(asset.name, column)}"
        lines += _row(begin, _parts(asset, new, room), column, room)
    if len(listed) > _MOST_PLANNED:
        lines.append(f"  and {len(listed) - _MOST_PLANNED:,} more")
    return lines + commands(asset for asset in listed if asset.plan == "in_doubt")


def _row(begin: str, parts: list[str], column: int, room: int) -> list[str]:
    """Return the lines of an asset; only the first one has its mark and name.

    `column`: the width of names; `room`: what is left for the parts.
    """
    texts = ["; ".join(parts)]
    if len(texts[0]) > room:
        texts = [*chain.from_iterable(wrapped(part, room) for part in parts)]
    first, *others = texts or [""]
    indent = " " * (column + _AROUND_NAME)
    start = f"  {begin:{column + 2}}  {first}"
    return [start.rstrip(), *(f"{indent}{line}" for line in others)]


@dataclass(frozen=True)
class ListSummary:
    """A list of a run as the files show it."""

    resource: str
    heading: str
    counts: Mapping[str, int]
    shared: list[tuple[str, str]]  # the fields of all new assets, as text


@dataclass(frozen=True)
class Row:
    """An asset of a run as the files show it."""

    asset: Asset
    note: str = ""  # its plan in words


def lists_and_rows(run: Run, width: int = _NO_LIMIT) -> tuple[list[ListSummary], list[Row]]:
    """Return the lists of a run, and a row for each asset, problems and updates first.

    `width`: for the fields of a new asset, in columns.
    """
    lists = []
    rows = []
    for resource, counts in run.counts.items():
        assets = [asset for asset in run.assets if asset.resource == resource]
        new = new_assets(assets)
        shared = [(name, shown(value)) for name, value in new.shared.items()]
        lists.append(ListSummary(resource, f"{resource.replace('_', ' ')}s", counts, shared))
        for asset in assets:
            is_noted = asset.result in MARKS and run.state == PLANNED
            rows.append(Row(asset, note(asset, new, width)) if is_noted else Row(asset))
    rows.sort(key=_rank)
    return lists, rows


def _rank(row: Row) -> tuple[bool, int]:
    ranks = [*MARKS, UNCHANGED]
    result = row.asset.result
    return not row.asset.is_problem, ranks.index(result) if result in ranks else 0
