# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The ledger in one SQLite file, in WAL mode: a commit costs one sync at most, readers wait for nobody.

Locks are bytes of a second file, `<path>.lock`: the bytes of the first are SQLite's own, and closing any descriptor
of a file gives up all locks that the process has on it.
"""

from __future__ import annotations

import fcntl
import os
import sqlite3
import stat
from contextlib import closing, contextmanager, suppress
from typing import Iterator
from urllib.parse import quote

from .store import Ledger, LedgerError, first_line

_BUSY_TIMEOUT = 60.0  # seconds to wait for another writer, each of which takes milliseconds
_LEAST_SIZE = 512  # bytes of a database of one page
_OPENING = 0  # the byte that is locked by who creates the tables; no key has this number


class SqliteLedger(Ledger):
    """Reading creates no file and changes none: each statement then has a connection of its own."""

    error = (sqlite3.Error,)
    table_exists = "SELECT 1 FROM sqlite_master WHERE name = 'infrastructure_services_entry'"

    def __init__(self, path: str, read_only: bool = False) -> None:
        """Open the ledger at an absolute path; raise LedgerError."""
        super().__init__(path)
        self._connection, self._locks = None, -1
        _check(path)
        if read_only:
            self.prepare(read_only)
            return
        try:
            self._open(path)
            with self.alone(_OPENING):
                self.prepare(read_only)
        except LedgerError:
            self.close()
            raise

    def _open(self, path: str) -> None:
        """Make the files for their owner only, where SQLite would let others read them; those that exist stay."""
        try:
            with suppress(FileExistsError):
                os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
            self._connection = _connect(f"file:{quote(path)}?mode=rw")
            mode = stat.S_IMODE(os.stat(path).st_mode)
            self._locks = os.open(f"{path}.lock", os.O_CREAT | os.O_RDWR, mode)
        except (OSError, sqlite3.Error) as error:
            reason = getattr(error, "strerror", None) or first_line(error)
            raise LedgerError(f"ledger: {path} cannot be opened: {reason}") from None

    def prepare(self, read_only: bool) -> None:
        if not read_only:
            self._execute("PRAGMA journal_mode = WAL")
        super().prepare(read_only)

    def close(self) -> None:
        if self._connection:
            self._connection.close()
        if self._locks >= 0:
            os.close(self._locks)
        self._connection, self._locks = None, -1

    @contextmanager
    def alone(self, number: int) -> Iterator[None]:
        try:
            fcntl.lockf(self._locks, fcntl.LOCK_EX, 1, number)
        except OSError as error:
            raise LedgerError(f"ledger: {self.where}.lock cannot be locked: {error.strerror}") from None
        try:
            yield
        finally:
            fcntl.lockf(self._locks, fcntl.LOCK_UN, 1, number)

    def set_durability(self, durable: bool) -> None:
        self._execute(f"PRAGMA synchronous = {'FULL' if durable else 'NORMAL'}")

    def run(self, statement: str, values: tuple) -> list[tuple]:
        if self._connection:
            return self._connection.execute(statement, values).fetchall()
        with closing(_connect(_uri_for_reading(self.where))) as connection:
            return connection.execute(statement, values).fetchall()


def _check(path: str) -> None:
    """Raise LedgerError for what SQLite would not mind or not explain: it overwrites a file that is this small."""
    if os.path.isdir(path):
        raise LedgerError(f"ledger: {path} is a directory")
    if not os.path.isdir(os.path.dirname(path)):
        raise LedgerError(f"ledger: {path} cannot be opened: its directory does not exist")
    if os.path.isfile(path) and 0 < os.path.getsize(path) < _LEAST_SIZE:
        raise LedgerError(f"ledger: {path}: file is not a database")


def _connect(uri: str) -> sqlite3.Connection:
    return sqlite3.connect(uri, timeout=_BUSY_TIMEOUT, isolation_level=None, uri=True)


def _uri_for_reading(path: str) -> str:
    """Return an empty database when there is no file; one without a write-ahead log is read as it lies there."""
    if not os.path.exists(path):
        return "file::memory:"
    return f"file:{quote(path)}?mode=ro" + ("" if os.path.exists(f"{path}-wal") else "&immutable=1")
