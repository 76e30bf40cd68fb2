"""The keyword until: with a ledger each attempt sends what was rejected or not sent, and nothing
else; a creation that no attempt could know of is refused.
"""

from __future__ import annotations

import json
from collections import Counter
from typing import NamedTuple

import pytest
from crossing.playbook import KEYWORDS, MODULE, NOTHING
from support.ledgers import create
from support.wire import Last, answer

# How the service answers the first request for a machine; any later one succeeds, but of `never`.
FIRST = {"bad": 403, "never": 403, "lost": None}
ROLE = "infrastructure.services.cassandra_application_role"
ASYNC = {"async": 60, "poll": 1}
UNREPEATABLE = ("until: cannot be used, nor retries,", "without a ledger", "Nothing was sent")


class Case(NamedTuple):
    """A task, how often each of its machines is sent, and the result at the end."""

    options: dict
    sent: dict[str, int]
    outcome: str
    failed: bool
    says: tuple[str, ...] = ()
    keywords: dict = NOTHING
    module: str = MODULE


def of_list(*names: str, **options: object) -> dict:
    return {"virtual_machines": [{"name": name} for name in names], **options}


def refused(options: dict, *says: str, **how: object) -> Case:
    return Case(options, {}, "not_sent", True, says or UNREPEATABLE, **how)


LIST = {"module": f"{MODULE}s"}
ONE, NONE = {"name": "one"}, {"ledger": "none"}
CASES = {
    "worker": Case({"name": "never"}, {"never": 2}, "rejected", True),
    "list rejected": Case(of_list("one", "bad"), {"one": 1, "bad": 2}, "accepted", False, **LIST),
    "list in doubt": Case(
        of_list("one", "bad", "lost", max_unknown=0),
        {"one": 1, "bad": 2, "lost": 1},
        "unknown",
        True,
        **LIST,
    ),
    "list not begun": Case(
        of_list("lost", "one", concurrency=1, in_doubt="skip"),
        {"lost": 1, "one": 1},
        "unknown",
        False,
        **LIST,
    ),
    "list without a ledger": refused(of_list("one", **NONE), **LIST),
    "target": refused({**ONE, **NONE}, keywords=KEYWORDS["target"]),
    "job": refused({**ONE, **NONE}, keywords=ASYNC),
    "job that is only started": refused({**ONE, **NONE}, keywords={"async": 60, "poll": 0}),
    "job with retries": refused({**ONE, **NONE}, keywords={**ASYNC, "until": None}),
    "job of a list": refused(of_list("one", **NONE), keywords=ASYNC, **LIST),
    "job with a ledger": refused(
        ONE, "ledger: works in the Ansible worker alone", "remove async", keywords=ASYNC
    ),
    # Never met: the service answers 201.
    "job of an update": Case(
        {"id": "role", "name": "role", **NONE},
        {"role": 2},
        "accepted",
        True,
        keywords={**ASYNC, "until": "seen is success and seen.status == 200"},
        module=ROLE,
    ),
}


def task(name: str, case: Case) -> dict:
    case_id = name.replace(" ", "-")
    where = {
        "base_url": f"{{{{ service }}}}/{case_id}",
        "ledger": f"{{{{ playbook_dir }}}}/{case_id}.db",
        "retries": 0,
    }
    until = {"until": "seen is success", "retries": 1, "delay": 0, "register": "seen"}
    keywords = {key: value for key, value in (until | case.keywords).items() if value is not None}
    return {"name": name, case.module: {**where, **case.options}, **keywords}


@pytest.fixture(scope="module")
def ran(played):
    """Run all cases; return the run, and how often each machine of each case was sent."""
    sent = Counter()

    def choose(request):
        name = json.loads(request.body)["name"]
        sent[request.case, name] += 1
        is_later = sent[request.case, name] > 1 and name != "never"
        status = 201 if is_later else FIRST.get(name, 201)
        return answer(status, {"id": name, "name": name}) if status else Last()

    command = {"name": "command", "ansible.builtin.command": "false"}
    repeated = {"until": "seen is success", "retries": 1, "delay": 0, "register": "seen"}
    tasks = [{**command, **repeated}, *(task(name, case) for name, case in CASES.items())]
    done = played(
        tasks,
        choose,
        prepare=lambda service, directory: [
            create(f"{directory}/{case_id}.db", f"{service}/{case_id}")
            for case_id in (name.replace(" ", "-") for name in CASES)
        ],
    )
    return done.run, sent


@pytest.mark.parametrize("name", CASES)
def test_what_did_not_happen_is_sent_again_and_what_may_have_happened_is_not(ran, name):
    case, (run, sent) = CASES[name], ran
    case_id, result = name.replace(" ", "-"), run.result(name)
    assert {key[1]: count for key, count in sent.items() if key[0] == case_id} == case.sent
    assert (result["outcome"], result["failed"]) == (case.outcome, case.failed), result
    assert [words for words in case.says if words not in result["msg"]] == []


def test_attempts_counts_those_of_until_as_for_any_module(ran):
    run, _sent = ran
    assert run.result("worker")["attempts"] == run.result("command")["attempts"]
    assert run.result("worker")["request_attempts"] == 1
