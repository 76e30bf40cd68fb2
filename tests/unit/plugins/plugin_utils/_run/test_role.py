# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The variables of the role `fleet`: one that it would ignore is refused, with the name that was
meant.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from ansible_collections.infrastructure.services.plugins.module_utils._errors import InvalidInput
from ansible_collections.infrastructure.services.plugins.module_utils._task.specs import (
    VIRTUAL_MACHINES,
)
from ansible_collections.infrastructure.services.plugins.module_utils._task.validation import (
    validate,
)
from ansible_collections.infrastructure.services.plugins.plugin_utils._run.role import (
    names_in_role,
    shared_names,
    spec_in_role,
)

ROLE = {
    "ansible_role_name": "infrastructure.services.fleet",
    "fleet_ledger": "ledger.db",
    "role_path": str(Path(__file__).resolve().parents[5] / "roles/fleet"),
}


@pytest.mark.parametrize(
    ("wrong", "meant"),
    [
        ("fleet_vms", "fleet_virtual_machines"),
        ("fleet_machines", "fleet_virtual_machines"),
        ("fleet_virtual_machine", "fleet_virtual_machines"),
        ("fleet_concurency", "fleet_concurrency"),
        ("fleet_roles", "fleet_application_roles"),
        ("fleet_default", "fleet_defaults"),
        ("fleet_max_fail", "fleet_max_failures"),
        ("fleet_ldeger", "fleet_ledger"),
    ],
)
def test_a_misspelled_variable_is_refused_with_the_name_that_was_meant(wrong, meant):
    with pytest.raises(InvalidInput) as refused:
        names_in_role({**ROLE, wrong: 1}, [])
    assert refused.value.msg == f"{wrong}: there is no such variable; did you mean {meant}?"


def test_all_of_them_are_named_at_once_and_without_a_near_name_all_that_there_are():
    with pytest.raises(InvalidInput) as refused:
        names_in_role({**ROLE, "fleet_vms": 1, "fleet_zq": 1}, [])
    assert refused.value.msg.startswith(
        "fleet_vms: there is no such variable; did you mean fleet_virtual_machines? "
    )
    assert (
        "fleet_zq: there is no such variable; there are fleet_application_role_defaults, "
        in refused.value.msg
    )


@pytest.mark.parametrize(
    "variables",
    [
        {**ROLE, "fleet_ledger": 1, "fleet": "web", "fleetwide": 1, "_fleet_vms": 1, "vms": 1},
        {"fleet_vms": 1},
        {**ROLE, "ansible_role_name": "fleet", "fleet_vms": 1},
    ],
)
def test_what_is_none_of_the_role_is_left_alone(variables):
    names_in_role(variables, [])


def test_a_fault_of_an_option_names_the_variable_of_the_role():
    spec = spec_in_role(VIRTUAL_MACHINES, names_in_role(ROLE, []))
    failed = validate(spec, {}).failed(InvalidInput("ledger", "is a directory"))
    assert failed.msg.text.startswith("fleet_ledger: is a directory")


PLAYBOOK = {"__variables": ["ledger", "base_url", "virtual_machine_attributes"]}


@pytest.mark.parametrize(
    "wrong", ["ledgr", "ledge", "leger", "base_ulr", "virtual_machine_attribute"]
)
def test_a_misspelled_variable_of_the_command_line_is_refused(wrong):
    with pytest.raises(InvalidInput, match=f"^{wrong}: there is no such variable; did you mean "):
        names_in_role({**PLAYBOOK, wrong: 1}, [wrong])


@pytest.mark.parametrize(
    ("wrong", "meant"),
    [
        ("ledger_file", "ledger"),
        ("ledger_path", "ledger"),
        ("LEDGER", "ledger"),
        ("url", "base_url"),
        ("attributes", "virtual_machine_attributes"),
        ("vm_attributes", "virtual_machine_attributes"),
        ("virtual_machine", "virtual_machine_attributes"),
    ],
)
def test_a_variable_with_a_word_more_or_less_is_refused(wrong, meant):
    """It would be ignored, and a machine be created without its ledger or attributes."""
    with pytest.raises(InvalidInput, match=f"^{wrong}: .*; did you mean {meant}\\?$"):
        names_in_role({**PLAYBOOK, wrong: 1}, [wrong])


@pytest.mark.parametrize(
    "wrong",
    [
        "fleet_ledger",
        "ledger_location",
        "ledger_name",
        "infrastructure_services_ledger",
        "INFRASTRUCTURE_SERVICES_LEDGER",
    ],
)
def test_any_other_name_of_a_ledger_is_refused(wrong):
    """Its ledger would be ignored, and a second run create a second machine."""
    takes = {"__variables": ["virtual_machine_name", "ledger", "ledger_create"]}
    with pytest.raises(InvalidInput, match=f"^{wrong}: .*; did you mean ledger\\?$"):
        names_in_role({**takes, wrong: 1}, [wrong])


@pytest.mark.parametrize(
    ("takes", "meant"), [(["ledger"], "ledger"), (["ledger", "ledger_create"], "ledger_create")]
)
def test_a_name_of_ledger_create_is_refused_with_what_the_playbook_takes(takes, meant):
    wrong = "INFRASTRUCTURE_SERVICES_LEDGER_CREATE"
    with pytest.raises(InvalidInput, match=f"^{wrong}: .*; did you mean {meant}\\?$"):
        names_in_role({"__variables": takes}, [wrong])


def test_ledger_create_may_be_for_another_playbook_of_the_command_line():
    names_in_role({"__variables": ["ledger", "base_url"]}, ["ledger_create"])


def test_a_playbook_without_a_ledger_takes_no_name_for_one():
    names_in_role({"__variables": ["emulator_port"]}, ["fleet_ledger", "ledger_location"])


@pytest.mark.parametrize(
    "other", ["ledger", "env", "team", "cpu", "application_role_attributes", "ansible_become"]
)
def test_other_variables_are_for_inventories(other):
    names_in_role({**PLAYBOOK, other: 1, "ledgr": 1}, [other])
    names_in_role({}, ["ledgr"])


FLEET_PLAYBOOK = {**ROLE, "__variables": ["fleet", "ledger", "ledger_create", "base_url"]}


@pytest.mark.parametrize("own", ["fleet_ledger_create", "fleet_ledger", "fleet_application_roles"])
def test_a_playbook_over_the_role_takes_each_variable_of_the_role(own):
    names_in_role({**FLEET_PLAYBOOK, own: 1}, [own])


@pytest.mark.parametrize(
    ("wrong", "meant"),
    [
        ("fleet_ledger_creat", "fleet_ledger_create"),
        ("ledger_creat", "ledger_create"),
        ("leger", "ledger"),
    ],
)
def test_a_playbook_over_the_role_refuses_a_misspelled_variable_of_both(wrong, meant):
    with pytest.raises(
        InvalidInput, match=f"^{wrong}: there is no such variable; did you mean {meant}\\?$"
    ):
        names_in_role({**FLEET_PLAYBOOK, wrong: 1}, [wrong])


def test_the_variable_of_another_playbook_is_no_misspelled_variable_of_the_role():
    names_in_role({**FLEET_PLAYBOOK, "application_role_id": "role-1"}, ["application_role_id"])


def test_only_a_playbook_over_the_role_uses_one_value_for_all_hosts():
    names = names_in_role(FLEET_PLAYBOOK, [])
    shared = shared_names(FLEET_PLAYBOOK, names)
    assert shared == {*names.values(), "base_url", "ledger", "ledger_create"}
    assert shared_names(ROLE, names) == shared_names(PLAYBOOK, {}) == set()
