# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The two files of a report: which files may be replaced, atomically and by one task at a time."""

from __future__ import annotations

import fcntl
import os
import shutil
import time
import uuid
from contextlib import contextmanager, suppress
from typing import Callable, Iterator

from ...module_utils._errors import InvalidInput
from .report import JSON_HEAD, XML_HEAD, as_json, as_xml, from_json

_XML = ".xml"
_LEDGER_FILES = ("", "-journal", ".lock")
_LOCK_TIMEOUT = 60.0  # seconds to wait for another task, each of which takes milliseconds
_ERRORS = (OSError, ValueError)  # ValueError: ours, and a path that contains NUL or a lone surrogate


def require_writable(path: str, ledger_file: str) -> None:
    """Raise InvalidInput for a path to which `write` could not write; change no file.

    `path`: of the JSON file, absolute; `ledger_file`: the real path of the SQLite file, empty when there is none.
    """
    try:
        files = _files(path, ledger_file)
        for file in files:
            with _replacement(file):
                pass
        if os.path.exists(files[0]):
            with _exclusive(files[0]):
                pass
    except _ERRORS as error:
        advice = "Nothing was sent. Give a new file in a directory that exists, or an earlier report"
        raise InvalidInput("report", f"{_problem(path, error)}. {advice}") from None


def write(path: str, ledger_file: str, change: Callable[[list[dict]], list[dict]]) -> str:
    """Replace the report by what `change` makes of its runs, while others wait; return why not, empty on success.

    A file that is neither empty nor a report is left unchanged.
    """
    try:
        file, xml_file = _files(path, ledger_file)
        with _exclusive(file):
            with open(file, encoding="utf-8", errors="replace") as report:
                runs = change(from_json(report.read()))
            _replace(xml_file, as_xml(runs))
            _replace(file, as_json(runs))  # last, as the lock goes with it
    except _ERRORS as error:
        return f"report: {_problem(path, error)}. The task was done, and its result is complete; the report lacks it"
    return ""


def _problem(path: str, error: Exception) -> str:
    is_missing = isinstance(error, FileNotFoundError)
    why = "its directory does not exist" if is_missing else getattr(error, "strerror", None) or error
    return f"{path!r} cannot be written: {why}"


def _files(path: str, ledger_file: str) -> tuple[str, str]:
    """Return the real paths of the JSON file and the XML file; raise OSError or ValueError unless both are usable."""
    xml_path = f"{os.path.splitext(path)[0]}{_XML}"
    file, xml_file = _usable(path, JSON_HEAD, ledger_file), _usable(xml_path, XML_HEAD, ledger_file)
    if file == xml_file:
        raise ValueError(f"it is for JSON, with JUnit XML in a file next to it, so it must not end in {_XML}")
    return file, xml_file


def _usable(path: str, head: str, ledger_file: str) -> str:
    """Return the real path of a file that may be replaced; open none that could block or that opening would change."""
    file = os.path.realpath(path)
    if ledger_file and file in {f"{ledger_file}{suffix}" for suffix in _LEDGER_FILES}:
        raise ValueError(f"{path} is a file of the ledger")
    if not os.path.lexists(file):
        return file
    if not os.path.isfile(file):
        raise ValueError(f"{path} is not a regular file")
    with open(os.open(file, os.O_RDWR | os.O_NONBLOCK), "rb") as found:
        if found.read(len(head)) not in (b"", head.encode()):
            raise ValueError(f"{path} exists and is not a report")
    return file


@contextmanager
def _exclusive(file: str) -> Iterator[None]:
    """Exclude all other tasks, of this run and of others; create the file if there is none."""
    deadline = time.monotonic() + _LOCK_TIMEOUT
    while time.monotonic() < deadline:
        with open(os.open(file, os.O_RDWR | os.O_CREAT | os.O_NONBLOCK, 0o666), "rb") as held:
            if _is_locked(held.fileno(), file):
                yield
                return
        time.sleep(0.01)
    raise ValueError("another program keeps it locked")


def _is_locked(descriptor: int, file: str) -> bool:
    """Lock an open file; return False when another task holds the lock, or has replaced the file."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return os.path.samestat(os.fstat(descriptor), os.stat(file))
    except (BlockingIOError, FileNotFoundError):
        return False
    except OSError:  # a file system without locks: a concurrent write may be lost, but the task goes on
        return True


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
