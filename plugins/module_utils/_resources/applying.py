# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Applies a plan: predicts its result in check mode, and sends its request otherwise."""

from __future__ import annotations

from typing import Any, Iterable

from .._call.client import NO_END, Client, Lease
from .._errors import Message, ServicesError
from .._result import Result
from .._values import (
    ABSENT,
    DICT,
    Asset,
    Difference,
    Spec,
    differences,
    overlay,
    prune,
    value_at,
)
from .planning import ENVELOPE, AssetOperation, Plan, Task

_DIFFERS = (
    "it is recorded with different values, and the service has no operation to update it: {}. Ask for"
    " the recorded values; if the machine was changed by other means, correct its entry with"
    " infrastructure.services.ledger_entry."
)
_KNOWN = (
    "these fields are known and not sent: {}. A service that replaces drops them; send: complete"
    " keeps them."
)
_UNEXPECTED = "these fields came back different from what was sent: {}."
_LOST = (
    "these fields were known and not sent, and came back different or not at all: {}. The service"
    " replaces what is not sent, or somebody else changed it. To restore them, add the known values"
    " to the task, the item or its body, with send: complete."
)
_FAILS = (
    "{} Nothing was sent. Give the values that are recorded, or set on_difference (in the role"
    " fleet_on_difference) to warn."
)


def apply_plan(task: Task, client: Client, lease: Lease = NO_END) -> Result:
    """Apply the plan of a task and return the result; raise ServicesError.

    `lease`: until when its request may be sent.
    """
    operation, wanted, plan = task.operation, task.wanted, task.required_plan()
    about: dict[str, Any] = {"request_attempts": 0, "differs": plan.differs}
    if not plan.adopted:
        request = client.build_request(wanted.id or plan.known.get("id", ""), plan.body or None)
    if client.context.check_mode:
        about.update(plan.details(operation))
    # The answer to an update certainly has the id of the asset, which its body lacks.
    sent = {operation.resource.key: wanted.key, **plan.body}
    if plan.settled or plan.adopted:
        asset = after = plan.known
        warnings = _about(_DIFFERS, plan.differs)
        if warnings and wanted.fails_on_difference:
            raise ServicesError(Message(_FAILS.format(*warnings), task.asset), asset=asset, **about)
    elif client.context.check_mode:
        asset, after = _predicted(operation, plan.known, sent)
        warnings = _about(_KNOWN, (known.field for known in plan.unsent()))
    else:
        asset, details = client.call(request, lease)
        after, lost = asset, _lost(plan, asset)
        warnings = _about(_UNEXPECTED, _unexpected(sent, asset))
        warnings += _about(_LOST, (field.describe("{wanted} known, {found} now") for field in lost))
        about.update(details, lost=tuple(field.named("known", "now") for field in lost))
    return Result(
        changed=not plan.settled,
        asset=asset,
        warnings=tuple(Message(text, task.asset) for text in warnings),
        ansible_facts={operation.resource.name: asset},
        diff=_diff({} if plan.adopted else plan.known, after, task.asset),
        **about,
    )


def _diff(known: Asset, after: Asset, title: str) -> Asset:
    return {
        "before": known,
        "after": after,
        "before_header": f"{title} ({'as known' if known else 'not known'})",
        "after_header": title,
    }


def _about(text: str, fields: Iterable[str]) -> list[str]:
    """Return a warning about fields if there are any."""
    names = ", ".join(fields)
    return [text.format(names)] if names else []


def _predicted(operation: AssetOperation, known: Asset, sent: Asset) -> tuple[Asset, Asset]:
    """Return the asset that a request would leave, null where only the service knows a value, and
    what is known of it.
    """
    if operation.removes:
        return {}, {}
    nulls = {**dict.fromkeys(ENVELOPE), "attributes": _nulls(operation.resource.attributes)}
    filled = {name: value for name, value in sent.items() if value != {}}
    return overlay(overlay(nulls, prune(known)), filled), overlay(known, sent)


def _nulls(options: Spec) -> Asset:
    return {
        name: _nulls(option["options"]) if option["type"] is DICT else None
        for name, option in options.items()
    }


def _unexpected(sent: Asset, asset: Asset) -> list[str]:
    """Return the fields that came back with other values; an empty dict may come back filled."""
    return [
        field.describe("{wanted} sent, {found} came back")
        for field in differences(sent, asset)
        if field.found is not ABSENT and field.wanted != {}
    ]


def _lost(plan: Plan, asset: Asset) -> list[Difference]:
    """Return the known fields that were not sent and came back different or not at all.

    An answer that repeats only the fields that were sent shows nothing about the others.
    """
    unsent = plan.unsent()
    shown = {known.path[0] for known in unsent if value_at(asset, known.path) is not ABSENT}
    lost: list[Difference] = []
    for known in unsent:
        if known.path[0] in shown or shown - {"attributes"}:
            lost += differences(known.wanted, value_at(asset, known.path), known.path)
    return lost
