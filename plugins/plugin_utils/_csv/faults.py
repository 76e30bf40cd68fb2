# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Everything that is wrong with a CSV text, by line and column."""

from __future__ import annotations

from ...module_utils._errors import MAX_FAULTS, InvalidInput, listing


class Faults:
    """Collects faults, so that one message has all of them."""

    def __init__(self) -> None:
        self._messages: list[str] = []

    def add(self, line: int, problem: str) -> None:
        """Add a fault of a row."""
        self._messages.append(f"line {line}: {problem}")

    def add_to_cell(self, line: int, problem: str) -> None:
        """Add a fault of a cell; `problem`: such as `column 3 (cpu): must be a number`."""
        self._messages.append(f"line {line}, {problem}")

    def raise_if_any(self) -> None:
        """Raise InvalidInput if there are faults."""
        if self._messages:
            raise InvalidInput("from_csv", listing(self._messages, MAX_FAULTS, "; "))
