# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Create a virtual machine (docs/openapi.yaml)."""

from __future__ import annotations

from .._call.operation import Operation
from .._errors import InvalidInput
from .._fields import DATE_TIME
from .flow import Plan, Recorded, Resource, Wanted, fields, require_usable, with_extra

OPERATION = Operation(
    resource="compute_virtual_machine",
    method="POST",
    path="/api/v1/services/compute/virtual_machines",
    noun="virtual machine",
    word="create",
    done="created",
    missing="the address does not exist, so base_url is probably wrong",
    exists="the service reports a conflict, probably because a virtual machine of this name exists already",
    repeat="Look for it on the service: sent again, it may exist twice.",
)

ATTRIBUTES = dict(
    **fields(
        "str",
        "bios_serial_number",
        "cmdb_application_service",
        "cmdb_management_group",
        "datacenter",
    ),
    **fields("str", "instance", "ip", "name", "operating_system", "status", "team"),
    **fields("float", "cpu", "memory_used_percent", "vm_ram"),
    **fields(DATE_TIME, "creation_date", "last_reboot_date"),
    cdc_security=dict(
        type="dict",
        options=fields("str", "anti_tamper", "connectivity", "customer_id", "s1_version", "uuid"),
    ),
    global_status=dict(
        type="dict", options=dict(label=dict(type="str"), status=dict(type="float"))
    ),
    partitions=dict(
        type="list",
        elements="dict",
        options=dict(path=dict(type="str"), **fields("float", "capacity", "free")),
    ),
    puppet_classes=dict(type="list", elements="str"),
    subnet=dict(type="dict", options=fields("str", "dns", "gateway", "mask", "network")),
    volumes=dict(
        type="list",
        elements="dict",
        options=dict(name=dict(type="str"), size_gb=dict(type="float")),
    ),
)


class Creation(Resource):
    """A resource that an operation creates by its name. Whatever is recorded exists already, and is
    not sent again.
    """

    def __init__(self, operation: Operation, attributes: dict) -> None:
        options = dict(
            name=dict(type="str", required=True),
            attributes=dict(type="dict", default={}, options=attributes),
            extra_attributes=dict(type="dict", default={}),
            on_difference=dict(type="str", choices=["warn", "fail"], default="warn"),
        )
        super().__init__(operation, attributes, options, {}, self._read, self._plan)

    def _read(self, params: dict) -> Wanted:
        """Return what the options ask for; raise InvalidInput."""
        require_usable(params, self.options)
        name = params["name"]
        if not name.strip():
            raise InvalidInput("name", "must not be empty")
        if "\0" in name:  # PostgreSQL could not record it
            raise InvalidInput("name", "contains a NUL character")
        attributes = with_extra(params["attributes"], params["extra_attributes"], self.attributes)
        fails = "on_difference" if params["on_difference"] == "fail" else ""
        body = {"name": name, "attributes": attributes}
        return Wanted(name, body, force=params["force"], fails_on_difference=fails)

    def _plan(self, wanted: Wanted, recorded: Recorded | None) -> Plan:
        """Return the plan for creating it."""
        if recorded is None:
            return Plan(wanted.body)
        given = {
            key: value for key, value in wanted.body.items() if value != {}
        }  # no attributes: nothing to compare
        changes = tuple(self.differences(given, recorded.sent))
        return Plan(wanted.body, known=recorded.asset, settled=True, changes=changes)


VIRTUAL_MACHINE = Creation(OPERATION, ATTRIBUTES)
