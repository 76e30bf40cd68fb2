# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The locks of a ledger, by number. They only make others wait, and end with the process that holds them."""

from __future__ import annotations

import fcntl
import os
import stat
import struct
import threading
from contextlib import suppress
from typing import Callable, ContextManager

from .entries import LedgerError

_FLOCK = "hhqqi4x"  # struct flock: l_type, l_whence, l_start, l_len, l_pid
_INTERVAL = 1.0  # seconds between two looks at whether a session is still there
_TRY, _UNLOCK = "SELECT pg_try_advisory_lock(?)", "SELECT pg_advisory_unlock(?)"


class FileLocks:
    """Bytes of `<ledger>.lock`, since SQLite locks bytes of the ledger itself. Without a permission nothing is locked.

    They belong to the open file and not to the process, so that two ledgers of one process exclude each other as well
    (fcntl_locking(2), open file description locks).
    """

    def __init__(self, ledger: str) -> None:
        """Open the lock file, which gets the mode of the ledger; raise OSError."""
        self._file, self._descriptor = f"{ledger}.lock", -1
        mode = stat.S_IMODE(os.stat(ledger).st_mode)
        with suppress(PermissionError):
            self._descriptor = os.open(self._file, os.O_CREAT | os.O_RDWR, mode)
            os.fchmod(self._descriptor, mode)

    def take(self, number: int, wait: bool) -> bool:
        """Take a lock; return False if another one holds it and not `wait`; raise LedgerError."""
        try:
            self._set(number, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        except BlockingIOError:
            return False
        except OSError as error:
            raise LedgerError(f"ledger: {self._file} cannot be locked: {error.strerror}") from None
        return True

    def release(self, number: int) -> None:
        self._set(number, fcntl.LOCK_UN)

    def close(self) -> None:
        """Release all locks."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
        self._descriptor = -1

    def _set(self, number: int, how: int) -> None:
        """Lock or unlock a byte, as `how` says to flock(2); raise OSError."""
        if self._descriptor < 0:
            return
        if not hasattr(fcntl, "F_OFD_SETLK"):  # not on Linux: the locks belong to the process
            fcntl.lockf(self._descriptor, how, 1, number)
            return
        kind = fcntl.F_UNLCK if how == fcntl.LOCK_UN else fcntl.F_WRLCK
        command = fcntl.F_OFD_SETLK if how & fcntl.LOCK_NB else fcntl.F_OFD_SETLKW
        fcntl.fcntl(self._descriptor, command, struct.pack(_FLOCK, kind, os.SEEK_SET, number, 1, 0))


class SessionLocks:
    """Advisory locks of a session of PostgreSQL, which a new session takes again when the server ends the first one.

    While a request is in flight no statement would notice that, so a thread looks.
    """

    def __init__(self, execute: Callable[[str, tuple], list[tuple]], turn: ContextManager) -> None:
        """`execute`: runs a statement, over a new session if need be; raises LedgerError. `turn`: of one thread."""
        self._execute, self._turn = execute, turn
        self._wanted: set[int] = set()
        self._held: set[int] = set()  # by the session as it is now
        self._closed = threading.Event()
        self._thread: threading.Thread | None = None

    def take(self, number: int) -> bool:
        """Take a lock; return False if another session holds it; raise LedgerError."""
        with self._turn:
            if number not in self._held:  # PostgreSQL counts how often a session takes a lock
                self._try(number, self._execute)
            if number in self._held:
                self._wanted.add(number)
        if not self._thread:
            self._thread = threading.Thread(target=self._look, daemon=True)
            with suppress(RuntimeError):  # there cannot be another thread: the next statement notices
                self._thread.start()
        return number in self._held

    def release(self, number: int) -> None:
        with self._turn:
            self._wanted.discard(number)
            if number in self._held:
                self._held.discard(number)
                with suppress(LedgerError):  # the lock has ended with the session
                    self._execute(_UNLOCK, (number,))

    def session_ended(self) -> None:
        self._held.clear()

    def take_again(self, execute: Callable[[str, tuple], list[tuple]]) -> None:
        """Take what an earlier session held, as far as others have not taken it; raise what `execute` raises."""
        for number in self._wanted - self._held:
            self._try(number, execute)

    def close(self) -> None:
        self._closed.set()

    def _try(self, number: int, execute: Callable[[str, tuple], list[tuple]]) -> None:
        if execute(_TRY, (number,))[0][0]:
            self._held.add(number)

    def _look(self) -> None:
        while not self._closed.wait(_INTERVAL):
            with suppress(LedgerError), self._turn:
                if self._wanted:
                    self._execute("SELECT 1", ())
                    self.take_again(self._execute)
