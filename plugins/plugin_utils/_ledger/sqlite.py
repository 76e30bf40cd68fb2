# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The ledger in one SQLite file, which after each commit is the whole ledger: its journal is a
rollback journal.

Locks are bytes of `<path>.lock`. They belong to the open file, not to the process, so that two
ledgers of one process exclude each other, too (fcntl_locking(2), open file description locks).
"""

from __future__ import annotations

import fcntl
import os
import platform
import sqlite3
import time
import zlib
from contextlib import closing, contextmanager, nullcontext, suppress
from typing import Callable, ContextManager, Iterable, Iterator
from urllib.parse import quote

from .entries import NOT_A_LEDGER, Kind, LedgerError, LedgerLost, Use, first_line
from .lock_file import open_lock_file, set_lock
from .tables import TABLES_IN_SQLITE

_BUSY_TIMEOUT = 60.0  # seconds to wait for other writers, each of which takes milliseconds
_STEP = 1.0  # seconds of one such wait in SQLite, which no signal ends
_WRITING = 0  # the byte that is locked while a ledger is opened for writing or written to; no key has this number
_LOCKED, _NO_PERMISSION = (
    "database is locked",
    ("readonly", "unable to open", "I/O"),
)  # in texts of SQLite
_UNDO = (
    ". A run was killed while it wrote, and what it began has to be undone. Read the ledger once, for example with"
    " ledger_info, as a user who may write to it, to its -journal and to their directory"
)
_ERRORS = (sqlite3.Error, UnicodeError)  # UnicodeError: a lone surrogate, which UTF-8 cannot encode


class SqliteDatabase:
    """Opened for reading, it neither creates nor changes a file: each statement uses a connection
    of its own.
    """

    number = "INTEGER PRIMARY KEY AUTOINCREMENT"  # a column that numbers the rows in the order of their insertion
    interruptible: Callable[[], ContextManager] = (
        nullcontext  # around waits for others before something is begun
    )

    def __init__(self, path: str, read_only: bool = False) -> None:
        """Open the file at an absolute path, and create it unless `read_only`; raise LedgerError."""
        self.where = self.shown = path
        self.file = os.path.realpath(path)
        self._connection, self._locks, self._durable = None, -1, None
        try:
            if not read_only:
                self._open()
        except (OSError, sqlite3.Error) as error:
            self.close()
            reason = getattr(error, "strerror", None) or _said(error)
            raise LedgerError(f"ledger: {self.where} cannot be opened: {reason}") from None
        self.lock(_WRITING, nullcontext)  # so that it is not the journal of a write that goes on
        self._was_cut_off = os.path.exists(f"{self.file}-journal")  # SQLite plays it back unseen
        self.unlock(_WRITING)

    def _open(self) -> None:
        """Create the files readable by their owner only, which SQLite would not; keep those that
        exist.
        """
        with suppress(FileExistsError):
            os.close(os.open(self.file, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
        self._identity = identity(self.file)
        self._connection = _connect(self.file)
        self._locks = open_lock_file(self.file)

    def tables(self) -> set[str]:
        """Return which tables of ours there are; raise LedgerError."""
        return (
            {name for (name,) in self.execute(TABLES_IN_SQLITE)}
            if os.path.exists(self.file)
            else set()
        )

    def use(self) -> Use:
        """Return where this process uses the file."""
        _device, inode = identity(self.file) or (0, 0)
        return Use(self.file, inode, platform.node())

    def require_privileges(self) -> None:
        """Do nothing: whoever can open the file for writing can record a request."""

    def prepare(self, create: Iterable[tuple[str, tuple]]) -> bool:
        """Check a file that is not where it was last used; to write, mark it and create tables;
        raise LedgerError.

        `create`: the statements with their values, in one transaction. Return False if one of them
        changed no row, so that none had an effect.
        """
        if not self._connection:
            self._is_checked()
            return True
        self.lock(_WRITING, nullcontext)
        try:
            self.execute(
                "PRAGMA journal_mode = DELETE"
            )  # another program may have set WAL; one that stays may mislead
            if not self._is_checked():
                self.execute(f"PRAGMA application_id = {application_id_of(self.file)}")
            return 0 not in self.write(create, Kind.EDIT) if create else True
        finally:
            self.unlock(_WRITING)

    def _is_checked(self) -> bool:
        """Whether the file is where it was last used; if not, or after a write was cut off, raise
        LedgerError if torn.

        Without the journal of that write the file stays torn, and with one of another time SQLite
        tears it.
        """
        if not self._was_cut_off and self.execute("PRAGMA application_id") == [
            (application_id_of(self.file),)
        ]:
            return True
        ((found,),) = self.execute("PRAGMA integrity_check(1)")
        if found != "ok":
            raise LedgerError(
                f"ledger: {self.where} is incomplete or damaged ({found.splitlines()[-1]}). If it was moved or copied"
                " after a run was killed, put it back beside the file that ends in -journal, and read it there once"
            )
        return False

    def close(self) -> None:
        """Close the database and release its locks."""
        if self._connection:
            self._connection.close()
        if self._locks >= 0:
            os.close(self._locks)
        self._connection, self._locks = None, -1

    __del__ = close

    def lock(self, number: int, waiting: Callable[[], ContextManager] | None) -> bool:
        """Take the lock of this number, if need be after a wait within `waiting`; without it,
        return False instead.

        Raises LedgerError.
        """
        try:
            if set_lock(self._locks, number, fcntl.LOCK_EX | fcntl.LOCK_NB):
                return True
            if waiting:
                with waiting():
                    set_lock(self._locks, number, fcntl.LOCK_EX)
        except OSError as error:
            raise LedgerError(
                f"ledger: {self.where}.lock cannot be locked: {error.strerror}"
            ) from None
        return bool(waiting)

    def unlock(self, number: int) -> None:
        with suppress(
            OSError
        ):  # the work is done: the lock ends with the process, and until then others wait
            set_lock(self._locks, number, fcntl.LOCK_UN)

    def execute(self, statement: str, values: Iterable = ()) -> list[tuple]:
        """Return the rows of a statement with its values in place of `?`; raise LedgerError."""
        with self._translated():
            if self._connection:
                require_same_file(self.where, self._identity)
                return _patiently(self._connection, statement, values)
            with closing(
                _connect(self.file)
            ) as connection:  # may write: after a kill, reading begins with a rollback
                connection.execute("PRAGMA query_only = ON")
                return _patiently(connection, statement, values)

    def write(self, statements: Iterable[tuple[str, tuple]], kind: Kind) -> list[int]:
        """Execute statements in one transaction; return how many rows each has changed.

        Raises LedgerError. Kind.EDIT has no effect if one of the statements changes no row.
        """
        durable, whole = kind is not Kind.END, kind is Kind.EDIT
        with self._translated():
            if durable != self._durable:
                self._connection.execute(f"PRAGMA synchronous = {'EXTRA' if durable else 'NORMAL'}")
                self._durable = durable
            try:
                with self.interruptible() if durable else nullcontext():
                    with suppress(
                        LedgerError
                    ):  # a turn: those who wait for SQLite's lock try it now and then
                        self.lock(_WRITING, nullcontext)
                    _patiently(self._connection, "BEGIN IMMEDIATE")
                require_same_file(self.where, self._identity)
                counts = [
                    self._connection.execute(statement, values).rowcount
                    for statement, values in statements
                ]
                _patiently(self._connection, "ROLLBACK" if whole and 0 in counts else "COMMIT")
                return counts
            finally:
                if self._connection.in_transaction:
                    with suppress(sqlite3.Error):
                        self._connection.execute("ROLLBACK")
                self.unlock(_WRITING)

    @contextmanager
    def _translated(self) -> Iterator[None]:
        try:
            yield
        except _ERRORS as error:
            problem = f"ledger: {self.where}: {_said(error)}"
            if _LOCKED in problem:
                raise LedgerLost(
                    f"{problem}: others have been writing to it, or reading it in one transaction, for"
                    f" {_BUSY_TIMEOUT:g} s. When you run it again, use fewer forks, or end what reads it"
                ) from None
            is_half_written = os.path.exists(f"{self.file}-journal") and any(
                text in problem for text in _NO_PERMISSION
            )
            raise LedgerError(f"{problem}{_UNDO if is_half_written else ''}") from None


def _said(error: Exception) -> str:
    return NOT_A_LEDGER if "is not a database" in str(error) else first_line(error)


def require_same_file(path: str, before: tuple[int, int] | None) -> None:
    """Raise LedgerError if a file that was opened has been replaced; `before`: its identity then."""
    if before != identity(path):
        raise LedgerError(
            f"ledger: {path} was removed or replaced while it was in use. Restore the file that has the recorded"
            " entries, then run again"
        )


def identity(file: str) -> tuple[int, int] | None:
    """Return what distinguishes a file from another one; None when there is no file."""
    with suppress(OSError, ValueError):
        status = os.stat(file)
        return status.st_dev, status.st_ino
    return None


def application_id_of(file: str) -> int:
    """Return the application_id of a file: a number that does not match once it is copied, moved or
    renamed.
    """
    _device, inode = identity(file) or (
        0,
        0,
    )  # the number of the device may change when it is mounted again
    return 1 + zlib.crc32(repr((inode, file)).encode()) % (2**31 - 1)


def _connect(path: str) -> sqlite3.Connection:
    uri = f"file:{quote(os.fsencode(path))}?mode=rw"
    return sqlite3.connect(
        uri, timeout=_STEP, isolation_level=None, check_same_thread=False, uri=True
    )


def _patiently(
    connection: sqlite3.Connection, statement: str, values: Iterable = ()
) -> list[tuple]:
    """Return the rows of a statement that may have to wait for others; a signal ends the wait;
    raise sqlite3.Error.
    """
    until = time.monotonic() + _BUSY_TIMEOUT
    while True:
        try:
            return connection.execute(statement, values).fetchall()
        except sqlite3.OperationalError as error:
            if _LOCKED not in str(error) or time.monotonic() > until:
                raise
