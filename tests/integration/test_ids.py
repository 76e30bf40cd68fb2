"""A list with ids is planned, approved and run like any other, and is the way back after a lost
ledger; where there is no ledger, an id is refused by name.
"""

from __future__ import annotations

import json

MODULE = "infrastructure.services.compute_virtual_machine"
LISTED = [
    {"name": "old", "id": "vm-7", "attributes": {"cpu": 8}},
    {"name": "new", "attributes": {"cpu": 4}},
]


def fleet(*machines: dict) -> list[dict]:
    """Return the playbook that has the role `fleet` create machines, and report it."""
    role = {"role": "infrastructure.services.fleet", "fleet_report": "fleet.json"}
    roles = [{**role, "fleet_virtual_machines": [*machines]}]
    return [{"hosts": "localhost", "gather_facts": False, "roles": roles}]


def test_a_list_with_ids_is_planned_approved_and_run(ansible_once, service):
    directory = ansible_once.directory
    ledger = directory / "fleet.db"
    environment = {"PWD": str(directory), "INFRASTRUCTURE_SERVICES_LEDGER": str(ledger)}

    def run(*more: str, listed: list | None = None):
        done = ansible_once.playbook(fleet(*(listed or LISTED)), *more, **environment)
        return done, " ".join(done.output.replace('\\"', '"').split())

    planned, said = run("--check")
    planned.ok()
    assert "1 to create, 1 to adopt > old cpu 8, id vm-7 + new cpu 4" in said
    plan = json.loads((directory / "fleet.plan.json").read_text())
    assert plan["counts"] == {MODULE.rpartition(".")[2]: {"to create": 1, "to adopt": 1}}
    assert "\n> old  cpu 8, id vm-7" in (directory / "fleet.plan.md").read_text()
    assert "fleet_approved=" in (directory / "fleet.plan.html").read_text()
    approved = ("-e", "fleet_approved=fleet.plan.json")
    refused, said = run(*approved, listed=[{**LISTED[0], "id": "vm-8"}, LISTED[1]])
    assert (refused.rc, service.conversation()) == (2, [])
    assert 'old: id ("vm-8" now, "vm-7" approved)' in said
    done, said = run(*approved)
    done.ok()
    assert "virtual machines: 1 created, 1 adopted, " in said
    rows = json.loads((directory / "fleet.json").read_text())["results"]
    assert {row["item"]: (row["word"], row["changed"], row["outcome"]) for row in rows} == {
        "old": ("adopted", True, "not_sent"),
        "new": ("created", True, "accepted"),
    }
    (created,) = (row["asset"]["id"] for row in rows if row["item"] == "new")
    ledger.unlink()
    for counts in ("virtual machines: 2 adopted, ", "2 unchanged"):
        again, said = run(listed=[LISTED[0], {**LISTED[1], "id": created}])
        again.ok()
        assert counts in said
    assert [body["name"] for body in service.bodies()] == ["new"]


NEEDS = "id: needs a ledger"
MYSELF = {"become": True, "become_method": "myself"}
# Where the task runs: its keywords, whether it has a ledger, and why it is refused.
PLACES = {
    "here": ({}, False, NEEDS),
    "on a target": (MYSELF, False, NEEDS),
    "in a job": ({"async": 60, "poll": 1}, False, NEEDS),
    "in a job, with a ledger": ({"async": 60}, True, "ledger: cannot be combined with async"),
    "on a target, with a ledger": (MYSELF, True, ""),
}


def test_an_id_needs_a_ledger_wherever_the_task_runs(ansible_once, service):
    tasks = [
        {
            "name": place,
            MODULE: {**LISTED[0], "ledger": f"{ansible_once.directory}/l.db" if has_one else ""},
            "ignore_errors": True,
            **keywords,
        }
        for place, (keywords, has_one, _why) in PLACES.items()
    ]
    run = ansible_once.tasks(tasks, ANSIBLE_PIPELINING="true").ok()
    for place, (_keywords, _has_one, why) in PLACES.items():
        result = run.result(place)
        assert (result["failed"], result["outcome"]) == (bool(why), "not_sent"), place
        assert why in result.get("msg", "")
        assert result["changed"] is (not why)
        assert why or result["asset"]["id"] == "vm-7"
    assert service.conversation() == []
