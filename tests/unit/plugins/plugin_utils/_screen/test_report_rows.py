"""The rows of a report to which several lists of one run add the same asset."""

from __future__ import annotations

import json
import multiprocessing
import os
from pathlib import Path

import pytest
from ansible_collections.infrastructure.services.plugins.plugin_utils._run.workers import run_memory
from ansible_collections.infrastructure.services.plugins.plugin_utils._screen.report import Report
from ansible_collections.infrastructure.services.plugins.plugin_utils._screen.rows import Run
from support import VIRTUAL_MACHINES, Result

MACHINE = VIRTUAL_MACHINES.operation
# The rows of attempts: how each ended.
CREATED = {
    "word": "created",
    "outcome": "accepted",
    "changed": True,
    "asset": {"id": "1"},
    "request_attempts": 1,
}
ANOTHER = {**CREATED, "asset": {"id": "2"}}
SAME = {"word": "unchanged", "asset": {"id": "1"}}
REJECTED = {"word": "rejected", "outcome": "rejected", "failed": True, "request_attempts": 1}
DIFFERS = {"word": "differs", "asset": {"id": "1"}, "differs": ("attributes.cpu",)}
NOT_STARTED = {"word": "not started", "skipped": True}
NOT_LISTED = {"word": "not listed", "plan": "not_listed", "skipped": True}
LOST = {"word": "in doubt", "outcome": "unknown", "failed": True, "request_attempts": 1}
IN_DOUBT = {**LOST, "request_attempts": 0}
CREATE = {"word": "to create", "plan": "create", "body": {"name": "a", "cpu": 1}}
OTHER = {**CREATE, "body": {"name": "a", "cpu": True}}
KEEP = {"word": "unchanged", "plan": "keep"}
DOUBT_PLANNED = {"word": "in doubt", "outcome": "unknown", "plan": "in_doubt"}


def row(how: dict) -> Result:
    return Result(**{"resource": MACHINE.resource.name, "item": "a", **how})


def reported(path: Path, rows: list[dict]) -> list[Result]:
    """The rows of a report after lists that each add one row."""
    is_plan = any("plan" in each for each in rows)
    for each in rows:
        report = Report(str(path / "r.json"), None, "run-1", "https://s", is_plan)
        assert report.add_list([row(each)], [], "", None, "") == ""
    (file,) = path.glob("*.json")
    return [*Run.from_json(json.loads(file.read_text("utf-8"))).results]


@pytest.mark.parametrize(
    ("rows", "left"),
    [
        ([REJECTED, REJECTED, CREATED, SAME], [CREATED]),
        ([DIFFERS, SAME], [SAME]),
        ([CREATED, ANOTHER], [CREATED, ANOTHER]),
        ([CREATED, REJECTED, SAME], [CREATED]),
        ([CREATED, REJECTED], [CREATED, REJECTED]),
        ([IN_DOUBT, SAME], [SAME]),
        ([LOST, IN_DOUBT, IN_DOUBT], [LOST]),
        ([LOST, SAME], [LOST, SAME]),
        ([CREATED, IN_DOUBT], [CREATED, IN_DOUBT]),
        ([CREATED, NOT_STARTED], [CREATED]),
        ([CREATE, NOT_LISTED], [CREATE]),
        ([CREATE, OTHER], [CREATE, OTHER]),
        ([KEEP, CREATE], [CREATE]),
        ([DOUBT_PLANNED, DOUBT_PLANNED], [DOUBT_PLANNED]),
    ],
)
def test_a_later_list_replaces_its_rows_but_no_id_doubt_or_body_is_lost(tmp_path, rows, left):
    assert reported(tmp_path, rows) == [row(each) for each in left]


@pytest.mark.parametrize("number", range(2))
def test_tasks_that_write_at_once_lose_nothing(tmp_path, number):
    """Each in a process of its own; the first of them keeps the report of an earlier run."""
    context, names = multiprocessing.get_context("fork"), {f"vm{number}" for number in range(6)}
    memory, barrier = run_memory(), context.Barrier(len(names))  # of the process that starts them

    def work(name: str) -> None:
        barrier.wait(30)
        report = Report(str(tmp_path / "r.json"), None, "run-2", "https://s", is_plan=False)
        barrier.wait(30)
        with memory.alone():
            assert report.add_list([row({**CREATED, "item": name})], [], "", None, "") == ""

    if number:
        earlier = Report(str(tmp_path / "r.json"), None, "run-1", "https://s", is_plan=False)
        assert earlier.add_list([row(CREATED)], [], "", None, "") == ""
    processes = [context.Process(target=work, args=(name,)) for name in names]
    for process in processes:
        process.start()
    for process in processes:
        process.join(60)
    assert [process.exitcode for process in processes] == [0] * len(names)
    run = Run.from_json(json.loads((tmp_path / "r.json").read_text("utf-8")))
    assert {each.item for each in run.results} == names
    kept = ["r.previous.json"] * number
    assert sorted(os.listdir(tmp_path)) == ["r.html", "r.json", *kept, "r.xml"]
