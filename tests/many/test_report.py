# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The report of a run exists however the run ends; test_ends.py has the report of a run that is interrupted."""

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
    environment = {"INFRASTRUCTURE_SERVICES_LEDGER": str(tmp_path / "l.db"), "TRACEPARENT": f"00-{TRACE}-{'1' * 16}-01"}
    return lambda count: start(count, REPORTING, environment=environment, report=str(tmp_path / "fleet.json"))


def test_the_end_of_a_run_is_reported(run, service, tmp_path):
    service.statuses.update(vm3=403, vm4=307)
    service.headers = (f"Location: https://{TOKEN}/",)
    run(20).end()
    (one,) = runs(tmp_path)
    assert (one["state"], len(one["assets"])) == ("ended", 20)
    told = {asset["name"]: asset for asset in one["assets"]}
    assert (told["vm3"]["outcome"], told["vm3"]["status"], told["vm3"]["failed"]) == ("rejected", 403, True)
    assert "it points to ***" in told["vm4"]["msg"]
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


@pytest.mark.parametrize("tasks", [2, pytest.param(1, marks=pytest.mark.stress)])
def test_concurrent_hosts_share_one_report_with_all_their_assets(start, service, tmp_path, tasks):
    play = HOSTS.format(tasks=list(range(tasks)))
    service.statuses["h2-0-1"] = 403
    names = {f"h{host}-{task}-{number}" for host in (1, 2, 3, 4) for task in range(tasks) for number in (0, 1)}
    arguments = ("-i", "h1,h2,h3,h4,", "-c", "local", "-f", "4")
    output = start(0, play, arguments, report=str(tmp_path / "fleet.json")).end()
    assert "does not exist" not in output
    assert +service.created == Counter(names - {"h2-0-1"})
    (one,) = runs(tmp_path)
    assert one["state"] == "ended"
    assert Counter((asset["name"], asset["outcome"]) for asset in one["assets"]) == Counter(
        (name, "rejected" if name == "h2-0-1" else "accepted") for name in names)
    assert sorted(name for name in os.listdir(tmp_path) if "fleet" in name) == ["fleet.json", "fleet.xml"]


def names(ledger: str) -> list[str]:
    """The names recorded in a ledger."""
    with closing(sqlite3.connect(ledger)) as connection:
        return [row[0] for row in connection.execute("SELECT name FROM infrastructure_services_entry ORDER BY name")]


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
      register: made
      ignore_errors: true
    - ansible.builtin.copy:
        content: "{{ made | to_json }}"
        dest: "{{ result }}"
"""


def test_a_file_that_is_not_a_report_is_refused_before_anything_is_sent(start, service, tmp_path):
    ledger, mine, pipe = reports = [str(tmp_path / name) for name in ("l.db", "vars.yml", "pipe")]
    Path(mine).write_text("mine: true", encoding="utf-8")
    os.mkfifo(pipe)  # other kinds of files are in the unit tests
    running = start(4, REFUSED, environment={"INFRASTRUCTURE_SERVICES_LEDGER": ledger}, reports=reports)
    running.end()
    assert [each["item"] for each in running.result["results"]] == reports
    for each in running.result["results"]:
        assert each["msg"].startswith("report: ")
        assert "Nothing was sent" in each["msg"]
        assert each["outcome"] == "not_sent"
    assert (names(ledger), Path(mine).read_text(encoding="utf-8")) == (["vm0", "vm1"], "mine: true")
    assert service.created == Counter(["vm0", "vm1"])


def test_after_kill_9_the_next_run_reports_it_from_the_ledger(run, service, tmp_path):
    service.seconds = 0.3
    running = run(COUNT)
    until(lambda: sum(service.created.values()) >= 40)
    workers = running.workers()
    for pid in (running.process.pid, *workers):
        os.kill(pid, signal.SIGKILL)
    running.end()
    assert runs(tmp_path) == [{**runs(tmp_path)[0], "state": "running", "ended_at": None, "assets": []}]
    sent, service.seconds = dict(service.created), 0.01
    run(60).end()
    killed, now = runs(tmp_path)
    told = {asset["name"]: asset for asset in killed["assets"]}
    assert (killed["state"], now["state"], len(now["assets"])) == ("killed", "ended", 60)
    assert sent.keys() <= told.keys()
    assert {asset["outcome"] for asset in told.values()} == {"accepted", "unknown"}
    assert all(asset["seconds"] > 0 for asset in told.values() if asset["outcome"] == "accepted")
    run(60).end()
    (last,) = runs(tmp_path)
    assert (last["state"], {asset["outcome"] for asset in last["assets"]}) == ("ended", {"not_sent", "unknown"})
