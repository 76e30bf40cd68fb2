# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The way of every operation: compare, send (or predict in check mode), return."""

from __future__ import annotations

from . import _json
from ._client import Client
from ._errors import ACCEPTED, NOT_SENT, InvalidInput, RequestFailed
from ._fields import differences, overlay, prune
from ._operation import Operation

ENVELOPE = ("id", "name", "description", "service", "attributes", "platform", "region", "tenant")  # interface.md section 2


def with_extra(attributes: dict | None, extra: dict | None, typed: dict) -> dict:
    """Return the attributes to send: the typed ones and the extra ones, without nulls; raise InvalidInput for one given twice."""
    for key in extra or {}:
        if key in typed:
            raise InvalidInput("extra_attributes", f"{key} is an option of attributes; give it there")
    return {**prune(attributes or {}), **prune(extra or {})}


def carry_out(
    operation: Operation, client: Client, body: dict, check_mode: bool, *, title: str, segment: str = "", given: dict, known: dict | None = None
) -> dict:
    """Carry out an operation and return the task's result; raise InvalidInput or RequestFailed.

    `given`: envelope fields that are certain beside the body; `known`: the asset as it is now, None when unknown.
    """
    request = client.request(operation, segment, _json.encode(body, "the body"))
    result = {"request": {"method": request.method, "url": request.url, "body": body}, "warnings": []}
    if known is not None and not differences(body, known):
        result.update(asset=known, changed=False, outcome=NOT_SENT, status=None, attempts=0)
    elif check_mode:
        predicted = overlay({**dict.fromkeys(ENVELOPE), **(known or {}), **given}, body)
        result.update(asset=predicted, changed=True, outcome=NOT_SENT, status=None, attempts=0)
    else:
        try:
            reply = client.call(operation, request)
        except RequestFailed as error:
            error.facts.update(request=result["request"])
            raise
        result.update(asset=reply.asset, changed=True, outcome=ACCEPTED, status=reply.status, attempts=reply.attempts)
        different = differences(body, reply.asset, absent_differs=False)
        if different:
            result["warnings"].append(f"These fields came back different from what was sent: {', '.join(different)}.")
    result["ansible_facts"] = {operation.resource: result["asset"]}
    result["diff"] = _diff(operation, title, known, result["asset"])
    return result


def _diff(operation: Operation, title: str, known: dict | None, after: dict) -> dict:
    return {
        "before": known or {},
        "after": after,
        "before_header": f"{operation.noun} {title} ({'as known' if known else 'not known'})",
        "after_header": f"{operation.noun} {title}",
    }
