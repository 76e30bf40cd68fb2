# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Writes the result of each asset to a file when a task ends: JSON, and JUnit XML next to it.

All tasks of one run of Ansible share its report; the first of them that ends replaces the report of an earlier run.
"""

from __future__ import annotations

from contextlib import contextmanager
from datetime import datetime, timezone
from typing import Any, Callable, Iterator

from ...module_utils._errors import InvalidInput
from .report_files import ReportError, edited, require_writable

_FIELDS = ("outcome", "changed", "failed", "skipped", "status", "seconds", "trace_id", "msg")


@contextmanager
def reported(path: str, resource: str, run: str, ledger_file: str, warn: Callable[[str], None]) -> Iterator[list[dict]]:
    """Yield a list, and write the results in it when the context ends; after an exception, write nothing.

    `path`: of the JSON file, absolute, empty for no report; `resource`: the module for a single asset; `run`: names the
    run of Ansible; `ledger_file`: the real path of the SQLite file, empty when there is none; `warn`: called when the
    report cannot be written at the end. Raises InvalidInput when that is certain at the start.
    """
    items: list[dict] = []
    began_at = _now()
    if not path:
        yield items
        return
    try:
        require_writable(path, ledger_file)
    except ReportError as error:
        raise InvalidInput(
            "report", f"{error}. Nothing was sent. Give a new file in a directory that exists, or an earlier report"
        ) from None
    yield items
    try:
        with edited(path, ledger_file) as runs:
            _add(runs, run, began_at, [_asset(resource, item["item"], item) for item in items])
    except ReportError as error:
        warn(f"report: {error}. The task was done, and its result is complete; the report lacks it")


def _add(runs: list[dict], run: str, began_at: str, assets: list[dict]) -> None:
    """Add the assets of a task to those of its run, and leave out other runs."""
    own = next((one for one in runs if one["run"] == run), dict(run=run, began_at=began_at, assets=[]))
    own.update(state="ended", began_at=min(began_at, own["began_at"]), ended_at=_now())
    own["assets"] = [*own["assets"], *assets]
    runs[:] = [own]


def _asset(resource: str, name: str, item: dict) -> dict[str, Any]:
    given = {field: item[field] for field in _FIELDS if item.get(field) not in (None, "")}
    return {"resource": resource, "name": name, **given}


def _now() -> str:
    return datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
