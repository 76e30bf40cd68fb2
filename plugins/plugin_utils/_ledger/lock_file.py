# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The lock file beside an SQLite ledger, locked by bytes; no other file is ever touched."""

from __future__ import annotations

import errno
import fcntl
import os
import stat
import struct
from contextlib import suppress

from .paths import is_trusted


def open_lock_file(ledger: str) -> int:
    """Return the descriptor of the lock file, -1 if permission is denied.

    The file gets the mode of the ledger. Raises OSError for one that somebody else has put there.
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
    """Give a lock file the mode of its ledger, so that whoever writes to the ledger can lock it.

    But no file that somebody has put there by another of its names, or that has something to read.
    """
    found = os.fstat(descriptor)
    is_made_by_us = found.st_uid == os.geteuid() and found.st_nlink == 1 and found.st_size == 0
    if is_made_by_us and stat.S_IMODE(found.st_mode) != mode:
        os.fchmod(descriptor, mode)


def set_lock(descriptor: int, number: int, how: int) -> bool:
    """Lock or unlock a byte of a file, as `how` of flock(2) says; do nothing for descriptor -1.

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
