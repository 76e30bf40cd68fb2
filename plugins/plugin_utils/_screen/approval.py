# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The plan that was approved."""

from __future__ import annotations

from pathlib import Path

from ...module_utils._errors import InvalidInput
from ...module_utils._http import strict_json
from ...module_utils._result import Result
from ...module_utils._secrets import for_message
from .._ledger.entries import NO_LIMIT, Serial
from .._ledger.ledger import Ledger
from .rows import DAMAGES, EFFECTS, PLANNED, Run

_CHECK = "Check the ledger, or make a new plan (--check) and have it approved"


def approved_plan(
    path: str, resource: str, service: str, ledger: Ledger | None
) -> dict[str, Result]:
    """Return the rows that a plan in a file sends or adopts, by name or id.

    Raise InvalidInput unless it was made for this service and ledger.

    `path`: absolute; `resource`: of the bodies; `service`: its canonical base_url.
    """
    if ledger is None:
        raise InvalidInput(
            "approved",
            "needs a ledger, so that a plan is carried out only once: set ledger",
        )
    try:
        run = Run.from_json(strict_json.decode(Path(path).read_text("utf-8")))
        serial = Serial(**(run.serial or {}))
        rows = _rows_in(run, resource, serial)
        made_for, made_at = for_message(run.service), for_message(run.ledger or "none")
    except OSError as error:
        raise InvalidInput("approved", f"{path!r} cannot be read: {error.strerror}") from None
    except DAMAGES:
        raise InvalidInput(
            "approved",
            f"{path!r} is no plan of this collection, is damaged, or has an asset twice; give the"
            " .plan.json of a run with --check and report that lists each asset once",
        ) from None
    if run.refused:
        raise InvalidInput(
            "approved", f"{path!r} cannot be approved: {for_message(run.refused)} {_CHECK}"
        )
    if (run.service, run.ledger_id) != (service, ledger.header.ledger_id):
        raise InvalidInput(
            "approved",
            f"{path!r} was made for {made_for} and the ledger {made_at}, and this list is for"
            f" {service} and the ledger {ledger.where}. {_CHECK}",
        )
    if not ledger.has_row(serial):
        raise InvalidInput(
            "approved",
            f"{path!r} was made with a history that this ledger lacks, as after a backup was"
            f" restored. {_CHECK}",
        )
    return rows


def _rows_in(run: Run, resource: str, serial: Serial) -> dict[str, Result]:
    """Return the rows of a plan that have an effect; raise one of DAMAGES if it is none."""
    sent = [row for row in run.lists.get(resource, ()) if row.plan in EFFECTS]
    rows = {str(row.item): row.but(body=dict(row.body or {})) for row in sent}
    numbers = [*serial, *(row.last_row or 0 for row in sent)]
    is_sound = (run.state, len(rows)) == (PLANNED, len(sent)) and all(
        isinstance(number, int) and 0 <= number <= NO_LIMIT for number in numbers
    )
    if not is_sound:
        raise ValueError
    return rows
