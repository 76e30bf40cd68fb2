# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The ledger in one SQLite file. While in use it is in WAL mode: a commit costs one sync, and readers never wait.

Locks are byte ranges of a second file, `<path>.lock`: SQLite locks bytes of the first file itself, and closing any
descriptor of a file releases all locks that the process has on it.
"""

from __future__ import annotations

import fcntl
import os
import sqlite3
import stat
import time
from contextlib import closing, contextmanager, nullcontext, suppress
from typing import Iterator
from urllib.parse import quote

from . import migrations
from .entries import LedgerError, first_line
from .sqlite_files import check, identity, is_without_log, mark
from .store import Ledger

_BUSY_TIMEOUT = 60.0  # seconds to wait for another writer, each of which takes milliseconds
_OPENING = 0  # the byte that is locked while the tables are created; no key has this number
_EXIT_TIMEOUT = 0.5  # seconds for the workers of a run to exit once the run has ended
_GONE = (-1, -1)  # the identity of no file
_kept_open: list[sqlite3.Connection] = []


class SqliteLedger(Ledger):
    """Opened for reading, it neither creates nor changes a file: each statement uses a connection of its own."""

    error = (sqlite3.Error, UnicodeError)  # UnicodeError: a lone surrogate, which UTF-8 cannot encode
    tables = (
        "SELECT name FROM sqlite_master WHERE name IN ('infrastructure_services_entry',"
        " 'infrastructure_services_schema')"
    )
    second_schema = ("DROP TABLE infrastructure_services_entry", migrations.ENTRIES)

    def __init__(self, path: str, read_only: bool = False) -> None:
        """Open the ledger at an absolute path; raise LedgerError."""
        super().__init__(path)
        self.file = os.path.realpath(path)
        self._connection, self._identity, self._locks, self._durable = None, None, -1, None
        self._start(path, read_only)

    def _start(self, path: str, read_only: bool) -> None:
        check(self.file, path)
        if read_only:
            migrations.prepare(self, read_only)
            return
        try:
            self._open()
        except LedgerError:
            self.close()
            raise

    def _open(self) -> None:
        """Create the files readable by their owner only, which SQLite would not; keep those that exist.

        The tables are created before WAL mode is set: a file in WAL mode without tables counts as incomplete.
        """
        try:
            with suppress(FileExistsError):
                os.close(os.open(self.file, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
            self._identity = identity(self.file)
            self._connection = _connect(self.file, "rw")
            self._locks = _lock_file(self.file)
        except (OSError, sqlite3.Error) as error:
            reason = getattr(error, "strerror", None) or first_line(error)
            raise LedgerError(f"ledger: {self.where} cannot be opened: {reason}") from None
        self.lock(_OPENING, wait=True)
        try:
            migrations.prepare(self, read_only=False)
            if self.execute("PRAGMA application_id") != [(mark(self.file),)]:
                self.execute(f"PRAGMA application_id = {mark(self.file)}")
            self.execute("PRAGMA journal_mode = WAL")
            self.execute("SELECT 1 FROM infrastructure_services_schema")  # creates the write-ahead log
        finally:
            self.unlock(_OPENING)

    def close(self) -> None:
        """Close the ledger; unless others use it, the one file is complete afterwards."""
        if self._connection and self._identity == identity(self.file):
            close_connection(self._connection, self.file)
        elif self._connection:
            _kept_open.append(self._connection)  # closing it would remove the log of the file that is there now instead
        if self._locks >= 0:
            os.close(self._locks)
        self._connection, self._locks = None, -1

    def lock(self, number: int, wait: bool) -> bool:
        if self._locks < 0:
            return True
        try:
            with self.interruptible() if wait else nullcontext():  # only a single task waits, in the main thread
                fcntl.lockf(self._locks, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB), 1, number)
        except BlockingIOError:
            return False
        except OSError as error:
            raise LedgerError(f"ledger: {self.where}.lock cannot be locked: {error.strerror}") from None
        return True

    def unlock(self, number: int) -> None:
        if self._locks >= 0:
            fcntl.lockf(self._locks, fcntl.LOCK_UN, 1, number)

    def run(self, statement: str, values: tuple = ()) -> list[tuple]:
        if self._connection:
            return self._connection.execute(statement, values).fetchall()
        with closing(_connect(self.file, "ro") if os.path.exists(self.file) else _in_memory()) as connection:
            return connection.execute(statement, values).fetchall()

    def write(self, statements: list[tuple[str, tuple]], durable: bool) -> list[int]:
        self.check_not_replaced()
        if durable != self._durable:
            self.run(f"PRAGMA synchronous = {'FULL' if durable else 'NORMAL'}")
            self._durable = durable
        with self.transaction():
            return [self._connection.execute(statement, values).rowcount for statement, values in statements]

    @contextmanager
    def transaction(self) -> Iterator[None]:
        try:
            self.run("BEGIN IMMEDIATE")
            yield
            self.run("COMMIT")
        finally:
            if self._connection.in_transaction:
                with suppress(sqlite3.Error):
                    self.run("ROLLBACK")

    def check_not_replaced(self) -> None:
        if self._identity != identity(self.file):
            self._identity = _GONE
            raise LedgerError(
                f"ledger: {self.where} was removed or replaced while it was in use. Restore the file that has the"
                " recorded entries, then run again"
            )


class LedgerInMemory(SqliteLedger):
    """A copy in memory, for reading."""

    def _start(self, path: str, read_only: bool) -> None:
        self.file, self._connection = "", _in_memory()

    def close(self) -> None:
        self._connection.close()


def close_connection(connection: sqlite3.Connection, file: str, timeout: float = 0.0) -> None:
    """Close a connection so that the file is complete by itself, or its log is still there.

    While others use it, it stays in WAL mode, and a second connection keeps SQLite from removing the log: a file in WAL
    mode without a log looks like an incomplete copy. `timeout`: seconds to wait for the others.
    """
    deadline = time.monotonic() + timeout
    while (is_shared := not _leave_wal_mode(connection)) and time.monotonic() < deadline:
        time.sleep(0.02)
    if not is_shared:
        connection.close()
    else:
        with suppress(sqlite3.Error), closing(_connect(file, "ro")) as guard:
            guard.execute("SELECT 1 FROM sqlite_master").fetchall()
            connection.close()


def checkpoint(file: str) -> None:
    """Move the log of a ledger into its file, unless others are using it."""
    with suppress(sqlite3.Error):
        connection = _connect(file, "rw")
        close_connection(connection, file, _EXIT_TIMEOUT)


def _leave_wal_mode(connection: sqlite3.Connection) -> bool:
    """Move the log into the file and remove it; return False when others are using the ledger."""
    try:
        return connection.execute("PRAGMA journal_mode = DELETE").fetchone() == ("delete",)
    except sqlite3.Error:
        return False


def _connect(path: str, mode: str) -> sqlite3.Connection:
    uri = f"file:{quote(path)}?mode={mode}{'&immutable=1' if mode == 'ro' and is_without_log(path) else ''}"
    return sqlite3.connect(uri, timeout=_BUSY_TIMEOUT, isolation_level=None, check_same_thread=False, uri=True)


def _in_memory() -> sqlite3.Connection:
    return sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)


def _lock_file(path: str) -> int:
    """Return a descriptor of the lock file, which gets the mode of the ledger; -1 when permission is denied."""
    mode = stat.S_IMODE(os.stat(path).st_mode)
    try:
        descriptor = os.open(f"{path}.lock", os.O_CREAT | os.O_RDWR, mode)
    except PermissionError:
        return -1
    with suppress(PermissionError):
        if stat.S_IMODE(os.fstat(descriptor).st_mode) != mode:
            os.fchmod(descriptor, mode)
    return descriptor
