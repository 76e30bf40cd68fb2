# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The resources and their operations (docs/openapi.yaml), and what each kind of operation sends."""

from __future__ import annotations

from typing import ClassVar

from .._call.policy import Resource
from .._call.sending import Settings
from .._errors import InvalidInput
from .._secrets import holds_placeholder, without_placeholders
from .._values import (
    ABSENT,
    BOOLEAN,
    DATE_TIME,
    DICT,
    LIST,
    NUMBER,
    TEXT,
    Params,
    Spec,
    differences,
    dotted,
    encode,
    fields,
    list_of_dicts,
    overlay,
    prune,
)
from .names import id_of, require_name, require_names
from .planning import (
    DIFFERS,
    DONE,
    ENVELOPE,
    KEEP,
    SEND,
    AssetOperation,
    Constraints,
    Plan,
    Task,
    attributes_to_send,
    require_usable,
)

# The fields of the envelope that an update may send.
UPDATED = tuple(name for name in ENVELOPE if name not in ("id", "attributes"))
_PARTS = (*UPDATED, "attributes", "extra_attributes")


class Creation(AssetOperation):
    """Creates an asset by its name; a recorded one is not sent again."""

    @property
    def options(self) -> Spec:
        return dict(
            name=dict(type=TEXT, required=True),
            id=dict(type=TEXT),
            attributes=dict(type=DICT, default={}, options=self.resource.attributes),
            extra_attributes=dict(type=DICT, default={}),
            on_difference=dict(type=TEXT, choices=["warn", "fail"], default="fail"),
        )

    def task(self, params: Params, settings: Settings) -> Task:
        name, identifier = params["name"], params["id"]
        require_names(name, identifier)
        require_usable(params, ("attributes", "extra_attributes"))
        body = {"name": name, "attributes": attributes_to_send(params, self.resource.attributes)}
        return Task(
            self,
            settings,
            name,
            body,
            fails_on_difference=params["on_difference"] == "fail",
            id=identifier,
        )

    def plan(self, task: Task) -> Plan:
        recorded = task.entry
        if recorded is None and task.id is not None:
            raise InvalidInput("id", "needs a ledger, which records the machine: set ledger")
        if recorded is None:
            return Plan(SEND, task.body, {})
        known = id_of(recorded.asset)
        if task.id not in (None, known):
            raise InvalidInput(
                "id",
                f"is {task.id!r}, but {known or 'no id'} is recorded for this name. Correct the"
                " id; if the recorded machine is gone, forget its entry first with"
                " infrastructure.services.ledger_entry (state: absent)",
            )
        # Without attributes there is nothing to compare.
        compared = {key: value for key, value in task.body.items() if value != {}}
        found = differences(compared, recorded.sent or recorded.asset, self.resource.envelope)
        # Of an adopted one only some fields may be known.
        not_known = (ABSENT,) if recorded.sent else (ABSENT, None)
        new = [change.path for change in found if recorded.sent and change.found is ABSENT]
        changes = tuple(change for change in found if change.found not in not_known)
        return Plan(
            DIFFERS if changes else KEEP,
            task.body,
            recorded.asset,
            changes=changes,
            never_sent=tuple(dotted(key for key in path if isinstance(key, str)) for path in new),
        )


class Update(AssetOperation):
    """Updates an asset by its id."""

    constraints: ClassVar[Constraints] = dict(
        required_one_of=[(*_PARTS, "body")],
        mutually_exclusive=[("body", part) for part in _PARTS],
    )

    @property
    def options(self) -> Spec:
        return dict(
            id=dict(type=TEXT, required=True),
            **fields(TEXT, *UPDATED),
            attributes=dict(type=DICT, options=self.resource.attributes),
            **fields(DICT, "extra_attributes", "body", "current"),
            send=dict(type=TEXT, choices=["given", "complete"], default="given"),
        )

    def task(self, params: Params, settings: Settings) -> Task:
        identifier = params["id"]
        current = params["current"]
        require_name("id", identifier)
        require_usable(params, (*_PARTS, "body"))
        encode(current, "current")
        if current and current.get("id") is not None and id_of(current) != identifier:
            raise InvalidInput("current", f"is asset {current['id']!r}, but id is {identifier!r}")
        body = params["body"]
        if body is None:
            body = {name: params[name] for name in UPDATED if params[name] is not None}
            if params["attributes"] is not None or params["extra_attributes"] is not None:
                body["attributes"] = attributes_to_send(params, self.resource.attributes)
        if body in ({}, {"attributes": {}}):
            raise InvalidInput(
                "attributes or body", "there is nothing to update: no field is given"
            )
        return Task(
            self,
            settings,
            identifier,
            body,
            id=identifier,
            current=current,
            is_complete=params["send"] == "complete",
        )

    def plan(self, task: Task) -> Plan:
        entry = task.entry
        known = task.current or (entry.asset if entry else {})
        is_certain = entry is None or entry.state == DONE
        body = task.body
        if task.is_complete:
            if not known or holds_placeholder(known):
                raise InvalidInput(
                    "send",
                    "complete needs the asset as it is now, without masked values: record it with"
                    " infrastructure.services.settle, or give current",
                )
            # The service may not repeat all that was sent, or not have processed it.
            sent = prune(entry.sent if entry and not task.current else {})
            below = (sent, prune(known)) if is_certain else (prune(known), sent)
            body = overlay(overlay(*below), body)
        # Each attribute is a change of its own.
        attributes = known.get("attributes") or {}
        compared = without_placeholders({**known, "attributes": attributes})
        envelope = self.resource.envelope
        if known and is_certain and not differences(task.body, compared, envelope):
            return Plan(KEEP, body, known)
        return Plan(SEND, body, known, task.key, tuple(differences(body, compared, envelope)))


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
# The resources that no operation creates. Sending an update again is safe, so it is never in doubt.
ONLY_UPDATED = tuple(
    name
    for name in RESOURCES
    if not any(each.creates for each in OPERATIONS.values() if each.resource.name == name)
)
