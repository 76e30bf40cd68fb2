# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The resources and their operations, as data (docs/openapi.yaml)."""

from __future__ import annotations

from .._call.policy import Resource
from .._values import BOOLEAN, DATE_TIME, DICT, LIST, NUMBER, TEXT, fields, list_of_dicts
from .planning import AssetOperation, Creation, Update

VIRTUAL_MACHINE = Resource(
    name="compute_virtual_machine",
    noun="virtual machine",
    key="name",
    attributes=dict(
        **fields(TEXT, "bios_serial_number", "cmdb_application_service", "cmdb_management_group"),
        **fields(TEXT, "datacenter", "instance", "ip", "name", "operating_system", "status"),
        **fields(TEXT, "team"),
        **fields(NUMBER, "cpu", "memory_used_percent", "vm_ram"),
        **fields(DATE_TIME, "creation_date", "last_reboot_date"),
        cdc_security=dict(
            type=DICT,
            options=fields(
                TEXT, "anti_tamper", "connectivity", "customer_id", "s1_version", "uuid"
            ),
        ),
        global_status=dict(
            type=DICT,
            options=dict(**fields(TEXT, "label"), **fields(NUMBER, "status")),
        ),
        partitions=list_of_dicts(
            dict(**fields(TEXT, "path"), **fields(NUMBER, "capacity", "free"))
        ),
        puppet_classes=dict(type=LIST, elements=TEXT),
        subnet=dict(type=DICT, options=fields(TEXT, "dns", "gateway", "mask", "network")),
        volumes=list_of_dicts(dict(**fields(TEXT, "name"), **fields(NUMBER, "size_gb"))),
    ),
)

APPLICATION_ROLE = Resource(
    name="cassandra_application_role",
    noun="application role",
    key="id",
    attributes=dict(
        **fields(TEXT, "cluster_id", "name"),
        effective_grants=list_of_dicts(
            dict(
                permissions=dict(type=LIST, elements=TEXT),
                **fields(TEXT, "resource_kind", "resource_name", "source"),
            )
        ),
        login=dict(type=BOOLEAN),
        password_last_rotated_at=dict(type=DATE_TIME, no_log=False),
        # Where it is kept, not the password.
        password_location=dict(type=TEXT, no_log=False),
    ),
)

CREATE_VIRTUAL_MACHINE = Creation(
    resource=VIRTUAL_MACHINE,
    method="POST",
    path="/api/v1/services/compute/virtual_machines",
    creates=True,
    word="create",
    done="created",
    missing="the address does not exist, so base_url is probably wrong",
    exists=(
        "the service reports a conflict, probably because a virtual machine of this name exists"
        " already"
    ),
    repeat="Look for it on the service: sent again, it may exist twice.",
)

UPDATE_APPLICATION_ROLE = Update(
    resource=APPLICATION_ROLE,
    method="PUT",
    path="/api/v1/services/cassandra/application_roles/{id}",
    creates=False,
    word="update",
    done="updated",
    missing="there is no application role with this id, or base_url is wrong",
    exists="the service reports a conflict with the current state of the role",
    repeat="Running the task again is safe: it sends the same update.",
)

# By the module for one asset.
OPERATIONS: dict[str, AssetOperation] = {
    "compute_virtual_machine": CREATE_VIRTUAL_MACHINE,
    "cassandra_application_role": UPDATE_APPLICATION_ROLE,
}
RESOURCES = {resource.name: resource for resource in (APPLICATION_ROLE, VIRTUAL_MACHINE)}
