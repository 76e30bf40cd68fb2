"""The report of a run exists however the run ends; test_ends.py has the report of a run that is
interrupted.
"""

from __future__ import annotations

import os
from collections import Counter

import pytest
from many.conftest import PLAY, REPORTING, TOKEN, report_in
from support.ledgers import create

COUNT = 400


@pytest.fixture
def run(start, service, tmp_path):
    """Start a run that writes a report, with a ledger."""
    assert REPORTING != PLAY
    ledger = create(str(tmp_path / "l.db"), service.url)
    environment = {"INFRASTRUCTURE_SERVICES_LEDGER": ledger}
    return lambda count: start(
        count, REPORTING, environment=environment, report=str(tmp_path / "fleet.json")
    )


def test_the_end_of_a_run_is_reported(run, service, tmp_path):
    service.statuses.update(vm3=403, vm4=307)
    service.headers = (f"X-Request-Id: {TOKEN}",)
    run(20).end()
    one = report_in(tmp_path)
    assert (one["state"], len(one["results"])) == ("ended", 20)
    told = {row["item"]: row for row in one["results"]}
    assert (told["vm3"]["outcome"], told["vm3"]["status"], told["vm3"]["failed"]) == (
        "rejected",
        403,
        True,
    )
    assert told["vm3"]["body"] == {"name": "vm3", "attributes": {"cpu": 4}}
    assert "x-request-id: ***" in told["vm4"]["msg"]
    assert all(row["seconds"] >= 0.05 for row in told.values())


REFUSED = """
- hosts: localhost
  connection: local
  gather_facts: false
  tasks:
    - infrastructure.services.compute_virtual_machines:
        virtual_machines: "{{ machines }}"
        report: "{{ item }}"
      loop: "{{ reports }}"
      ignore_errors: true
"""


def test_a_file_that_cannot_be_a_report_is_refused_before_anything_is_made(
    start, service, tmp_path
):
    mine, pipe, nowhere = (tmp_path / name for name in ("vars.json", "p.json", "none/fleet.json"))
    mine.write_text("mine: true", encoding="utf-8")
    os.mkfifo(pipe)  # other kinds of files are in the unit tests
    reports = [str(path) for path in (mine, pipe, nowhere)]
    running = start(4, REFUSED, reports=reports)
    running.end()
    for each in running.result["results"]:
        assert each["msg"].startswith("report: ")
        assert "Nothing was sent" in each["msg"]
        assert each["outcome"] == "not_sent"
    assert mine.read_text(encoding="utf-8") == "mine: true"
    assert service.created == Counter()


STOPPING = REPORTING.replace(
    "concurrency: 16", 'access_token: "{{ token | default(omit) }}"\n        in_doubt: stop'
)


@pytest.mark.matrix
@pytest.mark.parametrize(
    "more",
    [
        {"token": "of two\nlines"},
        {"machines": [{"name": "vm9"}, {"name": ""}]},
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
