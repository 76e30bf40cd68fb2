# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The interface of a database for a ledger, the same for SQLite and for PostgreSQL."""

from __future__ import annotations

from typing import Any, Iterable, Protocol, Sequence, Tuple, Union

from .entries import Kind, Use, Waiting

Value = Union[str, int, float, None]
# SQL, and the values in place of its `?`.
Statement = Tuple[str, Sequence[Value]]
Row = Tuple[Any, ...]  # one value for each column of the statement


class Database(Protocol):
    """One connection to the database of a ledger; every method raises LedgerError."""

    where: str  # the ledger in messages, without a password
    shown: str  # the ledger in commands, '' if its URL has a password
    file: str  # the real path of the SQLite file, '' on PostgreSQL
    # The SQL type of a column that numbers rows in the order of insertion.
    number: str
    # Keeps others from writing entries until the end of a transaction; '' if each one does so.
    lock_entries: str
    waiting: Waiting  # for other tasks

    def tables(self) -> set[str]:
        """Return the names of the ledger tables that exist."""

    def place(self) -> str:
        """Return the place of this ledger for the mark of another one: a file, or a schema."""

    def use(self) -> Use:
        """Return where this process uses the ledger file, an empty Use on PostgreSQL."""

    def is_older(self) -> bool:
        """Return whether the file lacks writes that it had when it was last used in this place."""

    def lacks_note(self) -> bool:
        """Return whether nothing tells how many writes the file had when it was last used here."""

    def check(self) -> None:
        """Check the file of a ledger, and prepare it unless it is open for reading only."""

    def create(self, statements: Iterable[Statement]) -> bool:
        """Create the tables in one transaction; return False if it had no effect."""

    def require_privileges(self) -> None:
        """Raise LedgerError if this user could not record a request."""

    def lock(self, number: int, wait: bool) -> bool:
        """Take the lock of this number, after a wait if need be; return False without `wait`."""

    def unlock(self, number: int) -> None:
        """Release the lock of this number, if it is held."""

    def execute(self, statement: str, values: Sequence[Value] = ()) -> list[Row]:
        """Return the rows of one statement."""

    def write(self, statements: Iterable[Statement], kind: Kind) -> list[int]:
        """Execute statements in one transaction; return how many rows each of them changed.

        Kind.EDIT has no effect if one of them changes no row. Raises Unanswered if PostgreSQL may
        have committed the transaction all the same.
        """

    def close(self) -> None:
        """Close the connection and release its locks."""
