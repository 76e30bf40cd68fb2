"""The variables of the role `fleet`: one that it would ignore is refused, with the name that was
meant.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from ansible_collections.infrastructure.services.plugins.module_utils._errors import InvalidInput
from ansible_collections.infrastructure.services.plugins.plugin_utils._run.role import (
    spec_in_role,
)
from support import VIRTUAL_MACHINES, validate

ROLE = {
    "fleet_ledger": "ledger.db",
    "role_path": str(Path(__file__).resolve().parents[5] / "roles/fleet"),
}


def test_all_of_them_are_named_at_once():
    with pytest.raises(InvalidInput) as refused:
        spec_in_role(VIRTUAL_MACHINES, {**ROLE, "fleet_machines": 1, "fleet_zq": 1}, ["approved"])
    assert refused.value.msg.startswith(
        "approved: there is no such variable; did you mean fleet_approved? fleet_machines: there is"
        " no such variable; did you mean fleet_virtual_machines? fleet_zq: there is no such variable."
    )


def test_what_is_none_of_the_role_is_left_alone():
    others = {"fleet": "web", "fleetwide": 1, "_fleet_vms": 1, "vms": 1}
    spec_in_role(VIRTUAL_MACHINES, {**ROLE, "fleet_ledger": 1, **others}, ["fleet_ledger"])


def test_a_fault_of_an_option_names_the_variable_of_the_role():
    spec = spec_in_role(VIRTUAL_MACHINES, ROLE, [])
    failed = validate(spec, {}).failed(InvalidInput("ledger", "is a directory"))
    assert failed.msg.text.startswith("fleet_ledger: is a directory")
