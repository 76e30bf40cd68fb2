# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Read CSV text as rows of cells."""

from __future__ import annotations

import csv
import io
import re
from typing import NamedTuple

from ...module_utils._secrets import printable
from .faults import Faults

_DELIMITERS = ",;\t|"
_LONGEST_CELL = 1 << 24  # characters
# The first line that some spreadsheet programs write and read.
_NAMED_DELIMITER = re.compile(r'"?sep=([^"\r\n ])\1*"?\s*[\r\n]')
# How workbooks begin; bytes that are not UTF-8 are surrogates (PEP 383).
_WORKBOOKS = ("PK\x03\x04", "\udcd0\udccf\x11")
_SAVE = "Save the sheet as CSV in UTF-8"


class Row(NamedTuple):
    """A row that is not empty."""

    line: int  # the number of its first line
    cells: list[str]  # without the blanks around them

    def cell(self, number: int) -> str:
        """Return the cell of a column; columns count from 1."""
        return self.cells[number - 1] if number <= len(self.cells) else ""


class Table(NamedTuple):
    """The rows of a text."""

    delimiter: str
    header: Row
    rows: list[Row]


def read_table(text: str, delimiter: str, faults: Faults) -> Table:
    """Return the rows; `delimiter`: empty to find it out."""
    csv.field_size_limit(_LONGEST_CELL)
    text = text.removeprefix("\ufeff")
    named = _NAMED_DELIMITER.match(text)
    if not delimiter:
        delimiter = named[1] if named else _likely_delimiter(text)
    header, *rows = _rows(text, delimiter, faults)[1 if named else 0 :] or [Row(1, [])]
    return Table(delimiter, header, rows)


def _rows(text: str, delimiter: str, faults: Faults) -> list[Row]:
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    rows = []
    line = 1
    try:
        for cells in reader:
            row = Row(line, [cell.strip() for cell in cells])
            if any(row.cells):
                rows.append(row)
            line = reader.line_num + 1
    except csv.Error as error:
        # The error quotes the delimiter.
        faults.add(line, f"it is not CSV ({printable(str(error))})")
    return rows


def _likely_delimiter(text: str) -> str:
    """Return the delimiter that splits the first line into the most cells."""
    first_line = text.replace("\r", "\n").partition("\n")[0]

    def number_of_cells(delimiter: str) -> int:
        return len(next(csv.reader([first_line], delimiter=delimiter), []))

    return max(_DELIMITERS, key=number_of_cells)


def why_unreadable(text: str) -> str:
    """Return why a text is not CSV in UTF-8, and what to do; empty if it may be.

    `text`: with surrogates for bytes that are not UTF-8.
    """
    if text.startswith(_WORKBOOKS):
        return f"is a workbook. {_SAVE}"
    if "\0" in text:
        return f"is UTF-16, which some programs call Unicode text. {_SAVE}"
    try:
        text.encode()
    except UnicodeEncodeError as error:
        line = text.count("\n", 0, error.start) + 1
        return f"is not UTF-8 in line {line}. {_SAVE}, or run: iconv -f WINDOWS-1252 -t UTF-8"
    return ""
