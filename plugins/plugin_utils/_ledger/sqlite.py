# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The ledger in one SQLite file, with a rollback journal: after each commit the file is complete."""

from __future__ import annotations

import os
import sqlite3
from contextlib import contextmanager, suppress
from functools import lru_cache
from typing import Iterator
from urllib.parse import quote

from . import sql
from .entries import LedgerError, Write
from .sql import Row, Statement

# Seconds to wait for other writers, each of which takes milliseconds.
_BUSY_TIMEOUT = 60
# UnicodeError: a lone surrogate, which is no UTF-8.
_ERRORS = (sqlite3.Error, OSError, UnicodeError)
# What to do, by a part of SQLite's text.
_ADVICE = {
    "database is locked": (
        f"others have written to it, or have read it in one transaction, for {_BUSY_TIMEOUT} s."
        " When you run it again, use fewer forks, or end what reads it"
    ),
    "not a database": (
        "it is no ledger, and is left as it is. Give the path of a ledger, or of a new one; if this"
        " was one, restore it from a backup"
    ),
}
_OURS = {*sql.TABLES, f"{sql.HISTORY}_of"}
# Without the tables and indexes of SQLite itself.
_SCHEMA = "SELECT name FROM sqlite_master WHERE name NOT GLOB 'sqlite_*'"


class SqliteDatabase:
    """One connection to the file; attributes and methods are those of PostgresDatabase."""

    now = "CAST(strftime('%s', 'now') AS INTEGER)"
    continue_numbers = ""
    tried_for = 0  # seconds: SQLite rolls back what it does not commit

    def __init__(self, path: str) -> None:
        """Open the file at an absolute path, if there is one; raise LedgerError."""
        self.where = self.shown = path
        with self._translated():
            if os.path.lexists(path) and not os.path.isfile(path):
                raise self._failure(
                    "is not a regular file; give the path of a ledger, or of a new one"
                )
            self._open()

    def _open(self) -> None:
        """Connect to the file; to an empty database in place of one that does not exist.

        Raises LedgerError for a file with other tables, views or triggers.
        """
        self.identity = identity(self.where)
        self._connection = sqlite3.connect(
            f"file:{quote(os.fsencode(self.where))}?mode=rw" if self.identity else ":memory:",
            timeout=_BUSY_TIMEOUT,
            isolation_level=None,
            check_same_thread=False,
            uri=True,
        )
        (rows,) = self.read([(_SCHEMA, ())])
        self._tables = {name for (name,) in rows}
        others = sorted(self._tables - _OURS)
        if others:
            raise self._failure(
                f"it is a database with something else in it ({others[0]}), so it is not used. Give"
                " the path of a ledger, or of a new one"
            )

    def has_tables(self) -> bool:
        """Return whether this is a ledger, not a new file."""
        return sql.LEDGER in self._tables

    def create(self, statements: list[Statement]) -> None:
        """Create the file, which only its owner may read, and the tables, unless they are there."""
        self.close()
        with self._translated():
            os.close(os.open(self.where, os.O_CREAT | os.O_RDWR, 0o600))
            self._open()
        self.write(statements, Write.OUTCOME)
        self._tables = _OURS

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()

    def read(self, statements: list[Statement]) -> list[list[Row]]:
        """Return the rows of statements, which read one snapshot."""
        with self._transaction("BEGIN"):
            return [self._execute(statement).fetchall() for statement in statements]

    def write(self, statements: list[Statement], kind: Write) -> list[int]:
        """Execute statements in one transaction; return how many rows each of them changed."""
        # An outcome survives the death of this process, all else also a power failure.
        mode = "NORMAL" if kind is Write.OUTCOME else "EXTRA"
        # Another program may have set WAL.
        once = [] if self._connection.total_changes else ["PRAGMA journal_mode = DELETE"]
        with self._transaction(*once, f"PRAGMA synchronous = {mode}", "BEGIN IMMEDIATE"):
            counts = [self._execute(statement).rowcount for statement in statements]
            if not (kind is Write.EDIT and 0 in counts):
                self._connection.execute("COMMIT")
                require_same_file(self.where, self.identity)
        return counts

    def _execute(self, statement: Statement) -> sqlite3.Cursor:
        text, values = statement
        return self._connection.execute(_sqlite(text, self.now), values)

    @contextmanager
    def _transaction(self, *begin: str) -> Iterator[None]:
        """Run a transaction, which is rolled back unless it was committed; raise LedgerError.

        `begin`: the statements that begin it.
        """
        with self._translated():
            for statement in begin:
                self._connection.execute(statement)
            try:
                require_same_file(self.where, self.identity)
                yield
            finally:
                if self._connection.in_transaction:
                    with suppress(sqlite3.Error):
                        self._connection.execute("ROLLBACK")

    @contextmanager
    def _translated(self) -> Iterator[None]:
        """Turn errors of SQLite and of the system into LedgerError."""
        try:
            yield
        except _ERRORS as error:
            raise self._failure(getattr(error, "strerror", None) or str(error)) from None

    def _failure(self, reason: str) -> LedgerError:
        advice = (text for part, text in _ADVICE.items() if part in reason)
        return LedgerError(f"{self.where}: {next(advice, reason)}")


@lru_cache
def _sqlite(statement: str, now: str) -> str:
    number = "INTEGER PRIMARY KEY AUTOINCREMENT"
    return statement.replace(":now", now).replace(":number", number)


def identity(path: str) -> tuple[int, int] | None:
    """Return the device and inode of a file, None if there is no file; raise OSError."""
    with suppress(FileNotFoundError):
        status = os.stat(path)
        return status.st_dev, status.st_ino
    return None


def require_same_file(path: str, before: tuple[int, int] | None) -> None:
    """Raise LedgerError if a file was replaced since its identity was `before`, None: no file."""
    with suppress(OSError):
        if before in (None, identity(path)):
            return
    raise LedgerError(
        f"{path} was removed or replaced while it was in use. Restore the file that has the"
        " recorded entries, then run again"
    )
