# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The report of a run: what it says of each asset, which runs it has, and what if it cannot be written."""

from __future__ import annotations

import json
from pathlib import Path
from xml.etree import ElementTree

import pytest
from ansible_collections.infrastructure.services.plugins.module_utils._errors import InvalidInput
from ansible_collections.infrastructure.services.plugins.plugin_utils._ledger.entries import (
    ABSENT,
    DONE,
    INTENT,
    Change,
    Ended,
    Entry,
    Key,
)
from ansible_collections.infrastructure.services.plugins.plugin_utils._ledger.location import open_ledger
from ansible_collections.infrastructure.services.plugins.plugin_utils._ledger.run_report import reported

MACHINE, ROLE = "compute_virtual_machine", "cassandra_application_role"
TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"
ITEMS = [
    {"item": "a", "outcome": "accepted", "changed": True, "failed": False, "status": 201, "seconds": 1.5,
     "trace_id": TRACE, "asset": {"id": "1"}, "request_attempts": 1},
    {"item": "b", "outcome": "unknown", "changed": True, "failed": True, "status": None, "seconds": 2.0, "msg": "lost"},
    {"item": "c", "outcome": "rejected", "changed": False, "failed": True, "status": 403, "msg": "no \x1b\ud800"},
    {"item": "d", "outcome": "not_sent", "changed": False, "failed": False, "skipped": True, "status": None},
    {"item": "e", "outcome": "not_sent", "changed": False, "failed": False, "status": None},
]


@pytest.fixture
def path(tmp_path) -> str:
    return str(tmp_path / "fleet.json")


def write(path: str, items: list[dict], run: str = "run-1", resource: str = MACHINE, ledger=None) -> None:
    with reported(path, resource, run, ledger, pytest.fail) as results:
        results.extend(items)


def runs(path: str) -> list[dict]:
    return json.loads(Path(path).read_text(encoding="utf-8"))["runs"]


def suites(path: str) -> list[ElementTree.Element]:
    return list(ElementTree.parse(path.replace(".json", ".xml")).getroot())


def test_each_asset_is_told_with_what_is_known(path):
    write(path, ITEMS)
    (run,) = runs(path)
    assert (run["run"], run["state"], run["began_at"] <= run["ended_at"]) == ("run-1", "ended", True)
    assert [asset["name"] for asset in run["assets"]] == list("abcde")
    assert run["assets"][0] == {"resource": MACHINE, "name": "a", "outcome": "accepted", "changed": True,
                                "failed": False, "status": 201, "seconds": 1.5, "trace_id": TRACE}


def test_the_xml_is_junit(path):
    write(path, ITEMS)
    (suite,) = suites(path)
    assert {key: suite.get(key) for key in ("tests", "failures", "errors", "skipped", "time")} == {
        "tests": "5", "failures": "1", "errors": "1", "skipped": "1", "time": "3.500"}
    cases = {case.get("name"): case for case in suite}
    assert [case[1].tag if len(case) > 1 else "" for case in cases.values()] == ["", "error", "failure", "skipped", ""]
    assert cases["b"].find("error").get("message") == "lost"
    assert cases["c"].find("failure").get("message") == "no \ufffd\ufffd"
    properties = {each.get("name"): each.get("value") for each in cases["a"].find("properties")}
    assert properties == {"outcome": "accepted", "status": "201", "trace_id": TRACE}
    assert (cases["a"].get("time"), cases["a"].get("classname")) == ("1.500", MACHINE)


def test_tasks_of_one_run_add_to_its_report_and_the_next_run_replaces_it(path):
    write(path, ITEMS[:1])
    write(path, ITEMS[:1], resource=ROLE)
    (run,) = runs(path)
    assert [asset["resource"] for asset in run["assets"]] == [MACHINE, ROLE]
    assert [suite.get("tests") for suite in suites(path)] == ["1", "1"]
    write(path, ITEMS[1:2], "run-2")
    assert [(run["run"], len(run["assets"])) for run in runs(path)] == [("run-2", 1)]


def test_a_run_that_was_killed_is_told_from_the_ledger_by_the_next_one_alone(path, tmp_path):
    ledger = open_ledger(str(tmp_path / "l.db"))
    with pytest.raises(KeyboardInterrupt), reported(path, MACHINE, "run-0", ledger, pytest.fail):
        raise KeyboardInterrupt
    assert runs(path)[-1]["state"] == "ended"
    Path(path).write_text(Path(path).read_text().replace('"ended"', '"running"').replace("run-0", "killed"))
    entry = Entry(DONE, {"name": "x"}, {"id": "1"}, run="killed")
    ended = Ended(ABSENT, DONE, run="killed", outcome="accepted", status=201, seconds=0.5, trace_id=TRACE)
    adopted = Ended(ABSENT, DONE, run="killed", outcome="not_sent", message="by ledger_entry")
    for name, after, row in (
        ("done", entry, ended), ("doubtful", entry._replace(state=INTENT, asset={}), None), ("adopted", entry, adopted),
        ("of-another", entry._replace(run="other", state=INTENT), ended._replace(run="other")),
    ):
        assert ledger.edit(Change(Key("https://s", MACHINE, name), None, after, row))
    write(path, ITEMS[:1], "run-2", ledger=ledger)
    killed, now = runs(path)
    assert (killed["run"], killed["state"], now["run"], now["state"]) == ("killed", "killed", "run-2", "ended")
    assert [(asset["name"], asset["outcome"], asset["failed"]) for asset in killed["assets"]] == [
        ("done", "accepted", False), ("doubtful", "unknown", True)]
    assert (killed["assets"][0]["seconds"], killed["assets"][0]["trace_id"]) == (0.5, TRACE)
    assert [suite.get("errors") for suite in suites(path)] == ["1", "0"]
    write(path, [], "run-3", ledger=ledger)
    assert [run["run"] for run in runs(path)] == ["run-3"]
    ledger.close()


def test_a_file_that_is_no_report_is_replaced(path):
    for text in ("", "[]", "{}", '{"runs": [1]}', '{"runs": [{}]}', "\0", '{"runs": {"a": 1}}'):
        Path(path).write_text(text)
        write(path, ITEMS)
        assert len(runs(path)) == 1


def test_without_a_path_nothing_is_written(tmp_path):
    with reported("", MACHINE, "run-1", None, pytest.fail) as results:
        results.extend(ITEMS)
    assert list(tmp_path.iterdir()) == []


def test_what_cannot_be_written_is_told_before_anything_is_sent(tmp_path):
    for path, problem in ((tmp_path / "none/fleet.json", "No such file"), (tmp_path, "directory"),
                          (tmp_path / "fleet.xml", "must not end in .xml")):
        with pytest.raises(InvalidInput, match=f"report: .*{problem}"), \
                reported(str(path), MACHINE, "run-1", None, pytest.fail):
            pytest.fail("the tasks were begun")


def test_what_cannot_be_written_at_the_end_is_a_warning(tmp_path):
    (tmp_path / "d").mkdir()
    warnings = []
    with reported(str(tmp_path / "d/fleet.json"), MACHINE, "run-1", None, warnings.append):
        (tmp_path / "d").rename(tmp_path / "e")
    assert [warning.startswith("report: ") for warning in warnings] == [True]
