"""With the keyword no_log, nothing in a list is shown, by any callback, on any path."""

from __future__ import annotations

import json

from support.running import Ansible
from support.wire import Sent, answer, running

HIDDEN = "hidden-by-the-keyword"
PATHS = {"worker": {}, "become": {"become": True, "become_method": "myself"}}


def choose(sent: Sent) -> bytes:
    body = json.loads(sent.body)
    return answer(403) if body["name"].startswith("refused") else answer(201, {"id": "i", **body})


def test_nothing_in_a_list_is_shown_under_no_log(collections, tmp_path):
    tasks = []
    for path, keywords in PATHS.items():
        for fate in ("created", "refused"):
            machine = {"name": f"{fate}-{path}", "extra_attributes": {"password": HIDDEN}}
            task = {
                "infrastructure.services.compute_virtual_machines": {"virtual_machines": [machine]}
            }
            tasks.append(
                {
                    "name": f"{fate} {path}",
                    **task,
                    **keywords,
                    "no_log": True,
                    "ignore_errors": True,
                }
            )
    with running(choose) as service:
        ansible = Ansible(tmp_path, collections, service.url, "local")
        play = json.dumps([{"hosts": "localhost", "gather_facts": False, "tasks": tasks}])
        run = ansible.playbook(f"{play}\n", "-vvv", ANSIBLE_PIPELINING="true")
    assert len(service.sent) == len(tasks)
    assert HIDDEN not in run.output
    results = [run.result(task["name"]) for task in tasks]
    assert ["censored" in result for result in results] == [True] * len(tasks)
    assert HIDDEN not in json.dumps(results)
