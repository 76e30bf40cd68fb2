# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The modules as users see them, as data."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Callable, Mapping, cast

from .._call.policy import Operation
from .._resources.planning import AssetOperation, Constraints
from .._resources.resources import OPERATIONS, RESOURCES
from .._values import (
    BOOLEAN,
    DATE_TIME,
    DICT,
    LIST,
    PATH,
    TEXT,
    Params,
    Spec,
    Type,
    fields,
    only_list,
)
from .options import ARGUMENT_SPEC, MANY, SECRET

IN_DOUBT = "in_doubt"  # every state but done
STATES = ("intent", "done", "accepted", "unknown")


@dataclass(frozen=True)
class ModuleSpec:
    """One module. The items of a list of assets have the options of the module for one."""

    name: str  # of the module, and of the fact that a list returns
    own: Spec  # the argument spec of its own options
    # Across these options.
    constraints: Constraints = field(default_factory=dict)
    # None: the module works on the ledger alone.
    operation: Operation | None = None
    # Returns the operation that options name, valid or not. Such a task has no ledger.
    choose: Callable[[Operation, Params], Operation] | None = None
    option: str = ""  # holds the list; empty for a module for one asset
    # The argument spec of one item of the list.
    item_options: Spec = field(default_factory=dict)
    # Across the options of each item.
    item_constraints: Constraints = field(default_factory=dict)
    # Of the variables of a role, by the options that they set.
    names: Mapping[str, str] = field(default_factory=dict)

    @property
    def key(self) -> str:
        """Return the option that identifies an asset."""
        return self.operation.resource.key if self.operation else "name"

    @property
    def sent(self) -> AssetOperation:
        """Return the operation on assets; raise TypeError for a module of the ledger alone."""
        if self.operation is None:
            raise TypeError(f"{self.name} sends nothing")
        return cast(AssetOperation, self.operation)

    def operation_of(self, params: Params) -> Operation:
        """Return the operation of a task with these options, which may be invalid."""
        return self.choose(self.sent, params) if self.choose else self.sent

    @property
    def no_effect(self) -> str:
        """Return what a task with an invalid option has certainly not done."""
        return "Nothing was sent." if self.operation else "No entry was changed."

    def named(self, option: str) -> str:
        """Return the name by which the user gives an option."""
        return self.names.get(option, option)

    @cached_property
    def options(self) -> Spec:
        """Return the argument spec of all options; `_list/items` validates items one by one."""
        ledger_only: Spec = {} if self.operation else fields(TEXT, "base_url")
        return {**ARGUMENT_SPEC, **ledger_only, **self.own}

    @cached_property
    def paths(self) -> list[str]:
        """Return the names of the options that are paths."""
        return [name for name, option in self.options.items() if option["type"] == "path"]

    def documented(self) -> dict[str, Any]:
        """Return the arguments of AnsibleModule, which ansible-test compares with the documents."""
        options = self.options if self.operation else self.own
        hidden = {name: dict(options[name], no_log=True) for name in SECRET if name in options}
        options = {**options, **hidden}
        if self.option:
            items = {"elements": DICT, "options": self.item_options, **self.item_constraints}
            options = {**options, self.option: {**self.own[self.option], **items}}
        return dict(argument_spec=options, **self.constraints)


def _delimiter(value: Any) -> Any:
    if len(value) != 1 or value in '"\r\n ':
        raise ValueError
    return value


def _ledger_id(value: Any) -> Any:
    if not (isinstance(value, str) and re.fullmatch("[0-9a-f]{32}", value)):
        raise ValueError
    return value


LEDGER_ID = Type("str", "a ledger_id: 32 hexadecimal digits", _ledger_id)
DELIMITER = Type("str", "one character such as ;", _delimiter)  # of a CSV file
_ITEMS = dict(
    type=Type(
        "list",
        "a list of dicts (CSV becomes one by | infrastructure.services.from_csv)",
        only_list,
    ),
    required=True,
)


REQUIRED_LEDGER: Spec = dict(ledger=dict(ARGUMENT_SPEC["ledger"], required=True))


def _for_one(name: str) -> ModuleSpec:
    operation = OPERATIONS[name]
    own = {**operation.options, **(REQUIRED_LEDGER if operation.creates else {})}
    return ModuleSpec(name, own, operation.constraints, operation)


def _for_list(one: ModuleSpec, option: str, *shared: str) -> ModuleSpec:
    """Return the module for a list; `shared`: options of the one that apply to all items."""
    options = {name: option for name, option in one.own.items() if name not in ARGUMENT_SPEC}
    own = {name: one.own[name] for name in one.own.keys() - options.keys()}
    return ModuleSpec(
        name=f"{one.name}s",
        own={option: _ITEMS, **own, **{name: options.pop(name) for name in shared}, **MANY},
        operation=one.operation,
        option=option,
        item_options=options,
        item_constraints=one.constraints,
    )


VIRTUAL_MACHINE = _for_one("compute_virtual_machine")
VIRTUAL_MACHINES = _for_list(VIRTUAL_MACHINE, "virtual_machines", "on_difference")
APPLICATION_ROLE = _for_one("cassandra_application_role")
APPLICATION_ROLES = _for_list(APPLICATION_ROLE, "application_roles")

_ENTRY: Spec = dict(
    resource=dict(type=TEXT, choices=list(RESOURCES)),
    **fields(TEXT, "name", "id"),
    state=dict(type=TEXT, choices=["absent", "present"]),
    asset=dict(type=DICT),
    changed_at=dict(type=DATE_TIME),
)
LEDGER_ENTRY = ModuleSpec(
    "ledger_entry",
    dict(
        **REQUIRED_LEDGER,
        **fields(TEXT, "base_url"),
        **_ENTRY,
        entries=dict(_ITEMS, required=False),
        file=dict(type=PATH),
        delimiter=dict(type=DELIMITER),
    ),
    constraints=dict(
        mutually_exclusive=[
            ("entries", "file"),
            *(("entries", option) for option in _ENTRY),
            *(("file", option) for option in _ENTRY),
            ("delimiter", "resource"),
            ("delimiter", "entries"),
        ],
        required_one_of=[("resource", "entries", "file")],
    ),
    option="entries",
    item_options=dict(
        _ENTRY,
        resource=dict(_ENTRY["resource"], required=True),
        state=dict(type=TEXT, choices=["absent", "present", *STATES], default="present"),
    ),
    item_constraints=dict(
        mutually_exclusive=[("id", "name")],
        required_if=[
            ("state", "present", ("asset",)),
            *(("resource", name, (resource.key,)) for name, resource in RESOURCES.items()),
        ],
    ),
)
LEDGER_CREATE = ModuleSpec(
    "ledger_create",
    dict(
        **REQUIRED_LEDGER,
        base_url=ARGUMENT_SPEC["base_url"],
        replaces=dict(type=LEDGER_ID),
    ),
)
LEDGER_MOVE = ModuleSpec(
    "ledger_move",
    dict(
        **REQUIRED_LEDGER,
        **fields(TEXT, "to", "to_base_url"),
    ),
    dict(mutually_exclusive=[("to", "to_base_url")], required_one_of=[("to", "to_base_url")]),
)
LEDGER_INFO = ModuleSpec(
    "ledger_info",
    dict(
        **REQUIRED_LEDGER,
        resource=dict(type=TEXT, choices=list(RESOURCES)),
        names=dict(type=LIST, elements=TEXT),
        states=dict(type=LIST, elements=TEXT, choices=[*STATES, IN_DOUBT]),
        changed_since=dict(type=DATE_TIME),
        run=dict(type=TEXT),
        history=dict(type=BOOLEAN),
        summary=dict(type=BOOLEAN),
        file=dict(type=PATH),
        delimiter=dict(type=DELIMITER, default=","),
        table=dict(type=BOOLEAN),
    ),
    dict(
        mutually_exclusive=[("summary", other) for other in ("names", "history", "file", "table")]
    ),
)
