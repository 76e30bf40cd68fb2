# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Read CSV text as rows of cells."""

from __future__ import annotations

import csv
import io
from typing import NamedTuple

from .faults import Faults

_DELIMITERS = ",;\t|"
_LONGEST_CELL = 1 << 24  # characters


class Row(NamedTuple):
    """A row that is not empty."""

    line: int  # the number of its first line
    cells: list[str]  # without the blanks around them

    def cell(self, number: int) -> str:
        """Return the cell of a column; columns count from 1."""
        return self.cells[number - 1] if number <= len(self.cells) else ""


def read_rows(text: str, delimiter: str, faults: Faults) -> list[Row]:
    """Return the rows, the header first; `delimiter`: empty to find it out."""
    text = text.removeprefix("\ufeff")
    csv.field_size_limit(_LONGEST_CELL)
    file = io.StringIO(text, newline="")
    reader = csv.reader(file, delimiter=delimiter or _likely_delimiter(text), strict=True)
    rows = []
    line = 1
    try:
        for cells in reader:
            row = Row(line, [cell.strip() for cell in cells])
            if any(row.cells):
                rows.append(row)
            line = reader.line_num + 1
    except csv.Error as error:
        faults.add(line, f"it is not CSV ({error})")
    return rows


def _likely_delimiter(text: str) -> str:
    """Return the delimiter that splits the first line into the most cells."""
    first_line = text.replace("\r", "\n").partition("\n")[0]

    def number_of_cells(delimiter: str) -> int:
        for cells in csv.reader([first_line], delimiter=delimiter):
            return len(cells)
        return 0

    return max(_DELIMITERS, key=number_of_cells)
