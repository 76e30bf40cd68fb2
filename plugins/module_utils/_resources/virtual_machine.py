# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Create a virtual machine (docs/openapi.yaml)."""

from __future__ import annotations

from .._call.operation import Operation
from .._fields import DATE_TIME
from .planning import Creation, fields

OPERATION = Operation(
    resource="compute_virtual_machine",
    method="POST",
    path="/api/v1/services/compute/virtual_machines",
    noun="virtual machine",
    word="create",
    done="created",
    missing="the address does not exist, so base_url is probably wrong",
    exists=(
        "the service reports a conflict, probably because a virtual machine of this name exists"
        " already"
    ),
    repeat="Look for it on the service: sent again, it may exist twice.",
)

ATTRIBUTES = dict(
    **fields("str", "bios_serial_number", "cmdb_application_service", "cmdb_management_group"),
    **fields("str", "datacenter", "instance", "ip", "name", "operating_system", "status", "team"),
    **fields("float", "cpu", "memory_used_percent", "vm_ram"),
    **fields(DATE_TIME, "creation_date", "last_reboot_date"),
    cdc_security=dict(
        type="dict",
        options=fields("str", "anti_tamper", "connectivity", "customer_id", "s1_version", "uuid"),
    ),
    global_status=dict(
        type="dict",
        options=dict(**fields("str", "label"), **fields("float", "status")),
    ),
    partitions=dict(
        type="list",
        elements="dict",
        options=dict(**fields("str", "path"), **fields("float", "capacity", "free")),
    ),
    puppet_classes=dict(type="list", elements="str"),
    subnet=dict(type="dict", options=fields("str", "dns", "gateway", "mask", "network")),
    volumes=dict(
        type="list",
        elements="dict",
        options=dict(**fields("str", "name"), **fields("float", "size_gb")),
    ),
)


VIRTUAL_MACHINE = Creation(OPERATION, ATTRIBUTES)
