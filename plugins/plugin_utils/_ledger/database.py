# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The interface of a database for a ledger, the same for SQLite and for PostgreSQL."""

from __future__ import annotations

from enum import IntEnum
from typing import Any, Iterable, Protocol, Sequence, Tuple, Union

Value = Union[str, int, float, None]
# SQL of the module `sql`, and the values in place of its `?`.
Statement = Tuple[str, Sequence[Value]]
Row = Tuple[Any, ...]  # one value for each column of the statement


class Write(IntEnum):
    """The purpose of a write, which decides how it is committed; each demands more than the last."""

    # An outcome: survives the death of this process.
    OUTCOME = 1
    # A further lease of an intent: on disk before the write returns.
    RENEWAL = 2
    # An intent, likewise.
    BEGIN = 3
    # All of it takes effect or nothing, after all other writers have committed.
    EDIT = 4


class Database(Protocol):
    """One connection to the database of a ledger; every method raises LedgerError."""

    # The ledger in messages, and in the mark of the other end of a move; without a password.
    where: str
    shown: str  # the ledger in commands, '' if its URL has a password
    # Lets the next row of the history follow rows that were copied; '' if it does so anyway.
    continue_numbers: str
    # Seconds for which a write is tried again while the database is away.
    tried_for: float

    def has_tables(self) -> bool:
        """Return whether there is a ledger."""

    def create(self, statements: Iterable[Statement]) -> None:
        """Create the tables in one transaction; no effect if another process was first."""

    def read(self, statements: Iterable[Statement]) -> list[list[Row]]:
        """Return the rows of statements, which read one snapshot."""

    def write(self, statements: Iterable[Statement], kind: Write) -> list[int]:
        """Execute statements in one transaction; return how many rows each of them changed.

        Write.EDIT has no effect if one of them changes no row. Raises LedgerAway if PostgreSQL may
        have committed the transaction all the same.
        """

    def close(self) -> None:
        """Close the connection."""
