# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The documentation of each module has the options of its argument spec: their names, types, defaults and choices.

ansible-test's validate-modules checks the same for the collection as it is installed.
"""

from __future__ import annotations

import importlib

import pytest
import yaml
from ansible_collections.infrastructure.services.plugins.module_utils._list import items
from ansible_collections.infrastructure.services.plugins.module_utils._resources import (
    application_role,
    virtual_machine,
)
from ansible_collections.infrastructure.services.plugins.module_utils._task import entry_options, info_options
from ansible_collections.infrastructure.services.plugins.module_utils._task.options import ARGUMENT_SPEC, MANY

PLUGINS = "ansible_collections.infrastructure.services.plugins"
SPECS = {
    "compute_virtual_machine": {**ARGUMENT_SPEC, **virtual_machine.OPTIONS},
    "cassandra_application_role": {**ARGUMENT_SPEC, **application_role.OPTIONS},
    "compute_virtual_machines": {**ARGUMENT_SPEC, **MANY, **virtual_machine.VIRTUAL_MACHINES.options},
    "cassandra_application_roles": {**ARGUMENT_SPEC, **MANY, **application_role.APPLICATION_ROLES.options},
    "ledger_entry": entry_options.OPTIONS,
    "ledger_info": info_options.OPTIONS,
}
MATTERS = {"type": "str", "elements": None, "required": False, "default": None, "choices": None}  # and what it is then


def documented(module: str) -> dict:
    """Return the documented options of a module, those of its fragments included."""
    page = yaml.safe_load(importlib.import_module(f"{PLUGINS}.modules.{module}").DOCUMENTATION)
    options: dict = {}
    for name in page.get("extends_documentation_fragment", ()):
        file, _dot, part = name.removeprefix("infrastructure.services.").partition(".")
        fragment = importlib.import_module(f"{PLUGINS}.doc_fragments.{file}").ModuleDocFragment
        options |= yaml.safe_load(getattr(fragment, part.upper() or "DOCUMENTATION")).get("options", {})
    for name, option in page.get("options", {}).items():
        options[name] = {**options.get(name, {}), **option}
    return options


def shape(options: dict, inner: str) -> dict:
    """Return what matters of options; `inner`: the key under which an option has its suboptions."""
    return {
        name: {
            **{key: _plain(option.get(key, missing)) for key, missing in MATTERS.items()},
            "options": shape(option.get(inner) or {}, inner),
        }
        for name, option in options.items()
    }


def _plain(value: object) -> object:
    if isinstance(value, dict):  # ansible-core adds what is missing to a default in place
        return {}
    return str(value) if isinstance(value, str) else value


@pytest.mark.parametrize("module", SPECS)
def test_the_documented_options_are_those_of_the_argument_spec(module):
    assert shape(documented(module), "suboptions") == shape(SPECS[module], "options")


def test_the_items_of_a_list_are_validated_by_the_same_options():
    for plural in (virtual_machine.VIRTUAL_MACHINES, application_role.APPLICATION_ROLES):
        assert set(items.own_options(plural, with_items=True)) == {*plural.options, *MANY}
