# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

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
from ansible_collections.infrastructure.services.plugins.module_utils._task.specs import (
    VIRTUAL_MACHINES,
)

ROLE = Path(__file__).resolve().parents[2] / "roles/fleet"


def load(name: str) -> object:
    return yaml.safe_load((ROLE / name).read_text(encoding="utf-8"))


OPTIONS = load("meta/argument_specs.yml")["argument_specs"]["main"]["options"]
TASKS = load("tasks/main.yml")[0]["block"]
LISTS = [*TASKS[1]["block"], *TASKS[1]["always"]]
SAME = {
    f"fleet_{name}": MANY[name]
    for name in (
        "concurrency",
        "asset_fields",
        "defaults",
        "report",
        "in_doubt",
        "max_unknown",
        "max_failures",
    )
}
SAME.update(
    {
        "fleet_application_role_defaults": MANY["defaults"],
        "fleet_ledger": ARGUMENT_SPEC["ledger"],
        "fleet_ledger_create": ARGUMENT_SPEC["ledger_create"],
        "fleet_on_difference": VIRTUAL_MACHINES.own["on_difference"],
    }
)


def test_variables_and_defaults_match_the_documentation():
    given = load("defaults/main.yml")
    assert {
        name: option["default"] for name, option in OPTIONS.items() if "default" in option
    } == given
    assert [
        name for name, option in OPTIONS.items() if option.get("required")
    ] == []  # the modules require the ledger


@pytest.mark.parametrize("name", SAME)
def test_a_variable_has_the_type_of_the_option_it_sets(name):
    option = SAME[name]
    assert OPTIONS[name]["type"] == str(option["type"])
    assert set(OPTIONS[name].get("choices", [])) <= set(option.get("choices", []))
    assert str(option.get("elements", "")) == OPTIONS[name].get("elements", "")


@pytest.mark.parametrize("name", ["fleet_max_unknown", "fleet_max_failures", "fleet_on_difference"])
def test_a_variable_has_the_default_of_the_option_it_sets(name):
    assert OPTIONS[name]["default"] == SAME[name]["default"]


def test_what_the_role_sets_itself_does_not_begin_like_its_variables():
    own = {task["register"] for task in LISTS if "register" in task}
    assert own
    assert [name for name in own if not name.startswith("__fleet_")] == []


def test_there_are_at_most_five_tasks_including_the_check_of_the_variables():
    assert len(load("tasks/main.yml")) == 1
    assert len(TASKS[:1] + LISTS) + 1 <= 5


@pytest.mark.parametrize("task", LISTS, ids=lambda task: task["name"])
def test_each_list_is_sent_with_every_variable_that_it_needs(task):
    (options,) = [
        value for key, value in task.items() if key.startswith("infrastructure.services.")
    ]
    used = str(options)
    own = "virtual_machine" if "virtual_machines" in options else "application_role"
    wanted = {
        "fleet_concurrency",
        "fleet_ledger",
        "fleet_ledger_create",
        "fleet_report",
        "fleet_asset_fields",
        f"fleet_{own}s",
        "fleet_max_unknown",
        "fleet_max_failures",
    }
    assert all(name in used for name in wanted)
    assert "failed_when" not in task
    assert "no_log" not in str(task)
