# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which files can be a ledger: rejects what SQLite would accept or not explain, and an incomplete copy."""

from __future__ import annotations

import os
import time

from .entries import LedgerError

_LEAST_SIZE = 512  # bytes of a database of one page; SQLite overwrites a smaller file
# Seconds that another process may take to leave WAL mode: it removes the log first, then changes the header.
_WAL_TIMEOUT = 2.0


def check(file: str, where: str) -> None:
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
            f"ledger: {where} has {status.st_nlink} names (hard links), and each would have its own log."
            " Remove all names but one, and use that one or symbolic links to it"
        )
    deadline = time.monotonic() + _WAL_TIMEOUT
    while _lacks_its_log(file):
        if time.monotonic() > deadline:
            raise LedgerError(
                f"ledger: {where} is in WAL mode, but {where}-wal is missing, so the latest entries may be missing."
                " If it is a copy, copy the -wal file, too. If you know that it is complete, run:"
                f" sqlite3 {where} 'PRAGMA journal_mode = DELETE'"
            )
        time.sleep(0.02)


def identity(file: str) -> tuple[int, int] | None:
    """Return what distinguishes the file from one that replaces it; None when there is no file."""
    try:
        status = os.stat(file)
    except OSError:
        return None
    return status.st_dev, status.st_ino


def mark(file: str) -> int:
    """Return the application_id of the ledger: a number that does not match a copy of the file."""
    device, inode = identity(file) or (0, 0)
    return 1 + (device * 1_000_003 + inode) % (2**31 - 1)


def is_without_log(file: str) -> bool:
    """Whether the header says WAL mode (sqlite.org/fileformat.html), but there is neither a log nor a journal."""
    return _header(file)[18:20] == b"\x02\x02" and not any(
        os.path.exists(f"{file}-{log}") for log in ("wal", "journal")
    )


def _lacks_its_log(file: str) -> bool:
    """Whether the latest entries may be missing.

    They are not if another program closed the very file that a run left behind: SQLite then moves the log into it.
    """
    return is_without_log(file) and int.from_bytes(_header(file)[68:72], "big") != mark(file)


def _header(file: str) -> bytes:
    try:
        with open(file, "rb") as database:
            return database.read(100)
    except OSError:  # SQLite reports why
        return b""
