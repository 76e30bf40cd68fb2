# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Update a Cassandra application role (docs/openapi.yaml)."""

from __future__ import annotations

from typing import Any

from .._call.operation import Operation
from .._errors import InvalidInput
from .._fields import ABSENT, DATE_TIME, Asset, Params, overlay, prune
from .._http.urls import path_segment
from .._secrets import holds_placeholder, without_placeholders
from .planning import Plan, Recorded, Resource, Wanted, fields, require_usable, with_extra

OPERATION = Operation(
    resource="cassandra_application_role",
    method="PUT",
    path="/api/v1/services/cassandra/application_roles/{id}",
    noun="application role",
    word="update",
    done="updated",
    missing="there is no application role with this id, or base_url is wrong",
    exists="the service reports a conflict with the current state of the role",
    repeat="Running the task again is safe: it sends the same update.",
)

ATTRIBUTES = dict(
    **fields("str", "cluster_id", "name"),
    effective_grants=dict(
        type="list",
        elements="dict",
        options=dict(
            permissions=dict(type="list", elements="str"),
            **fields("str", "resource_kind", "resource_name", "source"),
        ),
    ),
    login=dict(type="bool"),
    password_last_rotated_at=dict(type=DATE_TIME, no_log=False),
    # Where it is kept, not the password.
    password_location=dict(type="str", no_log=False),
)

# The fields of the envelope.
FIELDS = ("name", "description", "service", "platform", "region", "tenant")

OPTIONS = dict(
    id=dict(type="str", required=True),
    **fields("str", *FIELDS),
    attributes=dict(type="dict", options=ATTRIBUTES),
    extra_attributes=dict(type="dict"),
    body=dict(type="dict"),
    current=dict(type="dict"),
    send=dict(type="str", choices=["given", "complete"], default="given"),
)
CONSTRAINTS: dict[str, list[Any]] = dict(
    required_one_of=[(*FIELDS, "attributes", "extra_attributes", "body")],
    mutually_exclusive=[("body", field) for field in (*FIELDS, "attributes", "extra_attributes")],
)


class ApplicationRole(Resource):
    """A role, which an operation updates by its id."""

    def wanted(self, params: Params) -> Wanted:
        """Return the update that the options ask for; raise InvalidInput."""
        require_usable(params, OPTIONS, only_compared=["current"])
        identifier = params["id"]
        current = params["current"] or None
        segment = path_segment("id", identifier)
        if current and current.get("id") not in (None, identifier):
            why = f"is the asset {current['id']!r}, but id is {identifier!r}"
            raise InvalidInput("current", why)
        option = "attributes" if params["body"] is None else "body"
        body = _given(params) if params["body"] is None else params["body"]
        if body in ({}, {"attributes": {}}):
            raise InvalidInput(option, "there is nothing to update: no field is given")
        certain = {"id": identifier}
        is_complete = params["send"] == "complete"
        return Wanted(identifier, body, segment, certain, current, is_complete, params["force"])

    def plan(self, wanted: Wanted, recorded: Recorded | None) -> Plan:
        """Return the plan for the update; raise InvalidInput."""
        known = wanted.current or (recorded.asset if recorded else None)
        body = wanted.body
        if wanted.is_complete:
            body = overlay(prune(self._known_asset(known, recorded)), wanted.body)
        if known is None:
            return Plan(body, changes=tuple(self.differences(body, {"attributes": {}})))
        compared = without_placeholders(known)
        if not wanted.force and not self.differences(wanted.body, compared):
            return Plan(body, known, settled=True)
        # Each attribute is a change of its own.
        found = {**compared, "attributes": compared.get("attributes") or {}}
        return Plan(body, known, changes=tuple(self.differences(body, found)))

    def _known_asset(self, known: Asset | None, recorded: Recorded | None) -> Asset:
        """Return the known asset if all of it can be sent; raise InvalidInput."""
        if known is None:
            why = "complete needs the asset as it is now: give current, or a ledger that has it"
            raise InvalidInput("send", why)
        if holds_placeholder(known):
            why = "it contains a placeholder for a secret"
            raise InvalidInput("send", f"complete cannot send the known asset: {why}")
        sent = self.differences(prune(recorded.sent), known) if recorded else []
        lacking = [difference.field for difference in sent if difference.found in (ABSENT, None)]
        if lacking:
            why = f"it lacks {', '.join(lacking)}, which was sent before; give current"
            raise InvalidInput("send", f"complete cannot send the known asset: {why}")
        return known


def _given(params: Params) -> Asset:
    body = {field: params[field] for field in FIELDS if params[field] is not None}
    typed = params["attributes"]
    extra = params["extra_attributes"]
    if typed is not None or extra is not None:
        body["attributes"] = with_extra(typed, extra, ATTRIBUTES)
    return body


APPLICATION_ROLE = ApplicationRole(OPERATION, ATTRIBUTES, OPTIONS, CONSTRAINTS)
