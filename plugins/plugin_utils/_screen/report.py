# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The files of a report: what they say, which may be replaced, atomically and by one task at a time.

All tasks of one run of Ansible share its report; the first of them that ends replaces the report of an earlier run.
"""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import uuid
from contextlib import contextmanager, suppress
from datetime import datetime, timezone
from pathlib import Path
from typing import Iterator

from ...module_utils._call.operation import Operation
from ...module_utils._errors import NOT_SENT, InvalidInput, in_words
from .formats import FORMATS, PLANNED
from .screen import NOT_LISTED, note, standing, tally

_LEDGER_FILES = ("", "-journal", ".lock")
_ERRORS = (OSError, ValueError)  # ValueError: ours, and a path that contains NUL or a lone surrogate
_FIELDS = ("outcome", "changed", "failed", "skipped", "status", "begun_after", "seconds", "trace_id", "msg")
_RUN = {"run", "state", "began_at", "counts", "assets"}
_ASSET = {"resource", "name", "result", "outcome", "failed"}


class Report:
    """The report of the run that a task belongs to, which adds its results when it ends."""

    def __init__(self, path: str, ledger_file: str, run: str, is_plan: bool) -> None:
        """Raise InvalidInput for a path that could not be written to; change no file.

        `path`: of the JSON file, absolute; `ledger_file`: the real path of the SQLite file, empty when there is none;
        `run`: names the run of Ansible.
        """
        self._path, self._ledger_file, self._is_plan = path, ledger_file, is_plan
        self._run = dict(run=run, state=PLANNED if is_plan else "ended", began_at=_now())
        try:
            for file in self._files():
                with _replacement(file):
                    pass
        except _ERRORS as error:
            advice = "Give a new file in a directory that exists, or an earlier report"
            raise InvalidInput("report", f"{self._problem(error)}. {advice}") from None

    def add(self, operation: Operation, result: dict) -> str:
        """Replace the report by one that has the result of a list, too; return why not, empty on success.

        Others wait meanwhile. A file that is neither empty nor a report is left unchanged.
        """
        try:
            files = self._files()
            *_others, file = files
            with _alone_in(os.path.dirname(file)):
                before = Path(file).read_text("utf-8", "replace") if os.path.exists(file) else ""
                run = self._with(_run_in(before), operation, result)
                for name, render in files.items():
                    _replace(name, render(run))
        except _ERRORS as error:
            return f"report: {self._problem(error)}. The task was done, and its result is complete; the report lacks it"
        return ""

    def _with(self, before: dict, operation: Operation, result: dict) -> dict:
        """Return the run with the assets of a result, after those that its other tasks have reported."""
        own, resource = self._run, operation.resource
        if any(before.get(name) != own[name] for name in ("run", "state")):
            before = dict(own, counts={}, assets=[])
        listed = [_asset(operation, item) for item in result["results"]]
        found = {(resource, asset["name"]) for asset in listed}  # by this task; another one may not list them
        assets = [asset for asset in before["assets"] if asset["result"] != NOT_LISTED or _key(asset) not in found]
        assets += listed
        gone = dict(resource=resource, outcome=NOT_SENT, changed=False, failed=False, skipped=True, result=NOT_LISTED)
        known = {*map(_key, assets)}
        assets += [{**gone, "name": name} for name in result.get("not_listed", ()) if (resource, name) not in known]
        standings = [asset["result"] for asset in assets if asset["resource"] == resource]
        counts = {**before["counts"], resource: tally(operation, standings, self._is_plan)}
        return {
            **own,
            "began_at": min(own["began_at"], before["began_at"]),
            "ended_at": _now(),
            "counts": {name: words for name, words in counts.items() if words},
            "assets": assets,
        }

    def _problem(self, error: Exception) -> str:
        return f"{self._path!r} cannot be written: {getattr(error, 'strerror', None) or error}"

    def _files(self) -> dict:
        """Return what makes the text of each file, by its real path, that of the JSON file last.

        That has the path as it was given, unless its suffix is that of another format. Raise OSError or ValueError
        unless all are usable.
        """
        (base, given), files = os.path.splitext(self._path), {}
        for suffix, (head, render) in FORMATS.items():
            if self._is_plan or suffix != ".md":
                path = self._path if suffix == ".json" and given not in FORMATS else f"{base}{suffix}"
                files[_usable(path, head, self._ledger_file)] = render
        return files


def _now() -> str:
    return datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")


def _run_in(text: str) -> dict:
    """Return the run of a report, empty when the text is empty or damaged."""
    try:
        run = json.loads(text)["runs"][0]
        return run if run.keys() >= _RUN and all(asset.keys() >= _ASSET for asset in run["assets"]) else {}
    except (ValueError, KeyError, TypeError, AttributeError, IndexError):
        return {}


def _key(asset: dict) -> tuple[str, str]:
    return asset["resource"], asset["name"]


def _asset(operation: Operation, item: dict) -> dict:
    given = in_words({field: item[field] for field in _FIELDS if item.get(field) not in (None, "")})
    said = {"note": note(operation, item)} if item.get("plan", "keep") != "keep" else {}
    return {"resource": operation.resource, "name": item["item"], "result": standing(operation, item), **given, **said}


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
