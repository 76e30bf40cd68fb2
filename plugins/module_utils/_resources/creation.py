# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A resource that an operation creates by its name."""

from __future__ import annotations

from .._call.operation import Operation
from .._fields import Params, Spec
from .planning import Plan, Recorded, Resource, Wanted, require_name, require_usable, with_extra


class Creation(Resource):
    """A resource that is created by its name; a recorded one is not sent again."""

    def __init__(self, operation: Operation, attributes: Spec) -> None:
        options: Spec = dict(
            name=dict(type="str", required=True),
            attributes=dict(type="dict", default={}, options=attributes),
            extra_attributes=dict(type="dict", default={}),
            on_difference=dict(type="str", choices=["warn", "fail"], default="warn"),
        )
        super().__init__(operation, attributes, options)

    def wanted(self, params: Params) -> Wanted:
        """Return the asset that the options ask for; raise InvalidInput."""
        require_usable(params, self.options)
        name = params["name"]
        require_name("name", name)
        attributes = with_extra(params["attributes"], params["extra_attributes"], self.attributes)
        fails = "on_difference" if params["on_difference"] == "fail" else ""
        body = {"name": name, "attributes": attributes}
        return Wanted(name, body, force=params["force"], fails_on_difference=fails)

    def plan(self, wanted: Wanted, recorded: Recorded | None) -> Plan:
        """Return the plan for creating it."""
        if recorded is None:
            return Plan(wanted.body)
        # Without attributes there is nothing to compare.
        given = {key: value for key, value in wanted.body.items() if value != {}}
        changes = tuple(self.differences(given, recorded.sent))
        return Plan(wanted.body, recorded.asset, settled=True, changes=changes)
