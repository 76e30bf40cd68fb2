# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Everything that is wrong with a CSV text, each cause once, by line and column."""

from __future__ import annotations

from typing import NamedTuple

from ...module_utils._errors import InvalidInput, listing, quantity

_LONGEST = 2_300  # characters of a message
_LONGEST_CAUSE = 500  # a name in a cell may have any length


def _shortened(cause: str) -> str:
    return cause if len(cause) <= _LONGEST_CAUSE else f"{cause[:_LONGEST_CAUSE]}..."


class _Cause(NamedTuple):
    """A cause, with the message about its first line."""

    message: str
    further_lines: list[int]

    def __str__(self) -> str:
        lines = [str(line) for line in self.further_lines]
        if not lines:
            return self.message
        return f"{self.message} (also in line{'s' if lines[1:] else ''} {listing(lines)})"


class Faults:
    """Collects faults, so that one message has all of them."""

    def __init__(self) -> None:
        self._causes: dict[str, _Cause] = {}

    def add(self, line: int, problem: str) -> None:
        """Add a fault of a row."""
        self._add_cause(line, f"line {line}: {problem}", problem)

    def add_to_cell(self, line: int, problem: str, value: str = "") -> None:
        """Add a fault of a cell; `problem`: such as `column 3 (cpu): must be a number, not "x"`.

        Problems that differ only in the value have one cause.
        """
        cause = problem.replace(value, "") if value else problem
        self._add_cause(line, f"line {line}, {problem}", cause)

    def _add_cause(self, line: int, message: str, cause: str) -> None:
        if cause in self._causes:
            self._causes[cause].further_lines.append(line)
        else:
            self._causes[cause] = _Cause(message, [])

    def raise_if_any(self) -> None:
        """Raise InvalidInput if there are faults."""
        if not self._causes:
            return
        shown: list[str] = []
        for cause in self._causes.values():
            shown.append(_shortened(str(cause)))
            if sum(map(len, shown)) > _LONGEST:
                shown[-1] = f"and {quantity(len(self._causes) - len(shown) + 1, 'more cause')}"
                break
        raise InvalidInput("from_csv", "; ".join(shown))
