# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Create a virtual machine (interface.md sections 2.1 and 4.1)."""

from __future__ import annotations

from .._call.client import Client
from .._call.operation import Operation
from .._errors import InvalidInput
from .._fields import DATE_TIME, MAPPING, NUMBER, TEXT, differences
from .flow import Plan, Recorded, carry_out, insist_on_json, with_extra

OPERATION = Operation(
    resource="compute_virtual_machine",
    method="POST",
    path="/api/v1/services/compute/virtual_machines",
    noun="virtual machine",
    done="created",
    missing="the address does not exist, so base_url is probably wrong",
    exists="the service sees a conflict, probably a virtual machine of this name that exists already",
    repeat="Look for it on the service before running this task again, which would create another one.",
)

ATTRIBUTES = dict(
    bios_serial_number=dict(type=TEXT),
    cdc_security=dict(
        type="dict",
        options=dict(
            anti_tamper=dict(type=TEXT),
            connectivity=dict(type=TEXT),
            customer_id=dict(type=TEXT),
            s1_version=dict(type=TEXT),
            uuid=dict(type=TEXT),
        ),
    ),
    cmdb_application_service=dict(type=TEXT),
    cmdb_management_group=dict(type=TEXT),
    cpu=dict(type=NUMBER),
    creation_date=dict(type=DATE_TIME),
    datacenter=dict(type=TEXT),
    global_status=dict(type="dict", options=dict(label=dict(type=TEXT), status=dict(type=NUMBER))),
    instance=dict(type=TEXT),
    ip=dict(type=TEXT),
    last_reboot_date=dict(type=DATE_TIME),
    memory_used_percent=dict(type=NUMBER),
    name=dict(type=TEXT),
    operating_system=dict(type=TEXT),
    partitions=dict(
        type="list",
        elements="dict",
        options=dict(capacity=dict(type=NUMBER), free=dict(type=NUMBER), path=dict(type=TEXT)),
    ),
    puppet_classes=dict(type="list", elements=TEXT),
    status=dict(type=TEXT),
    subnet=dict(
        type="dict",
        options=dict(dns=dict(type=TEXT), gateway=dict(type=TEXT), mask=dict(type=TEXT), network=dict(type=TEXT)),
    ),
    team=dict(type=TEXT),
    vm_ram=dict(type=NUMBER),
    volumes=dict(type="list", elements="dict", options=dict(name=dict(type=TEXT), size_gb=dict(type=NUMBER))),
)

ARGUMENT_SPEC = dict(
    name=dict(type=TEXT, required=True),
    attributes=dict(type=MAPPING, default={}, options=ATTRIBUTES),
    extra_attributes=dict(type=MAPPING, default={}),
)
CONSTRAINTS: dict = {}


def plan(params: dict, recorded: Recorded | None = None) -> Plan:
    """Return what creating the virtual machine asks; one that is recorded is there already. Raise InvalidInput."""
    insist_on_json(params, ARGUMENT_SPEC)
    name = params["name"]
    if not name.strip():
        raise InvalidInput("name", "must not be empty")
    body = {"name": name, "attributes": with_extra(params["attributes"], params["extra_attributes"], ATTRIBUTES)}
    if recorded is None:
        return Plan(OPERATION, name, body)
    other = differences(body, recorded.sent)
    warning = f"The virtual machine was created with other values, and no operation updates it: {', '.join(other)}."
    return Plan(OPERATION, name, body, known=recorded.asset, settled=True, warnings=(warning,) if other else ())


def run(params: dict, check_mode: bool, client: Client, recorded: Recorded | None = None) -> dict:
    """Create the virtual machine and return the task's result; raise InvalidInput or RequestFailed."""
    return carry_out(plan(params, recorded), check_mode, client)
