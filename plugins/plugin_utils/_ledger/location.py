# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""From the option `ledger` to an open ledger: a path is SQLite, a postgresql:// URL is PostgreSQL."""

from __future__ import annotations

import os
import re
import stat
import time
from contextlib import closing, suppress

from ...module_utils._errors import InvalidInput
from ...module_utils._secrets import printable
from .entries import NOT_A_LEDGER
from .paths import real_path
from .postgresql import PostgresDatabase
from .postgresql_library import POSTGRESQL, described, parsed_url
from .sqlite import SqliteDatabase, application_id_of, identity
from .store import Ledger

_URL = re.compile(r"\s*(://|[A-Za-z][\w+.-]*:/)")
_KEYWORDS = re.compile(
    r"(?:^|\s)(host|hostaddr|port|dbname|user|password|service|sslmode)\s*="
)  # of libpq
_MAGIC = b"SQLite format 3\0"  # how an SQLite file begins (https://www.sqlite.org/fileformat.html)
_APPLICATION_ID_AT = 68  # where the application_id is in the file
_BESIDE = (
    "-journal",
    "-wal",
    "-shm",
    ".lock",
)  # ends of the names of files that are written beside a ledger
_OPENED: dict[
    tuple[int, int] | None, int
] = {}  # descriptors by identity, never closed: SQLite would lose its locks
_LOOKS, _PAUSE = 40, 0.05  # at a journal, and seconds between them
_LEAST_SIZE = 512  # bytes of a database of one page; SQLite overwrites a smaller file


def resolved(location: str, playbook_dir: str, from_environment: bool) -> str:
    """Return the location with a path made absolute by `absolute`; raise InvalidInput if it is
    neither path nor URL.
    """
    if location.startswith(POSTGRESQL):
        return location
    if _URL.match(location) or _KEYWORDS.search(location):
        raise InvalidInput("ledger", "it must be a path or a postgresql:// URL")
    if not location.strip() or "\0" in location:
        raise InvalidInput("ledger", "it is not a path: it is empty or contains a NUL character")
    path = absolute("ledger", location, playbook_dir, from_environment)
    try:
        path.encode()
    except UnicodeEncodeError:  # no message and no result could contain it
        raise InvalidInput(
            "ledger", f"the path {path!a} is not UTF-8. Rename the file or directory"
        ) from None
    return path


def absolute(option: str, path: str, playbook_dir: str, from_environment: bool = False) -> str:
    """Return the absolute path that an option names; raise InvalidInput for one in a collection,
    and for no path.

    This is the rule for every path that the controller uses: below the playbook's directory, or
    below the working directory where it comes from the environment or the playbook belongs to a
    collection.
    """
    base = os.getcwd() if from_environment or _in_collection(playbook_dir) else playbook_dir
    found = os.path.abspath(os.path.join(base, os.path.expanduser(path)))
    try:
        is_inside = _in_collection(found) or _in_collection(os.path.realpath(found))
    except ValueError:
        raise InvalidInput(option, "must be without characters that no path can have") from None
    if is_inside:
        where = f"{printable(found)} is inside an installed collection and would be deleted with it"
        raise InvalidInput(option, f"{where}. Give an absolute path outside of it")
    return found


def shown_location(location: str) -> str:
    """Return a location as messages have it, without a password; raise InvalidInput or
    MissingLibrary.
    """
    return described(parsed_url(location)) if location.startswith(POSTGRESQL) else location


def open_ledger(
    location: str, read_only: bool = False, required_by: str = "", moving: bool = False
) -> Ledger:
    """Return the ledger at a location that `resolved` returned, over a connection of its own.

    To a reader, a ledger that does not exist yet is empty. `required_by`: the option that has it
    refused then, with nothing left behind; empty for none. `moving`: as in Ledger. Raises
    InvalidInput, LedgerError or MissingLibrary.
    """
    if required_by:
        with closing(open_ledger(location, read_only=True, moving=moving)) as found:
            if found.is_new:
                problem = f"there is none at {found.where}, and {required_by} is false. Check the location; if it is"
                raise InvalidInput(
                    "ledger", f"{problem} to be a new one, set {required_by} to true"
                )
    if location.startswith(POSTGRESQL):
        return Ledger(PostgresDatabase(location), read_only, moving)
    try:
        file = real_path(location)
    except (OSError, ValueError) as error:
        raise InvalidInput("ledger", getattr(error, "strerror", None) or str(error)) from None
    _check_file(file, location)
    return Ledger(SqliteDatabase(location, read_only), read_only, moving)


def no_ledger_yet(ledger: Ledger) -> str:
    return f"no ledger at {ledger.where} yet"


def _in_collection(path: str) -> bool:
    return "ansible_collections" in path.split(os.sep)


def _check_file(file: str, where: str) -> None:
    """Raise InvalidInput for a real path that cannot be a ledger, before anything is made beside
    it.

    `where`: the path that the user gave.
    """
    if os.path.isdir(file):
        raise InvalidInput("ledger", f"{where} is a directory; give a file in it")
    if not os.path.isdir(os.path.dirname(file)):
        raise InvalidInput(
            "ledger", f"{where} cannot be opened: its directory does not exist; create it"
        )
    _check_files_beside(file)
    try:
        status = os.lstat(file)
    except OSError:  # there is none yet, or SQLite says what is wrong
        return
    if not stat.S_ISREG(status.st_mode):
        raise InvalidInput(
            "ledger", f"{where} is not a regular file; give the path of a ledger, or of a new one"
        )
    if status.st_nlink > 1:
        raise InvalidInput(
            "ledger",
            f"{where} has {status.st_nlink} names (hard links), and each would have its own journal."
            " Remove all names but one, and use that one or symbolic links to it",
        )
    if _is_mount_point(file):
        raise InvalidInput(
            "ledger",
            f"{where} is mounted by itself, without the journal that belongs beside it. Mount its directory",
        )
    if status.st_size and not _may_be_sqlite(file, status.st_size):
        raise InvalidInput("ledger", f"{where}: {NOT_A_LEDGER}")
    _check_journal(file, where)


def _check_files_beside(file: str) -> None:
    """Raise InvalidInput if what would be written beside a ledger would be written somewhere else.

    Whoever may write to the directory could otherwise have another file of this user overwritten.
    """
    for end in _BESIDE:
        with suppress(OSError):
            if not stat.S_ISREG(os.lstat(f"{file}{end}").st_mode):
                problem = "is a symbolic link or no regular file, and belongs to the ledger by its name. Remove it"
                raise InvalidInput("ledger", f"{file}{end} {problem}")


def _may_be_sqlite(file: str, size: int) -> bool:
    """Return whether SQLite can tell more of a file: it begins as a database, or cannot be read, or
    was cut off.
    """
    if size < _LEAST_SIZE:
        return False
    try:
        return _bytes_in(file, len(_MAGIC), 0) == _MAGIC or os.path.exists(f"{file}-journal")
    except OSError:
        return True


def _is_mount_point(file: str) -> bool:
    with (
        suppress(OSError),
        open("/proc/self/mountinfo", "rb") as mounts,
    ):  # proc_pid_mountinfo(5), on Linux
        points = (line.split()[4].decode("unicode_escape").encode("latin-1") for line in mounts)
        return os.fsencode(file) in points
    return False


def _check_journal(file: str, where: str) -> None:
    """Raise InvalidInput for a journal that another file left, before SQLite undoes with it what it
    does not know.

    A run that is killed while it writes leaves one. It belongs to a file that was last used at this
    path.
    """
    for _attempt in range(_LOOKS):  # each write of others makes one as well, for some milliseconds
        with suppress(OSError):  # there is none, or SQLite says what is wrong
            if os.path.getsize(f"{file}-journal") and _application_id_in(file) not in (
                0,
                application_id_of(file),
            ):
                time.sleep(_PAUSE)
                continue
        return
    raise InvalidInput(
        "ledger",
        f"{where} was last used under another path or as another file, and {file}-journal is beside it, which"
        " a write leaves when it is cut off. Keep copies of both. If the journal belongs to this file, let SQLite"
        f" finish: sqlite3 {file} 'PRAGMA integrity_check'. If another file left it, as before a backup"
        " was restored, remove it",
    )


def _application_id_in(file: str) -> int:
    """Return the application_id as it is in the file; raise OSError."""
    return int.from_bytes(_bytes_in(file, 4, _APPLICATION_ID_AT), "big")


def _bytes_in(file: str, count: int, start: int) -> bytes:
    """Return bytes of a file as they are there; raise OSError."""
    known = identity(file)
    if known not in _OPENED:
        _OPENED[known] = os.open(file, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    return os.pread(_OPENED[known], count, start)
