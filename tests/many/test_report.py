# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The report of a run exists however the run ends; test_ends.py has the report of a run that is
interrupted.
"""

from __future__ import annotations

import os
import signal
import sqlite3
from collections import Counter
from contextlib import closing
from pathlib import Path

import pytest
from many.conftest import PLAY, REPORTING, TOKEN, runs, until

COUNT = 400
TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"


@pytest.fixture
def run(start, tmp_path):
    """Start a run that writes a report, with a ledger."""
    assert REPORTING != PLAY
    environment = {
        "INFRASTRUCTURE_SERVICES_LEDGER": str(tmp_path / "l.db"),
        "TRACEPARENT": f"00-{TRACE}-{'1' * 16}-01",
    }
    return lambda count: start(
        count, REPORTING, environment=environment, report=str(tmp_path / "fleet.json")
    )


def test_the_end_of_a_run_is_reported(run, service, tmp_path):
    service.statuses.update(vm3=403, vm4=307)
    service.headers = (f"X-Request-Id: {TOKEN}",)
    run(20).end()
    (one,) = runs(tmp_path)
    assert (one["state"], len(one["assets"])) == ("ended", 20)
    told = {asset["name"]: asset for asset in one["assets"]}
    assert (told["vm3"]["outcome"], told["vm3"]["status"], told["vm3"]["failed"]) == (
        "rejected",
        403,
        True,
    )
    assert told["vm3"]["body"] == {"name": "vm3", "attributes": {"cpu": 4}}
    assert "x-request-id: ***" in told["vm4"]["msg"]
    assert all(asset["seconds"] >= 0.05 and asset["trace_id"] == TRACE for asset in told.values())


HOSTS = """
- hosts: all
  gather_facts: false
  tasks:
    - infrastructure.services.compute_virtual_machines:
        virtual_machines:
          - name: "{{{{ inventory_hostname }}}}-{{{{ item }}}}-0"
          - name: "{{{{ inventory_hostname }}}}-{{{{ item }}}}-1"
        report: "{{{{ report }}}}"
      loop: {tasks}
      ignore_errors: true
"""


@pytest.mark.matrix
@pytest.mark.parametrize("tasks", [2, pytest.param(1, marks=pytest.mark.stress)])
def test_concurrent_hosts_share_one_report_with_all_their_assets(start, service, tmp_path, tasks):
    play = HOSTS.format(tasks=list(range(tasks)))
    service.statuses["h2-0-1"] = 403
    names = {
        f"h{host}-{task}-{number}"
        for host in (1, 2, 3, 4)
        for task in range(tasks)
        for number in (0, 1)
    }
    arguments = ("-i", "h1,h2,h3,h4,", "-c", "local", "-f", "4")
    output = start(0, play, arguments, report=str(tmp_path / "fleet.json")).end()
    assert "does not exist" not in output
    assert +service.created == Counter(names - {"h2-0-1"})
    (one,) = runs(tmp_path)
    assert one["state"] == "ended"
    assert Counter((asset["name"], asset["outcome"]) for asset in one["assets"]) == Counter(
        (name, "rejected" if name == "h2-0-1" else "accepted") for name in names
    )
    assert sorted(name for name in os.listdir(tmp_path) if "fleet" in name) == [
        "fleet.html",
        "fleet.json",
        "fleet.xml",
    ]


def names(ledger: str) -> list[str]:
    """The names recorded in a ledger."""
    with closing(sqlite3.connect(ledger)) as connection:
        return [
            row[0]
            for row in connection.execute(
                "SELECT name FROM infrastructure_services_entry ORDER BY name"
            )
        ]


REFUSED = """
- hosts: localhost
  connection: local
  gather_facts: false
  tasks:
    - infrastructure.services.compute_virtual_machines:
        virtual_machines: "{{ machines[:2] }}"
    - infrastructure.services.compute_virtual_machines:
        virtual_machines: "{{ machines }}"
        report: "{{ item }}"
      loop: "{{ reports }}"
      ignore_errors: true
"""


def test_a_file_that_is_not_a_report_is_refused_before_anything_is_sent(start, service, tmp_path):
    ledger, mine, pipe = reports = [str(tmp_path / name) for name in ("l.db", "vars.yml", "pipe")]
    Path(mine).write_text("mine: true", encoding="utf-8")
    os.mkfifo(pipe)  # other kinds of files are in the unit tests
    running = start(
        4, REFUSED, environment={"INFRASTRUCTURE_SERVICES_LEDGER": ledger}, reports=reports
    )
    running.end()
    assert [each["item"] for each in running.result["results"]] == reports
    for each in running.result["results"]:
        assert each["msg"].startswith("report: ")
        assert "Nothing was sent" in each["msg"]
        assert each["outcome"] == "not_sent"
    assert (names(ledger), Path(mine).read_text(encoding="utf-8")) == (["vm0", "vm1"], "mine: true")
    assert service.created == Counter(["vm0", "vm1"])


def test_a_refused_report_leaves_no_new_ledger(start, service, tmp_path):
    ledger, report = tmp_path / "l.db", tmp_path / "none" / "fleet.json"
    refused = start(
        2,
        REPORTING,
        environment={"INFRASTRUCTURE_SERVICES_LEDGER": str(ledger)},
        report=str(report),
    )
    refused.end()
    assert refused.result["msg"].startswith("report: ")
    assert not ledger.exists()
    assert service.created == Counter()


STOPPING = REPORTING.replace(
    "concurrency: 16", 'access_token: "{{ token | default(omit) }}"\n        in_doubt: stop'
)


@pytest.mark.matrix
@pytest.mark.parametrize(
    "more",
    [
        {"token": ""},
        pytest.param({"machines": [{"name": "vm9"}, {"name": ""}]}, marks=pytest.mark.matrix),
        pytest.param(
            {"environment": {"INFRASTRUCTURE_SERVICES_LEDGER": "none/l.db"}},
            marks=pytest.mark.matrix,
        ),
    ],
    ids=str,
)
def test_a_run_that_is_refused_before_it_begins_leaves_the_last_report_as_it_is(
    start, service, tmp_path, more
):
    report = str(tmp_path / "fleet.json")
    files = [tmp_path / name for name in ("fleet.json", "fleet.xml", "fleet.html")]
    start(2, REPORTING, report=report).end()
    before = [file.read_bytes() for file in files]
    refused = start(2, STOPPING, report=report, **more)
    refused.end()
    assert (refused.result["failed"], refused.result["outcome"]) == (True, "not_sent")
    assert "results" not in refused.result
    assert [file.read_bytes() for file in files] == before
    assert service.created == Counter(["vm0", "vm1"])


@pytest.mark.matrix
def test_a_run_that_stops_because_of_what_is_in_doubt_is_reported(run, start, service, tmp_path):
    service.statuses["vm0"] = 500
    run(1).end()
    environment = {"INFRASTRUCTURE_SERVICES_LEDGER": str(tmp_path / "l.db")}
    start(2, STOPPING, environment=environment, report=str(tmp_path / "fleet.json")).end()
    (one,) = runs(tmp_path)
    assert [(asset["name"], asset["outcome"]) for asset in one["assets"]] == [
        ("vm0", "unknown"),
        ("vm1", "not_sent"),
    ]
    assert not service.created["vm1"]


LIST = """
- hosts: localhost
  connection: local
  gather_facts: false
  tasks:
    - infrastructure.services.ledger_info:
        run: "{{ run }}"
"""


@pytest.mark.matrix
def test_after_kill_9_the_ledger_lists_what_the_run_did(run, start, service, tmp_path):
    service.seconds = 0.3
    run(1).end()
    before = [(tmp_path / name).read_bytes() for name in ("fleet.json", "fleet.xml")]
    running = run(COUNT)
    until(lambda: sum(service.created.values()) >= 40)
    for pid in (running.process.pid, *running.workers()):
        os.kill(pid, signal.SIGKILL)
    running.end()
    assert [(tmp_path / name).read_bytes() for name in ("fleet.json", "fleet.xml")] == before
    with closing(sqlite3.connect(tmp_path / "l.db")) as connection:
        ((killed,),) = connection.execute(
            "SELECT DISTINCT run FROM infrastructure_services_entry WHERE name <> 'vm0'"
        )
    environment = {"INFRASTRUCTURE_SERVICES_LEDGER": str(tmp_path / "l.db")}
    listing = start(0, LIST, environment=environment, run=killed)
    listing.end()
    told = {entry["name"]: entry["state"] for entry in listing.result["entries"]}
    assert service.created.keys() - {"vm0"} <= told.keys()
    assert "vm0" not in told  # of the run before
    assert set(told.values()) == {"done", "intent"}
    assert killed not in (tmp_path / "fleet.json").read_text(encoding="utf-8")
    run(60).end()
    (last,) = runs(tmp_path)
    assert {"not_sent", "unknown"} <= {asset["outcome"] for asset in last["assets"]}


def test_in_check_mode_the_report_is_the_plan(start, service, tmp_path):
    start(3, REPORTING, ("--check",), report=str(tmp_path / "fleet.json")).end()
    (planned,) = runs(tmp_path, "fleet.plan")
    assert (planned["state"], planned["counts"]) == (
        "planned",
        {"compute_virtual_machine": {"to create": 3}},
    )
    assert "**compute virtual machines**: 3 to create" in (tmp_path / "fleet.plan.md").read_text(
        encoding="utf-8"
    )
    assert not service.created
