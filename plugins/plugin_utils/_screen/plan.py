# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The plan of a list: the fields that all new assets share, those of each asset, the changes.

A line that does not fit ends in the number of fields that are left.
"""

from __future__ import annotations

import json
from typing import Iterable, Mapping

from ...module_utils._call.policy import Resource
from ...module_utils._errors import ACCEPTED
from ...module_utils._result import Json, Result
from ...module_utils._secrets import printable
from .rows import (
    ADOPT,
    CREATE,
    EMPTY,
    MARKS,
    NOT_LISTED,
    UNCHANGED,
    UPDATE,
    by_need,
    counted,
    mark,
    tally,
)
from .screen import command_lines, wrapped

# The fields that people look for.
_FIRST = ("ip", "team", "cpu", "vm_ram", "operating_system")
_MOST_PLANNED = 40  # assets
_AROUND_NAME = 6  # columns, for the mark and for spaces
Fields = Mapping[str, str]


def plan_lines(resource: Resource, rows: list[Result], width: int) -> list[str]:
    """Return the plan of a list: a line of counts, then each asset that is not unchanged.

    `width`: in columns.
    """
    listed = [row for row in by_need(rows) if row.word not in (NOT_LISTED, UNCHANGED)]
    shared = shared_fields(rows)
    column = min(max((len(str(row.item)) for row in listed), default=0), width // 2)
    room = width - column - _AROUND_NAME
    counts = tally(rows)
    lines = [f"{resource.noun}s: {counted(counts) or EMPTY}"]
    if shared:
        lines += _row("each:", _shown_fields(shared, room), column, room)
    for row in listed[:_MOST_PLANNED]:
        begin = f"{mark(row)} {_without_middle(str(row.item), column)}"
        lines += _row(begin, _parts(row, shared, room), column, room)
    if len(listed) > _MOST_PLANNED:
        lines.append(f"  and {len(listed) - _MOST_PLANNED:,} more")
    if NOT_LISTED in counts:
        lines.append(f"  {MARKS[NOT_LISTED]} {counts[NOT_LISTED]:,} recorded and not listed")
    return lines + command_lines(listed)


def shared_fields(rows: Iterable[Result]) -> Fields:
    """Return the fields that several new assets have in common."""
    new = [own_fields(row, {}) for row in rows if row.plan == CREATE]
    if len(new) < 2:
        return {}
    every = set.intersection(*(set(fields.items()) for fields in new))
    return {name: value for name, value in new[0].items() if (name, value) in every}


def own_fields(row: Result, shared: Fields) -> Fields:
    """Return the fields of a body, attributes by their own names; of new assets, those not shared."""
    body: Json = row.body or {}
    fields = {**(body.get("attributes") or {}), **body}
    hidden = ("name", "attributes", *(shared if row.plan == CREATE else ()))
    order = [name for name in (*_FIRST, *fields) if name not in hidden]
    return {name: printable(text(fields[name])) for name in order if name in fields}


def _parts(row: Result, shared: Fields, room: int) -> list[str]:
    """Return the plan of an asset in words."""
    if row.plan in (CREATE, ADOPT):
        return _shown_fields(own_fields(row, shared), room)
    if row.plan == "in_doubt":
        how = "accepted, its answer was lost" if row.outcome == ACCEPTED else "sent, no answer"
        return [f"in doubt since {row.since.replace('T', ' ')[:16]}: {how}"]
    changes = [
        f"{each['name']} {text(each['old']) if 'old' in each else 'not known'} ->"
        f" {text(each.get('new'))}"
        for each in row.changes
    ]
    told = printable(", ".join(changes)) or "sent again as it is (force)"
    if row.plan == UPDATE:
        return [told, printable(row.msg.text)]
    return [f"{told}: the service cannot update it"]


def _shown_fields(fields: Fields, room: int) -> list[str]:
    """Return as many fields as fit and how many are left, then the volumes as a whole."""
    texts = {name: f"{printable(name)} {value}" for name, value in fields.items()}
    volumes = texts.pop("volumes", "")
    told = [*texts.values()]
    line = ", ".join(told)
    while len(line) > room and len(told) > 1:
        told.pop()
        line = f"{', '.join(told)}, {len(texts) - len(told)} more"
    return [line, volumes]


def _row(begin: str, parts: list[str], column: int, room: int) -> list[str]:
    """Return the lines of an asset; only the first one has its mark and name.

    `column`: the width of names; `room`: what is left for the parts.
    """
    texts = ["; ".join(filter(None, parts))]
    if len(texts[0]) > room:
        texts = [line for part in parts for line in wrapped(part, room)]
    first, *others = texts
    indent = " " * (column + _AROUND_NAME)
    start = f"  {begin:{column + 2}}  {first}"
    return [start.rstrip(), *(f"{indent}{line}" for line in others)]


def text(value: object) -> str:
    """Return a value as text: JSON, and a string as it is."""
    return value if value and isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _without_middle(name: str, width: int) -> str:
    """Return a printable name, with an ellipsis in its middle if it is longer than `width`."""
    half = (width - 3) // 2
    return printable(name if len(name) <= width else f"{name[:half]}...{name[half + 3 - width :]}")
