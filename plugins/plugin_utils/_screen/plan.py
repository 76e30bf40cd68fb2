# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The plan of a list: what new assets share once, the other fields of each, what an update changes.

Nothing is left out without a word: a line that does not fit ends in how many fields are left.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Iterable, Mapping, NamedTuple

from ...module_utils._call.operation import Operation
from ...module_utils._errors import ACCEPTED
from ...module_utils._secrets import printable
from .assets import NOT_LISTED, UNCHANGED, Asset, Field, Run, counted, tally
from .screen import EMPTY, commands
from .text import shortened, shown

MARKS = {"in doubt": "?", "differs": "!", "to create": "+", "to update": "~", NOT_LISTED: "."}
_SHARED = "each:"  # stands for mark and name in the line of what all new assets share
_FIRST = ("ip", "team", "cpu", "vm_ram", "operating_system")  # what people look for
_MOST_PLANNED = 40  # assets
_LEAST = 10  # columns for a field
_NO_UPDATE = ": the service cannot update it"
Fields = Mapping[str, object]


class Part(NamedTuple):
    """Fields, of which as many are shown as there is room for, and words after them."""

    fields: list[str]
    end: str = ""

    def __str__(self) -> str:
        return f"{', '.join(self.fields)}{self.end}"


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
    shared = {
        name: value
        for name, value in every[0].items()
        if all(name in fields and _is_same(fields[name], value) for fields in every)
    }
    return shared, [_without(fields, shared) for fields in every]


def _is_same(one: object, other: object) -> bool:
    """Whether two values are written in the same way, too: 1 is not true."""
    return one == other and repr(one) == repr(other)


def _without(fields: Fields, others: Fields) -> Fields:
    return {name: value for name, value in fields.items() if name not in others}


def _fields(body: Mapping[str, Any]) -> Fields:
    """Return the fields of a new asset, attributes by their own names, the usual ones first."""
    fields = {**(body.get("attributes") or {}), **_without(body, {"attributes": None})}
    first = {name: fields[name] for name in _FIRST if name in fields}
    return _without({**first, **fields}, {"name": None})


def note(asset: Asset, new: NewAssets) -> str:
    """Return all that the plan says of an asset, on one line."""
    return "; ".join(map(str, _parts(asset, new)))


def _parts(asset: Asset, new: NewAssets) -> list[Part]:
    if asset.plan == "create":
        return [_of_fields(new.own[asset.name])]
    if asset.plan == "in_doubt":
        return [_of_doubt(asset)]
    if asset.plan == "differs":
        changes = [_change(each, "{} {} recorded, {} listed") for each in asset.changes]
        return [Part(changes, _NO_UPDATE)]
    if asset.plan == "update":
        return _of_update(asset)
    return [Part(["recorded, not listed: left alone"])]


def _of_fields(fields: Fields) -> Part:
    return Part([f"{printable(name)} {shown(value)}" for name, value in fields.items()])


def _of_doubt(asset: Asset) -> Part:
    how = "accepted, its answer was lost" if asset.outcome == ACCEPTED else "sent, no answer"
    return Part([f"in doubt since {asset.since.replace('T', ' ')[:16]}: {how}"])


def _of_update(asset: Asset) -> list[Part]:
    changes = [_change(each, "{} {} -> {}") for each in asset.changes]
    parts = [Part(changes or ["sent again as it is (force)"])]
    unsent = [_name(each) for each in asset.unsent]
    if unsent:
        them = "them" if unsent[1:] else "it"
        parts.append(Part(unsent, f" known and not sent: send: complete keeps {them}"))
    return parts


def _change(change: Field, template: str) -> str:
    old = shown(change["old"]) if "old" in change else "none"
    new = shown(change["new"]) if "new" in change else "none"
    return template.format(_name(change), old, new)


def _name(field: Field) -> str:
    return printable(field["name"].removeprefix("attributes."))


def fitted(part: Part, width: int) -> str:
    """Return a part within a width: as many fields as fit, then how many are left."""
    for number in range(len(part.fields), 0, -1):
        left = len(part.fields) - number
        end = f", {left} more{part.end}" if left else part.end
        text = ", ".join(part.fields[:number])
        if len(text) + len(end) <= width or number == 1:
            return shortened(f"{shortened(text, max(width - len(end), _LEAST))}{end}", width)
    return shortened(part.end, width)


def _texts(parts: list[Part], width: int) -> list[str]:
    """Return the parts on one line, or on a line for each if there is no room for all of them."""
    whole = "; ".join(map(str, parts))
    return [whole] if len(whole) <= width else [fitted(part, width) for part in parts]


def plan_lines(operation: Operation, assets: list[Asset], width: int) -> list[str]:
    """Return what a list would do: a line of counts, then each asset that is not unchanged.

    `width`: in columns.
    """
    new = new_assets(assets)
    told = [asset for mark in MARKS for asset in assets if asset.result == mark]
    column = min(max((len(asset.name) for asset in told), default=0), width // 2)
    counts = counted(tally(operation, assets, is_plan=True))
    lines = [f"{operation.noun}s: {counts or EMPTY}"]
    if new.shared:
        lines += _row(_SHARED, [_of_fields(new.shared)], column, width)
    for asset in told[:_MOST_PLANNED]:
        begin = f"{MARKS[asset.result]} {shortened(asset.name, column)}"
        lines += _row(begin, _parts(asset, new), column, width)
    if len(told) > _MOST_PLANNED:
        lines.append(f"  and {len(told) - _MOST_PLANNED:,} more")
    return lines + commands(asset for asset in told if asset.plan == "in_doubt")


def _row(begin: str, parts: list[Part], column: int, width: int) -> list[str]:
    """Return the lines of an asset; the later ones have its name left out."""
    left = column + 6
    first, *others = _texts(parts, width - left)
    return [f"  {begin:{left - 4}}  {first}".rstrip(), *(f"{'':{left}}{text}" for text in others)]


@dataclass(frozen=True)
class ListTold:
    """A list of a run as the files tell it."""

    resource: str
    heading: str
    counts: Mapping[str, int]
    shared: list[tuple[str, str]]  # the fields of all new assets, as text


@dataclass(frozen=True)
class Row:
    """An asset of a run as the files tell it."""

    asset: Asset
    note: str  # what the plan says of it


def told(run: Run) -> tuple[list[ListTold], list[Row]]:
    """Return the lists of a run, and a row for each asset, problems first."""
    lists, rows = [], []
    for resource, counts in run.counts.items():
        assets = [asset for asset in run.assets if asset.resource == resource]
        new = new_assets(assets)
        shared = [(name, shown(value)) for name, value in new.shared.items()]
        lists.append(ListTold(resource, f"{resource.replace('_', ' ')}s", counts, shared))
        for asset in assets:
            is_noted = asset.plan not in ("", "keep")
            rows.append(Row(asset, note(asset, new) if is_noted else ""))
    rows.sort(key=lambda row: (not row.asset.is_problem, row.asset.result == UNCHANGED))
    return lists, rows
