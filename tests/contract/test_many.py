# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The plural modules: documentation, options and results agree, with each other and with the single
modules.
"""

from __future__ import annotations

import importlib
import json
import re

import pytest
import yaml
from ansible_collections.infrastructure.services.plugins.doc_fragments import assets
from ansible_collections.infrastructure.services.plugins.doc_fragments import many as fragment
from ansible_collections.infrastructure.services.plugins.module_utils._list import items
from ansible_collections.infrastructure.services.plugins.module_utils._task.options import (
    ARGUMENT_SPEC,
    MANY,
)
from ansible_collections.infrastructure.services.plugins.module_utils._task.specs import (
    APPLICATION_ROLES,
    VIRTUAL_MACHINES,
)
from ansible_collections.infrastructure.services.plugins.module_utils._task.validation import (
    validate,
)
from emulator import server
from support.front import run_plural

PLURALS = {plural.name: plural for plural in (VIRTUAL_MACHINES, APPLICATION_ROLES)}
ANSIBLE = {"changed", "failed", "msg", "diff", "warnings", "invocation"}


def page(module: str, part: str) -> dict:
    """One part of the documentation of a module."""
    found = importlib.import_module(
        f"ansible_collections.infrastructure.services.plugins.modules.{module}"
    )
    return yaml.safe_load(getattr(found, part))


def options(module: str) -> dict:
    """The options of a module, including those of the fragment for its assets."""
    documented = page(module, "DOCUMENTATION")
    parts = [
        name.rpartition(".")[2]
        for name in documented["extends_documentation_fragment"]
        if ".assets." in name
    ]
    found, own = {}, documented.get("options", {})
    for part in parts:
        found |= yaml.safe_load(getattr(assets.ModuleDocFragment, part.upper()))["options"]
    return {**own, **{name: {**option, **own.get(name, {})} for name, option in found.items()}}


def words(option: dict) -> str:
    described = option["description"]
    return described if isinstance(described, str) else " ".join(described)


def without_references(documented: dict, option: str) -> dict:
    """The documentation of options, with references to an item's options written as in the single
    module.
    """
    return plain(json.loads(json.dumps(documented).replace(f"O({option}[].", "O(")))


def plain(documented: dict) -> dict:
    """The same, with each description as a single string."""
    return {
        name: words(option)
        and {
            **option,
            "description": words(option),
            "suboptions": plain(option.get("suboptions", {})),
        }
        for name, option in documented.items()
    }


@pytest.mark.parametrize("plural", PLURALS.values(), ids=PLURALS)
def test_an_item_is_documented_like_the_single_module(plural):
    documented = options(plural.name)
    single = options(plural.resource.operation.resource)
    assert set(documented) == {plural.option, *plural.shared}
    item = without_references(documented[plural.option]["suboptions"], plural.option)
    assert item == plain(
        {name: option for name, option in single.items() if name not in plural.shared}
    )
    for name in plural.shared:
        assert documented[name] == single[name]


@pytest.mark.parametrize("plural", PLURALS.values(), ids=PLURALS)
def test_the_options_match_the_documentation(plural):
    shared = yaml.safe_load(fragment.ModuleDocFragment.DOCUMENTATION)["options"]
    documented = {**options(plural.name), **shared}
    spec = {name: plural.documented()["argument_spec"][name] for name in plural.own}
    assert set(spec) == set(documented)
    assert not set(spec) & set(ARGUMENT_SPEC)
    for name, option in spec.items():
        for key in ("type", "elements", "required", "default"):
            assert option.get(key, False) == documented[name].get(key, False), name
    for name, option in MANY.items():
        for variable in option.get("fallback", (None, []))[1]:
            assert f"E({variable})" in words(shared[name])


@pytest.mark.parametrize("plural", PLURALS.values(), ids=PLURALS)
def test_the_module_accepts_each_of_its_examples(plural):
    for task in page(plural.name, "EXAMPLES"):
        options = task.get(f"infrastructure.services.{plural.name}")
        if options and isinstance(options[plural.option], list):
            for item in options[plural.option]:
                items.validated_item(plural, item)
            assert validate(plural, {"base_url": "https://s", **options}).problem == ""


@pytest.fixture(scope="module")
def service():
    with server.start(roles=["r1", "r2"]) as running:
        yield running


@pytest.mark.parametrize("plural", PLURALS.values(), ids=PLURALS)
@pytest.mark.parametrize("check_mode", [False, True])
def test_the_result_matches_the_documentation(service, plural, check_mode):
    given = [{plural.key: key, "attributes": {"name": "n"}} for key in ("r1", "r2")]
    options = {"base_url": service.url, "access_token": "token-of-the-tests", plural.option: given}
    result = run_plural(plural, options, check_mode=check_mode)
    documented = page(plural.name, "RETURN")
    assert not result.get("failed"), result["msg"]
    assert set(result) - ANSIBLE == set(documented) - {"not_listed"}
    fields = documented["results"]["contains"]
    for item in result["results"]:
        always = {name for name, field in fields.items() if "returned" not in field}
        assert always <= set(item) <= set(fields)
        assert ("plan" in item) == check_mode
    assert set(documented["counts"]["sample"]) <= set(result["counts"])
    assert set(result["ansible_facts"][plural.name]) == {"r1", "r2"}


@pytest.mark.parametrize("plural", PLURALS.values(), ids=PLURALS)
def test_the_faults_of_all_items_are_reported_on_a_target_too(plural):
    given = [{plural.key: "r1", "attributes": {"name": ["n"]}}, {"surplus": 1}, {plural.key: "r1"}]
    result = run_plural(
        plural, {"base_url": "https://s", "access_token": "t", plural.option: given}
    )
    assert (result["failed"], result["outcome"], result["changed"]) == (True, "not_sent", False)
    assert re.search(r"\[0\] \(r1\): .*; \[1\]: ", result["msg"])
    if "invocation" in result:
        assert result["invocation"]["module_args"][plural.option] == "3 items"


def test_a_ledger_is_refused_on_a_target():
    options = {
        "base_url": "https://s",
        "access_token": "t",
        "virtual_machines": [{"name": "a"}],
        "ledger": "l.db",
    }
    result = run_plural(VIRTUAL_MACHINES, options)
    assert (result["failed"], result["outcome"]) == (True, "not_sent")
    assert result["msg"].startswith("ledger: ")


def test_defaults_are_merged_on_a_target_too(service):
    given = [{"name": "a", "attributes": {"cpu": 8}}, {"name": "b"}]
    options = {"base_url": service.url, "access_token": "t" * 20, "virtual_machines": given}
    defaults = {"attributes": {"cpu": 4, "team": "web"}}
    result = run_plural(VIRTUAL_MACHINES, {**options, "defaults": defaults}, check_mode=True)
    assert [item["asset"]["attributes"] for item in result["results"]] == [
        {"cpu": 8, "team": "web"},
        {"cpu": 4, "team": "web"},
    ]


def test_a_report_is_refused_on_a_target():
    options = {
        "base_url": "https://s",
        "access_token": "t",
        "virtual_machines": [{"name": "a"}],
        "report": "r.json",
    }
    result = run_plural(VIRTUAL_MACHINES, options)
    assert (result["failed"], result["outcome"]) == (True, "not_sent")
    assert result["msg"].startswith("report: ")
