# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Holds a list to the plan that was approved: nothing is sent that the plan does not have with the same body."""

from __future__ import annotations

from .._errors import InvalidInput
from .._fields import as_json, dotted
from .._secrets import Secrets
from .._task.task import Planned

_MAX_FAULTS = 100  # assets in one message


def require_approved(planned: list[Planned], approved: dict[str, dict], secrets: Secrets) -> None:
    """Raise InvalidInput unless each asset that would be sent is approved.

    `approved`: the bodies of the plan, by name or id; credentials are masked in them, as they are here.
    """
    faults = []
    for each in planned:
        if each.plan and not each.plan.settled:
            name, body = each.task.wanted.key, secrets.scrub({"body": each.plan.body})["body"]
            if name not in approved:
                faults.append(f"{name}: the plan does not send it")
            elif differing := _differing(body, approved[name]):
                faults.append(f"{name}: {differing}")
    if faults:
        more = f"; and {len(faults) - _MAX_FAULTS:,} more" if len(faults) > _MAX_FAULTS else ""
        told = f"{len(faults):,} not approved as listed now: {'; '.join(faults[:_MAX_FAULTS])}{more}"
        raise InvalidInput("approved", f"{told}. Make a new plan (--check) and have it approved")


def _differing(body: dict, approved: dict) -> str:
    """Return the fields whose JSON differs, with both values; empty for none."""
    now, then = as_json(body), as_json(approved)
    both = [(path, now.get(path, "none"), then.get(path, "none")) for path in {**now, **then}]
    return ", ".join(f"{dotted(path)} ({one} now, {other} approved)" for path, one, other in both if one != other)
