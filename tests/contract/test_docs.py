# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What ansible-doc shows is what the modules accept, option by option and suboption by suboption."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Iterator

import pytest
import yaml
from ansible_collections.infrastructure.services.plugins.module_utils._task import (
    options as shared_options,
)
from ansible_collections.infrastructure.services.plugins.module_utils._task import specs
from ansible_collections.infrastructure.services.plugins.module_utils._task.validation import (
    validate,
)
from support import RESOURCES, SPECS
from support.shapes import leaves, of_documentation, of_spec, without_formats

ROOT = Path(__file__).resolve().parents[2]
NAMESPACE = "infrastructure.services."
MODULES = sorted(path.stem for path in ROOT.glob("plugins/modules/*.py"))


@pytest.fixture(scope="module")
def pages():
    """The documentation of every module from `ansible-doc --json`, the shared fragment merged in."""
    root = next(
        entry
        for entry in sys.path
        if (Path(entry) / "ansible_collections/infrastructure/services").exists()
    )
    command = [
        sys.executable,
        "-m",
        "ansible",
        "doc",
        "--json",
        *(NAMESPACE + name for name in MODULES),
    ]
    environment = {**os.environ, "ANSIBLE_COLLECTIONS_PATH": root, "PYTHONWARNINGS": "ignore"}
    done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, check=True, timeout=60)
    return {name.removeprefix(NAMESPACE): page for name, page in json.loads(done.stdout).items()}


def pairs(spec: dict, documented: dict, path: str = "") -> Iterator[tuple[str, dict, dict]]:
    """Yield each option with its documentation, at every level; a name missing on either side fails
    the test.
    """
    assert set(spec) == set(documented), (
        f"options and documentation differ in {path or 'the module'}"
    )
    for name, option in spec.items():
        yield path + name, option, documented[name]
        yield from pairs(
            option.get("options", {}), documented[name].get("suboptions", {}), f"{path}{name}."
        )


def words(documented: dict) -> str:
    """Return the description, which is one paragraph or a list of them."""
    description = documented["description"]
    return description if isinstance(description, str) else " ".join(description)


@pytest.mark.parametrize("module", RESOURCES)
def test_every_option_is_documented_correctly(pages, module):
    for name, option, documented in pairs(SPECS[module].options, pages[module]["doc"]["options"]):
        assert str(option["type"]) == documented["type"], name
        assert option.get("elements") == documented.get("elements"), name
        assert option.get("required", False) == documented.get("required", False), name
        assert option.get("default") == documented.get("default"), name
        assert sorted(option.get("choices", [])) == sorted(documented.get("choices", [])), name
        assert words(documented), name


@pytest.mark.parametrize("module", RESOURCES)
def test_the_shape_of_the_attributes_is_documented(pages, module):
    spec, documented = (
        RESOURCES[module].options["attributes"],
        pages[module]["doc"]["options"]["attributes"],
    )
    assert without_formats(of_spec(spec)) == of_documentation(documented)


@pytest.mark.parametrize("module", RESOURCES)
def test_every_date_time_documents_its_format(pages, module):
    documented = pages[module]["doc"]["options"]["attributes"]["suboptions"]
    shape = of_spec(RESOURCES[module].options["attributes"])
    names = [path[0] for path, kind in leaves(shape) if kind == "date-time"]
    assert names
    for name in names:
        assert re.search(r"ISO 8601|in the form of O\(attributes\.", words(documented[name])), name


@pytest.mark.parametrize("module", RESOURCES)
def test_environment_variables_are_documented_in_order_of_precedence(pages, module):
    for name, option in shared_options.ARGUMENT_SPEC.items():
        text = words(pages[module]["doc"]["options"][name])
        places = [text.find(f"E({variable})") for variable in option.get("fallback", (None, []))[1]]
        assert -1 not in places, name
        assert places == sorted(places), name


@pytest.mark.parametrize("module", RESOURCES)
def test_every_example_uses_options_that_exist(pages, module):
    tasks = yaml.safe_load(pages[module]["examples"])
    uses = [task[NAMESPACE + module] for task in tasks if NAMESPACE + module in task]
    assert uses
    for options in uses:
        assert set(options) <= set(SPECS[module].options)
        assert set(options.get("attributes") or {}) <= set(RESOURCES[module].attributes)


def test_only_modules_that_send_have_the_shared_options(pages):
    assert [
        module for module in MODULES if "access_token" in pages[module]["doc"]["options"]
    ] == sorted(name for resource in RESOURCES for name in (resource, f"{resource}s"))


@pytest.mark.parametrize(
    "spec", [specs.LEDGER_ENTRY, specs.LEDGER_INFO], ids=lambda spec: spec.name
)
def test_the_options_of_the_ledger_modules_are_documented_correctly(pages, spec):
    for name, option, documented in pairs(spec.own, pages[spec.name]["doc"]["options"]):
        assert str(option["type"]) == documented["type"], name
        assert option.get("required", False) == documented.get("required", False), name
        assert option.get("default") == documented.get("default"), name
        assert sorted(option.get("choices", [])) == sorted(documented.get("choices", [])), name
        assert all(
            f"E({variable})" in words(documented)
            for variable in option.get("fallback", (None, []))[1]
        )


def test_ledger_entry_accepts_each_of_its_examples(pages):
    tasks = yaml.safe_load(pages["ledger_entry"]["examples"])
    for task in (
        task for task in tasks if NAMESPACE + "ledger_entry" in task and "loop" not in task
    ):
        options = {
            "ledger": "ledger.db",
            "base_url": "https://s",
            **task[NAMESPACE + "ledger_entry"],
        }
        assert validate(specs.LEDGER_ENTRY, options).problem == ""


@pytest.mark.parametrize("module", MODULES)
def test_check_mode_is_documented_as_full(pages, module):
    assert pages[module]["doc"]["attributes"]["check_mode"]["support"] == "full"
