# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The files of a report: what they say, which may be replaced, atomically and by one task at a
time.

All tasks of one run of Ansible share its report; the first of them that ends replaces the report of
an earlier run.
"""

from __future__ import annotations

import json
import os
from datetime import datetime, timezone
from pathlib import Path
from typing import NamedTuple

from ...module_utils._call.operation import Operation
from ...module_utils._errors import NOT_SENT, InvalidInput, message_of
from ...module_utils._http import strict_json
from .._ledger.entries import author
from .._ledger.location import shown_location
from .._ledger.paths import real_path
from .formats import FORMAT, FORMATS, PLANNED
from .output import alone_in, opened, replace, replacement, text_of
from .screen import NOT_LISTED, standing, tally

_LEDGER_FILES = ("", "-journal", ".lock")
_ERRORS = (
    OSError,
    ValueError,
)  # ValueError: ours, and a path that contains NUL or a lone surrogate
_FIELDS = (
    *(
        "outcome",
        "changed",
        "failed",
        "skipped",
        "status",
        "request_attempts",
        "begun_after",
        "seconds",
        "waits",
    ),
    *("trace_id", "msg", "plan", "differs", "lost", "body", "known", "changes", "unsent"),
)
_RUN = {"run", "state", "service", "began_at", "counts", "assets"}
_SENDS = ("create", "update")  # the plans of assets that are sent
_ASSET = {"resource", "name", "result", "outcome", "failed"}


class AboutLedger(NamedTuple):
    """What a report says of the ledger of a list."""

    ledger_id: str | None = None  # None if there is no ledger, or none yet
    history_rows: int = 0
    warnings: tuple[str, ...] = ()  # about the whole list


class ApprovedPlan(NamedTuple):
    """A plan that was approved."""

    path: str
    bodies: dict[str, dict]  # what it sends, by name or id
    ledger: str | None  # the place, without a password; None if it was made without a ledger
    ledger_id: str | None  # None if there was no ledger yet
    history_rows: int  # of the ledger when the plan was made

    def require_ledger(self, place: str | None, ledger_id: str | None) -> None:
        """Raise InvalidInput unless the plan was made against this ledger; both are None without a
        ledger.
        """
        is_same_place = (
            self.ledger and place and os.path.realpath(self.ledger) == os.path.realpath(place)
        )
        if self.ledger_id == ledger_id if self.ledger_id else self.ledger == place or is_same_place:
            return
        made = f"against the ledger {self.ledger}" if self.ledger else "without a ledger"
        here = f"{place}{'' if ledger_id else ', which does not exist yet'}" if place else "none"
        raise InvalidInput(
            "approved",
            f"{self.path!r} was made {made}, and the ledger of this list is {here}. Check the ledger, or make a new"
            " plan (--check) and have it approved",
        )


class Report:
    """The report of the run that a task belongs to, which adds its results when it ends."""

    def __init__(self, path: str, ledger: str, run: str, service: str, is_plan: bool) -> None:
        """Raise InvalidInput for a path that could not be written to; change no file.

        `path`: of the JSON file, absolute; `ledger`: its location, empty when there is none; `run`:
        names the run of Ansible; `service`: its canonical base_url.
        """
        self._path, self._ledger_file, self._is_plan = (
            path,
            ledger and os.path.realpath(ledger),
            is_plan,
        )
        base = os.path.splitext(min(os.path.relpath(path), path, key=len))[0]
        self.where = (
            f"plan: {base}.plan.html, .json, .md"
            if is_plan
            else f"report: {base}.html, .json, .xml"
        )
        about = dict(service=service, ledger=shown_location(ledger) if ledger else None)
        self._run = dict(
            run=run, state=PLANNED if is_plan else "ended", **about, by=author(), began_at=_now()
        )
        try:
            for file in (files := [*self._files()]):
                with replacement(file):
                    pass
            self._before(files[-1])
        except _ERRORS as error:
            advice = "Give a new file in a directory that exists, or an earlier report"
            raise InvalidInput("report", f"{self._problem(error)}. {advice}") from None

    def add(self, operation: Operation, result: dict, about: AboutLedger | None = None) -> str:
        """Replace the report by one that has the result of a list, too; return why not, empty on
        success.

        Others wait meanwhile. A file that is neither empty nor a report is left unchanged.
        """
        try:
            files = self._files()
            *_others, file = files
            with alone_in(os.path.dirname(file)):
                run = self._with(self._before(file), operation, result, about or AboutLedger())
                for name, render in files.items():
                    replace(name, render(run))
        except _ERRORS as error:
            return f"report: {self._problem(error)}. The task was done, and its result is complete; the report lacks it"
        return ""

    def _before(self, file: str) -> dict:
        """Return what other tasks of this run have reported; raise ValueError if it is of another
        service or ledger.
        """
        own, before = self._run, _run_in(text_of(file))
        if any(before.get(name) != own[name] for name in ("run", "state")):
            return dict(own, counts={}, assets=[])
        for name in ("service", "ledger"):
            if before.get(name) != own[name]:
                there, here = before.get(name) or "none", own[name] or "none"
                raise ValueError(f"in it this run has the {name} {there}, and this list has {here}")
        return before

    def _with(self, before: dict, operation: Operation, result: dict, about: AboutLedger) -> dict:
        """Return the run with the assets of a result, after those that its other tasks have
        reported.
        """
        own, resource = self._run, operation.resource
        listed = [_asset(operation, item) for item in result["results"]]
        found = {
            (resource, asset["name"]) for asset in listed
        }  # by this task; another one may not list them
        assets = [
            asset
            for asset in before["assets"]
            if asset["result"] != NOT_LISTED or _key(asset) not in found
        ]
        assets += listed
        gone = dict(
            resource=resource,
            outcome=NOT_SENT,
            changed=False,
            failed=False,
            skipped=True,
            result=NOT_LISTED,
        )
        known = {*map(_key, assets)}
        assets += [
            {**gone, "name": name}
            for name in result.get("not_listed", ())
            if (resource, name) not in known
        ]
        standings = [asset["result"] for asset in assets if asset["resource"] == resource]
        counts = {**before["counts"], resource: tally(operation, standings, self._is_plan)}
        return {
            **own,
            **self._of_ledger(before, about),
            "began_at": min(own["began_at"], before["began_at"]),
            "ended_at": _now(),
            "counts": {name: words for name, words in counts.items() if words},
            "assets": assets,
        }

    def _of_ledger(self, before: dict, about: AboutLedger) -> dict:
        """Return what the run says of the ledger; a plan has the length of the history, with which
        it is approved.
        """
        rows = before.get(
            "history_rows", about.history_rows
        )  # as the first list of the plan found it
        return {
            "ledger_id": about.ledger_id or before.get("ledger_id"),
            **({"history_rows": rows} if self._is_plan else {}),
            "warnings": [*dict.fromkeys([*before.get("warnings", ()), *about.warnings])],
        }

    def _problem(self, error: Exception) -> str:
        return f"{self._path!r} cannot be written: {getattr(error, 'strerror', None) or error}"

    def _files(self) -> dict:
        """Return what makes the text of each file, by its real path, that of the JSON file last.

        That has the path as it was given, unless its suffix is that of another format. Raise
        OSError or ValueError unless all are usable.
        """
        (base, given), files = os.path.splitext(self._path), {}
        base = (
            f"{base}.plan" if self._is_plan else base
        )  # a plan never replaces the report of a run
        for suffix, (head, render) in FORMATS.items():
            if self._is_plan or suffix != ".md":
                path = (
                    f"{base}{given}"
                    if suffix == ".json" and given not in FORMATS
                    else f"{base}{suffix}"
                )
                files[_usable(path, head, self._ledger_file)] = render
        return files


def approved_plan(path: str, resource: str, service: str) -> ApprovedPlan:
    """Return the plan in a file; raise InvalidInput for a file that is no plan of the service.

    `path`: absolute; `resource`: of the bodies; `service`: its canonical base_url.
    """
    try:
        text = Path(path).read_text("utf-8") if os.path.isfile(path) else ""
    except _ERRORS as error:
        why = getattr(error, "strerror", None) or error
        raise InvalidInput("approved", f"{path!r} cannot be read: {why}") from None
    run = _run_in(text)
    if run.get("state") != PLANNED:
        why = f"{path!r} is no plan of this collection; give the .plan.json of a run with --check and report"
        raise InvalidInput("approved", why)
    if run["service"] != service:
        raise InvalidInput(
            "approved", f"{path!r} is a plan for {run['service']}, and this list is for {service}"
        )
    planned = [
        asset
        for asset in run["assets"]
        if asset["resource"] == resource and asset.get("plan") in _SENDS
    ]
    bodies = {asset["name"]: asset.get("body") for asset in planned}
    rows = run.get("history_rows")
    if (
        len(bodies) < len(planned)
        or not all(isinstance(body, dict) for body in bodies.values())
        or not isinstance(rows, int)
        or rows < 0
    ):
        why = "it has an asset twice, one without its body, or no history_rows"
        raise InvalidInput("approved", f"{path!r} is damaged: {why}")
    return ApprovedPlan(path, bodies, run.get("ledger"), run.get("ledger_id"), rows)


def _now() -> str:
    return datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")


def _run_in(text: str) -> dict:
    """Return the run of a report, empty when the text is empty or damaged."""
    try:
        whole = json.loads(text, object_pairs_hook=strict_json.unique_members)
        (run,) = whole["runs"] if whole["format"] == FORMAT else ()
        is_whole = all(
            asset.keys() >= _ASSET and isinstance(asset["name"], str) for asset in run["assets"]
        )
        return run if is_whole and run.keys() >= _RUN else {}
    except (ValueError, KeyError, TypeError, AttributeError, IndexError, RecursionError):
        return {}


def _key(asset: dict) -> tuple[str, str]:
    return asset["resource"], asset["name"]


def _asset(operation: Operation, item: dict) -> dict:
    """Return what a report says of an item of a list; what it does not know is left out."""
    asset, said = item.get("asset") or {}, message_of(item)
    attributes = asset.get("attributes")
    told = {
        "resource": operation.resource,
        "name": item["item"],
        "result": standing(operation, item),
        "id": asset.get("id"),
        "address": attributes.get("ip") if isinstance(attributes, dict) else None,
        **{field: item.get(field) for field in _FIELDS},
        "msg": str(said),
        "cause": said.text,
        "command": said.command,
        "since": said.since,
    }
    return {name: value for name, value in told.items() if value not in (None, "", [])}


def _usable(path: str, head: str, ledger_file: str) -> str:
    """Return the real path of a file that may be replaced; open none that could block or that
    opening would change.
    """
    file = real_path(path)
    if ledger_file and file in {f"{ledger_file}{suffix}" for suffix in _LEDGER_FILES}:
        raise ValueError(f"{path} is a file of the ledger")
    if not os.path.lexists(file):
        return file
    if not os.path.isfile(file):
        raise ValueError(f"{path} is not a regular file")
    with opened(file, os.O_RDWR) as found:
        if found.read(len(head)) not in ("", head):
            raise ValueError(f"{path} exists and is not a report")
    return file
