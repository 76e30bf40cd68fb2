# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The variables of the role `fleet`, and `fleet_only`, which selects a part of its lists."""

from __future__ import annotations

from dataclasses import replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, Iterable, Mapping

import yaml

from ...module_utils._errors import InvalidInput, listing
from ...module_utils._secrets import printable
from ...module_utils._task.specs import REQUIRED_LEDGER, ModuleSpec
from ...module_utils._task.validation import converted, nearest
from ...module_utils._values import LIST, TEXT, Params
from .ansible_core import TaskAction

FLEET = "infrastructure.services.fleet"  # `ansible_role_name` of its tasks
_PREFIX = "fleet_"  # of the names of its variables
_ONLY = "fleet_only"
_KEYS = {"fleet_virtual_machines": "name", "fleet_application_roles": "id"}


def spec_in_role(
    spec: ModuleSpec, task_vars: Mapping[str, Any], parameters: Iterable[str]
) -> ModuleSpec:
    """Return the module with the variables of the role that set its options.

    Raise InvalidInput for variables that the role lacks and would ignore: Ansible takes any
    variable of any name. `parameters`: the names of those that are given to the role itself.
    """
    text = Path(task_vars["role_path"], "meta/argument_specs.yml").read_text(encoding="utf-8")
    variables = yaml.safe_load(text)["argument_specs"]["main.yml"]["options"]
    names = {name.removeprefix(_PREFIX): name for name in variables}
    given = {*parameters, *(name for name in task_vars if name.startswith(_PREFIX))}
    unknown = []
    for name in sorted(given.difference(variables)):
        near = nearest(name.removeprefix(_PREFIX), names)
        hint = f"; did you mean {names[near]}?" if near else "."
        unknown.append(f"{name}: there is no such variable{hint}")
    if unknown:
        raise InvalidInput(" ".join(unknown))
    # Each list of the role has defaults of its own.
    own_defaults = f"{spec.option.removesuffix('s')}_defaults"
    names["defaults"] = names.get(own_defaults, names["defaults"])
    return replace(spec, own={**spec.own, **REQUIRED_LEDGER}, names=names)


def select(params: Params, spec: ModuleSpec, task: TaskAction) -> str:
    """Reduce the list to the items that `fleet_only` selects, and the invalid ones.

    Return the line about the others, '' if all are selected. Raise InvalidInput for a value that is
    not a list of names, is empty or matches nothing.
    """
    if _ONLY not in task.task_vars:
        return ""
    variable = task.variable
    globs = converted(dict(type=LIST, elements=TEXT), variable(_ONLY) or [], _ONLY)
    if not any(globs):
        raise InvalidInput(_ONLY, "is empty: give names, or leave the variable out to select all")
    names = {_name_of(item, key) for name, key in _KEYS.items() for item in variable(name) or ()}
    selected = {""}
    for glob in globs:
        matching = {name for name in names if name == glob or fnmatchcase(name, glob)}
        if not matching:
            raise InvalidInput(_ONLY, f"{printable(glob)} is in neither list")
        selected |= matching
    listed = params[spec.option]
    params[spec.option] = [item for item in listed if _name_of(item, spec.key) in selected]
    left_out = len(listed) - len(params[spec.option])
    only = printable(listing(globs))
    return f"{left_out:,} more of the list are left out ({_ONLY}: {only})" if left_out else ""


def _name_of(item: Any, key: str) -> str:
    return str(item.get(key) or "") if isinstance(item, dict) else ""
