# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The files of a report: their content, and which files may be replaced.

All tasks of one run of Ansible share its report. The first of them that ends replaces the report of
an earlier run. An asset has one row, and another for each further effect, problem or plan.
"""

from __future__ import annotations

import json
import os
from dataclasses import replace as with_fields
from typing import NamedTuple

from ...module_utils._call.operation import Operation
from ...module_utils._errors import NOT_SENT, REJECTED, InvalidInput
from ...module_utils._fields import json_differences
from ...module_utils._http import strict_json
from .._ledger.entries import author, current_time
from .._ledger.ledger_file import BESIDE
from .._ledger.location import shown_location
from .._ledger.paths import real_path
from .assets import (
    ENDED,
    IN_DOUBT,
    NOT_LISTED,
    NOT_STARTED,
    PLANNED,
    UNCHANGED,
    Asset,
    Run,
    tally,
)
from .formats import FORMAT, FORMATS, Format
from .output import alone_in, opened, replace, replacement, text_of

# ValueError: ours, and a path that contains NUL or a lone surrogate
_ERRORS = (OSError, ValueError)
_DAMAGES = (ValueError, KeyError, TypeError, AttributeError, IndexError, RecursionError)
_NOT_TRIED = (NOT_LISTED, NOT_STARTED)


class AboutList(NamedTuple):
    """Facts about a whole list and its ledger."""

    ledger_id: str | None = None  # None if there is no ledger, or none yet
    history_rows: int = 0
    history_end: str = ""  # identifies the last of these rows
    warnings: tuple[str, ...] = ()
    interrupted: str | None = None  # why, if it was
    is_forced: bool = False  # whether it sends again what the ledger has


class Report:
    """The report of the run that a task belongs to, which adds its results when it ends."""

    def __init__(self, path: str, ledger: str, run: str, service: str, is_plan: bool) -> None:
        """Raise InvalidInput for a path that could not be written to; change no file.

        `path`: of the JSON file, absolute; `ledger`: its location, empty when there is none; `run`:
        names the run of Ansible; `service`: its canonical base_url.
        """
        self._path = path
        self._is_plan = is_plan
        self._ledger_file = os.path.realpath(ledger) if ledger else ""
        self._new = Run(
            run=run,
            state=PLANNED if is_plan else ENDED,
            service=service,
            ledger=shown_location(ledger) if ledger else None,
            by=author(),
            began_at=current_time(),
            counts={},
            assets=[],
        )
        try:
            files = self._files()
            for file in files:
                with replacement(file):
                    pass
            self._before([*files][-1])
        except _ERRORS as error:
            advice = "Give a new file in a directory that exists, or an earlier report"
            raise InvalidInput("report", f"{self._problem(error)}. {advice}") from None

    @property
    def where(self) -> str:
        """The line with the paths of the files: the first one, and the suffixes of the others."""
        base = self._base_of(min(os.path.relpath(self._path), self._path, key=len))
        suffixes = sorted(self._formats())
        return f"{'plan' if self._is_plan else 'report'}: {base}{', '.join(suffixes)}"

    def add_list(self, operation: Operation, assets: list[Asset], about: AboutList) -> str:
        """Add the assets of a list to the report; return why that failed, empty on success.

        Others wait meanwhile. A file that is neither empty nor a report is left unchanged.
        """
        try:
            files = self._files()
            json_file = [*files][-1]
            with alone_in(os.path.dirname(json_file)):
                run = self._with(self._before(json_file), operation, assets, about)
                for file, form in files.items():
                    replace(file, form.text_of(run, json_file))
        except _ERRORS as error:
            done = "The task was done, and its result is complete; the report lacks it"
            return f"report: {self._problem(error)}. {done}"
        return ""

    def _before(self, file: str) -> Run:
        """Return the report of the other tasks of this run.

        Raise ValueError if it is of another service or ledger.
        """
        own = self._new
        before = run_in(text_of(file))
        if before is None or (before.run, before.state) != (own.run, own.state):
            return own
        for name in ("service", "ledger"):
            there = getattr(before, name)
            here = getattr(own, name)
            if there != here:
                there = there or "none"
                here = here or "none"
                raise ValueError(f"in it this run has the {name} {there}, and this list has {here}")
        return before

    def _with(
        self, before: Run, operation: Operation, listed: list[Asset], about: AboutList
    ) -> Run:
        """Return the run with the assets of a list, after those that its other tasks reported."""
        may_repeat = about.is_forced or before.ledger is None
        assets = _added(before.assets, listed, may_repeat)
        of_resource = [asset for asset in assets if asset.resource == operation.resource]
        counts = {**before.counts, operation.resource: tally(operation, of_resource, self._is_plan)}
        rows, end = about.history_rows, about.history_end or None
        if before.history_rows is not None:
            rows, end = before.history_rows, before.history_end
        return with_fields(
            before,
            began_at=min(self._new.began_at, before.began_at),
            ended_at=current_time(),
            counts={resource: words for resource, words in counts.items() if words},
            assets=assets,
            ledger_id=about.ledger_id or before.ledger_id,
            warnings=[*dict.fromkeys([*before.warnings, *about.warnings])],
            interrupted=about.interrupted or before.interrupted,
            # As the first list of the plan found the ledger.
            history_rows=rows if self._is_plan else None,
            history_end=end if self._is_plan else None,
        )

    def _problem(self, error: Exception) -> str:
        return f"{self._path!r} cannot be written: {getattr(error, 'strerror', None) or error}"

    def _files(self) -> dict[str, Format]:
        """Return the format of each file by its real path, the JSON file last.

        Raise OSError or ValueError unless all are usable.
        """
        base = self._base_of(self._path)
        return {
            _usable(f"{base}{suffix}", form.head, self._ledger_file): form
            for suffix, form in self._formats().items()
        }

    def _base_of(self, path: str) -> str:
        """Return the start that the paths of all files share."""
        base = os.path.splitext(path)[0]
        # A plan never replaces the report of a run.
        return f"{base}.plan" if self._is_plan else base

    def _formats(self) -> dict[str, Format]:
        """Return the format of each file by its suffix, the JSON file last.

        The JSON file has the given suffix, or none, unless that is the suffix of another format.
        """
        formats = dict(FORMATS)
        if not self._is_plan:
            del formats[".md"]
        given = os.path.splitext(self._path)[1]
        if given not in FORMATS:
            formats[given] = formats.pop(".json")
        return formats


def _added(before: list[Asset], listed: list[Asset], may_repeat: bool) -> list[Asset]:
    """Return the assets of several lists; `may_repeat`: whether the last one sends again."""
    rows: dict[tuple[str, str], list[Asset]] = {}
    for asset in before:
        rows.setdefault(_key(asset), []).append(asset)
    for asset in listed:
        key = _key(asset)
        left = [row for row in rows.get(key, []) if not _is_replaced(row, asset)]
        is_new = may_repeat and bool(asset.plan) and asset.changed
        if is_new or not any(_covers(row, asset) for row in left):
            rows.pop(key, None)
            left.append(asset)
        rows[key] = left
    return [row for each in rows.values() for row in each]


def _is_replaced(row: Asset, later: Asset) -> bool:
    """Return whether a row changed nothing and is outdated by a later row of the same asset."""
    if row.plan or later.result == NOT_LISTED:
        return False
    if later.result == NOT_STARTED and row.result not in _NOT_TRIED:
        return False
    had_no_effect = not row.changed and row.outcome in (NOT_SENT, REJECTED)
    return had_no_effect or row.result == UNCHANGED


def _covers(row: Asset, later: Asset) -> bool:
    """Return whether a later row of the same asset adds nothing to a row."""
    if later.result in _NOT_TRIED:
        return True
    if later.plan:
        return row.plan == later.plan and not json_differences(row.body, later.body)
    if later.result == UNCHANGED:
        return row.changed and row.result != IN_DOUBT and later.id in (None, row.id)
    return row.result == later.result == IN_DOUBT and not later.request_attempts


def _key(asset: Asset) -> tuple[str, str]:
    return asset.resource, asset.name


def run_in(text: str) -> Run | None:
    """Return the run of a report, None if the text is empty or damaged."""
    try:
        whole = json.loads(text, object_pairs_hook=strict_json.unique_members)
        (run,) = whole["runs"]
        assets = [Asset(**asset) for asset in run["assets"]]
        found = Run(**{**run, "assets": assets})
        return found if whole["format"] == FORMAT and _has_texts(found) else None
    except _DAMAGES:
        return None


def _has_texts(run: Run) -> bool:
    """Whether the fields that other code takes for texts are texts."""
    texts: list[object] = [run.run, run.state, run.service, run.began_at]
    may_lack = (run.ledger, run.ledger_id, run.history_end)
    texts += (text for text in may_lack if text is not None)
    for asset in run.assets:
        texts += (asset.resource, asset.name, asset.result, asset.outcome, asset.plan)
    return all(isinstance(text, str) for text in texts)


def _usable(path: str, head: str, ledger_file: str) -> str:
    """Return the real path of a file that may be replaced.

    Open none that could block, or that opening would change. Raise OSError or ValueError.
    """
    file = real_path(path)
    if ledger_file and file in [f"{ledger_file}{end}" for end in ("", *BESIDE)]:
        raise ValueError(f"{path} is a file of the ledger")
    if not os.path.lexists(file):
        return file
    if not os.path.isfile(file):
        raise ValueError(f"{path} is not a regular file")
    with opened(file, os.O_RDWR) as found:
        if found.read(len(head)) not in ("", head):
            raise ValueError(f"{path} exists and is not a report")
    return file
