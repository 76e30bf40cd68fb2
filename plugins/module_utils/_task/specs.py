# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The modules as users see them, as data."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Mapping, Sequence

from .._errors import quantity
from .._fields import DATE_TIME, Params, Type
from .._resources import KEYS, application_role, virtual_machine
from .._resources.planning import Resource
from .options import ARGUMENT_SPEC, MANY, Option

Constraints = Mapping[str, Sequence[Sequence[Any]]]
IN_DOUBT = "in_doubt"  # every state but done
_STATES = ("intent", "done", "accepted", "unknown")

# For messages: how a dict with suboptions is written.
EXAMPLES = (
    {"cpu": "4", "vm_ram": "16"},
    {"name": "data", "size_gb": "200"},
    {"network": "10.0.0.0", "mask": "255.255.255.0"},
)
# Options of other collections, and what to use instead.
INSTEAD = {
    "state": "the service cannot delete. To forget a machine, use"
    " infrastructure.services.ledger_entry with state:"
    " absent",
    "wait": "a request ends when the service has answered; timeout says how long that may take",
    "count": "one task is one machine; list several in"
    " infrastructure.services.compute_virtual_machines",
}


@dataclass(frozen=True)
class ModuleSpec:
    """One module. The items of a list of assets have the options of the module for one."""

    name: str  # of the module, and of the fact that a list returns
    own: dict[str, Option]  # the argument spec of its own options
    # Across options; for a list, across the options of each item.
    constraints: Constraints = field(default_factory=dict)
    # None: the module works on the ledger alone.
    resource: Resource | None = None
    option: str = ""  # holds the list; empty for a module for one asset
    # The argument spec of one item of the list.
    item_options: dict[str, Option] = field(default_factory=dict)
    # Options of the resource that apply to all items.
    shared: tuple[str, ...] = ()
    # Of the variables of a role, by the options that they set.
    names: Mapping[str, str] = field(default_factory=dict)

    @property
    def key(self) -> str:
        """Return the option that identifies an asset."""
        return KEYS[self.resource.operation.resource] if self.resource else "name"

    @property
    def sent(self) -> Resource:
        """Return the resource that the module sends; raise TypeError for one of the ledger alone."""
        if self.resource is None:
            raise TypeError(f"{self.name} sends nothing")
        return self.resource

    @property
    def no_effect(self) -> str:
        """Return what a task with an invalid option has certainly not done."""
        return "Nothing was sent." if self.resource else "No entry was changed."

    def named(self, option: str) -> str:
        """Return the name by which the user gives an option."""
        return self.names.get(option, option)

    @cached_property
    def options(self) -> dict[str, Option]:
        """Return the argument spec of all options; `_list/items` validates items one by one."""
        ledger_only: dict[str, Option] = {} if self.resource else {"base_url": dict(type="str")}
        return {**ARGUMENT_SPEC, **ledger_only, **self.own}

    @cached_property
    def paths(self) -> list[str]:
        """Return the names of the options that are paths."""
        return [name for name, option in self.options.items() if option["type"] == "path"]

    def documented(self) -> dict[str, Any]:
        """Return the arguments of AnsibleModule, which ansible-test compares with the documents."""
        options = self.options if self.resource else self.own
        if not self.option:
            return dict(argument_spec=options, **self.constraints)
        items = {
            "type": "list",
            "elements": "dict",
            "options": self.item_options,
            **self.constraints,
        }
        return dict(argument_spec={**options, self.option: {**self.own[self.option], **items}})

    def without_items(self, params: Params) -> Params:
        """Return the options with the number of items instead of the items."""
        items = params.get(self.option)
        if not isinstance(items, list):
            return params
        return {**params, self.option: quantity(len(items), "item")}


def _items(value: object) -> list[object]:
    """Return a list of items; raise TypeError for anything else, including a text with commas."""
    if isinstance(value, list):
        return value
    hint = " (CSV becomes one by | infrastructure.services.from_csv)"
    raise TypeError(f"must be a list{hint if isinstance(value, str) else ''}")


_ITEMS = dict(type=Type("list", _items), required=True)


def _for_one(resource: Resource) -> ModuleSpec:
    return ModuleSpec(resource.operation.resource, resource.options, resource.constraints, resource)


def _for_list(resource: Resource, option: str, *shared: str) -> ModuleSpec:
    return ModuleSpec(
        name=f"{resource.operation.resource}s",
        own={
            option: _ITEMS,
            **{name: resource.options[name] for name in shared},
            **MANY,
        },
        constraints=resource.constraints,
        resource=resource,
        option=option,
        item_options={
            name: option for name, option in resource.options.items() if name not in shared
        },
        shared=shared,
    )


VIRTUAL_MACHINE = _for_one(virtual_machine.VIRTUAL_MACHINE)
VIRTUAL_MACHINES = _for_list(virtual_machine.VIRTUAL_MACHINE, "virtual_machines", "on_difference")
APPLICATION_ROLE = _for_one(application_role.APPLICATION_ROLE)
APPLICATION_ROLES = _for_list(application_role.APPLICATION_ROLE, "application_roles")

_LEDGER = dict(
    ledger=dict(ARGUMENT_SPEC["ledger"], required=True),
    ledger_create=ARGUMENT_SPEC["ledger_create"],
)
LEDGER_ENTRY = ModuleSpec(
    "ledger_entry",
    dict(
        **_LEDGER,
        base_url=ARGUMENT_SPEC["base_url"],
        resource=dict(type="str", required=True, choices=list(KEYS)),
        name=dict(type="str"),
        id=dict(type="str"),
        state=dict(type="str", choices=["absent", "present"], default="present"),
        asset=dict(type="dict"),
        changed_at=dict(type=DATE_TIME),
    ),
    dict(
        mutually_exclusive=[("id", "name")],
        required_if=[
            ("state", "present", ("asset",)),
            *(("resource", name, (key,)) for name, key in KEYS.items()),
        ],
    ),
)
LEDGER_ENTRIES = ModuleSpec(
    "ledger_entries",
    dict(
        **_LEDGER,
        base_url=dict(ARGUMENT_SPEC["base_url"], required=False),
        entries=_ITEMS,
    ),
    LEDGER_ENTRY.constraints,
    option="entries",
    item_options=dict(
        {name: option for name, option in LEDGER_ENTRY.own.items() if name not in _LEDGER},
        base_url=dict(type="str"),
        state=dict(type="str", choices=["absent", "present", *_STATES], default="present"),
    ),
)
LEDGER_MOVE = ModuleSpec(
    "ledger_move",
    dict(
        **_LEDGER,
        to=dict(type="str"),
        base_url=dict(type="str"),
        to_base_url=dict(type="str"),
    ),
    dict(mutually_exclusive=[("to", "to_base_url")], required_one_of=[("to", "to_base_url")]),
)
LEDGER_INFO = ModuleSpec(
    "ledger_info",
    dict(
        **_LEDGER,
        base_url=dict(type="str"),
        resource=dict(type="str", choices=list(KEYS)),
        names=dict(type="list", elements="str"),
        states=dict(type="list", elements="str", choices=[*_STATES, IN_DOUBT]),
        changed_since=dict(type=DATE_TIME),
        run=dict(type="str"),
        history=dict(type="bool", default=False),
    ),
)
