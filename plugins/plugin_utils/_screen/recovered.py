# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Entries for a ledger from the reports of runs."""

from __future__ import annotations

from pathlib import Path

from ...module_utils._errors import ACCEPTED, UNKNOWN, InvalidInput
from ...module_utils._fields import Params
from ...module_utils._resources.virtual_machine import VIRTUAL_MACHINE
from ...module_utils._secrets import printable
from .._ledger.entries import PRESENT
from .assets import ENDED, Asset, Run
from .report import run_in

_MACHINE = VIRTUAL_MACHINE.operation.resource
_NO_REPORT = "is no report of a run; give the .json file that the option report names"


def entries_in_reports(paths: list[str]) -> list[Params]:
    """Return the machines that exist or may exist, for ledger_entries; raise InvalidInput.

    A machine that exists in any report is not in doubt, unless a later run sent another request for
    it without learning the result: a second machine may exist. The id comes from the latest report.
    `changed_at` is the end of the latest run that knows of the machine.
    """
    entries: dict[tuple[str, str], Params] = {}
    for run in sorted(map(_run_in_file, paths), key=lambda run: run.began_at):
        for asset in run.assets:
            entry = _entry_of(run, asset)
            key = run.service, asset.name
            if not entry:
                continue
            if key in entries and entry["state"] != PRESENT and not asset.request_attempts:
                entry = dict(entries[key], changed_at=entry["changed_at"])
            entries[key] = entry
    return [*entries.values()]


def _run_in_file(path: str) -> Run:
    try:
        run = run_in(Path(path).read_text("utf-8"))
    except OSError as error:
        why = f"{printable(path)} cannot be read: {error.strerror}"
        raise InvalidInput("report", why) from None
    except UnicodeDecodeError:
        run = None
    if run is None or run.state != ENDED:
        raise InvalidInput("report", f"{printable(path)} {_NO_REPORT}")
    return run


def _entry_of(run: Run, asset: Asset) -> Params | None:
    """Return the entry of an asset, None if nothing is known to exist."""
    entry = dict(
        resource=asset.resource,
        base_url=run.service,
        name=asset.name,
        changed_at=run.ended_at,
        sent=asset.body or {},
    )
    if asset.resource != _MACHINE:
        # A role may be sent again, and the report lacks its known fields.
        return None
    if asset.id is not None:
        has_address = asset.address and isinstance(asset.address, str)
        attributes = {"ip": asset.address} if has_address else {}
        return dict(entry, state=PRESENT, asset={"id": asset.id, "attributes": attributes})
    return dict(entry, state=asset.outcome) if asset.outcome in (ACCEPTED, UNKNOWN) else None
