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
from story.world import DROP, LOSE, REJECT, Model
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
    known = {"resource": MACHINE.resource, "base_url": SERVICE, "name": name, "sent": {}}
    return {**known, "state": state, **more}


def found_in(*reports: str) -> list[dict]:
    """The entries of reports, without the end of their runs."""
    found = entries_in_reports([*reports])
    assert all(each.pop("changed_at") for each in found)
    return found


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
    assert found_in(first) == [found, entry("web02", "unknown")]
    later = entry("web02", "present", asset={"id": "i-2", "attributes": attributes})
    assert found_in(first, again) == [found, later]


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


@pytest.mark.parametrize(
    ("latest", "attempts", "state"),
    [("created", None, "present"), ("lost", None, "present"), ("lost", 1, "unknown")],
)
def test_a_later_doubt_about_a_request_that_was_sent_is_the_one_that_counts(
    report, latest, attempts, state
):
    first = report("run-1", {**LOST, "item": "web01", "request_attempts": 1})
    known = report("run-2", created("web01", "i-1"))
    lost = {**LOST, "item": "web01", "request_attempts": attempts, "body": {"name": "again"}}
    last = report("run-3", created("web01", "i-1") if latest == "created" else lost)
    (machine,) = entries_in_reports([first, known, last])
    sent = {"name": "again"} if attempts else {}
    assert (machine["state"], machine["sent"]) == (state, sent)


def test_what_was_removed_from_the_ledger_after_a_report_stays_removed(tmp_path):
    """Only an edit removes: a rejected request says nothing about an earlier machine."""
    model = Model({"web02": DROP})
    with running(model.choose) as service:
        somebody = Terminal(tmp_path, service.url)
        somebody.send_list(["web01", "web02", "web03"], "fleet.db", report="first.json")
        for name in ("web01", "web02"):
            somebody.edit("fleet.db", name, state="absent")
        planned = add(somebody, "first.json", check_mode=True)
        late = add(somebody, "first.json")
        assert states(somebody) == {"web03": "done"}
        model.fates = {"web01": LOSE, "web02": REJECT}
        somebody.send_list(["web01", "web02", "web03"], "again.db", report="again.json")
        somebody.send_list(["web02"], "fleet.db")
        newer = add(somebody, "first.json", "again.json")
    for ended in (planned, late):
        assert not ended.result["changed"]
        assert "1 unchanged, 2 left out; 0 still in doubt" in ended.lines[0]
        assert ended.lines[1:] == ["  left out: web01, web02"]
        (warning,) = ended.result["warnings"]
        assert "web01, web02: left out, since ledger_entry or settle removed the entry" in warning
    assert newer.lines[1:] == ["  recorded as in doubt: web01", "  left out: web02"]
    assert states(somebody) == {"web01": "unknown", "web03": "done"}


@pytest.mark.parametrize("name", ["web01 ", " web01", "web\u00a001", "web\u200b01", "a\tb"])
def test_a_name_that_the_collection_created_is_recorded_as_it_is(tmp_path, name):
    with running(Model().choose) as service:
        somebody = Terminal(tmp_path, service.url)
        somebody.send_list([name, "other"], "fleet.db", report="fleet.json")
        add(somebody, "fleet.json", ledger="anew.db")
    assert states(somebody, "anew.db") == {name: "done", "other": "done"}


@pytest.mark.parametrize("identifier", ["none", "-", " vm", "absent", "vm\u200b"])
def test_a_machine_without_a_usable_id_is_in_doubt_and_said(tmp_path, identifier):
    def choose(sent):
        body = json.loads(sent.body)
        return answer(201, {"id": "i-2" if body["name"] == "web02" else identifier, **body})

    with running(choose) as service:
        somebody = Terminal(tmp_path, service.url)
        somebody.send_list(["web00", "web01", "web02"], "fleet.db", report="fleet.json")
        ended = add(somebody, "fleet.json", ledger="anew.db")
    found = {"web00": "accepted", "web01": "accepted", "web02": "done"}
    assert states(somebody, "anew.db") == found
    (warning,) = ended.result["warnings"]
    told = f"web00, web01: recorded as in doubt, since its id is {identifier!r}"
    assert told in warning


@pytest.mark.parametrize("address", [["192.0.2.1"], {"v4": "192.0.2.1"}, True, 7])
def test_an_address_that_is_no_text_is_left_out(report, address):
    machine = created("web01", "i-1")
    machine["asset"]["attributes"]["ip"] = address
    (found,) = found_in(report("run-1", machine))
    assert found["asset"] == {"id": "i-1", "attributes": {}}


def test_of_two_names_with_one_id_the_latest_report_is_right(tmp_path):
    """As after an entry was forgotten and adopted under the right name."""
    with running(Model().choose) as service:
        somebody = Terminal(tmp_path, service.url)
        for ledger, name, report in (
            ("old.db", "wrong", "first.json"),
            ("new.db", "right", "second.json"),
        ):
            somebody.edit(ledger, name, asset={"id": "i-9", "attributes": {"cpu": 4}})
            somebody.send_list([name, f"new-{name}"], ledger, report=report)
        anew = add(somebody, "first.json", "second.json", ledger="anew.db")
        late = add(somebody, "second.json", ledger="old.db")
        again = add(somebody, "first.json", "second.json", ledger="anew.db")
    found = states(somebody, "anew.db")
    assert found == dict.fromkeys(["new-right", "new-wrong", "right"], "done")
    assert "  left out: wrong" in anew.lines
    assert "  left out: wrong" in again.lines
    assert "wrong: left out, since its id i-9 is that of right" in anew.result["warnings"][0]
    assert "right: left out, since its id i-9 is that of wrong" in late.result["warnings"][0]
    assert "right" not in states(somebody, "old.db")


def add(somebody: Terminal, *reports: str, ledger: str = "fleet.db", check_mode: bool = False):
    """Run the playbook ledger_from_report."""
    paths = ",".join(str(somebody.directory / report) for report in reports)
    options = {"ledger": ledger, "entries": []}
    return somebody.run("ledger_entries", options, check_mode, variables={"__reports": paths})


def states(somebody: Terminal, ledger: str = "fleet.db") -> dict[str, str]:
    found = somebody.recorded(ledger).result["entries"]
    return {each["name"]: each["state"] for each in found}
