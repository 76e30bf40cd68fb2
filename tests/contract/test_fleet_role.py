# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The variables of the role `fleet`, its documentation, its defaults and the options of the modules agree."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from ansible_collections.infrastructure.services.plugins.module_utils._task.options import ARGUMENT_SPEC, MANY

ROLE = Path(__file__).resolve().parents[2] / "roles/fleet"


def load(name: str) -> object:
    return yaml.safe_load((ROLE / name).read_text(encoding="utf-8"))


OPTIONS = load("meta/argument_specs.yml")["argument_specs"]["main"]["options"]
TASKS = load("tasks/main.yml")[0]["block"]
LISTS = TASKS[:2]
SAME = {"fleet_concurrency": MANY["concurrency"], "fleet_asset_fields": MANY["asset_fields"],
        "fleet_defaults": MANY["defaults"], "fleet_application_role_defaults": MANY["defaults"],
        "fleet_report": MANY["report"], "fleet_in_doubt": MANY["in_doubt"], "fleet_ledger": ARGUMENT_SPEC["ledger"]}


def test_variables_and_defaults_match_the_documentation():
    given = load("defaults/main.yml")
    assert {name: option["default"] for name, option in OPTIONS.items() if "default" in option} == {
        name: value for name, value in given.items() if not str(value).startswith("{{")}
    assert set(given) <= set(OPTIONS)
    assert [name for name, option in OPTIONS.items() if option.get("required")] == ["fleet_ledger"]


@pytest.mark.parametrize("name", SAME)
def test_a_variable_has_the_type_of_the_option_it_sets(name):
    option = SAME[name]
    assert OPTIONS[name]["type"] == str(option["type"])
    assert set(OPTIONS[name].get("choices", [])) <= set(option.get("choices", []))
    assert str(option.get("elements", "")) == OPTIONS[name].get("elements", "")


def test_there_are_at_most_five_tasks_including_the_check_of_the_variables():
    assert len(load("tasks/main.yml")) == 1
    assert len(TASKS) + 1 <= 5


@pytest.mark.parametrize("task", LISTS, ids=lambda task: task["name"])
def test_each_list_is_sent_with_every_variable_that_it_needs(task):
    (options,) = [value for key, value in task.items() if key.startswith("infrastructure.services.")]
    used = str(options)
    own = "virtual_machine" if "virtual_machines" in options else "application_role"
    wanted = {"fleet_concurrency", "fleet_ledger", "fleet_report", "fleet_asset_fields", f"fleet_{own}s"}
    assert all(name in used for name in wanted)
    assert task["ignore_errors"] is True
    assert "no_log" not in str(task)
