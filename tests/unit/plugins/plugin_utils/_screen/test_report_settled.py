"""What the report of a run gives back to its ledger."""

from __future__ import annotations

from contextlib import nullcontext

import pytest
from ansible_collections.infrastructure.services.plugins.module_utils._errors import InvalidInput
from ansible_collections.infrastructure.services.plugins.plugin_utils._ledger.entries import Serial
from ansible_collections.infrastructure.services.plugins.plugin_utils._ledger.ledger import Header
from ansible_collections.infrastructure.services.plugins.plugin_utils._screen.report import (
    Report,
    rows_to_settle,
)

from .test_report import ID, ITEMS, LEDGER, PLANNED, SERVICE, add, plan, plan_of, run_in


@pytest.fixture
def path(tmp_path) -> str:
    return str(tmp_path / "fleet.json")


class Recorded:
    """A ledger that may have gone back in time."""

    def __init__(self, ledger_id: str = ID, replaces: str = "", has_gone_back: bool = False):
        self.header = Header(ledger_id, SERVICE, "in use", replaces=replaces)
        self.has_gone_back = has_gone_back

    def find(self, _keys) -> None:
        """Look for the noted row."""

    def had(self, row: Serial) -> bool:
        return row == Serial()


BEGUN = [{**item, "began": 7 + number} for number, item in enumerate(ITEMS)]


def report_in(path: str, ledger_id: str = ID, serial: Serial | None = None) -> dict:
    """The report of a run with a ledger."""
    report = Report(path, LEDGER, "run-1", SERVICE, is_plan=False)
    assert add(report, BEGUN, ledger_id=ledger_id, serial=serial) == ""
    return run_in(path)


def test_a_report_has_what_a_ledger_lacks_of_its_run(path):
    run = report_in(path)
    made, lost, *others = rows_to_settle(run, Recorded())
    assert made == {
        "resource": "compute_virtual_machine",
        "name": "a",
        "began": 7,
        "asset": {"id": "1"},
        "state": "",
        "at": run["ended_at"],
    }
    assert (lost["name"], lost["began"], lost["asset"], lost["state"]) == ("b", 8, None, "unknown")
    assert [each["state"] for each in others] == [""] * len(others)
    del run["results"][0]["began"]  # it is named, and not left out without a word
    assert rows_to_settle(run, Recorded())[0]["began"] == 0


@pytest.mark.parametrize(
    ("ledger", "ledger_id", "is_taken"),
    [
        (Recorded(), ID, True),
        (Recorded("1" * 32, replaces=ID), ID, True),
        (Recorded("1" * 32), ID, False),
        (Recorded("1" * 32), "", False),
    ],
)
def test_a_report_belongs_to_its_ledger_or_to_the_one_that_replaces_it(
    path, ledger, ledger_id, is_taken
):
    run = report_in(path, ledger_id)
    run["service"] = "https://earlier.example"  # before a new URL
    with nullcontext() if is_taken else pytest.raises(InvalidInput, match=r"^file: is the report"):
        assert rows_to_settle(run, ledger)


@pytest.mark.parametrize("has_gone_back", [True, False])
@pytest.mark.parametrize("serial", [Serial(), Serial(4, 7)])
def test_reports_are_settled_from_the_oldest_on(path, serial, has_gone_back):
    """Otherwise the row that the controller has noted could come back without those before it."""
    is_refused = has_gone_back and serial != Serial()
    refused = pytest.raises(InvalidInput, match="Settle the reports of earlier runs first")
    with refused if is_refused else nullcontext():
        rows_to_settle(report_in(path, serial=serial), Recorded(has_gone_back=has_gone_back))


@pytest.mark.parametrize("known", [None, {}, {"entries": []}])
def test_what_is_no_report_settles_nothing(known):
    with pytest.raises(InvalidInput, match=r"^file: has neither a list of entries nor the report"):
        rows_to_settle(known, Recorded())


@pytest.mark.parametrize(
    "change",
    [
        lambda run: run["results"][0].update(item={"a": 1}),
        lambda run: run["results"][0].update(item="a\n"),
        lambda run: run["results"][0].update(resource={}),
        lambda run: run["results"][0].update(resource="router"),
        lambda run: run["results"][0].update(began="7"),
        lambda run: run["results"][0].update(began=2**63),
        lambda run: run["results"][0].update(asset="1"),
        lambda run: run["results"][1].update(outcome="{{ x }}"),
        lambda run: run.update(ended_at=None),
        lambda run: run.update(ended_at="then"),
        lambda run: run.update(serial={"x": 1}),
    ],
)
def test_a_report_with_other_types_settles_nothing(path, change):
    run = report_in(path)
    change(run)
    with pytest.raises(InvalidInput, match=r"^file: has neither a list of entries nor the report"):
        rows_to_settle(run, Recorded())


def test_a_plan_settles_nothing(path):
    plan(path, PLANNED)
    with pytest.raises(InvalidInput, match=r"^file: has a plan"):
        rows_to_settle(run_in(plan_of(path)), Recorded())
