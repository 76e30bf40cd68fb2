"""The keyword until around an async job: a creation is refused, an update is sent by each attempt."""

from __future__ import annotations

import json

import pytest
from crossing.playbook import MODULE
from support.running import Ansible
from support.wire import answer, running

ROLE = "infrastructure.services.cassandra_application_role"
MACHINE = {"name": "vm"}
UNTIL = {
    "until": "seen is success and seen.status == 200",
    "retries": 1,
}  # never met: the service answers 201
CREATIONS = {
    "one": (MODULE, MACHINE, UNTIL),
    "list": (f"{MODULE}s", {"virtual_machines": [MACHINE]}, UNTIL),
    "started": (MODULE, MACHINE, {**UNTIL, "poll": 0}),
    "retries": (MODULE, MACHINE, {"retries": 1}),
    "ledger": (MODULE, {**MACHINE, "ledger": "ledger.db"}, UNTIL),
}
CASES = {**CREATIONS, "update": (ROLE, {"id": "role", "name": "role"}, UNTIL)}
REFUSED = {
    **dict.fromkeys(CREATIONS, ("until: cannot be used, nor retries,", "without a ledger")),
    "ledger": ("ledger: cannot be combined with async", "Remove async"),
}


@pytest.fixture(scope="module")
def ran(collections, tmp_path_factory):
    """Run all cases; return the run and the service."""
    with running(lambda sent: answer(201, json.loads(sent.body))) as service:
        tasks = [
            {
                "name": name,
                module: {**given, "base_url": f"{service.url}/{name}"},
                "async": 60,
                "poll": 1,
                "delay": 0,
                "register": "seen",
                **keywords,
            }
            for name, (module, given, keywords) in CASES.items()
        ]
        play = {"hosts": "localhost", "gather_facts": False, "ignore_errors": True, "tasks": tasks}
        ansible = Ansible(tmp_path_factory.mktemp("until"), collections, service.url, "local")
        run = ansible.playbook(json.dumps([play]) + "\n")
    return run, service


@pytest.mark.matrix
@pytest.mark.parametrize("name", CREATIONS)
def test_a_creation_is_refused(ran, name):
    result = ran[0].result(name)
    assert (result["failed"], result["changed"], result["outcome"]) == (True, False, "not_sent")
    expected = [*REFUSED[name], "Nothing was sent"]
    assert [words for words in expected if words not in result["msg"]] == []
    assert ran[1].sent_by(name) == []


def test_an_update_is_sent_by_each_attempt(ran):
    result = ran[0].result("update")
    assert (result["outcome"], result["changed"], result["attempts"]) == ("accepted", True, 1)
    assert result["asset"] == {"name": "role"}
    assert len(ran[1].sent_by("update")) == 2


def test_no_traceback(ran):
    assert "Traceback" not in ran[0].output
