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
    """The condition of until, how the service answers, and the expected result of the task."""

    until: str
    answer: object
    outcome: str
    requests: int
    says: tuple[str, ...]
    seconds: int = 60  # the job's time limit


KEPT = "This attempt sent nothing: the keyword until does not repeat a creation that may have happened"
ROWS = {
    "lost": Row("seen is success", lambda name: Last(), "unknown", 1, (KEPT, "It is unknown whether")),
    "too slow": Row("seen is success", lambda name: Silence(), "unknown", 1,
                    (KEPT, "gave no result", "It is unknown whether"), 5),
    "not as awaited": Row("seen.status == 200", lambda name: answer(201, created(name)), "accepted", 1,
                          (KEPT, "do not repeat it")),
    "refused": Row("seen is success", lambda name: answer(403), "rejected", 3, ("status 403",)),
}
MODULES = {"one": MODULE, "list": f"{MODULE}s"}


def task(form: str, name: str, row: Row) -> dict:
    number = list(ROWS).index(name)
    machine = {"name": f"vm-{number}"}
    given = machine if form == "one" else {"virtual_machines": [machine]}
    until = row.until if form == "one" else row.until.replace("seen.status", "seen.results[0].status")
    where = {"base_url": f"{{{{ service }}}}/{form}-{number}", "retries": 0, "timeout": 30}
    return {"name": f"{form} {name}", "async": row.seconds, "poll": 1, "until": until, "retries": 2, "delay": 0,
            "register": "seen", MODULES[form]: {**given, **where}}


@pytest.fixture(scope="module")
def ran(collections, tmp_path_factory):
    """Run all rows in both forms; return the run and the service."""
    rows = list(ROWS.values())

    def choose(sent):
        return rows[int(sent.case.rpartition("-")[2])].answer(json.loads(sent.body)["name"])

    directory = tmp_path_factory.mktemp("until")
    with running(choose) as service:
        play = {"hosts": "localhost", "gather_facts": False, "ignore_errors": True, "vars": {"service": service.url},
                "tasks": [task(form, *row) for form in MODULES for row in ROWS.items()]}
        run = Ansible(directory, collections, service.url, "local").playbook(
            json.dumps([play]) + "\n", ANSIBLE_PIPELINING="true")
    return run, service


@pytest.mark.parametrize("form", MODULES)
@pytest.mark.parametrize("name", ROWS)
def test_the_last_attempt_reports_the_result_of_the_first(ran, form, name):
    row, result = ROWS[name], ran[0].result(f"{form} {name}")
    assert result.get("outcome") == row.outcome, result
    assert result["failed"]
    assert result["changed"] is (row.outcome == "accepted")
    machine = f"vm-{list(ROWS).index(name)}"
    assert [word for word in (machine, *row.says) if word not in result["msg"]] == []
    assert result["msg"].count(KEPT) == (KEPT in row.says)
    asset = result.get("asset") or result.get("results", [{}])[0].get("asset")
    assert asset == (created(machine) if row.outcome == "accepted" else None)


@pytest.mark.parametrize("form", MODULES)
@pytest.mark.parametrize("name", ROWS)
def test_what_may_have_happened_is_not_sent_again(ran, form, name):
    sent = len(ran[1].sent_by(f"{form}-{list(ROWS).index(name)}"))
    assert sent == ROWS[name].requests or (name == "too slow" and sent == 0)  # its job may end before sending


def test_no_traceback(ran):
    assert "Traceback" not in ran[0].output
