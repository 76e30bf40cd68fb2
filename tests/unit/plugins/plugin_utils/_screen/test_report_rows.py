# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The rows of a report to which several lists of one run add the same asset."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from ansible_collections.infrastructure.services.plugins.module_utils._task.specs import (
    VIRTUAL_MACHINES,
)
from ansible_collections.infrastructure.services.plugins.plugin_utils._screen.assets import Asset
from ansible_collections.infrastructure.services.plugins.plugin_utils._screen.report import (
    AboutList,
    Report,
)
from story.commands import Terminal
from story.world import LOSE, REJECT, Model
from support.wire import running

MACHINE = VIRTUAL_MACHINES.resource.operation
# The rows of attempts: how each ended.
CREATED = {"result": "created", "outcome": "accepted", "changed": True, "id": "1"}
ANOTHER = {**CREATED, "id": "2"}
SAME = {"result": "unchanged", "outcome": "not_sent", "id": "1"}
OTHER_SAME = {**SAME, "id": "2"}
KEPT = {"result": "unchanged", "outcome": "accepted"}  # the answer to an update
REJECTED = {"result": "rejected", "outcome": "rejected", "failed": True}
NOT_SENT = {"result": "not sent", "outcome": "not_sent", "failed": True}
DIFFERS = {"result": "differs", "outcome": "not_sent"}
NOT_STARTED = {"result": "not begun", "outcome": "not_sent", "skipped": True}
NOT_LISTED = {"result": "not listed", "outcome": "not_sent", "skipped": True}
LOST = {"result": "in doubt", "outcome": "unknown", "changed": True, "request_attempts": 1}
IN_DOUBT = {"result": "in doubt", "outcome": "unknown", "request_attempts": 0}
CREATE = {
    "result": "to create",
    "outcome": "not_sent",
    "changed": True,
    "plan": "create",
    "body": {"name": "a", "cpu": 1},
}
OTHER = {**CREATE, "body": {"name": "a", "cpu": True}}
KEEP = {"result": "unchanged", "outcome": "not_sent", "plan": "keep"}
DOUBT_PLANNED = {"result": "in doubt", "outcome": "unknown", "plan": "in_doubt"}


def row(how: dict) -> Asset:
    return Asset(
        **{"resource": MACHINE.resource, "name": "a", "failed": False, "changed": False, **how}
    )


def reported(path: Path, rows: list[dict], ledger: str = "/srv/fleet.db", **about) -> list[Asset]:
    """The rows of a report after lists that each add one row."""
    is_plan = any("plan" in each for each in rows)
    for each in rows:
        report = Report(str(path / "r.json"), ledger, "run-1", "https://s", is_plan)
        assert report.add_list(MACHINE, [row(each)], AboutList(**about)) == ""
    (file,) = path.glob("*.json")
    run = json.loads(file.read_text("utf-8"))["runs"][0]
    found = [Asset(**each) for each in run["assets"]]
    assert sum(run["counts"][MACHINE.resource].values()) == len(found)
    return found


@pytest.mark.parametrize(
    ("rows", "left"),
    [
        ([REJECTED, REJECTED, CREATED, SAME], [CREATED]),
        ([NOT_SENT, REJECTED], [REJECTED]),
        ([SAME, CREATED], [CREATED]),
        ([KEPT, REJECTED], [REJECTED]),
        ([DIFFERS, SAME], [SAME]),
        ([CREATED, SAME, SAME], [CREATED]),
        ([CREATED, OTHER_SAME], [CREATED, OTHER_SAME]),
        ([CREATED, ANOTHER], [CREATED, ANOTHER]),
        ([CREATED, REJECTED, SAME], [CREATED]),
        ([CREATED, DIFFERS], [CREATED, DIFFERS]),
        ([LOST, IN_DOUBT, IN_DOUBT], [LOST]),
        ([IN_DOUBT, IN_DOUBT], [IN_DOUBT]),
        ([LOST, LOST], [LOST, LOST]),
        ([LOST, SAME], [LOST, SAME]),
        ([REJECTED, NOT_STARTED], [REJECTED]),
        ([CREATED, NOT_STARTED], [CREATED]),
        ([NOT_STARTED, NOT_STARTED, CREATED], [CREATED]),
        ([NOT_LISTED, NOT_STARTED, NOT_LISTED], [NOT_STARTED]),
        ([CREATE, CREATE], [CREATE]),
        ([CREATE, OTHER, CREATE], [CREATE, OTHER]),
        ([KEEP, CREATE, KEEP], [KEEP, CREATE]),
        ([DOUBT_PLANNED, DOUBT_PLANNED], [DOUBT_PLANNED]),
        ([REJECTED, KEEP], [KEEP]),
    ],
)
def test_a_later_row_replaces_one_that_changed_nothing(tmp_path, rows, left):
    assert reported(tmp_path, rows) == [row(each) for each in left]


@pytest.mark.parametrize(("ledger", "is_forced"), [("", False), ("/srv/fleet.db", True)])
def test_a_plan_counts_each_creation_if_nothing_prevents_the_second_one(
    tmp_path, ledger, is_forced
):
    assert len(reported(tmp_path, [CREATE, CREATE], ledger, is_forced=is_forced)) == 2


@pytest.fixture
def model() -> Model:
    return Model()


@pytest.fixture
def terminal(tmp_path, model) -> Iterator[Terminal]:
    with running(model.choose) as service:
        yield Terminal(tmp_path, service.url)


def counts(terminal: Terminal, file: str) -> dict[str, int]:
    run = json.loads((terminal.directory / file).read_text("utf-8"))["runs"][0]
    return run["counts"][MACHINE.resource]


def test_three_attempts_of_a_list_are_one_row_for_each_machine(terminal, model):
    model.fates = {"lost": LOSE, "bad": REJECT}
    terminal.send_lists([["ok", "lost", "bad"]] * 3, "fleet.db", report="r.json")
    assert counts(terminal, "r.json") == {
        "created": 1,
        "unchanged": 0,
        "in doubt": 1,
        "rejected": 1,
    }


def test_a_plan_of_some_and_then_of_all_is_approved(terminal, model):
    lists = [["c1"], ["c1", "c2", "c3"]]
    terminal.send_lists(lists, "fleet.db", check_mode=True, report="r.json")
    assert counts(terminal, "r.plan.json") == {"to create": 3}
    ended = terminal.send_lists(lists, "fleet.db", approved="r.plan.json", report="r.json")
    assert [each.result.get("failed") for each in ended] == [None, None]
    assert counts(terminal, "r.json")["created"] == len(model.machines) == 3


@pytest.mark.parametrize(
    ("ledger", "cpus", "how"),
    [("fleet.db", (4, 8), "with different bodies"), ("", (4, 4), "with the same body")],
)
def test_an_asset_that_is_planned_twice_is_named(terminal, model, ledger, cpus, how):
    lists = [["c1"], ["c1", "c2"]]
    terminal.send_lists(lists, ledger, cpus, check_mode=True, report="r.json")
    ended = terminal.send_list(["c1"], ledger, approved="r.plan.json")
    assert f"r.plan.json' plans c1 twice {how}" in ended.said
    assert "damaged" not in ended.said
    assert model.machines == []
