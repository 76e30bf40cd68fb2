# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""How a CSV text is written: what separates cells, the names of columns, numbers and dates."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Mapping, Match, Sequence

from ...module_utils._errors import InvalidInput
from ...module_utils._fields import date_time
from ...module_utils._task.validation import shown

_COMMA_NUMBER = re.compile(r"[+-]?(\d+|\d{1,3}(\.\d{3})+)(,\d+)?([eE][+-]?\d+)?")
# The dates that spreadsheets write; no country writes the month first with points.
_TIME = r"(?: +(?P<hour>\d{1,2}):(?P<minute>\d\d)(?::(?P<second>\d\d))?)?"
_YEAR_FIRST = re.compile(rf"(?P<year>\d{{4}})/(?P<month>\d\d?)/(?P<day>\d\d?){_TIME}", re.ASCII)
_DAY_FIRST = re.compile(rf"(?P<day>\d\d?)\.(?P<month>\d\d?)\.(?P<year>\d{{4}}){_TIME}", re.ASCII)
_MAYBE_THOUSANDS = re.compile(r"[+-]?[1-9]\d{0,2}(\.\d{3})+")


@dataclass(frozen=True)
class Layout:
    """The layout that the user names; raises InvalidInput for what is none."""

    # Empty: the one that splits the header into the most cells.
    delimiter: str = ""
    decimal: str = ""  # empty: a point, unless 1.000 may be a thousand
    # Our names by the team's headings.
    columns: Mapping[str, str] = field(default_factory=dict)
    ignore: Sequence[str] = ()  # headings

    def __post_init__(self) -> None:
        if self.delimiter:
            require_delimiter(self.delimiter)
        if self.decimal not in ("", ",", "."):
            raise InvalidInput("decimal", f'must be "," or ".", not {shown(self.decimal)}')

    def with_decimal_point(self, number: str) -> str:
        """Return the text of a number with a decimal point; raise ValueError if it may mean two.

        A text that is no number may come back as it is.
        """
        is_comma_number = _COMMA_NUMBER.fullmatch(number)
        if self.decimal == ",":
            if not is_comma_number:
                raise ValueError(f"must be a number with a decimal comma, not {shown(number)}")
            return number.replace(".", "").replace(",", ".")
        if not self.decimal and self.delimiter != "," and _MAYBE_THOUSANDS.fullmatch(number):
            why = "may be thousands or have decimals"
            raise ValueError(f'{shown(number)} {why}; set decimal to "," or "."')
        if "," in number and is_comma_number:
            hint = 'if the comma begins decimals, set decimal to ","'
            raise ValueError(f"must be a number, not {shown(number)}; {hint}")
        return number

    def as_date_time(self, cell: str) -> str:
        """Return a date-time as ISO 8601 has it; raise ValueError for one that cannot be read.

        Spreadsheets write dates without a time, which are midnight, and never a zone: it is UTC.
        """
        year_first = _YEAR_FIRST.fullmatch(cell)
        day_first = _DAY_FIRST.fullmatch(cell)
        hint = ""
        found = None
        if year_first:
            found = year_first if self.decimal else None
            hint = '; if a spreadsheet wrote the file, set decimal to "," or "."'
        elif day_first:
            found = day_first if self.decimal == "," else None
            hint = '; if its numbers have decimal commas, set decimal to ","'
        try:
            return date_time(_iso(found) if found else cell)
        except ValueError as error:
            raise ValueError(f"{error}, not {shown(cell)}{'' if found else hint}") from None


def _iso(found: Match[str]) -> str:
    part = {name: int(digits or 0) for name, digits in found.groupdict().items()}
    date = "{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z"
    return date.format(**part)


def require_delimiter(delimiter: str) -> None:
    """Raise InvalidInput for what cannot separate cells."""
    if len(delimiter) != 1 or delimiter in '"\r\n ':
        raise InvalidInput("delimiter", f"must be one character such as ;, not {shown(delimiter)}")
