# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Applies a plan: predicts its result in check mode, and sends its request otherwise."""

from __future__ import annotations

from typing import Any, Iterable

from .._call.client import NO_END, Client, Lease
from .._errors import REJECTED, Message, RequestFailed, ServicesError
from .._result import Result
from .._values import (
    ABSENT,
    DICT,
    Asset,
    Difference,
    Spec,
    differences,
    encode,
    overlay,
    prune,
    value_at,
)
from .planning import ENVELOPE, AssetOperation, Plan, Wanted

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


def apply_plan(
    operation: AssetOperation,
    wanted: Wanted,
    plan: Plan,
    check_mode: bool,
    client: Client,
    lease: Lease = NO_END,
) -> Result:
    """Apply a plan and return the task's result; raise InvalidInput or RequestFailed.

    `lease`: until when it may be sent. Raise ServicesError if the asset is recorded with other
    values, and the task fails on that.
    """
    title = operation.resource.label(wanted.key)
    body = encode(plan.body, "the body")
    request = client.build_request(operation, wanted.key, body)
    shown = {"method": request.method, "url": request.url, "body": plan.body}
    about: dict[str, Any] = {"request": shown, "request_attempts": 0}
    if check_mode:
        about.update(plan.details(operation))
    # The answer to an update certainly has the id of the asset, which its body lacks.
    sent = {operation.resource.key: wanted.key, **plan.body}
    if plan.adopted:
        del about["request"]
    if plan.settled or plan.adopted:
        asset = after = plan.known
        about["differs"] = plan.differs
        warnings = _about(_DIFFERS, plan.differs)
        if warnings and wanted.fails_on_difference:
            raise ServicesError(Message(_FAILS.format(*warnings), title), asset=asset, **about)
    elif check_mode:
        asset, after = _predicted(operation, plan.known, sent), overlay(plan.known, sent)
        warnings = _about(_KNOWN, (known.field for known in plan.unsent()))
    else:
        try:
            asset, details = client.call(operation, request, wanted.key, lease)
        except RequestFailed as error:
            rejected = {"body": plan.body} if error.outcome == REJECTED else {}
            error.details.update({**about, **rejected, **error.details})
            raise
        after, lost = asset, _lost(plan, asset)
        warnings = _about(_UNEXPECTED, _unexpected(sent, asset))
        warnings += _about(_LOST, (field.describe("{wanted} known, {found} now") for field in lost))
        about.update(details, lost=tuple(field.named("known", "now") for field in lost))
    return Result(
        changed=not plan.settled,
        asset=asset,
        warnings=tuple(Message(text, title) for text in warnings),
        ansible_facts={operation.resource.name: asset},
        diff=_diff({} if plan.adopted else plan.known, after, title),
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


def _predicted(operation: AssetOperation, known: Asset, sent: Asset) -> Asset:
    """Return the asset that a request would leave: null where only the service knows a value."""
    nulls = {**dict.fromkeys(ENVELOPE), "attributes": _nulls(operation.resource.attributes)}
    filled = {name: value for name, value in sent.items() if value != {}}
    return overlay(overlay(nulls, prune(known)), filled)


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
