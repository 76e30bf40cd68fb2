"""What the ledger has recorded of a role has the same effect in the worker and on a target,
whatever came back.
"""

from __future__ import annotations

import json

import pytest
from support.running import Ansible
from support.wire import answer, running

MODULE = "infrastructure.services.cassandra_application_role"
PATHS = {"worker": {}, "become": {"become": True, "become_method": "myself"}}
SENDS = ("given", "complete")
SEEN = ("failed", "changed", "outcome", "request", "asset", "diff", "warnings", "msg")


def choose(sent) -> bytes:
    """Answer with another id than that of the request."""
    return answer(
        200,
        {"id": "another", "description": "of the service", **json.loads(sent.body)}
        | {"id": "another"},
    )


@pytest.fixture(scope="module")
def results(collections, tmp_path_factory) -> dict[str, dict]:
    directory = tmp_path_factory.mktemp("recorded")
    tasks = []
    for path, keywords in PATHS.items():
        for send in SENDS:
            base = {
                "id": "role",
                "ledger": str(directory / f"{path}-{send}.db"),
                "base_url": f"{{{{ service }}}}/{path}-{send}",
            }
            tasks += [
                {"name": f"first {path} {send}", MODULE: {**base, "name": "x"}},
                {
                    "name": f"{path} {send}",
                    MODULE: {**base, "name": "y", "send": send},
                    **keywords,
                    "diff": True,
                },
            ]
    with running(choose) as service:
        play = {
            "hosts": "localhost",
            "gather_facts": False,
            "ignore_errors": True,
            "vars": {"service": service.url},
            "tasks": tasks,
        }
        run = Ansible(directory, collections, service.url, "local").playbook(
            json.dumps([play]) + "\n", ANSIBLE_PIPELINING="true"
        )
    return {task["name"]: run.result(task["name"]) for task in tasks}


@pytest.mark.matrix
@pytest.mark.parametrize("send", SENDS)
def test_a_role_that_came_back_with_another_id_can_be_updated(results, send):
    worker, become = (
        json.loads(
            json.dumps({name: results[f"{path} {send}"].get(name) for name in SEEN}).replace(
                path, "PATH"
            )
        )
        for path in PATHS
    )
    assert worker == become
    assert not worker["failed"], worker
    assert worker["changed"]
    assert worker["diff"]["before"]["id"] == "another"
