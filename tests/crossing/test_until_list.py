"""The keyword until around a list: with a ledger each attempt sends what was rejected or not sent,
and nothing else.
"""

from __future__ import annotations

import json
from collections import Counter

import pytest
from support.running import Ansible
from support.wire import Last, answer, running

MODULE = "infrastructure.services.compute_virtual_machines"
# The machines of each list: how the service answers the first request for each; any later one
# succeeds.
FIRST = {"good": 201, "bad": 403, "lost": None}
# name of the case: (the machines, the options, how often each is sent, the result at the end)
CASES = {
    "rejected": (["good", "bad"], {}, {"good": 1, "bad": 2}, ("accepted", False)),
    "in-doubt": (
        ["good", "bad", "lost"],
        {"max_unknown": 0},
        {"good": 1, "bad": 2, "lost": 1},
        ("unknown", True),
    ),
    "not-begun": (
        ["lost", "good"],
        {"concurrency": 1, "in_doubt": "skip"},
        {"good": 1, "lost": 1},
        ("unknown", False),
    ),
    "none": (["good", "bad"], {"ledger": ""}, {"good": 0, "bad": 0}, ("not_sent", True)),
    "forced": (["good", "bad"], {"force": True}, {"good": 0, "bad": 0}, ("not_sent", True)),
}


@pytest.fixture(scope="module")
def ran(collections, tmp_path_factory):
    """Run all cases; return the run, and how often each machine of each case was sent."""
    directory, sent = tmp_path_factory.mktemp("until"), Counter()

    def choose(request):
        name = json.loads(request.body)["name"]
        sent[request.case, name] += 1
        status = FIRST[name] if sent[request.case, name] == 1 else 201
        return answer(status, {"id": name, "name": name}) if status else Last()

    with running(choose) as service:
        tasks = []
        for name, (machines, given, _sent, _end) in CASES.items():
            options = {
                "base_url": f"{service.url}/{name}",
                "ledger": str(directory / f"{name}.db"),
                "retries": 0,
            }
            listed = {"virtual_machines": [{"name": machine} for machine in machines]}
            keywords = {
                "until": "seen is success",
                "retries": 2,
                "delay": 0,
                "register": "seen",
                "ignore_errors": True,
            }
            tasks.append({"name": name, MODULE: {**options, **listed, **given}, **keywords})
        play = [{"hosts": "localhost", "gather_facts": False, "tasks": tasks}]
        run = Ansible(directory, collections, service.url, "local").playbook(
            json.dumps(play) + "\n"
        )
    return run, sent


@pytest.mark.parametrize("name", CASES)
def test_what_did_not_happen_is_sent_again_and_what_may_have_happened_is_not(ran, name):
    machines, _given, expected, _end = CASES[name]
    assert {machine: ran[1][name, machine] for machine in machines} == expected


@pytest.mark.parametrize("name", CASES)
def test_the_last_attempt_tells_what_is_known(ran, name):
    result = ran[0].result(name)
    assert (result["outcome"], result["failed"]) == CASES[name][3], result
    assert result.get("msg", "").startswith("until: cannot be used") is (name in ("none", "forced"))


def test_no_traceback(ran):
    assert "Traceback" not in ran[0].output
