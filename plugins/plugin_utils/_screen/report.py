# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Writes the result of each asset of a run to a file: JSON, and JUnit XML next to it.

A run that begins says so in the file. If it finds an earlier run there that never ended, it adds what the ledger knows
of that run.
"""

from __future__ import annotations

from contextlib import contextmanager
from datetime import datetime, timezone
from typing import Any, Callable, Iterator

from ...module_utils._errors import ACCEPTED, UNKNOWN, InvalidInput
from .._ledger.entries import INTENT
from .._ledger.store import Ledger
from .report_files import ReportError, edited

RUNNING, ENDED, KILLED = "running", "ended", "killed"
_FIELDS = ("outcome", "changed", "failed", "skipped", "status", "seconds", "trace_id", "msg")
_REPLACED = (
    "the file was replaced or removed while the task was running, so results of other tasks of this run may be missing."
    " The task was done, and its results are in the report. Give each run its own report"
)
_DIED = (
    "The process died while the request was in flight, so it may or may not have been processed."
    " The playbook infrastructure.services.in_doubt says what to do."
)


@contextmanager
def reported(
    path: str, resource: str, run: str, ledger: Ledger | None, warn: Callable[[str], None]
) -> Iterator[list[dict]]:
    """Yield a list, and write the results in it when the context ends, however it ends; without a path do nothing.

    `path`: of the JSON file, absolute; `resource`: the module for a single asset; `run`: names the run of Ansible,
    whose tasks share one report; `warn`: called when it cannot be written at the end. Raises InvalidInput when it
    cannot be written at the start or is no report, and LedgerError.
    """
    items: list[dict] = []
    if not path:
        yield items
        return
    ledger_file = ledger.file if ledger else ""
    try:
        with edited(path, ledger_file) as runs:
            _begin(runs, run, ledger)
    except ReportError as error:
        raise InvalidInput(
            "report", f"{error}. Nothing was sent. Give a new file in a directory that exists, or an earlier report"
        ) from None
    try:
        yield items
    finally:
        try:
            with edited(path, ledger_file) as runs:
                problem = _end(runs, run, [_asset(resource, item["item"], item) for item in items])
        except ReportError as error:
            problem = f"{error}. The task was done, and its result is complete; the report lacks it"
        if problem:
            warn(f"report: {problem}")


def _begin(runs: list[dict], run: str, ledger: Ledger | None) -> None:
    """Mark this run as running, and complete the runs that never ended."""
    if not any(one["run"] == run for one in runs):
        runs[:] = [_completed(one, ledger) for one in runs if one["state"] == RUNNING]
    _own(runs, run).update(state=RUNNING, ended_at=None)
    _own(runs, run)["tasks_at_work"] += 1


def _end(runs: list[dict], run: str, assets: list[dict]) -> str:
    """Add the results of a task; return why the report may be incomplete, empty when it is complete.

    Another run may have assumed that this one was killed, and added what the ledger knew of it so far.
    """
    is_there = any(one["run"] == run for one in runs)
    own = _own(runs, run)
    own["assets"] = [*(asset for asset in own["assets"] if not asset.get("from_ledger")), *assets]
    own["tasks_at_work"] = max(own["tasks_at_work"] - 1, 0)
    own.update(dict(state=RUNNING, ended_at=None) if own["tasks_at_work"] else dict(state=ENDED, ended_at=_now()))
    return "" if is_there else _REPLACED


def _own(runs: list[dict], run: str) -> dict:
    """Return the report of this run; add it if there is none."""
    for one in runs:
        if one["run"] == run:
            return one
    runs.append(dict(run=run, state=RUNNING, began_at=_now(), ended_at=None, tasks_at_work=0, assets=[]))
    return runs[-1]


def _completed(one: dict, ledger: Ledger | None) -> dict:
    """Return a run that never ended, completed with what the ledger knows of it."""
    assets = {(asset["resource"], asset["name"]): asset for asset in one["assets"]}
    where = {"run = ?": (one["run"],)}
    for key, ended in ledger.history(where) if ledger else ():
        if ended.seconds is not None:  # else it was edited by hand
            failed = ended.outcome != ACCEPTED or ended.message != ""
            item = dict(ended._asdict(), changed=ended.outcome == ACCEPTED, failed=failed, msg=ended.message)
            assets.setdefault(key[1:], dict(_asset(key.resource, key.name, item), from_ledger=True))
    for key, entry in ledger.entries({**where, "state = ?": (INTENT,)}, lambda name: True) if ledger else ():
        item = dict(outcome=UNKNOWN, changed=True, failed=True, msg=_DIED, trace_id=entry.trace_id)
        assets[key[1:]] = dict(_asset(key.resource, key.name, item), from_ledger=True)
    return dict(one, state=KILLED, assets=list(assets.values()))


def _asset(resource: str, name: str, item: dict) -> dict[str, Any]:
    given = {field: item[field] for field in _FIELDS if item.get(field) not in (None, "")}
    return {"resource": resource, "name": name, **given}


def _now() -> str:
    return datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
