# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The ledger in one SQLite file, which after each commit is the whole ledger: its journal is a rollback journal.

The journal is deleted by each commit, since one that stays would belong to whatever file is moved beside it.

Locks are byte ranges of a second file, `<path>.lock`: SQLite locks bytes of the first file itself, and closing any
descriptor of a file releases all locks that the process has on it.
"""

from __future__ import annotations

import fcntl
import os
import sqlite3
import stat
import zlib
from contextlib import closing, contextmanager, nullcontext, suppress
from typing import Iterator
from urllib.parse import quote

from . import schema
from .entries import LedgerError, first_line
from .store import Ledger

_BUSY_TIMEOUT = 60.0  # seconds to wait for other writers, each of which takes milliseconds
_WRITING = 0  # the byte that is locked while a ledger is opened for writing or written to; no key has this number
_GONE = (-1, -1)  # the identity of no file
_LEAST_SIZE = 512  # bytes of a database of one page; SQLite overwrites a smaller file


class SqliteLedger(Ledger):
    """Opened for reading, it neither creates nor changes a file: each statement uses a connection of its own."""

    error = (sqlite3.Error, UnicodeError)  # UnicodeError: a lone surrogate, which UTF-8 cannot encode
    tables = (
        "SELECT name FROM sqlite_master WHERE name IN ('infrastructure_services_entry',"
        " 'infrastructure_services_schema')"
    )

    def __init__(self, path: str, read_only: bool = False) -> None:
        """Open the ledger at an absolute path; raise LedgerError."""
        super().__init__(path)
        self.file = os.path.realpath(path)
        self._connection, self._identity, self._locks, self._durable = None, None, -1, None
        _check_path(self.file, path)
        try:
            if not read_only:
                self._open()
            elif os.path.exists(self.file):
                schema.prepare(self, read_only)
                self._is_checked()
        except LedgerError:
            self.close()
            raise

    def _open(self) -> None:
        """Create the files readable by their owner only, which SQLite would not; keep those that exist."""
        try:
            with suppress(FileExistsError):
                os.close(os.open(self.file, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
            self._identity = identity(self.file)
            self._connection = _connect(self.file)
            self._locks = _lock_file(self.file)
        except (OSError, sqlite3.Error) as error:
            reason = getattr(error, "strerror", None) or first_line(error)
            raise LedgerError(f"ledger: {self.where} cannot be opened: {reason}") from None
        self.lock(_WRITING, wait=True)
        try:
            schema.prepare(self, read_only=True)
            self.execute("PRAGMA journal_mode = DELETE")  # another program may have set WAL mode
            if not self._is_checked():
                self.execute(f"PRAGMA application_id = {self._mark()}")
            schema.prepare(self, read_only=False)
        finally:
            self.unlock(_WRITING)

    def _mark(self) -> int:
        """Return the application_id of the file: a number that does not match once it is copied, moved or renamed."""
        return 1 + zlib.crc32(repr((identity(self.file), self.file)).encode()) % (2**31 - 1)

    def _is_checked(self) -> bool:
        """Whether the file is where it was last used; if not, raise LedgerError if it is torn.

        A run that is killed while it writes leaves a torn file with the journal that repairs it. SQLite does so unless
        the file was moved by itself.
        """
        if self.execute("PRAGMA application_id") == [(self._mark(),)]:
            return True
        ((found,),) = self.execute("PRAGMA integrity_check(1)")
        if found != "ok":
            raise LedgerError(
                f"ledger: {self.where} is incomplete or damaged ({found.splitlines()[-1]}). If it was moved or copied"
                " after a run was killed, do so again together with the file beside it whose name ends in -journal"
            )
        return False

    def close(self) -> None:
        """Close the ledger and release its locks."""
        if self._connection:
            self._connection.close()
        if self._locks >= 0:
            os.close(self._locks)
        self._connection, self._locks = None, -1

    def lock(self, number: int, wait: bool) -> bool:
        with self.interruptible() if wait else nullcontext():  # only a single task waits, in the main thread
            return self._lock(number, wait)

    def _lock(self, number: int, wait: bool) -> bool:
        if self._locks < 0:
            return True
        try:
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
        with closing(_connect(self.file)) as connection:  # may write: after a kill, reading begins with a rollback
            connection.execute("PRAGMA query_only = ON")
            return connection.execute(statement, values).fetchall()

    def write(self, statements: list[tuple[str, tuple]], durable: bool) -> list[int]:
        if durable != self._durable:
            self.run(f"PRAGMA synchronous = {'EXTRA' if durable else 'NORMAL'}")
            self._durable = durable
        with self.transaction():
            self.check_not_replaced()
            return [self._connection.execute(statement, values).rowcount for statement, values in statements]

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Wait for a turn: those who wait for SQLite's own lock try now and then, and many of them run out of time."""
        with suppress(LedgerError):
            self._lock(_WRITING, wait=True)
        try:
            self.run("BEGIN IMMEDIATE")
            yield
            self.run("COMMIT")
        finally:
            if self._connection.in_transaction:
                with suppress(sqlite3.Error):
                    self.run("ROLLBACK")
            self.unlock(_WRITING)

    def check_not_replaced(self) -> None:
        if self._identity != identity(self.file):
            self._identity = _GONE
            raise LedgerError(
                f"ledger: {self.where} was removed or replaced while it was in use. Restore the file that has the"
                " recorded entries, then run again"
            )

    def failure(self, error: Exception, before_request: bool = True) -> LedgerError:
        failure = super().failure(error, before_request)
        journal, advice = f"{self.file}-journal", ""
        if "locked" in failure.msg:
            again = ". Run it again, with fewer forks" if before_request else ""
            advice = f": others have been writing to it for {_BUSY_TIMEOUT:g} s{again}"
        elif os.path.exists(journal) and not all(
            os.access(path, os.W_OK) for path in (self.file, journal, os.path.dirname(journal))
        ):
            advice = (
                ". A run was killed while it wrote, and what it began has to be undone. Read the ledger once, for"
                " example with ledger_info, as a user who may write to it, to its -journal and to their directory"
            )
        return LedgerError(f"{failure.msg}{advice}")


def identity(file: str) -> tuple[int, int] | None:
    """Return what distinguishes the file from one that replaces it; None when there is no file."""
    try:
        status = os.stat(file)
    except OSError:
        return None
    return status.st_dev, status.st_ino


def _check_path(file: str, where: str) -> None:
    """Raise LedgerError for a real path that cannot be a ledger; `where`: the path that the user gave."""
    if os.path.isdir(file):
        raise LedgerError(f"ledger: {where} is a directory")
    if not os.path.isdir(os.path.dirname(file)):
        raise LedgerError(f"ledger: {where} cannot be opened: its directory does not exist")
    if not os.path.exists(file):
        return
    status = os.stat(file)
    if os.path.isfile(file) and 0 < status.st_size < _LEAST_SIZE:
        raise LedgerError(f"ledger: {where}: file is not a database")
    if status.st_nlink > 1:
        raise LedgerError(
            f"ledger: {where} has {status.st_nlink} names (hard links), and each would have its own journal."
            " Remove all names but one, and use that one or symbolic links to it"
        )
    if _is_mount_point(file):
        raise LedgerError(
            f"ledger: {where} is mounted by itself, without the journal that belongs beside it. Mount its directory"
        )


def _is_mount_point(file: str) -> bool:
    with suppress(OSError), open("/proc/self/mountinfo", "rb") as mounts:  # proc_pid_mountinfo(5), on Linux
        points = (line.split()[4].decode("unicode_escape").encode("latin-1") for line in mounts)
        return os.fsencode(file) in points
    return False


def _connect(path: str) -> sqlite3.Connection:
    uri = f"file:{quote(os.fsencode(path))}?mode=rw"
    return sqlite3.connect(uri, timeout=_BUSY_TIMEOUT, isolation_level=None, check_same_thread=False, uri=True)


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
