# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Applies a plan: predicts its result in check mode, and sends its request otherwise."""

from __future__ import annotations

import json
from typing import Any, NamedTuple

from .._call.client import Client
from .._call.operation import Operation
from .._errors import Message, RequestFailed, ServicesError
from .._fields import ABSENT, Asset, Difference, Params, overlay
from .._http import strict_json
from .._http.exchange import Request
from .._result import Result
from .planning import ENVELOPE, Plan, Resource, Wanted


class Effect(NamedTuple):
    """What a plan did to its asset, or would do."""

    asset: Asset
    warnings: list[str]
    details: dict[str, Any]  # further keys of the result


def apply_plan(
    resource: Resource, wanted: Wanted, plan: Plan, check_mode: bool, client: Client
) -> Result:
    """Apply a plan and return the task's result; raise InvalidInput or RequestFailed.

    Raise ServicesError if the asset is recorded with other values, and the task fails on that.
    """
    operation = resource.operation
    title = operation.label(wanted.key)
    body = b"" if plan.settled else strict_json.encode(plan.body, "the body")
    request = client.build_request(operation, wanted.segment, body)
    about: dict[str, Any] = {
        "request": {"method": request.method, "url": request.url, "body": plan.body}
    }
    if check_mode:
        about["plan"] = plan.word(operation)
    if plan.settled:
        about["differs"] = plan.differs
        if plan.differs and wanted.fails_on_difference:
            raise _difference_failure(wanted, plan, title, about)
        effect = Effect(plan.known or {}, _differences(plan), client.counts())
    elif check_mode:
        effect = Effect(_predicted(wanted, plan), _risks(operation, plan), client.counts())
    else:
        try:
            effect = _send(resource, wanted, plan, request, client)
        except RequestFailed as error:
            error.details.update(about)
            raise
    return Result(
        changed=not plan.settled,
        asset=effect.asset,
        warnings=tuple(Message(text, title) for text in effect.warnings),
        ansible_facts={operation.resource: effect.asset},
        diff=_diff(title, plan.known, effect.asset),
        **about,
        **effect.details,
    )


def _send(
    resource: Resource, wanted: Wanted, plan: Plan, request: Request, client: Client
) -> Effect:
    """Send the request of a plan and return its effect; raise RequestFailed."""
    asset, accepted = client.call(resource.operation, request, wanted.key)
    lost = resource.lost_fields(plan, asset)
    unexpected = _unexpected_values(resource, wanted, plan, asset)
    losses = tuple(field.named("known", "now") for field in lost)
    return Effect(
        asset, [*unexpected, *_losses(resource, plan, lost)], {**accepted, "lost": losses}
    )


def _predicted(wanted: Wanted, plan: Plan) -> Asset:
    """Return the asset that a request would leave, as far as that is known."""
    envelope = {**dict.fromkeys(ENVELOPE), **(plan.known or {}), **wanted.certain}
    return overlay(envelope, plan.body)


def _differences(plan: Plan) -> list[str]:
    """Return a warning if a settled asset is recorded with other values."""
    if not plan.differs:
        return []
    why = "it is recorded with different values, and the service has no operation to update it"
    return [f"{why}: {', '.join(plan.differs)}."]


def _difference_failure(
    wanted: Wanted, plan: Plan, title: str, about: dict[str, Any]
) -> ServicesError:
    """Return the error of a task that fails on a difference; `about`: keys of its result."""
    (text,) = _differences(plan)
    option = wanted.fails_on_difference
    hint = f"Nothing was sent. Give the values that are recorded, or set {option}: warn."
    return ServicesError(Message(text, title).then(hint), asset=plan.known, **about)


def _unexpected_values(resource: Resource, wanted: Wanted, plan: Plan, asset: Asset) -> list[str]:
    """Return a warning if fields came back with other values; an empty dict may come back filled."""
    sent = {**wanted.certain, **plan.body}
    fields = [
        difference.describe("{wanted} sent, {found} came back")
        for difference in resource.differences(sent, asset)
        if difference.found is not ABSENT and difference.wanted != {}
    ]
    if not fields:
        return []
    return [f"these fields came back different from what was sent: {', '.join(fields)}."]


def _risks(operation: Operation, plan: Plan) -> list[str]:
    """Return a warning if an update would remove fields of a service that replaces."""
    names = [".".join(path) for path in plan.unsent_fields()]
    if not names or operation.method != "PUT":
        return []
    what = f"these fields are known and not sent: {', '.join(names)}"
    return [f"{what}. A service that replaces drops them; send: complete keeps them."]


def _losses(resource: Resource, plan: Plan, lost: list[Difference]) -> list[str]:
    """Return a warning if an update may have removed fields, with how to restore them."""
    if not lost:
        return []
    fields = ", ".join(difference.describe("{wanted} known, {found} now") for difference in lost)
    what = "these fields were known and not sent, and came back different or not at all"
    why = "The service replaces what is not sent, or somebody else changed it."
    old = json.dumps(_options_of(resource, plan, lost), ensure_ascii=False)
    how = f"To restore them, add {old} to the task, the item or its body, with send: complete."
    return [f"{what}: {fields}. {why} {how}"]


def _options_of(resource: Resource, plan: Plan, lost: list[Difference]) -> Params:
    """Return the known values of lost fields as options of a task."""
    names = {difference.field for difference in lost}
    options: Params = {}
    for path, value in plan.unsent_fields().items():
        if ".".join(path) in names:
            *above, last = path
            if above[:1] == ["attributes"] and path[1] not in resource.attributes:
                above[0] = "extra_attributes"
            holder = options
            for key in above:
                holder = holder.setdefault(key, {})
            holder[last] = value
    return options


def _diff(title: str, known: Asset | None, after: Asset) -> dict[str, Any]:
    return {
        "before": known or {},
        "after": after,
        "before_header": f"{title} ({'as known' if known else 'not known'})",
        "after_header": title,
    }
