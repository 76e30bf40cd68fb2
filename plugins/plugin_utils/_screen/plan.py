# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The plan of a list: the fields that all new assets share, those of each asset, the changes."""

from __future__ import annotations

import json
from typing import Iterable, Mapping

from ...module_utils._call.policy import Resource
from ...module_utils._errors import ACCEPTED, listing
from ...module_utils._result import Json, Result
from ...module_utils._secrets import printable
from .rows import (
    ADOPT,
    CREATE,
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

_MOST_PLANNED = 40  # assets
_LONGEST_NAME = 24  # columns; beside longer names the fields are not aligned
_SHORT, _GLUE = 40, "\N{NO-BREAK SPACE}"  # a field of so many columns stays on one line
_GONE = (
    "{:,} recorded and not in this list: {}. The run leaves them alone. To remove one, delete it on"
    " the service, then forget its entry."
)
Fields = Mapping[str, str]


def plan_lines(resource: Resource, rows: list[Result], width: int) -> list[str]:
    """Return the plan of a list: a line of counts, then each asset that is not unchanged.

    `width`: in columns; only a word, such as a name, that is longer exceeds it.
    """
    listed = [row for row in by_need(rows) if row.word not in (NOT_LISTED, UNCHANGED)]
    shared = shared_fields(rows)
    counts = tally(row for row in rows if row.word != NOT_LISTED)
    gone = [str(row.item) for row in rows if row.word == NOT_LISTED]
    names = [printable(str(row.item)) for row in listed]
    longest = max(map(len, names), default=0)
    column = longest if longest <= _LONGEST_NAME else 0
    lines = [f"{resource.noun}s: {counted(counts)}"]
    if shared:
        lines += wrapped(f"{'each:':{column + 2}}  {_listing(shared)}", width, "  ", "      ")
    for name, row in zip(names, listed[:_MOST_PLANNED]):
        told = f"{name:{column}}  {_told(row, shared)}"
        lines += wrapped(told, width, f"  {mark(row)} ", "      ")
    if len(listed) > _MOST_PLANNED:
        lines.append(f"  and {len(listed) - _MOST_PLANNED:,} more")
    if gone:
        told = _GONE.format(len(gone), listing(gone))
        lines += wrapped(told, width, f"  {MARKS[NOT_LISTED]} ", "      ")
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
    return {name: text(value) for name, value in fields.items() if name not in hidden}


def _told(row: Result, shared: Fields) -> str:
    """Return the plan of an asset in words."""
    if row.plan in (CREATE, ADOPT):
        return _listing(own_fields(row, shared))
    if row.plan == "in_flight":
        return row.msg.text
    if row.plan == "in_doubt":
        how = "accepted, its answer was lost" if row.outcome == ACCEPTED else "sent, no answer"
        return f"in doubt since {row.since.replace('T', ' ')[:16]}: {how}"
    changes = [
        f"{each['name']} {text(each['old']) if 'old' in each else 'not known'} ->"
        f" {text(each.get('new'))}"
        for each in row.changes
    ]
    told = ", ".join(changes) or "sent again, because the result of the last update is unknown"
    if row.plan == UPDATE:
        return ". ".join(filter(None, [told, row.msg.text]))
    return f"{told}: the service cannot update it"


def _listing(fields: Fields) -> str:
    told = [f"{name} {value}" for name, value in fields.items()]
    return ", ".join(each.replace(" ", _GLUE) if len(each) <= _SHORT else each for each in told)


def text(value: object) -> str:
    """Return a value as text: JSON, and a string as it is."""
    return value if value and isinstance(value, str) else json.dumps(value, ensure_ascii=False)
