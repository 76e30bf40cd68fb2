# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The plan that was approved."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from ...module_utils._errors import InvalidInput, listing
from ...module_utils._fields import Asset as Body
from ...module_utils._fields import json_differences
from ...module_utils._http.strict_json import MAX_DEPTH, depth
from ...module_utils._secrets import for_message
from .._ledger.reader import LedgerReader
from .assets import PLANNED
from .report import run_in

_SENDS = ("create", "update")  # the plans of assets that are sent
_NO_PLAN = "is no plan of this collection; give the .plan.json of a run with --check and report"
_DAMAGED = (
    "is damaged: it has an asset without its body, or its history_rows or history_end are wrong"
)
_MOST_ROWS = 2**63 - 1  # as many as a database can count
_CHECK = "Check the ledger, or make a new plan (--check) and have it approved"


@dataclass(frozen=True)
class ApprovedPlan:
    """A plan that was approved."""

    path: str
    bodies: dict[str, Body]  # by name or id
    # The place, without a password; None if it was made without a ledger.
    ledger: str | None
    ledger_id: str | None  # None if there was no ledger yet
    history_rows: int  # of the ledger when the plan was made
    history_end: str = ""  # identifies the last of them; '' in plans of earlier versions

    def require_history(self, ledger: LedgerReader) -> None:
        """Raise InvalidInput for a ledger without the history that it had when the plan was made."""
        if not ledger.has_history(self.history_rows, self.history_end):
            why = "was made with a history that this ledger lacks, as after a backup was restored"
            raise InvalidInput("approved", f"{self.path!r} {why}. {_CHECK}")

    def require_ledger(self, place: str | None, ledger_id: str | None) -> None:
        """Raise InvalidInput unless the plan was made against this ledger; None: no ledger."""
        is_same = self.ledger_id == ledger_id
        if not self.ledger_id:
            is_same = self._is_same_place(place)
        if is_same:
            return
        made = "without a ledger"
        if self.ledger:
            made = f"against the ledger {for_message(self.ledger)}"
        here = place or "none"
        if place and not ledger_id:
            here = f"{place}, which does not exist yet"
        why = f"was made {made}, and the ledger of this list is {here}. {_CHECK}"
        raise InvalidInput("approved", f"{self.path!r} {why}")

    def _is_same_place(self, place: str | None) -> bool:
        if not self.ledger or not place:
            return self.ledger == place
        return os.path.realpath(self.ledger) == os.path.realpath(place)


def approved_plan(path: str, resource: str, service: str) -> ApprovedPlan:
    """Return the plan in a file; raise InvalidInput for a file that is not a plan for the service.

    `path`: absolute; `resource`: of the bodies; `service`: its canonical base_url.
    """
    run = run_in(_text_of(path))
    if run is None or run.state != PLANNED:
        raise InvalidInput("approved", f"{path!r} {_NO_PLAN}")
    if run.service != service:
        why = f"is a plan for {for_message(run.service)}, and this list is for {service}"
        raise InvalidInput("approved", f"{path!r} {why}")
    sent = [each for each in run.assets if each.resource == resource and each.plan in _SENDS]
    bodies = [
        (asset.name, dict(asset.body))
        for asset in sent
        if isinstance(asset.body, dict) and depth(asset.body) <= MAX_DEPTH
    ]
    rows = run.history_rows
    is_damaged = len(bodies) < len(sent) or isinstance(rows, bool)
    end = run.history_end or ""
    is_damaged = is_damaged or not (end.isascii() and end.isprintable())
    if is_damaged or not isinstance(rows, int) or not 0 <= rows <= _MOST_ROWS:
        raise InvalidInput("approved", f"{path!r} {_DAMAGED}")
    _require_once(path, bodies)
    return ApprovedPlan(path, dict(bodies), run.ledger, run.ledger_id, rows, end)


def _require_once(path: str, bodies: list[tuple[str, Body]]) -> None:
    """Raise InvalidInput if a plan sends an asset twice."""
    first: dict[str, Body] = {}
    again = [name for name, body in bodies if first.setdefault(name, body) is not body]
    if not again:
        return
    different = [name for name, body in bodies if json_differences(first[name], body)]
    names = [*map(for_message, dict.fromkeys(different or again))]
    how = "with different bodies" if different else "with the same body"
    why = f"plans {listing(names)} twice {how}, and an approval is good for one request of each"
    advice = "List each asset once, make a new plan (--check) and have it approved"
    raise InvalidInput("approved", f"{path!r} {why}. {advice}")


def _text_of(path: str) -> str:
    if not os.path.lexists(path):
        raise InvalidInput("approved", f"there is no file {path!r}")
    try:
        return Path(path).read_text("utf-8") if os.path.isfile(path) else ""
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or error
        raise InvalidInput("approved", f"{path!r} cannot be read: {why}") from None
