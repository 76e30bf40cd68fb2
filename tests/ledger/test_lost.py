"""A ledger that is gone when the answer comes takes nothing from the result."""

from __future__ import annotations

import json

import pytest
from support.running import Ansible
from support.wire import answer, running

MODULES = {
    "one": ("compute_virtual_machine", {"name": "web01"}),
    "list": ("compute_virtual_machines", {"virtual_machines": [{"name": "web01"}]}),
}


@pytest.mark.parametrize("kind", MODULES)
def test_the_result_says_what_the_service_answered(collections, tmp_path, kind):
    ledger = tmp_path / "fleet.db"

    def choose(_request):
        ledger.rename(tmp_path / "gone.db")
        return answer(201, {"id": "vm-1", "name": "web01"})

    module, options = MODULES[kind]
    with running(choose) as service:
        options = {**options, "base_url": service.url, "ledger": str(ledger)}
        task = {"name": "Create", f"infrastructure.services.{module}": options}
        ansible = Ansible(tmp_path, collections, service.url, "local")
        result = ansible.tasks(json.dumps([task])).result("Create")
    (item,) = result.get("results", [result])
    assert (item["outcome"], item["asset"]["id"]) == ("accepted", "vm-1")
    assert result["failed"] is True
    assert "could not be recorded" in item["msg"]
    assert "was removed or replaced" in item["msg"]
