# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Update a Cassandra application role (interface.md sections 2.2 and 4.2)."""

from __future__ import annotations

from .._call.client import Client
from .._call.operation import Operation
from .._errors import InvalidInput
from .._fields import DATE_TIME, TEXT, differences, overlay, prune
from .._http.urls import path_segment
from .flow import Plan, Recorded, carry_out, insist_on_json, with_extra

OPERATION = Operation(
    resource="cassandra_application_role",
    method="PUT",
    path="/api/v1/services/cassandra/application_roles/{id}",
    noun="application role",
    done="updated",
    missing="there is no application role with this id, or base_url is wrong",
    exists="the service sees a conflict with the role as it is now",
    repeat="Running the task again is safe: it sends the same update.",
)

ATTRIBUTES = dict(
    cluster_id=dict(type=TEXT),
    effective_grants=dict(
        type="list",
        elements="dict",
        options=dict(
            permissions=dict(type="list", elements=TEXT),
            resource_kind=dict(type=TEXT),
            resource_name=dict(type=TEXT),
            source=dict(type=TEXT),
        ),
    ),
    login=dict(type="bool"),
    name=dict(type=TEXT),
    password_last_rotated_at=dict(type=DATE_TIME, no_log=False),
    password_location=dict(type=TEXT, no_log=False),  # where it is kept, not the password
)

FIELDS = ("name", "description", "service", "platform", "region", "tenant")  # of the envelope

ARGUMENT_SPEC = dict(
    id=dict(type=TEXT, required=True),
    **{field: dict(type=TEXT) for field in FIELDS},
    attributes=dict(type="dict", options=ATTRIBUTES),
    extra_attributes=dict(type="dict"),
    body=dict(type="dict"),
    current=dict(type="dict"),
    send=dict(type="str", choices=["given", "complete"], default="given"),
)
CONSTRAINTS = dict(
    required_one_of=[(*FIELDS, "attributes", "extra_attributes", "body")],
    mutually_exclusive=[("body", field) for field in (*FIELDS, "attributes", "extra_attributes")],
)


def plan(params: dict, recorded: Recorded | None = None) -> Plan:
    """Return what updating the role asks; raise InvalidInput."""
    insist_on_json(params, ARGUMENT_SPEC)
    identifier = params["id"]
    segment = path_segment("id", identifier)
    option = "attributes" if params["body"] is None else "body"
    given = _given(params) if params["body"] is None else params["body"]
    if not given or given == {"attributes": {}}:
        raise InvalidInput(option, "there is nothing to update: no field is given")
    known = params["current"] or (recorded.asset if recorded else None)
    if params["send"] == "complete" and known is None:
        raise InvalidInput(
            "send", "complete needs to know the asset as it is now: give current, or a ledger that has it"
        )
    body = overlay(prune(known), given) if params["send"] == "complete" else given
    settled = known is not None and not params["force"] and not differences(given, known)
    return Plan(OPERATION, identifier, body, segment, {"id": identifier}, known, settled)


def run(params: dict, check_mode: bool, client: Client, recorded: Recorded | None = None) -> dict:
    """Update the role and return the task's result; raise InvalidInput or RequestFailed."""
    return carry_out(plan(params, recorded), check_mode, client)


def _given(params: dict) -> dict:
    body = {field: params[field] for field in FIELDS if params[field] is not None}
    if params["attributes"] is not None or params["extra_attributes"] is not None:
        body["attributes"] = with_extra(params["attributes"], params["extra_attributes"], ATTRIBUTES)
    return body
