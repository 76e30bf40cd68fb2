"""A run that creates without a ledger warns once, and one with an empty ledger on purpose never."""

from __future__ import annotations

import json

import pytest

MACHINE, MACHINES, ROLE = (
    f"infrastructure.services.{name}"
    for name in (
        "compute_virtual_machine",
        "compute_virtual_machines",
        "cassandra_application_role",
    )
)
WARNING = "running this again will create another machine"
ONE = {MACHINE: {"name": "{{ item }}"}, "loop": ["a", "b", "c"]}
MANY = {MACHINES: {"virtual_machines": [{"name": "a"}]}}
# The case: (tasks, arguments, hosts, warnings).
CASES = {
    "a loop and a list": ([ONE, MANY], (), 1, 1),
    "three hosts at once": (
        [{MACHINE: {"name": "{{ inventory_hostname }}"}}],
        ("--forks", "3"),
        3,
        1,
    ),
    "in check mode": ([ONE], ("--check",), 1, 1),
    "none of them makes another machine": (
        [
            {MACHINE: {"name": ""}, "ignore_errors": True},  # it is refused
            {MACHINE: {"name": "rejected"}, "ignore_errors": True},
            {ROLE: {"id": "role-1", "description": "d"}},
            {MACHINE: {"name": "a", "ledger": ""}},  # the user knows
            {MACHINES: {"virtual_machines": [{"name": "b"}], "ledger": ""}},
        ],
        (),
        1,
        0,
    ),
}


@pytest.mark.matrix
@pytest.mark.parametrize("case", CASES)
def test_a_run_that_creates_without_a_ledger_warns_once(ansible, service, case):
    tasks, arguments, hosts, warnings = CASES[case]
    service.seed("role-1")
    if "another machine" in case:
        service.fault(kind="status", status=403)
    ansible.inventory = {"all": {"hosts": {f"host{number}": {} for number in range(hosts)}}}
    play = {"hosts": "all", "gather_facts": False, "tasks": tasks}
    run = ansible.playbook(json.dumps([play]) + "\n", *arguments).ok()
    loops = {line["task"] for line in run.results if line["kind"] == "item"}
    warned = [
        line
        for line in run.results
        if WARNING in str(line["result"].get("warnings", ""))
        and (line["kind"] == "item" or line["task"] not in loops)
    ]
    assert (" ".join(run.output.split()).count(WARNING), len(warned)) == (warnings, warnings)
