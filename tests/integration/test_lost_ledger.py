"""A ledger that is lost is replaced on purpose, and comes back from the reports of the runs."""

from __future__ import annotations

import re

import pytest
from support.ledgers import create

FLEET = ("web01", "web02", "web03", "web04")


def fleet(*names: str, **options) -> list[dict]:
    """Return the task that creates machines, and reports it."""
    machines = {"virtual_machines": [{"name": name} for name in names], "report": "fleet.json"}
    return [{"infrastructure.services.compute_virtual_machines": {**machines, **options}}]


@pytest.mark.matrix
def test_what_the_report_knows_is_not_sent_again(ansible, service):
    directory = ansible.directory
    ledger = directory / "fleet.db"
    environment = {"INFRASTRUCTURE_SERVICES_LEDGER": create(str(ledger), service.url)}
    service.fault(kind="drop", when="after", skip=1)
    first = fleet(*FLEET, max_unknown=0, concurrency=1)
    assert ansible.tasks(first, **environment).rc == 2
    ledger.unlink()
    lost = ansible.ours("create_ledger", {}, **environment)
    replaced = re.search("used the ledger ([0-9a-f]{32})", " ".join(lost.output.split()))[1]
    ansible.ours("create_ledger", {"replaces": replaced}, **environment).ok()
    settled = ansible.ours("settle", {"file": "fleet.json"}, **environment).ok()
    assert "ledger entries: 3 adopted, 1 left in doubt" in settled.output
    assert "in doubt: web02" in settled.output
    again = ansible.tasks(fleet(*FLEET, "web05"), **environment)
    assert again.rc == 2
    assert "1 created, 1 in doubt, 3 unchanged" in again.output
    assert len(service.conversation()) == len(FLEET) + 1
