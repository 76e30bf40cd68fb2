# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Checks a ledger file, and the files beside it, before SQLite opens it."""

from __future__ import annotations

import os
import sqlite3
import stat
import time
from contextlib import closing, suppress

from ...module_utils._errors import InvalidInput
from .entries import NOT_A_LEDGER
from .sqlite import application_id_of, has_journal, sqlite_uri

# Bytes of a database of one page; SQLite overwrites a smaller file.
_LEAST_SIZE = 512
# Ends of the names of files beside a ledger.
BESIDE = ("-journal", "-wal", "-shm", ".lock")
_LOOKS = 40  # at a journal
_LOOKS_AT_CONTENT = 3
_PAUSE = 0.05  # seconds between looks


def check_file(file: str, where: str) -> None:
    """Raise InvalidInput if a real path cannot be a ledger, before anything is created beside it.

    `where`: the path that the user gave.
    """
    if os.path.isdir(file):
        raise InvalidInput("ledger", f"{where} is a directory; give a file in it")
    if not os.path.isdir(os.path.dirname(file)):
        problem = f"{where} cannot be opened: its directory does not exist; create it"
        raise InvalidInput("ledger", problem)
    _check_files_beside(file)
    try:
        status = os.lstat(file)
    except OSError:  # there is none yet, or SQLite reports the problem
        return
    problem = _problem_of(file, status)
    if problem:
        raise InvalidInput("ledger", f"{where}{problem}")
    _check_journal(file, where)


def _check_files_beside(file: str) -> None:
    """Raise InvalidInput if a file beside the ledger would be written somewhere else.

    Otherwise, a user who may write to the directory could have another file of this user
    overwritten.
    """
    for end in BESIDE:
        with suppress(OSError):
            if not stat.S_ISREG(os.lstat(f"{file}{end}").st_mode):
                raise InvalidInput(
                    "ledger",
                    f"{file}{end} is a symbolic link or no regular file, and belongs to the ledger"
                    " by its name. Remove it",
                )


def _problem_of(file: str, status: os.stat_result) -> str:
    """Return why an existing file cannot be a ledger, '' if it may be one."""
    if not stat.S_ISREG(status.st_mode):
        return " is not a regular file; give the path of a ledger, or of a new one"
    if status.st_nlink > 1:
        return (
            f" has {status.st_nlink} names (hard links), and each would have its own journal."
            " Remove all names but one, and use that one or symbolic links to it"
        )
    if _is_mount_point(file):
        return (
            " is mounted by itself, without the journal that belongs beside it. Mount its directory"
        )
    if status.st_size and not _may_be_sqlite(file, status.st_size):
        return f": {NOT_A_LEDGER}"
    return ""


def _may_be_sqlite(file: str, size: int) -> bool:
    """Return whether the file begins as a database, cannot be read, or was cut off."""
    if size < _LEAST_SIZE:
        return False
    for _look in range(_LOOKS_AT_CONTENT):
        try:
            _application_id_in(file)
        except sqlite3.OperationalError:
            return True
        except sqlite3.DatabaseError:
            if has_journal(file):
                return True
            # Another task may just have ended the first write to a new file.
            time.sleep(_PAUSE)
        else:
            return True
    return False


def _is_mount_point(file: str) -> bool:
    """Return whether /proc/self/mountinfo lists the file (proc_pid_mountinfo(5), on Linux)."""
    try:
        with open("/proc/self/mountinfo", "rb") as mounts:
            points = [line.split()[4] for line in mounts]
    except OSError:
        return False
    unescaped = [point.decode("unicode_escape").encode("latin-1") for point in points]
    return os.fsencode(file) in unescaped


def _check_journal(file: str, where: str) -> None:
    """Raise InvalidInput for the journal of another file, with which SQLite would undo writes.

    A run that is killed while it writes leaves one. It belongs to a file that was last used at this
    path. The journals of other tasks exist for some milliseconds each.
    """
    for _look in range(_LOOKS):
        if not _has_foreign_journal(file):
            return
        time.sleep(_PAUSE)
    raise InvalidInput(
        "ledger",
        f"{where} was last used under another path or as another file, and {file}-journal is beside"
        " it, which a write leaves when it is cut off. Keep copies of both. If the journal belongs"
        f" to this file, let SQLite finish: sqlite3 {file} 'PRAGMA integrity_check'. If another"
        " file left it, as before a backup was restored, remove it",
    )


def _has_foreign_journal(file: str) -> bool:
    """Return whether there is a journal although the file was last used elsewhere."""
    try:
        if not os.path.getsize(f"{file}-journal"):
            return False
        found = _application_id_in(file)
    except (OSError, sqlite3.Error):
        # There is no journal, or SQLite reports the problem later.
        return False
    return found not in (0, application_id_of(file))


def _application_id_in(file: str) -> int:
    """Return the application_id in the file itself, without its journal.

    Raises sqlite3.OperationalError if it cannot be read, DatabaseError if it is no database.
    """
    uri = sqlite_uri(file, "mode=ro&immutable=1")
    with closing(sqlite3.connect(uri, uri=True)) as connection:
        ((found,),) = connection.execute("PRAGMA application_id").fetchall()
    return int(found)
