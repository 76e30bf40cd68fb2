# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Find what the columns of a CSV text hold, by the names in its header.

A column is named for the field that it holds, at any depth: `cpu`, `subnet.mask`,
`volumes[0].size_gb`.
"""

from __future__ import annotations

import re
from typing import Mapping, NamedTuple, Optional, Tuple, Union

from ...module_utils._errors import listing
from ...module_utils._fields import DATE_TIME
from ...module_utils._resources import KEYS, RESOURCES
from ...module_utils._resources.planning import ENVELOPE
from ...module_utils._secrets import printable
from ...module_utils._task.options import Option
from ...module_utils._task.validation import nearest
from .faults import Faults
from .layout import Layout
from .rows import Table

Path = Tuple[Union[str, int], ...]  # names of fields and places in lists

_TEXT: Option = {"type": "str"}
_DICT: Option = {"type": "dict"}
# The columns that are no attributes.
_FIELDS: dict[str, Option] = {
    **{name: _TEXT for name in ENVELOPE if name != "attributes"},
    **dict.fromkeys(("state", "base_url", "resource"), _TEXT),
    **dict.fromkeys(("asset", "extra_attributes"), _DICT),
    "since": {"type": DATE_TIME},
}
_SENT = {*ENVELOPE} - {"id", "attributes"}  # if the resource has them
_UNREAD = ("address", "by")  # what an exported ledger also has
_LONGEST_SHOWN = 60  # characters in a message
_PATH = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*|\[\d{1,6}\])*")
_STEP = re.compile(r"([A-Za-z_]\w*)|\[(\d+)\]")


class Heading(NamedTuple):
    """A cell of the header."""

    number: int  # of the column, from 1
    text: str  # as it is in the file
    name: str  # of the field, in our words


class Column(NamedTuple):
    """What a column holds in rows of one resource."""

    number: int
    label: str  # what messages call it
    path: Path  # where the value belongs
    option: Optional[Option]  # None if the resource has no such field


def read_header(table: Table, layout: Layout) -> list[Heading]:
    """Return the headings of the columns that are read."""
    headings = []
    for number, text in enumerate(table.header.cells, 1):
        is_blank = not text and not any(row.cell(number) for row in table.rows)
        name = layout.columns.get(text, text)
        if not is_blank and text not in layout.ignore and name not in _UNREAD:
            headings.append(Heading(number, text, name))
    return headings


def find_columns(headings: list[Heading], resource: str, is_sent: bool) -> list[Column]:
    """Return what the columns hold in rows of a resource that are sent, or else recorded."""
    columns = []
    for number, text, name in headings:
        if name in _FIELDS:
            path: Path = (name,)
            is_lacking = is_sent and name in _SENT and name not in RESOURCES[resource].options
            option = None if is_lacking else _FIELDS[name]
        else:
            path = ("attributes", *_parsed_path(name.removeprefix("attributes.")))
            option = _option_at(path, resource)
        columns.append(Column(number, f"column {number} ({_shortened(text)})", path, option))
    return columns


def find_header_faults(
    line: int, headings: list[Heading], columns: Mapping[str, list[Column]], faults: Faults
) -> None:
    """Find headings that are unknown, missing or there twice; `columns`: by resource."""
    names = [heading.name for heading in headings]
    fields = [*ENVELOPE, *_FIELDS]
    found: set[int] = set()
    for resource, of_resource in columns.items():
        fields += RESOURCES[resource].attributes
        found.update(column.number for column in of_resource if column.option)
        if names and KEYS[resource] not in names:
            faults.add(line, f"there is no column {KEYS[resource]}")
    unknown = []
    for index, (number, text, name) in enumerate(headings):
        near = nearest(name, fields)
        if name in names[:index]:
            faults.add_to_cell(line, f"column {number}: {_shortened(name)} is there twice")
        elif name in _FIELDS or number in found:
            continue
        elif near:
            problem = f"there is no {_shortened(name)} (did you mean {near}?)"
            faults.add_to_cell(line, f"column {number}: {problem}")
        else:
            unknown.append(f"{number} ({_shortened(text)})")
    if unknown:
        hint = "name the field of each with columns, or leave it out with ignore"
        faults.add(line, f"no field has the name of column {listing(unknown)}: {hint}")


def _shortened(text: str) -> str:
    """Return a name or heading for a message."""
    name = printable(text)
    return name if len(name) <= _LONGEST_SHOWN else f"{name[:_LONGEST_SHOWN]}..."


def _parsed_path(name: str) -> Path:
    """Return the path that a name such as `volumes[0].size_gb` spells, empty if it spells none."""
    if not _PATH.fullmatch(name):
        return ()
    return tuple(key or int(place) for key, place in _STEP.findall(name))


def _option_at(path: Path, resource: str) -> Option | None:
    """Return the option at a path, None if there is none."""
    attributes: Option = {"type": "dict", "options": RESOURCES[resource].attributes}
    option: Option = {"options": {"attributes": attributes}}
    for step in path:
        element = option.get("elements")
        if element and isinstance(step, int):
            option = {**option, "type": element, "elements": None}
        elif element or step not in option.get("options", {}):
            return None
        else:
            option = option["options"][step]
    return None if option is attributes else option
