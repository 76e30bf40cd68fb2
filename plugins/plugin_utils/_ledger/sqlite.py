# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The ledger in one SQLite file, with a rollback journal: after each commit the file is complete.

Locks are bytes of `<path>.lock`; no other file is locked. Each belongs to the open file, not to the
process, so that two ledgers of one process exclude each other as well (open file description locks,
fcntl_locking(2)).
"""

from __future__ import annotations

import errno
import fcntl
import os
import platform
import sqlite3
import stat
import struct
import time
import zlib
from contextlib import closing, contextmanager, nullcontext, suppress
from typing import Iterable, Iterator, Sequence, Tuple
from urllib.parse import quote

from .database import Row, Statement, Value
from .entries import NOT_A_LEDGER, Kind, LedgerError, LedgerLost, Use, Waiting, first_line
from .paths import is_trusted
from .tables import TABLES_IN_SQLITE
from .write_count import is_lock_file, read_note, write_note

# Seconds to wait for other writers, each of which takes milliseconds.
_BUSY_TIMEOUT = 60.0
_STEP = 1.0  # seconds of one such wait in SQLite, which no signal ends
# The byte that is locked while a ledger is opened for writing or written to.
_WRITING = 0
_LOCKED = "database is locked"  # in texts of SQLite
_NO_PERMISSION = ("readonly", "unable to open", "I/O")
_UNDO = (
    ". A run was killed while it wrote, and what it began has to be undone. Read the ledger once,"
    " for example with ledger_info, as a user who may write to it, to its -journal and to their"
    " directory"
)
# UnicodeError: a lone surrogate, which is no UTF-8.
_ERRORS = (sqlite3.Error, UnicodeError)


_Identity = Tuple[int, int]


class SqliteDatabase:
    """Implements Database. Opened for reading, it uses a new connection for each statement."""

    number = "INTEGER PRIMARY KEY AUTOINCREMENT"
    lock_entries = ""

    def __init__(self, path: str, read_only: bool = False) -> None:
        """Open the file at an absolute path; create it unless `read_only`; raise LedgerError."""
        self.where = self.shown = path
        self.file = os.path.realpath(path)
        self.waiting = Waiting()
        # None: open for reading.
        self._connection: sqlite3.Connection | None = None
        self._locks = -1
        self._notes_writes = False  # in the lock file
        self._is_durable: bool | None = None
        try:
            if not read_only:
                self._open_file()
        except (OSError, sqlite3.Error) as error:
            self.close()
            reason = getattr(error, "strerror", None) or _said(error)
            raise LedgerError(f"ledger: {self.where} cannot be opened: {reason}") from None
        # A running write removes its journal. Only a writer waits: a reader has no lock file.
        self.lock(_WRITING, wait=True)
        # SQLite plays back the journal of a write that was cut off, and does not say so.
        self._was_cut_off = has_journal(self.file)
        self.unlock(_WRITING)

    def _open_file(self) -> None:
        """Create the files that are missing, which only their owner may read, and connect."""
        with suppress(FileExistsError):
            os.close(os.open(self.file, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
        self._identity = identity(self.file)
        self._connection = _connect(self.file)
        self._locks = open_lock_file(self.file)
        self._notes_writes = is_lock_file(self._locks)

    def tables(self) -> set[str]:
        if not os.path.exists(self.file):
            return set()
        return {name for (name,) in self.execute(TABLES_IN_SQLITE)}

    def place(self) -> str:
        return self.file

    def use(self) -> Use:
        _device, inode = identity(self.file) or (0, 0)
        return Use(self.file, inode, platform.node())

    def is_older(self) -> bool:
        # The note before the file: others may be writing.
        noted = read_note(self._locks if self._locks >= 0 else f"{self.file}.lock")
        ((count,),) = self.execute("PRAGMA user_version")
        return bool(count < noted)

    def lacks_note(self) -> bool:
        lock_file = f"{self.file}.lock"
        is_ours = self._notes_writes if self._connection else _can_be_read(lock_file)
        if not is_ours or read_note(lock_file):
            return False
        ((count,),) = self.execute("PRAGMA user_version")
        # The first write is noted a moment after it was counted.
        return bool(count > 1)

    def require_privileges(self) -> None:
        """Do nothing: a user who can open the file for writing can record a request."""

    def check(self) -> None:
        if not self._connection:
            if not self._is_in_place():
                self._require_whole()
            return
        self.lock(_WRITING, wait=True)
        try:
            # Another program may have set WAL, and a journal that is kept may mislead.
            self.execute("PRAGMA journal_mode = DELETE")
            if not self._is_in_place():
                self._require_whole()
                self.execute(f"PRAGMA application_id = {application_id_of(self.file)}")
        finally:
            self.unlock(_WRITING)

    def create(self, statements: Iterable[Statement]) -> bool:
        return 0 not in self.write(statements, Kind.EDIT)

    def _is_in_place(self) -> bool:
        """Return whether the file is where it was last used, and its last write was not cut off."""
        if self._was_cut_off:
            return False
        return self.execute("PRAGMA application_id") == [(application_id_of(self.file),)]

    def _require_whole(self) -> None:
        """Raise LedgerError if half a write is in the file.

        Without the journal of that write the file stays torn, and SQLite tears it with another one.
        """
        ((found,),) = self.execute("PRAGMA integrity_check(1)")
        if found != "ok":
            raise LedgerError(
                f"ledger: {self.where} is incomplete or damaged ({found.splitlines()[-1]}). If it"
                " was moved or copied after a run was killed, put it back beside the file that ends"
                " in -journal, and read it there once"
            )

    def close(self) -> None:
        if self._connection:
            self._connection.close()
        if self._locks >= 0:
            os.close(self._locks)
        self._connection = None
        self._locks = -1

    __del__ = close

    def lock(self, number: int, wait: bool) -> bool:
        try:
            if set_lock(self._locks, number, fcntl.LOCK_EX | fcntl.LOCK_NB):
                return True
            if not wait:
                return False
            with self.waiting.interruptible():
                set_lock(self._locks, number, fcntl.LOCK_EX)
        except OSError as error:
            problem = f"{self.where}.lock cannot be locked: {error.strerror}"
            raise LedgerError(f"ledger: {problem}") from None
        return True

    def unlock(self, number: int) -> None:
        # If this fails, others wait until the process ends.
        with suppress(OSError):
            set_lock(self._locks, number, fcntl.LOCK_UN)

    def execute(self, statement: str, values: Sequence[Value] = ()) -> list[Row]:
        with self._translated():
            if self._connection:
                require_same_file(self.where, self._identity)
                return _execute(self._connection, statement, values)
            # May write: after a kill, reading begins with a rollback.
            with closing(_connect(self.file)) as connection:
                connection.execute("PRAGMA query_only = ON")
                return _execute(connection, statement, values)

    def write(self, statements: Iterable[Statement], kind: Kind) -> list[int]:
        connection = self._connection
        if not connection:
            raise LedgerError(f"ledger: {self.where} is open for reading only")
        with self._translated():
            self._sync_commits(connection, kind is not Kind.END)
            try:
                with nullcontext() if kind is Kind.END else self.waiting.interruptible():
                    self._begin_transaction(connection)
                counts = [connection.execute(*statement).rowcount for statement in statements]
                if kind is not Kind.EDIT or 0 not in counts:
                    self._commit(connection)
                else:
                    _execute(connection, "ROLLBACK")
                return counts
            finally:
                if connection.in_transaction:
                    with suppress(sqlite3.Error):
                        connection.execute("ROLLBACK")
                self.unlock(_WRITING)

    def _sync_commits(self, connection: sqlite3.Connection, is_durable: bool) -> None:
        """Choose whether a commit survives a power failure, or only the death of this process."""
        if is_durable != self._is_durable:
            connection.execute(f"PRAGMA synchronous = {'EXTRA' if is_durable else 'NORMAL'}")
            self._is_durable = is_durable

    def _begin_transaction(self, connection: sqlite3.Connection) -> None:
        """Begin a transaction, in turn: a waiting SQLite only tries its own lock now and then."""
        with suppress(OSError):
            set_lock(self._locks, _WRITING, fcntl.LOCK_EX)
        _execute(connection, "BEGIN IMMEDIATE")
        require_same_file(self.where, self._identity)

    def _commit(self, connection: sqlite3.Connection) -> None:
        """Count the write in the file, commit, and note the number in the lock file."""
        ((count,),) = connection.execute("PRAGMA user_version")
        connection.execute(f"PRAGMA user_version = {count + 1}")
        _execute(connection, "COMMIT")
        if self._notes_writes:
            write_note(self._locks, count + 1)

    @contextmanager
    def _translated(self) -> Iterator[None]:
        """Turn errors of SQLite into LedgerError."""
        try:
            yield
        except _ERRORS as error:
            raise self._failure(_said(error)) from None

    def _failure(self, reason: str) -> LedgerError:
        problem = f"ledger: {self.where}: {reason}"
        if _LOCKED in reason:
            return LedgerLost(
                f"{problem}: others have been writing to it, or reading it in one transaction,"
                f" for {_BUSY_TIMEOUT:g} s. When you run it again, use fewer forks, or end what"
                " reads it"
            )
        is_refused = any(text in reason for text in _NO_PERMISSION)
        return LedgerError(problem + _UNDO if is_refused and has_journal(self.file) else problem)


def _can_be_read(path: str) -> bool:
    return os.access(path, os.R_OK) or not os.path.lexists(path)


def _said(error: Exception) -> str:
    return NOT_A_LEDGER if "is not a database" in str(error) else first_line(error)


def _connect(path: str) -> sqlite3.Connection:
    return sqlite3.connect(
        sqlite_uri(path, "mode=rw"),
        timeout=_STEP,
        isolation_level=None,
        check_same_thread=False,
        uri=True,
    )


def _execute(
    connection: sqlite3.Connection, statement: str, values: Sequence[Value] = ()
) -> list[Row]:
    """Return the rows of a statement that may have to wait for others; a signal ends the wait."""
    until = time.monotonic() + _BUSY_TIMEOUT
    while True:
        try:
            return connection.execute(statement, values).fetchall()
        except sqlite3.OperationalError as error:
            if _LOCKED not in str(error) or time.monotonic() > until:
                raise


def open_lock_file(ledger: str) -> int:
    """Return the descriptor of the lock file, -1 if permission is denied.

    The file gets the mode of the ledger. Raises OSError for a file that somebody else has put
    there.
    """
    of_ledger = os.stat(ledger)
    lock = f"{ledger}.lock"
    flags = os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK
    try:
        with suppress(FileExistsError):
            os.close(os.open(lock, flags | os.O_CREAT | os.O_EXCL, 0o600))
        descriptor = os.open(lock, flags)
    except PermissionError:
        return -1
    try:
        _require_own_lock(os.fstat(descriptor), of_ledger, lock)
        _give_mode(descriptor, stat.S_IMODE(of_ledger.st_mode))
    except OSError:
        os.close(descriptor)
        raise
    return descriptor


def _require_own_lock(found: os.stat_result, of_ledger: os.stat_result, lock: str) -> None:
    """Raise OSError for a lock file of a user who may not write to the ledger."""
    is_shared = of_ledger.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
    if not stat.S_ISREG(found.st_mode):
        raise OSError(errno.EINVAL, f"{lock} is not a regular file. Remove it")
    if not (is_shared or found.st_uid == of_ledger.st_uid or is_trusted(found.st_uid)):
        problem = f"{lock} belongs to a user who may not write to the ledger. Remove it"
        raise OSError(errno.EINVAL, problem)


def _give_mode(descriptor: int, mode: int) -> None:
    """Give a lock file the mode of its ledger, so that every writer of the ledger can lock it."""
    found = os.fstat(descriptor)
    is_made_by_us = found.st_uid == os.geteuid() and is_lock_file(descriptor)
    if is_made_by_us and stat.S_IMODE(found.st_mode) != mode:
        os.fchmod(descriptor, mode)


def set_lock(descriptor: int, number: int, how: int) -> bool:
    """Lock or unlock a byte of a file; `how`: as for flock(2). Do nothing for descriptor -1.

    Return False if another task has the lock. Raises OSError.
    """
    if descriptor < 0:
        return True
    try:
        if hasattr(fcntl, "F_OFD_SETLK"):
            kind = fcntl.F_UNLCK if how == fcntl.LOCK_UN else fcntl.F_WRLCK
            command = fcntl.F_OFD_SETLK if how & fcntl.LOCK_NB else fcntl.F_OFD_SETLKW
            # struct flock: l_type, l_whence, l_start, l_len, l_pid
            lock = struct.pack("hhqqi4x", kind, os.SEEK_SET, number, 1, 0)
            fcntl.fcntl(descriptor, command, lock)
        else:  # not on Linux: the locks belong to the process
            fcntl.lockf(descriptor, how, 1, number)
    except BlockingIOError:
        return False
    return True


def identity(file: str) -> _Identity | None:
    """Return the identity of a file, None if there is no file."""
    with suppress(OSError, ValueError):
        status = os.stat(file)
        return status.st_dev, status.st_ino
    return None


def require_same_file(path: str, before: _Identity | None) -> None:
    """Raise LedgerError if a file was replaced since its identity was `before`."""
    if before != identity(path):
        raise LedgerError(
            f"ledger: {path} was removed or replaced while it was in use. Restore the file that has"
            " the recorded entries, then run again"
        )


def application_id_of(file: str) -> int:
    """Return a number for the file that no longer matches once it is copied, moved or renamed."""
    # Without the device, whose number may change when it is mounted again.
    _device, inode = identity(file) or (0, 0)
    return 1 + zlib.crc32(repr((inode, file)).encode()) % (2**31 - 1)


def sqlite_uri(file: str, options: str) -> str:
    """Return the URI of a file for sqlite3.connect."""
    return f"file:{quote(os.fsencode(file))}?{options}"


def has_journal(file: str) -> bool:
    """Return whether a write is going on, or was cut off."""
    return os.path.exists(f"{file}-journal")
