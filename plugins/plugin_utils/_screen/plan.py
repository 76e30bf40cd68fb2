# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What the plan of a list says: what new assets share once, of each its own fields, of an update
what changes.

Nothing is left out without a word: a line that does not fit ends in how many fields are left.
"""

from __future__ import annotations

from typing import Any, Iterable, NamedTuple

from ...module_utils._call.operation import Operation
from ...module_utils._errors import ACCEPTED, message_of
from ...module_utils._secrets import printable
from .screen import EMPTY, NOT_LISTED, commands, counted, shortened, shown, standing, tally

_MARKS = {"in_doubt": "?", "differs": "!", "create": "+", "update": "~"}
_SHARED = "each:"  # stands for mark and name in the line of what all new assets share
_FIRST = ("ip", "team", "cpu", "vm_ram", "operating_system")  # what people look for
_MOST_PLANNED = 40  # assets
_LEAST = 10  # columns for a field
_NO_UPDATE = ": the service cannot update it"


class Part(NamedTuple):
    """A part of what is said of an asset: fields, of which as many are shown as there is room for,
    and words after.
    """

    fields: list[str]
    end: str = ""


def own_fields(bodies: Iterable[dict]) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Return what several new assets have in common, by the name of the field, and what each has of
    its own.
    """
    flat = [_fields(body) for body in bodies]
    shared = dict(flat[0]) if len(flat) > 1 else {}
    for fields in flat[1:]:
        shared = {
            name: value
            for name, value in shared.items()
            if name in fields and _is_same(fields[name], value)
        }
    return shared, [
        {name: value for name, value in fields.items() if name not in shared} for fields in flat
    ]


def _is_same(one: Any, other: Any) -> bool:
    return one == other and repr(one) == repr(
        other
    )  # 1 is no true; what is written in another order is not shared


def _fields(body: dict) -> dict[str, Any]:
    """Return the fields of a new asset, its attributes by their own names, what people look for
    first.
    """
    fields = {
        **(body.get("attributes") or {}),
        **{key: value for key, value in body.items() if key != "attributes"},
    }
    return {
        name: fields[name]
        for name in (*(name for name in _FIRST if name in fields), *fields)
        if name != "name"
    }


def parts_of(item: dict, own: dict[str, Any] | None = None) -> list[Part]:
    """Return what the plan says of an item of a list; `own`: the fields of a new asset that are to
    be said.
    """
    if own is not None:
        return [Part([f"{printable(name)} {shown(value)}" for name, value in own.items()])]
    if item["plan"] == "in_doubt":
        how = "accepted, its answer was lost" if item["outcome"] == ACCEPTED else "sent, no answer"
        since = item.get("since") or message_of(item).since
        return [Part([f"in doubt since {since.replace('T', ' ')[:16]}: {how}"])]
    changes = [
        (_short(each), *(shown(each[side]) if side in each else "none" for side in ("old", "new")))
        for each in item.get("changes", ())
    ]
    if item["plan"] == "differs":
        return [
            Part([f"{name} {old} recorded, {new} listed" for name, old, new in changes], _NO_UPDATE)
        ]
    unsent = [_short(each) for each in item.get("unsent", ())]
    keeps = f"known and not sent: send: complete keeps {'them' if unsent[1:] else 'it'}"
    changed = [f"{name} {old} -> {new}" for name, old, new in changes] or [
        "sent again as it is (force)"
    ]
    return [Part(changed), *([Part(unsent, f" {keeps}")] if unsent else [])]


def _short(change: dict) -> str:
    return printable(change["name"].removeprefix("attributes."))


def fitted(part: Part, width: int) -> str:
    """Return a part within a width: as many fields as fit, then how many are left."""
    for number in range(len(part.fields), 0, -1):
        left = len(part.fields) - number
        end = f"{f', {left} more' if left else ''}{part.end}"
        text = ", ".join(part.fields[:number])
        if len(text) + len(end) <= width or number == 1:
            return shortened(f"{shortened(text, max(width - len(end), _LEAST))}{end}", width)
    return shortened(part.end, width)


def note(item: dict, own: dict[str, Any] | None = None) -> str:
    """Return all that the plan says of an item, on one line."""
    return "; ".join(f"{', '.join(part.fields)}{part.end}" for part in parts_of(item, own))


def _texts(parts: list[Part], width: int) -> list[str]:
    """Return what is said of an asset on one line, or if there is no room for all of it on a line
    for each part.
    """
    whole = "; ".join(f"{', '.join(part.fields)}{part.end}" for part in parts)
    return [whole] if len(whole) <= width else [fitted(part, width) for part in parts]


def plan_lines(operation: Operation, result: dict, width: int) -> list[str]:
    """Return what a list would do: a line of counts, then each asset that is not unchanged.

    `result`: of all items; `width`: in columns.
    """
    items, not_listed = result["results"], result.get("not_listed", ())
    new = [item for item in items if item.get("plan") == "create"]
    shared, owns = own_fields(item["body"] for item in new)
    own_of = {item["item"]: own for item, own in zip(new, owns)}
    rows = [
        (mark, item["item"], parts_of(item, own_of.get(item["item"])))
        for plan, mark in _MARKS.items()
        for item in items
        if item.get("plan") == plan
    ]
    rows += [(".", name, [Part(["recorded, not listed: left alone"])]) for name in not_listed]
    column = min(max((len(name) for _mark, name, _parts in rows), default=0), width // 2)
    lines = _row(_SHARED, parts_of({}, shared), column, width) if shared else []
    for mark, name, parts in rows[:_MOST_PLANNED]:
        lines += _row(f"{mark} {shortened(name, column)}", parts, column, width)
    more = [f"  and {len(rows) - _MOST_PLANNED:,} more"] if len(rows) > _MOST_PLANNED else []
    standings = [
        *(standing(operation, item) for item in items),
        *(NOT_LISTED for _name in not_listed),
    ]
    counts = counted(tally(operation, standings, is_plan=True))
    asked = commands([item for item in items if item.get("plan") == "in_doubt"])
    return [f"{operation.noun}s: {counts or EMPTY}", *lines, *more, *asked]


def _row(begin: str, parts: list[Part], column: int, width: int) -> list[str]:
    """Return the lines of an asset; the later ones have its name left out."""
    left = column + 6
    first, *others = _texts(parts, width - left)
    return [f"  {begin:{left - 4}}  {first}".rstrip(), *(f"{'':{left}}{text}" for text in others)]
