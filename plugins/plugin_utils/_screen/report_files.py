# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The two files of a report: which files may be replaced, atomically and by one task at a time."""

from __future__ import annotations

import fcntl
import os
import shutil
import uuid
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Callable, Iterator

from ...module_utils._errors import InvalidInput
from .report import JSON_HEAD, XML_HEAD, as_json, as_xml, from_json

_XML = ".xml"
_LEDGER_FILES = ("", "-journal", ".lock")
_ERRORS = (OSError, ValueError)  # ValueError: ours, and a path that contains NUL or a lone surrogate


def require_writable(path: str, ledger_file: str) -> None:
    """Raise InvalidInput for a path to which `write` could not write; change no file.

    `path`: of the JSON file, absolute; `ledger_file`: the real path of the SQLite file, empty when there is none.
    """
    try:
        for file in _files(path, ledger_file):
            with _replacement(file):
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
        with _alone_in(os.path.dirname(file)):
            before = Path(file).read_text("utf-8", "replace") if os.path.exists(file) else ""
            runs = change(from_json(before))
            _replace(xml_file, as_xml(runs))
            _replace(file, as_json(runs))
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
def _alone_in(directory: str) -> Iterator[None]:
    """Exclude all other tasks, of this run and of others, where the file system has locks."""
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        with suppress(OSError):
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


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
