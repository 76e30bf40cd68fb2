# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Find what the columns of a CSV text hold, by the names in its header.

A column is named for the field that it holds, at any depth: `cpu`, `subnet.mask`,
`volumes[0].size_gb`.
"""

from __future__ import annotations

import re
from typing import Any, Dict, Iterable, NamedTuple, Optional, Tuple, Union

from ...module_utils._fields import DATE_TIME
from ...module_utils._resources import RESOURCES
from ...module_utils._resources.planning import ENVELOPE
from ...module_utils._secrets import printable
from ...module_utils._task.validation import nearest
from .faults import Faults

Path = Tuple[Union[str, int], ...]  # names of fields and places in lists
Option = Dict[str, Any]  # its argument spec

_TEXT: Option = {"type": "str"}
_DICT: Option = {"type": "dict"}
# The columns that are no attributes.
_FIELDS: dict[str, Option] = {
    **{name: _TEXT for name in ENVELOPE if name != "attributes"},
    **dict.fromkeys(("state", "base_url", "resource"), _TEXT),
    **dict.fromkeys(("asset", "extra_attributes"), _DICT),
    "since": {"type": DATE_TIME},
}
_UNREAD = ("address", "by")  # what an exported ledger also has
_PATH = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*|\[\d{1,6}\])*")
_STEP = re.compile(r"([A-Za-z_]\w*)|\[(\d+)\]")


class Column(NamedTuple):
    """A column that is read."""

    number: int  # from 1
    name: str
    path: Path  # where the value belongs
    option: Optional[Option]  # None if the resource has no such field

    @property
    def label(self) -> str:
        """Return what messages call the column."""
        return f"column {self.number} ({self.name})"


def find_columns(
    header: list[str], resources: Iterable[str], faults: Faults
) -> dict[str, list[Column]]:
    """Return the columns that are read, by the resource of a row."""
    columns: dict[str, list[Column]] = {resource: [] for resource in resources}
    for number, name in enumerate(header, 1):
        of_each = {resource: _column(number, name, resource) for resource in columns}
        if name in header[: number - 1]:
            faults.add_to_cell(1, f"column {number}: {printable(name)} is there twice")
        elif name in _UNREAD:
            continue
        elif not any(column.option for column in of_each.values()):
            faults.add_to_cell(1, f"column {number}: {_unknown(name, columns)}")
        for resource, column in of_each.items():
            columns[resource].append(column)
    return columns


def _unknown(name: str, resources: Iterable[str]) -> str:
    """Return what is wrong with a name that no field has."""
    names = [*ENVELOPE, *_FIELDS]
    for resource in resources:
        names += RESOURCES[resource].attributes
    near = nearest(name, names)
    hint = "attributes go by their names, others into extra_attributes"
    if near:
        hint = f"did you mean {near}?"
    return f"there is no {printable(name) or 'empty name'} ({hint})"


def _column(number: int, name: str, resource: str) -> Column:
    """Return the column of this name in rows of a resource."""
    if name in _FIELDS:
        return Column(number, name, (name,), _FIELDS[name])
    path = _parsed_path(name.removeprefix("attributes."))
    option = _option_at(path, RESOURCES[resource].attributes) if path else None
    return Column(number, name, ("attributes", *path), option)


def _parsed_path(name: str) -> Path:
    """Return the path that a name such as `volumes[0].size_gb` spells, empty if it spells none."""
    if not _PATH.fullmatch(name):
        return ()
    return tuple(key or int(place) for key, place in _STEP.findall(name))


def _option_at(path: Path, attributes: Option) -> Option | None:
    """Return the option at a path, None if there is none."""
    option: Option = {"type": "dict", "options": attributes}
    for step in path:
        is_list = option.get("elements")
        if is_list and isinstance(step, int):
            option = {**option, "type": is_list, "elements": None}
        elif is_list or step not in option.get("options", {}):
            return None
        else:
            option = option["options"][step]
    return option
