"""The variables of the role `fleet`, its documentation, its defaults and the options of the modules
agree.
"""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from ansible_collections.infrastructure.services.plugins.module_utils._task.options import (
    ARGUMENT_SPEC,
    MANY,
)
from support import VIRTUAL_MACHINES

ROLE = Path(__file__).resolve().parents[2] / "roles/fleet"


def load(name: str) -> object:
    return yaml.safe_load((ROLE / name).read_text(encoding="utf-8"))


OPTIONS = load("meta/argument_specs.yml")["argument_specs"]["main.yml"]["options"]
NAMES = "concurrency asset_fields defaults report in_doubt max_unknown max_failures"
SAME = {
    **{f"fleet_{name}": MANY[name] for name in NAMES.split()},
    "fleet_application_role_defaults": MANY["defaults"],
    "fleet_ledger": ARGUMENT_SPEC["ledger"],
    "fleet_on_difference": VIRTUAL_MACHINES.own["on_difference"],
}


def test_variables_and_defaults_match_the_documentation():
    given = load("defaults/main.yml")
    assert {
        name: option["default"] for name, option in OPTIONS.items() if "default" in option
    } == given


@pytest.mark.parametrize("name", SAME)
def test_a_variable_has_the_type_of_the_option_it_sets(name):
    option = SAME[name]
    assert OPTIONS[name]["type"] == str(option["type"])
    assert set(OPTIONS[name].get("choices", [])) <= set(option.get("choices", []))
    assert str(option.get("elements", "")) == OPTIONS[name].get("elements", "")


@pytest.mark.parametrize("name", ["fleet_max_unknown", "fleet_max_failures", "fleet_on_difference"])
def test_a_variable_has_the_default_of_the_option_it_sets(name):
    assert OPTIONS[name]["default"] == SAME[name]["default"]
