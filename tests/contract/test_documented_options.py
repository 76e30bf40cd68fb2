# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The documentation of each module has the options of its argument spec: their names, types,
defaults and choices.

ansible-test's validate-modules checks the same for the collection as it is installed.
"""

from __future__ import annotations

import importlib

import pytest
import yaml
from ansible_collections.infrastructure.services.plugins.module_utils._task import specs

PLUGINS = "ansible_collections.infrastructure.services.plugins"
SPECS = {
    spec.name: spec.documented()["argument_spec"]
    for spec in (
        specs.VIRTUAL_MACHINE,
        specs.VIRTUAL_MACHINES,
        specs.APPLICATION_ROLE,
        specs.APPLICATION_ROLES,
        specs.LEDGER_ENTRY,
        specs.LEDGER_INFO,
    )
}
MATTERS = {
    "type": "str",
    "elements": None,
    "required": False,
    "default": None,
    "choices": None,
}  # and what it is then


def documented(module: str) -> dict:
    """Return the documented options of a module, those of its fragments included."""
    page = yaml.safe_load(importlib.import_module(f"{PLUGINS}.modules.{module}").DOCUMENTATION)
    options: dict = {}
    for name in page.get("extends_documentation_fragment", ()):
        file, _dot, part = name.removeprefix("infrastructure.services.").partition(".")
        fragment = importlib.import_module(f"{PLUGINS}.doc_fragments.{file}").ModuleDocFragment
        options |= yaml.safe_load(getattr(fragment, part.upper() or "DOCUMENTATION")).get(
            "options", {}
        )
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
    return str(value) if isinstance(value, str) else value


@pytest.mark.parametrize("module", SPECS)
def test_the_documented_options_are_those_of_the_argument_spec(module):
    assert shape(documented(module), "suboptions") == shape(SPECS[module], "options"), (
        f"edit plugins/doc_fragments/assets.py or plugins/modules/{module}.py (left),"
        " or plugins/module_utils/_resources (right)"
    )
