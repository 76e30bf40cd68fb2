# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Read the cells of a row as the values of an asset."""

from __future__ import annotations

import json
from typing import Dict, Union

from ...module_utils._fields import DATE_TIME, dotted
from ...module_utils._http import strict_json
from ...module_utils._task.options import Option
from ...module_utils._task.validation import converted, shown
from .columns import Column, Path
from .faults import Faults
from .layout import Layout
from .rows import Row

Values = Dict[str, object]  # by the names of fields
Places = Dict[Union[str, int], object]  # values by the steps of their paths


def read_cells(row: Row, columns: list[Column], layout: Layout, faults: Faults) -> Values:
    """Return the values of a row; an empty cell is not given."""
    filled = [column for column in columns if row.cell(column.number)]
    _find_gaps(row, filled, faults)
    values: Places = {}
    for column in filled:
        above = _dict_above(values, column.path)
        last = column.path[-1]
        if column.option is None:
            problem = "this row's resource has no such field: empty the cell, or ignore the column"
            faults.add_to_cell(row.line, f"{column.label}: {problem}")
        elif above is None or last in above:
            faults.add_to_cell(row.line, f"{column.label}: another column has a part of it")
        else:
            above[last] = _converted(row, column, column.option, layout, faults)
    return {str(name): _with_lists(value) for name, value in values.items()}


def _find_gaps(row: Row, filled: list[Column], faults: Faults) -> None:
    """Find the elements of lists that have cells although the element before has none."""
    reached: dict[Path, Column] = {}
    for column in filled:
        for end in range(1, len(column.path) + 1):
            reached[column.path[:end]] = column
    for path, column in reached.items():
        *above, last = path
        if isinstance(last, int) and last > 0 and (*above, last - 1) not in reached:
            missing = dotted((*above[1:], last - 1))
            faults.add_to_cell(row.line, f"{column.label}: {missing} is not given")


def _dict_above(values: Places, path: Path) -> Places | None:
    """Return the dict that takes the value of a path, None if another value is in its way."""
    inner = values
    for step in path[:-1]:
        below = inner.setdefault(step, {})
        if not isinstance(below, dict):
            return None
        inner = below
    return inner


def _converted(row: Row, column: Column, option: Option, layout: Layout, faults: Faults) -> object:
    """Return a cell in the type of its option."""
    cell = row.cell(column.number)
    value: object = cell
    try:
        value = _decoded(cell, option)
        if value is cell and option["type"] == "float":
            value = layout.with_decimal_point(cell)
        elif value is cell and option["type"] is DATE_TIME:
            value = layout.as_date_time(cell)
        value, problems = converted(option, value, str(column.path[-1]), column.label)
    except ValueError as error:
        problems = [f"{column.label}: {error}"]
    for problem in problems:
        faults.add_to_cell(row.line, problem, shown(value))
    return value


def _decoded(cell: str, option: Option) -> object:
    """Return what a cell says as JSON if it is JSON, otherwise its text; raise ValueError."""
    starts = ("[", "{") if option["type"] in ("list", "dict") else ('"',)
    if not cell.startswith(starts):
        return cell
    try:
        return strict_json.decode(cell)
    except json.JSONDecodeError:
        return cell


def _with_lists(value: object) -> object:
    """Return a value with a list in place of each dict whose keys are places."""
    if not isinstance(value, dict):
        return value
    inner = {step: _with_lists(item) for step, item in value.items()}
    if any(isinstance(step, int) for step in inner):
        return [inner[step] for step in sorted(inner)]
    return inner
