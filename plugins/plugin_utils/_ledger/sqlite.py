# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The ledger in one SQLite file, with a rollback journal: after each commit the file is complete."""

from __future__ import annotations

import errno
import os
import sqlite3
from contextlib import closing, contextmanager, suppress
from functools import lru_cache
from tempfile import TemporaryDirectory
from typing import Iterator
from urllib.parse import quote

from ...module_utils._errors import LedgerAway, LedgerError
from . import sql
from .entries import Write
from .sql import Done, Statement

# Seconds to wait for other writers in one try, each of which takes milliseconds.
_BUSY_TIMEOUT = 2
_LOCKED = "database is locked"
# UnicodeError: a lone surrogate, which is no UTF-8.
_ERRORS = (sqlite3.Error, OSError, UnicodeError)
# What to do, by a part of SQLite's text.
_ADVICE = {
    _LOCKED: (
        "others have written to it, or have read it in one transaction, for a minute. When you run"
        " it again, use fewer forks, or end what reads it"
    ),
    "not a database": (
        "it is no ledger, and is left as it is. Give the path of a ledger; if this was one, restore"
        " it from a backup"
    ),
}
# What to do, by the number of an error of the system.
_SYSTEM = {
    errno.EEXIST: "something is there already; if it is an empty file, remove it",
    errno.ENOENT: "its directory does not exist; create that first",
}
_NUMBER = "INTEGER PRIMARY KEY AUTOINCREMENT"
# Without the tables and indexes of SQLite itself.
_SCHEMA = "SELECT sql FROM sqlite_master WHERE name NOT GLOB 'sqlite_*'"


class SqliteDatabase:
    """One connection to the file; attributes and methods are those of PostgresDatabase."""

    now = "CAST(strftime('%s', 'now') AS INTEGER)"
    continue_numbers = ""
    tried_for = 60.0  # seconds for which a file is tried again while others write
    most_written = 500  # changes in one transaction

    def __init__(self, path: str) -> None:
        """Open the file at an absolute path, if there is one; raise LedgerError."""
        self.where = self.shown = path
        with self._translated():
            if os.path.lexists(path) and not os.path.isfile(path):
                raise self._failure("is not a regular file; give the path of a ledger")
            self._open()

    def _open(self) -> None:
        """Connect to the file; to an empty database in place of one that does not exist.

        Raises LedgerError unless each table, index, trigger and view is one that `create` makes.
        """
        self._identity = identity(self.where)
        self._connection = sqlite3.connect(
            f"file:{quote(os.fsencode(self.where))}?mode=rw" if self._identity else ":memory:",
            timeout=_BUSY_TIMEOUT,
            isolation_level=None,
            check_same_thread=False,
            uri=True,
        )
        (found,) = self.execute([(_SCHEMA, ())])
        self._schema = {text for (text,) in found.rows}
        others = sorted(map(str, self._schema - _OURS))
        if others:
            raise self._failure(
                "it is a database of another version of this collection, or of something else, so"
                f" it is not used: {' '.join(others[0].split()[:3])}. Give the path of a ledger"
            )

    def has_tables(self) -> bool:
        """Return whether this is a ledger, not an empty file or none."""
        return self._schema == _OURS

    def require_writable(self) -> None:
        """Raise LedgerError if outcomes could not be written: a file is writable as a whole."""

    def create(self, statements: list[Statement]) -> None:
        """Create the file with its tables, whole, for its owner alone; raise LedgerError.

        Also if anything is there.
        """
        self.close()
        with self._translated(), TemporaryDirectory(dir=os.path.dirname(self.where)) as directory:
            beside = os.path.join(directory, "ledger")
            os.close(os.open(beside, os.O_CREAT | os.O_RDWR, 0o600))
            with closing(sqlite3.connect(beside, isolation_level=None)) as connection:
                connection.execute("BEGIN IMMEDIATE")
                for text, values in statements:
                    connection.execute(_sqlite(text, self.now), values)
                connection.execute("COMMIT")
            os.link(beside, self.where)
            self._open()

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()

    def execute(self, statements: list[Statement], kind: Write | None = None) -> list[Done]:
        """Execute statements in one transaction; return the effect of each."""
        with self._transaction(*self._begin(kind)):
            done = [self._execute(statement) for statement in statements]
            if kind and not sql.is_void(kind, done):
                self._connection.execute("COMMIT")
                require_same_file(self.where, self._identity)
        return done

    def _begin(self, kind: Write | None) -> list[str]:
        """Return the statements that begin a transaction."""
        if kind is None:
            return ["BEGIN"]
        # An outcome survives the death of this process, all else also a power failure.
        mode = "NORMAL" if kind is Write.OUTCOME else "EXTRA"
        # Another program may have set WAL.
        once = [] if self._connection.total_changes else ["PRAGMA journal_mode = DELETE"]
        return [*once, f"PRAGMA synchronous = {mode}", "BEGIN IMMEDIATE"]

    def _execute(self, statement: Statement) -> Done:
        text, values = statement
        cursor = self._connection.execute(_sqlite(text, self.now), values)
        return Done(cursor.rowcount, cursor.fetchall())

    @contextmanager
    def _transaction(self, *begin: str) -> Iterator[None]:
        """Run a transaction, which is rolled back unless it was committed; raise LedgerError.

        `begin`: the statements that begin it.
        """
        with self._translated():
            for statement in begin:
                self._connection.execute(statement)
            try:
                require_same_file(self.where, self._identity)
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
            known = _SYSTEM.get(getattr(error, "errno", 0) or 0)
            raise self._failure(known or getattr(error, "strerror", None) or str(error)) from None

    def _failure(self, reason: str) -> LedgerError:
        advice = (text for part, text in _ADVICE.items() if part in reason)
        kind = LedgerAway if _LOCKED in reason else LedgerError
        return kind(f"{self.where}: {next(advice, reason)}")


@lru_cache
def _sqlite(statement: str, now: str) -> str:
    return statement.replace(":now", now).replace(":number", _NUMBER)


_OURS = {_sqlite(text, "") for text in sql.CREATE}


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
