# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The keyword until around an async job: nothing is created twice, and the last attempt reports the first one's result.

ansible-core polls the job after the action plugin has returned, then removes the job file.
"""

from __future__ import annotations

import json
from typing import NamedTuple

import pytest
from crossing.playbook import MODULE
from crossing.table import created
from support.running import Ansible
from support.wire import Last, Silence, answer, running


class Row(NamedTuple):
    """How the service answers, and the expected result of the task."""

    answer: object
    outcome: str
    requests: int
    says: tuple[str, ...]
    seconds: int = 60  # the job's time limit
    retries: int = 2  # of until


REPEATED = "This attempt sent nothing: the keyword until does not repeat a creation that may have happened"
# Each row is a host, so that jobs run at once; that of the list exceeds its limit. The condition of until is never met:
# a creation has status 201.
ROWS = {
    "lost": Row(lambda name: Last(), "unknown", 1, (REPEATED, "It is unknown whether")),
    "list": Row(lambda name: Silence(), "unknown", 1, (REPEATED, "gave no result", "It is unknown whether"), 4),
    "created": Row(lambda name: answer(201, created(name)), "accepted", 1, (REPEATED, "do not repeat it")),
    "refused": Row(lambda name: answer(403), "rejected", 2, ("status 403",), retries=1),
}


def play(name: str, hosts: str, given: dict) -> dict:
    """Return the play that runs a module on these hosts."""
    where = {"base_url": "{{ service }}/{{ inventory_hostname }}", "retries": 0, "timeout": 30}
    task = {"name": "Create", "async": "{{ seconds }}", "poll": 2, "until": "seen is success and seen.status == 200",
            "retries": "{{ retries }}", "delay": 0, "register": "seen", name: {**given, **where}}
    return {"hosts": hosts, "gather_facts": False, "ignore_errors": True, "tasks": [task]}


@pytest.fixture(scope="module")
def ran(collections, tmp_path_factory):
    """Run all rows; return the run and the service."""
    machine = {"name": "vm-{{ inventory_hostname }}"}
    with running(lambda sent: ROWS[sent.case].answer(json.loads(sent.body)["name"])) as service:
        hosts = {name: {"seconds": row.seconds, "retries": row.retries, "service": service.url}
                 for name, row in ROWS.items()}
        plays = [play(MODULE, "all:!list", machine), play(f"{MODULE}s", "list", {"virtual_machines": [machine]})]
        directory = tmp_path_factory.mktemp("until")
        run = Ansible(directory, collections, service.url, "local", {"all": {"hosts": hosts}}).playbook(
            json.dumps(plays) + "\n", "--forks", str(len(ROWS)), ANSIBLE_PIPELINING="true")
    return run, service


@pytest.mark.parametrize("name", ROWS)
def test_the_last_attempt_reports_the_result_of_the_first(ran, name):
    row = ROWS[name]
    (result,) = [line["result"] for line in ran[0].results if line["host"] == name]
    assert result.get("outcome") == row.outcome, result
    assert result["failed"]
    assert result["changed"] is (row.outcome == "accepted")
    assert [word for word in (f"vm-{name}", *row.says) if word not in result["msg"]] == []
    assert result["msg"].count(REPEATED) == (REPEATED in row.says)
    assert result.get("asset") == (created(f"vm-{name}") if row.outcome == "accepted" else None)


@pytest.mark.parametrize("name", ROWS)
def test_what_may_have_happened_is_not_sent_again(ran, name):
    sent = len(ran[1].sent_by(name))
    assert sent == ROWS[name].requests or (name == "list" and sent == 0)  # its job may end before sending


def test_no_traceback(ran):
    assert "Traceback" not in ran[0].output
