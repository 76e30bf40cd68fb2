# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The entries of a lost ledger, from the reports of its runs."""

from __future__ import annotations

import json

import pytest
from ansible_collections.infrastructure.services.plugins.module_utils._errors import InvalidInput
from ansible_collections.infrastructure.services.plugins.module_utils._task.specs import (
    VIRTUAL_MACHINES,
)
from ansible_collections.infrastructure.services.plugins.plugin_utils._screen.assets import (
    assets_of,
)
from ansible_collections.infrastructure.services.plugins.plugin_utils._screen.recovered import (
    entries_in_reports,
)
from ansible_collections.infrastructure.services.plugins.plugin_utils._screen.report import (
    AboutList,
    Report,
)
from story.commands import Terminal
from support.results import result_from
from support.wire import Last, answer, running

SERVICE = "https://service.example"
MACHINE = VIRTUAL_MACHINES.sent.operation
LOST = {"item": "web02", "outcome": "unknown", "changed": True, "failed": True}
REFUSED = {"item": "web03", "outcome": "rejected", "changed": False, "failed": True}


def created(name: str, identifier: str) -> dict:
    asset = {"id": identifier, "attributes": {"ip": "192.0.2.1"}}
    return {"item": name, "outcome": "accepted", "changed": True, "failed": False, "asset": asset}


def entry(name: str, state: str, **more: object) -> dict:
    return {"resource": MACHINE.resource, "base_url": SERVICE, "name": name, "state": state, **more}


@pytest.fixture
def report(tmp_path):
    """Write the report of a run, and return its path."""

    def write(run: str, *items: dict, is_plan: bool = False) -> str:
        path = str(tmp_path / f"{run}.json")
        assets = assets_of(MACHINE, result_from({"results": list(items)}))
        report = Report(path, "", run, SERVICE, is_plan)
        assert report.add_list(MACHINE, assets, AboutList()) == ""
        return path.replace(".json", ".plan.json") if is_plan else path

    return write


def test_what_exists_in_any_report_is_present_and_the_rest_in_doubt(report):
    first = report("run-1", created("web01", "i-1"), LOST, REFUSED)
    again = report("run-2", {**LOST, "item": "web01"}, created("web02", "i-2"))
    attributes = {"ip": "192.0.2.1"}
    found = entry("web01", "present", asset={"id": "i-1", "attributes": attributes})
    assert entries_in_reports([first]) == [found, entry("web02", "unknown", sent={})]
    later = entry("web02", "present", asset={"id": "i-2", "attributes": attributes})
    assert entries_in_reports([first, again]) == [found, later]


@pytest.mark.parametrize("last", ["created", "met again", "skipped"])
def test_a_machine_that_was_accepted_without_a_usable_answer_is_in_doubt(tmp_path, last):
    """On the screen, in the report, and in a ledger that is begun anew from it."""
    truncated = Last(answer(201, {"id": "i-1"})[:-1])
    with running(lambda _sent: truncated) as service:
        somebody = Terminal(tmp_path, service.url)
        how = {"report": "fleet.json"}
        ended = somebody.send_list(["web01"], "fleet.db", **how)
        if last != "created":
            how["in_doubt"] = "skip" if last == "skipped" else "fail"
            ended = somebody.send_list(["web01"], "fleet.db", **how)
    (machine,) = entries_in_reports([str(tmp_path / "fleet.json")])
    assert (machine["name"], machine["state"]) == ("web01", "accepted")
    counts = "virtual machines: 0 created, 0 unchanged, 1 in doubt, 0 rejected, 0 s"
    assert counts in ended.lines
    assert ("  ? web01" in ended.lines) is (last != "skipped")


def test_what_is_no_report_of_a_run_is_refused(report, tmp_path):
    plan = report("run-1", created("web01", "i-1"), is_plan=True)
    (tmp_path / "binary.json").write_bytes(b"\xff")
    for path in (plan, str(tmp_path / "binary.json")):
        with pytest.raises(InvalidInput, match="is no report of a run"):
            entries_in_reports([path])
    assert json.loads((tmp_path / "run-1.plan.json").read_text("utf-8"))["runs"]
    with pytest.raises(InvalidInput, match="cannot be read: No such file"):
        entries_in_reports([str(tmp_path / "none.json")])
