"""A ledger that is lost comes back from the reports of the runs."""

from __future__ import annotations

import json

import pytest

FLEET = ("web01", "web02", "web03", "web04")


def fleet(*names: str, **options) -> list[dict]:
    """Return the task that creates machines, and reports it."""
    machines = {"virtual_machines": [{"name": name} for name in names], "report": "fleet.json"}
    return [{"infrastructure.services.compute_virtual_machines": {**machines, **options}}]


@pytest.mark.matrix
def test_what_the_report_knows_is_not_sent_again(ansible_once, service):
    directory = ansible_once.directory
    ledger = directory / "fleet.db"
    environment = {"PWD": str(directory), "INFRASTRUCTURE_SERVICES_LEDGER": str(ledger)}

    def run(tasks: list[dict]):
        done = ansible_once.tasks(tasks, **environment)
        return done, " ".join(done.output.split())

    def settle(*more: str) -> str:
        done = ansible_once.ours("settle", {"file": "fleet.json"}, *more, **environment)
        return " ".join(done.ok().output.split())

    service.fault(kind="drop", when="after", skip=1)
    created, _said = run(fleet(*FLEET, max_unknown=0, concurrency=1))
    assert created.rc == 2
    sent = len(service.conversation())
    ledger.unlink()
    for more in (["--check"], []):
        said = settle(*more)
        assert "ledger entries: 3 adopted, 1 left in doubt" in said.replace(" in check mode", "")
    assert "in doubt: web02" in said
    assert "3 unchanged, 1 left in doubt" in settle()
    again, said = run(fleet(*FLEET, "web05"))
    assert again.rc == 2
    assert "1 created, 3 unchanged, 1 in doubt" in said
    assert len(service.conversation()) == sent + 1


@pytest.mark.matrix
def test_a_report_of_another_service_and_a_plan_are_refused(ansible_once, service):
    ledger = ansible_once.directory / "fleet.db"
    environment = {
        "PWD": str(ansible_once.directory),
        "INFRASTRUCTURE_SERVICES_LEDGER": str(ledger),
    }
    ansible_once.tasks(fleet("web01"), "--check", **environment).ok()
    ansible_once.tasks(fleet("web01"), **environment).ok()
    report = ansible_once.directory / "fleet.json"
    other = {**json.loads(report.read_text()), "service": "https://other.example.com"}
    (ansible_once.directory / "other.json").write_text(json.dumps(other))
    for file, told in {
        "fleet.plan.json": "has a plan. Give the report of the run",
        "other.json": "is the report of a run for https://other.example.com, and the ledger is for",
    }.items():
        refused = ansible_once.ours("settle", {"file": file}, **environment)
        assert refused.rc == 2
        assert told in " ".join(refused.output.split())
