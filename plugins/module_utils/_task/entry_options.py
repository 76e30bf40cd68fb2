# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The options of `ledger_entry`; plugin_utils/_ledger/editing.py does the work, on the controller."""

from __future__ import annotations

from .._fields import TEXT
from .._resources.application_role import APPLICATION_ROLE
from .._resources.virtual_machine import VIRTUAL_MACHINE
from .options import ARGUMENT_SPEC as _SHARED

# The option that identifies an asset of each resource.
KEYS = {APPLICATION_ROLE.operation.resource: "id", VIRTUAL_MACHINE.operation.resource: "name"}

OPTIONS = dict(
    ledger=dict(_SHARED["ledger"], required=True),
    base_url=_SHARED["base_url"],
    resource=dict(type="str", required=True, choices=list(KEYS)),
    name=dict(type=TEXT),
    id=dict(type=TEXT),
    state=dict(type="str", choices=["absent", "present"], default="present"),
    asset=dict(type="dict"),
)
CONSTRAINTS = dict(
    mutually_exclusive=[("id", "name")],
    required_if=[("state", "present", ("asset",)), *(("resource", name, (option,)) for name, option in KEYS.items())],
)
