# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What came of each asset of a run, as a file: JSON, and JUnit XML beside it.

A run that begins says so in the file. One that finds there a run that did not end adds what the ledger knows of it.
"""

from __future__ import annotations

import json
import os
from contextlib import contextmanager
from datetime import datetime, timezone
from typing import Any, Callable, Iterator

from ...module_utils._errors import ACCEPTED, UNKNOWN, InvalidInput
from . import junit
from .entries import INTENT
from .store import Ledger

RUNNING, ENDED, KILLED = "running", "ended", "killed"
_FIELDS = ("outcome", "changed", "failed", "skipped", "status", "seconds", "trace_id", "msg")
_DIED = (
    "The process died while the request was on its way, so it may or may not have been processed."
    " The next run says what to do."
)


@contextmanager
def reported(
    path: str, resource: str, run: str, ledger: Ledger | None, warn: Callable[[str], None]
) -> Iterator[list[dict]]:
    """Write the results that are put into the list, at the end of the context, however it comes; no path, no report.

    `path`: of the JSON file, absolute; `resource`: the module of a single asset; `run`: names the run of Ansible, whose
    tasks add to each other's report; `warn`: told when it cannot be written at the end. Raises InvalidInput when it
    cannot be written at the start, and LedgerError.
    """
    items: list[dict] = []
    if not path:
        yield items
        return
    if path.endswith(junit.SUFFIX):
        raise InvalidInput(
            "report", f"is the JSON file, so it must not end in {junit.SUFFIX}: JUnit XML goes beside it"
        )
    try:
        runs = _begun(path, run, ledger)
        _write(path, runs)
    except OSError as error:
        raise InvalidInput("report", f"{path} cannot be written: {error.strerror}. Nothing was sent") from None
    try:
        yield items
    finally:
        runs[-1]["assets"] += [_asset(resource, item["item"], item) for item in items]
        runs[-1].update(state=ENDED, ended_at=_now())
        try:
            _write(path, runs)
        except OSError as error:
            warn(f"report: {path} cannot be written: {error.strerror}. The results of the tasks are complete.")


def _begun(path: str, run: str, ledger: Ledger | None) -> list[dict]:
    """Return what the file is to say at the start, this run last."""
    runs = _read(path)
    if runs and runs[-1]["run"] == run:
        runs[-1].update(state=RUNNING, ended_at=None)
        return runs
    killed = [_completed(one, ledger) for one in runs if one["state"] == RUNNING]
    return [*killed, dict(run=run, state=RUNNING, began_at=_now(), ended_at=None, assets=[])]


def _completed(one: dict, ledger: Ledger | None) -> dict:
    """Return a run that did not end with what the ledger knows of it."""
    told = {(asset["resource"], asset["name"]): asset for asset in one["assets"]}
    where = {"run = ?": (one["run"],)}
    for key, ended in ledger.history(where) if ledger else ():
        if ended.seconds is not None:  # else it was edited by hand
            failed = ended.outcome != ACCEPTED or ended.message != ""
            item = dict(ended._asdict(), changed=ended.outcome == ACCEPTED, failed=failed, msg=ended.message)
            told.setdefault(key[1:], _asset(key.resource, key.name, item))
    for key, entry in ledger.entries({**where, "state = ?": (INTENT,)}, lambda name: True) if ledger else ():
        item = dict(outcome=UNKNOWN, changed=True, failed=True, msg=_DIED, trace_id=entry.trace_id)
        told[key[1:]] = _asset(key.resource, key.name, item)
    return dict(one, state=KILLED, assets=list(told.values()))


def _asset(resource: str, name: str, item: dict) -> dict[str, Any]:
    given = {field: item[field] for field in _FIELDS if item.get(field) not in (None, "")}
    return {"resource": resource, "name": name, **given}


def _read(path: str) -> list[dict]:
    """Return the runs of a report, none when there is none that is one; raise OSError."""
    try:
        with open(path, encoding="utf-8") as file:
            runs = json.load(file)["runs"]
        return runs if all({"run", "state", "assets"} <= one.keys() for one in runs) else []
    except (FileNotFoundError, ValueError, KeyError, TypeError, AttributeError):
        return []


def _write(path: str, runs: list[dict]) -> None:
    """Replace both files, each at once; raise OSError."""
    for file, text in ((path, json.dumps({"runs": runs}, indent=1)), (junit.beside(path), junit.document(runs))):
        with open(f"{file}.new", "w", encoding="utf-8") as new:
            new.write(f"{text}\n")
        os.replace(f"{file}.new", file)


def _now() -> str:
    return datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
