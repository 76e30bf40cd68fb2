# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The way of every operation: what is planned, compared, sent (or predicted in check mode), and returned."""

from __future__ import annotations

from types import MappingProxyType
from typing import Iterable, Mapping, NamedTuple

from .._call.client import Client
from .._call.operation import Operation
from .._errors import ACCEPTED, NOT_SENT, InvalidInput, RequestFailed
from .._fields import differences, overlay, prune
from .._http import strict_json

ENVELOPE = (
    "id",
    "name",
    "description",
    "service",
    "attributes",
    "platform",
    "region",
    "tenant",
)  # interface.md section 2


class Recorded(NamedTuple):
    """What the ledger remembers of an asset: the body that was sent for it, and the envelope that came back."""

    sent: dict
    asset: dict


class Plan(NamedTuple):
    """What a task asks of the service; made without touching it."""

    operation: Operation
    key: str  # the name or id that tells this asset from others of its kind
    body: dict
    segment: str = ""  # the id as a segment of the path
    certain: Mapping = MappingProxyType({})  # envelope fields that are certain beside those of the body
    known: dict | None = None  # the asset as it is now, as far as known
    settled: bool = False  # whether nothing needs to be sent
    warnings: tuple[str, ...] = ()

    def encoded(self) -> bytes:
        """Return the body as it goes out; raise InvalidInput for what JSON cannot say."""
        return strict_json.encode(self.body, "the body")


def insist_on_json(params: dict, options: Iterable[str]) -> None:
    """Raise InvalidInput for an option that holds what JSON cannot say, be it sent or only compared."""
    for option in options:
        strict_json.encode(params[option], option)


def with_extra(attributes: dict | None, extra: dict | None, typed: dict) -> dict:
    """Return the attributes to send, typed and extra ones, without nulls; raise InvalidInput for one that is both."""
    for key in extra or {}:
        if key in typed:
            raise InvalidInput("extra_attributes", f"{key} is an option of attributes; give it there")
    return {**prune(attributes or {}), **prune(extra or {})}


def carry_out(plan: Plan, check_mode: bool, client: Client) -> dict:
    """Carry out a plan and return the task's result; raise InvalidInput or RequestFailed."""
    request = client.request(plan.operation, plan.segment, plan.encoded())
    shown = {"method": request.method, "url": request.url, "body": plan.body}
    result = {
        "changed": not plan.settled,
        "outcome": NOT_SENT,
        "status": None,
        **client.facts(attempts=0),
        "warnings": list(plan.warnings),
    }
    if plan.settled:
        asset = plan.known
    elif check_mode:
        asset = overlay({**dict.fromkeys(ENVELOPE), **(plan.known or {}), **plan.certain}, plan.body)
    else:
        try:
            asset, status, attempts = client.call(plan.operation, request, plan.key)
        except RequestFailed as error:
            error.facts.update(request=shown)
            raise
        result.update(outcome=ACCEPTED, status=status, **client.facts(attempts))
        result["warnings"] += _surprises(plan, asset)
    facts = {plan.operation.resource: asset}
    return dict(result, asset=asset, ansible_facts=facts, request=shown, diff=_diff(plan, asset))


def _surprises(plan: Plan, asset: dict) -> list[str]:
    """Return a warning for fields that are not as sent, and one for the others that are not as they were known."""
    altered = differences(plan.body, asset, absent_differs=False)
    drifted = differences(overlay(plan.known, plan.body), asset, absent_differs=False) if plan.known else []
    drifted = [field for field in drifted if field not in altered]
    return [
        f"These fields {how}: {', '.join(fields)}."
        for how, fields in (
            ("came back different from what was sent", altered),
            ("were changed by somebody else since they were last known", drifted),
        )
        if fields
    ]


def _diff(plan: Plan, after: dict) -> dict:
    title = f"{plan.operation.noun} {plan.key}"
    return {
        "before": plan.known or {},
        "after": after,
        "before_header": f"{title} ({'as known' if plan.known else 'not known'})",
        "after_header": title,
    }
