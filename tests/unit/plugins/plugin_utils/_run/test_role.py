"""The variables of the role `fleet`: one that it would ignore is refused, with the name that was
meant.
"""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest
from ansible_collections.infrastructure.services.plugins.module_utils._errors import InvalidInput
from ansible_collections.infrastructure.services.plugins.plugin_utils._run.role import (
    select,
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


def selected(only: object) -> tuple[list[str], str]:
    """Return the names that `fleet_only` leaves of four machines, and the line about the others."""
    machines = [{"name": name} for name in ("web01", "web02", "db01", "web[1]")]
    given = {"fleet_virtual_machines": machines, "fleet_only": only}
    task = SimpleNamespace(task_vars=given, variable=given.get)
    params = {"virtual_machines": machines}
    line = select(params, spec_in_role(VIRTUAL_MACHINES, ROLE, []), task)
    return [machine["name"] for machine in params["virtual_machines"]], line


@pytest.mark.parametrize(
    ("only", "names"),
    [
        ("web01", ["web01"]),
        ("web0*, db01", ["web01", "web02", "db01"]),
        (["web[1]"], ["web[1]"]),
        ("*", ["web01", "web02", "db01", "web[1]"]),
    ],
)
def test_fleet_only_selects_by_name_or_glob(only, names):
    found, line = selected(only)
    assert found == names
    assert line.startswith(f"{4 - len(names)} more of the list") if len(names) < 4 else not line


@pytest.mark.parametrize(("only", "problem"), [("", "is empty"), ("web03", "web03 is in neither")])
def test_fleet_only_that_selects_nothing_is_refused(only, problem):
    with pytest.raises(InvalidInput, match=f"^fleet_only: {problem}"):
        selected(only)
