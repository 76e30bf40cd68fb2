"""The rows of a report to which several lists of one run add the same asset."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from ansible_collections.infrastructure.services.plugins.module_utils._result import Result
from ansible_collections.infrastructure.services.plugins.module_utils._task.specs import (
    VIRTUAL_MACHINES,
)
from ansible_collections.infrastructure.services.plugins.plugin_utils._screen.report import Report
from ansible_collections.infrastructure.services.plugins.plugin_utils._screen.rows import Run
from story.commands import Terminal
from story.world import LOSE, REJECT, Model
from support.wire import running

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
OTHER_SAME = {**SAME, "asset": {"id": "2"}}
REJECTED = {"word": "rejected", "outcome": "rejected", "failed": True, "request_attempts": 1}
NOT_SENT = {"word": "not sent", "failed": True}
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
        assert report.add_list([row(each)], [], "", None) == ""
    (file,) = path.glob("*.json")
    return [*Run.from_json(json.loads(file.read_text("utf-8"))).results]


@pytest.mark.parametrize(
    ("rows", "left"),
    [
        ([REJECTED, REJECTED, CREATED, SAME], [CREATED]),
        ([NOT_SENT, REJECTED], [REJECTED]),
        ([SAME, CREATED], [CREATED]),
        ([DIFFERS, SAME], [SAME]),
        ([CREATED, SAME, SAME], [CREATED]),
        ([CREATED, OTHER_SAME], [CREATED, OTHER_SAME]),
        ([CREATED, ANOTHER], [CREATED, ANOTHER]),
        ([CREATED, REJECTED, SAME], [CREATED]),
        ([CREATED, REJECTED], [CREATED, REJECTED]),
        ([CREATED, DIFFERS], [CREATED, DIFFERS]),
        ([IN_DOUBT, SAME], [SAME]),
        ([LOST, IN_DOUBT, IN_DOUBT], [LOST]),
        ([IN_DOUBT, IN_DOUBT], [IN_DOUBT]),
        ([LOST, LOST], [LOST, LOST]),
        ([LOST, SAME], [LOST, SAME]),
        ([CREATED, IN_DOUBT], [CREATED, IN_DOUBT]),
        ([REJECTED, NOT_STARTED], [REJECTED]),
        ([CREATED, NOT_STARTED], [CREATED]),
        ([NOT_STARTED, NOT_STARTED, CREATED], [CREATED]),
        ([NOT_LISTED, NOT_LISTED, CREATE], [CREATE]),
        ([CREATE, NOT_LISTED], [CREATE]),
        ([CREATE, CREATE], [CREATE, CREATE]),
        ([CREATE, OTHER], [CREATE, OTHER]),
        ([KEEP, CREATE], [CREATE]),
        ([DOUBT_PLANNED, DOUBT_PLANNED], [DOUBT_PLANNED]),
    ],
)
def test_a_later_list_replaces_its_rows_but_no_id_doubt_or_body_is_lost(tmp_path, rows, left):
    assert reported(tmp_path, rows) == [row(each) for each in left]


@pytest.fixture
def model() -> Model:
    return Model()


@pytest.fixture
def terminal(tmp_path, model, monkeypatch) -> Iterator[Terminal]:
    monkeypatch.chdir(tmp_path)
    with running(model.choose) as service:
        yield Terminal(tmp_path, service.url)


def ledger_of(terminal: Terminal) -> str:
    return str(terminal.directory / "fleet.db")


def counts(terminal: Terminal, file: str) -> dict[str, int]:
    return json.loads((terminal.directory / file).read_text("utf-8"))["counts"][
        MACHINE.resource.name
    ]


def test_three_attempts_of_a_list_are_one_row_for_each_machine(terminal, model):
    model.fates = {"lost": LOSE, "bad": REJECT}
    terminal.send_lists([["ok", "lost", "bad"]] * 3, ledger_of(terminal), report="r.json")
    assert counts(terminal, "r.json") == {
        "created": 1,
        "in doubt": 1,
        "rejected": 1,
    }


@pytest.mark.parametrize("has_ledger", [True, False])
def test_an_asset_that_is_planned_twice_is_refused(terminal, model, has_ledger):
    ledger = ledger_of(terminal) if has_ledger else ""
    lists = [["c1"], ["c1", "c2"]]
    terminal.send_lists(lists, ledger, check_mode=True, report="r.json")
    ended = terminal.send_list(["c1"], ledger, approved="r.plan.json")
    assert (
        "r.plan.json' is no plan of this collection, is damaged, or has an asset twice"
        in ended.said
    )
    assert model.machines == []
