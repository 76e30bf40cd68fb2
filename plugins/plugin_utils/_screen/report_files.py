# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The two files of a report: which files may be replaced, atomically and by one task at a time."""

from __future__ import annotations

import errno
import fcntl
import json
import os
import shutil
import stat
import time
import uuid
from contextlib import contextmanager, suppress
from typing import Iterator

from . import junit

_HEAD = '{\n "format": "infrastructure.services report",\n'  # identifies a report without reading all of it
_RUN = {"run", "began_at", "assets"}
_KINDS = {stat.S_IFDIR: "a directory", stat.S_IFIFO: "a named pipe", stat.S_IFSOCK: "a socket"}
_LEDGER_FILES = ("", "-journal", ".lock")
_LOCK_TIMEOUT = 60.0  # seconds to wait for another task, each of which takes milliseconds


class ReportError(Exception):
    """A file cannot be written; the text says which one, and why."""


def require_writable(path: str, ledger_file: str) -> None:
    """Raise ReportError for a path to which `edited` could not write; change no file."""
    with _named(path):
        files = _files(path, ledger_file)
        for file in files:
            with _replacement(file):
                pass
        if os.path.exists(files[0]):
            with _exclusive(files[0]):
                pass


@contextmanager
def edited(path: str, ledger_file: str) -> Iterator[list[dict]]:
    """Yield the runs of the report at an absolute path, to be changed in place, and write them; others wait meanwhile.

    `ledger_file`: the real path of the SQLite file, empty when there is none. Raises ReportError; a file that is
    neither empty nor a report is left unchanged.
    """
    with _named(path):
        file, xml_file = _files(path, ledger_file)
        with _exclusive(file):
            runs = _read(file)
            yield runs
            _replace(xml_file, f"{junit.document(runs)}\n")
            _replace(file, f"{_HEAD}{json.dumps({'runs': runs}, indent=1)[2:]}\n")  # last, as the lock goes with it


@contextmanager
def _named(path: str) -> Iterator[None]:
    """Raise a ReportError that names the path in place of an OSError or ValueError."""
    try:
        yield
    except FileNotFoundError:
        raise ReportError(f"{path!r} cannot be written: its directory does not exist") from None
    except (OSError, ValueError) as error:  # ValueError: a path that contains NUL or a lone surrogate
        raise ReportError(f"{path!r} cannot be written: {getattr(error, 'strerror', None) or error}") from None


def _files(path: str, ledger_file: str) -> tuple[str, str]:
    """Return the real paths of the JSON file and the XML file; raise ReportError unless both may be replaced."""
    file, xml_file = _usable(path, _HEAD, ledger_file), _usable(junit.xml_path(path), junit.HEAD, ledger_file)
    if file == xml_file:
        raise ReportError(
            f"{path} is for JSON, with JUnit XML in a file next to it, so it must not end in {junit.SUFFIX}"
        )
    return file, xml_file


def _usable(path: str, head: str, ledger_file: str) -> str:
    """Return the real path of a file that may be replaced; open none that could block or that opening would change."""
    file = os.path.realpath(path)
    if ledger_file and file in {f"{ledger_file}{suffix}" for suffix in _LEDGER_FILES}:
        raise ReportError(f"{path} is a file of the ledger")
    if not os.path.lexists(file):
        return file
    mode = os.stat(file).st_mode
    if not stat.S_ISREG(mode):
        raise ReportError(f"{path} is {_KINDS.get(stat.S_IFMT(mode), 'a device')}")
    with open(os.open(file, os.O_RDWR | os.O_NONBLOCK), "rb") as found:
        if found.read(len(head)) not in (b"", head.encode()):
            raise ReportError(f"{path} exists and is not a report")
    return file


@contextmanager
def _exclusive(file: str) -> Iterator[None]:
    """Exclude all other tasks, of this run and of others; create the file if there is none; raise OSError."""
    deadline = time.monotonic() + _LOCK_TIMEOUT
    while time.monotonic() < deadline:
        with open(os.open(file, os.O_RDWR | os.O_CREAT | os.O_NONBLOCK, 0o666), "rb") as held:
            if _is_locked(held.fileno(), file):
                yield
                return
        time.sleep(0.01)
    raise OSError(errno.EAGAIN, "another program keeps it locked")


def _is_locked(descriptor: int, file: str) -> bool:
    """Lock an open file; return False when another task holds the lock, or has replaced the file."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return os.path.samestat(os.fstat(descriptor), os.stat(file))
    except (BlockingIOError, FileNotFoundError):
        return False
    except OSError:  # a file system without locks: a concurrent write may be lost, but the task goes on
        return True


def _read(file: str) -> list[dict]:
    """Return the runs of a report, none when it is empty or damaged; raise OSError."""
    try:
        with open(file, encoding="utf-8") as report:
            runs = json.load(report)["runs"]
        return runs if all(run.keys() >= _RUN for run in runs) else []
    except (ValueError, KeyError, TypeError, AttributeError):
        return []


@contextmanager
def _replacement(file: str) -> Iterator[str]:
    """Yield the path of a new, empty file in the same directory, and remove it if it is still there at the end."""
    new = f"{file}.{uuid.uuid4().hex}.new"
    try:
        with open(new, "x", encoding="utf-8"):
            yield new
    finally:
        with suppress(OSError):
            os.unlink(new)


def _replace(file: str, text: str) -> None:
    """Replace a file atomically, keeping its mode; raise OSError."""
    with _replacement(file) as new:
        with open(new, "w", encoding="utf-8") as to:
            to.write(text)
        with suppress(FileNotFoundError):
            shutil.copymode(file, new)
        os.replace(new, file)
