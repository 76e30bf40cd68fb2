# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The ledger in one SQLite file, which after each commit is the whole ledger: its journal is a rollback journal.

The journal is deleted by each commit, since one that stays would belong to whatever file is moved beside it.

Locks are byte ranges of a second file, `<path>.lock`: SQLite locks bytes of the first file itself, and closing any
descriptor of a file releases all locks that the process has on it. So that second file is never closed.
"""

from __future__ import annotations

import fcntl
import os
import sqlite3
import stat
import time
import zlib
from contextlib import closing, contextmanager, suppress
from typing import Callable, ContextManager, Iterable, Iterator
from urllib.parse import quote

from .entries import LedgerError, first_line

_BUSY_TIMEOUT = 60.0  # seconds to wait for other writers, each of which takes milliseconds
_PAUSE = 0.05  # seconds between two attempts to take a lock that another ledger of this process holds
_WRITING = 0  # the byte that is locked while a ledger is opened for writing or written to; no key has this number
_LOCK_FILES: dict[tuple[int, int], int] = {}  # identity to descriptor; all ledgers of a process share one
_HOLDERS: dict[tuple[int, int, int], object] = {}  # process, lock file and number to the database that holds it
_MARK_AT = 68  # where the application_id is in the file (https://www.sqlite.org/fileformat.html)
_looked_at: list[int] = []  # descriptors, never closed: that would release SQLite's own locks
_ERRORS = (sqlite3.Error, UnicodeError)  # UnicodeError: a lone surrogate, which UTF-8 cannot encode
_TABLES = (
    "SELECT name FROM sqlite_master WHERE name IN ('infrastructure_services_entry', 'infrastructure_services_schema')"
)


class SqliteDatabase:
    """Opened for reading, it neither creates nor changes a file: each statement uses a connection of its own."""

    def __init__(self, path: str, read_only: bool = False) -> None:
        """Open the file at an absolute path, and create it unless `read_only`; raise LedgerError."""
        self.where, self.file = path, os.path.realpath(path)
        self._connection, self._locks, self._durable = None, -1, None
        self._held: set[int] = set()  # the numbers of the locks that are held
        try:
            if not read_only:
                self._open()
            self._check_journal()
        except (OSError, sqlite3.Error) as error:
            self.close()
            reason = getattr(error, "strerror", None) or first_line(error)
            raise LedgerError(f"ledger: {self.where} cannot be opened: {reason}") from None

    def _open(self) -> None:
        """Create the files readable by their owner only, which SQLite would not; keep those that exist."""
        with suppress(FileExistsError):
            os.close(os.open(self.file, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
        self._identity = identity(self.file)
        self._connection = _connect(self.file)
        self._locks = _lock_file(self.file)

    def _check_journal(self) -> None:
        """Raise LedgerError for a journal that another file left, before SQLite undoes with it what it does not know.

        A run that is killed while it writes leaves one. It belongs to a file that was last used at this path.
        """
        self._lock(_WRITING, wait=True)  # otherwise it may be the journal of another task that is opening the ledger
        try:
            journal = f"{self.file}-journal"
            if not (os.path.exists(self.file) and os.path.exists(journal) and os.path.getsize(journal)):
                return
            _looked_at.append(os.open(self.file, os.O_RDONLY))
            found = int.from_bytes(os.pread(_looked_at[-1], 4, _MARK_AT), "big")
        finally:
            self.unlock(_WRITING)
        if found not in (0, self._mark()):
            raise LedgerError(
                f"ledger: {self.where} was last used elsewhere, but a run that was killed left {journal}, which may"
                " belong to another file. If both were moved, move both back and read the ledger there once; if not,"
                " remove the journal"
            )

    def tables(self) -> set[str]:
        """Return which tables of ours there are; raise LedgerError."""
        return {name for (name,) in self.execute(_TABLES)} if os.path.exists(self.file) else set()

    def prepare(self, create: tuple[str, ...]) -> None:
        """Check a file that is not where it was last used; to write, mark it and create tables; raise LedgerError."""
        if not self._connection:
            self._is_checked()
            return
        self._lock(_WRITING, wait=True)
        try:
            self.execute("PRAGMA journal_mode = DELETE")  # another program may have set WAL mode
            if not self._is_checked():
                self.execute(f"PRAGMA application_id = {self._mark()}")
            if create:
                self.write([(statement, ()) for statement in create], durable=True)
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
        """Close the database and release its locks."""
        if self._connection:
            self._connection.close()
        for number in tuple(self._held):
            self.unlock(number)
        self._connection, self._locks = None, -1

    def lock(self, number: int, waiting: Callable[[], ContextManager] | None) -> bool:
        """Take the lock of this number, if need be after a wait within `waiting`; without it, return False instead.

        Raises LedgerError.
        """
        if self._lock(number, wait=False):
            return True
        if waiting:
            with waiting():
                self._lock(number, wait=True)
        return bool(waiting)

    def _lock(self, number: int, wait: bool) -> bool:
        if self._locks < 0:
            return True
        if not self._is_first_here(number, wait):
            return False
        try:
            fcntl.lockf(self._locks, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB), 1, number)
        except BlockingIOError:
            del _HOLDERS[self._here(number)]
            return False
        except OSError as error:
            del _HOLDERS[self._here(number)]
            raise LedgerError(f"ledger: {self.where}.lock cannot be locked: {error.strerror}") from None
        self._held.add(number)
        return True

    def _is_first_here(self, number: int, wait: bool) -> bool:
        """Exclude other ledgers of this process, which has its file locks as a whole, such as that of a list cut off."""
        while _HOLDERS.setdefault(self._here(number), self) is not self:
            if not wait:
                return False
            time.sleep(_PAUSE)
        return True

    def _here(self, number: int) -> tuple[int, int, int]:
        return os.getpid(), self._locks, number

    def unlock(self, number: int) -> None:
        """Release the lock of this number."""
        if number in self._held:
            self._held.remove(number)
            fcntl.lockf(self._locks, fcntl.LOCK_UN, 1, number)
            del _HOLDERS[self._here(number)]

    def execute(self, statement: str, values: Iterable = ()) -> list[tuple]:
        """Return the rows of a statement with its values in place of `?`; raise LedgerError."""
        with self._translated():
            if self._connection:
                self._check_not_replaced()
                return self._connection.execute(statement, values).fetchall()
            with closing(_connect(self.file)) as connection:  # may write: after a kill, reading begins with a rollback
                connection.execute("PRAGMA query_only = ON")
                return connection.execute(statement, values).fetchall()

    def write(self, statements: list[tuple[str, tuple]], durable: bool, whole: bool = False) -> list[int]:
        """Execute statements in one transaction; return how many rows each has changed; raise LedgerError.

        `durable`: it is to survive a power failure, not only the death of this process. `whole`: if one of them changes
        no row, none has an effect.
        """
        if durable != self._durable:
            self.execute(f"PRAGMA synchronous = {'EXTRA' if durable else 'NORMAL'}")
            self._durable = durable
        with self._translated(), self.transaction():
            self._check_not_replaced()
            counts = [self._connection.execute(statement, values).rowcount for statement, values in statements]
            if whole and 0 in counts:
                self._connection.execute("ROLLBACK")
            return counts

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Wait for a turn: those who wait for SQLite's own lock try now and then, and many of them run out of time."""
        with suppress(LedgerError):
            self._lock(_WRITING, wait=True)
        try:
            self._connection.execute("BEGIN IMMEDIATE")
            yield
            if self._connection.in_transaction:
                self._connection.execute("COMMIT")
        finally:
            if self._connection.in_transaction:
                with suppress(sqlite3.Error):
                    self._connection.execute("ROLLBACK")
            self.unlock(_WRITING)

    def _check_not_replaced(self) -> None:
        """Raise LedgerError if the file that was opened has been replaced."""
        if self._identity != identity(self.file):
            raise LedgerError(
                f"ledger: {self.where} was removed or replaced while it was in use. Restore the file that has the"
                " recorded entries, then run again"
            )

    @contextmanager
    def _translated(self) -> Iterator[None]:
        """Turn SQLite's errors into LedgerError, with what to do about them."""
        try:
            yield
        except _ERRORS as error:
            advice = self._advice(first_line(error))
            raise LedgerError(f"ledger: {self.where}: {first_line(error)}{advice}") from None

    def _advice(self, problem: str) -> str:
        journal = f"{self.file}-journal"
        if "locked" in problem:
            others = f"others have been writing to it, or reading it in one transaction, for {_BUSY_TIMEOUT:g} s"
            return f": {others}. End what reads it, or use fewer forks, and run it again"
        if os.path.exists(journal) and not all(
            os.access(path, os.W_OK) for path in (self.file, journal, os.path.dirname(journal))
        ):
            return (
                ". A run was killed while it wrote, and what it began has to be undone. Read the ledger once, for"
                " example with ledger_info, as a user who may write to it, to its -journal and to their directory"
            )
        return ""


def identity(file: str | int) -> tuple[int, int] | None:
    """Return what distinguishes a file, given its path or descriptor, from another one; None when there is no file."""
    try:
        status = os.stat(file)
    except OSError:
        return None
    return status.st_dev, status.st_ino


def _connect(path: str) -> sqlite3.Connection:
    uri = f"file:{quote(os.fsencode(path))}?mode=rw"
    return sqlite3.connect(uri, timeout=_BUSY_TIMEOUT, isolation_level=None, check_same_thread=False, uri=True)


def _lock_file(path: str) -> int:
    """Return the descriptor of the lock file, which gets the mode of the ledger; -1 when permission is denied."""
    mode = stat.S_IMODE(os.stat(path).st_mode)
    descriptor = _LOCK_FILES.get(identity(f"{path}.lock"))
    if descriptor is None:
        try:
            descriptor = os.open(f"{path}.lock", os.O_CREAT | os.O_RDWR, mode)
        except PermissionError:
            return -1
        _LOCK_FILES[identity(descriptor)] = descriptor
    with suppress(PermissionError):
        os.fchmod(descriptor, mode)
    return descriptor
