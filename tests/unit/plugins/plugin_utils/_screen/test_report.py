"""The report of a run: what it says about each asset, which runs it contains, and how write
failures are handled.
"""

from __future__ import annotations

import json
import os
import re
from functools import partial
from pathlib import Path
from xml.etree import ElementTree

import pytest
from ansible import context
from ansible_collections.infrastructure.services.plugins.module_utils._errors import (
    InvalidInput,
    Message,
)
from ansible_collections.infrastructure.services.plugins.plugin_utils._ledger.entries import Serial
from ansible_collections.infrastructure.services.plugins.plugin_utils._screen.report import (
    Report,
)
from ansible_collections.infrastructure.services.plugins.plugin_utils._screen.rows import rows_of
from support import APPLICATION_ROLES, VIRTUAL_MACHINES
from support.results import result_from

MACHINE, ROLE = (spec.operation for spec in (VIRTUAL_MACHINES, APPLICATION_ROLES))
SERVICE, LEDGER = "https://infrastructure.example.com", "/srv/fleet.db"
ID = "0" * 32


def item(name: str, outcome: str, **more: object) -> dict:
    """The result of an asset."""
    return {"item": name, "outcome": outcome, "changed": False, "failed": False, **more}


CREATED = item("a", "accepted", changed=True, status=201, seconds=1.5, asset={"id": "1"})
ITEMS = [
    {**CREATED, "request_attempts": 1},
    item("b", "unknown", changed=True, failed=True, seconds=2.0, msg="lost"),
    item("c", "rejected", failed=True, status=403, msg="no \x1b\ud800"),
    item("d", "not_sent", skipped=True),
    item("e", "not_sent", msg="other values \x1b"),
]
PLANNED = [
    item(
        "new",
        "not_sent",
        plan="create",
        changed=True,
        body={"name": "new", "attributes": {"team": "web"}},
    ),
    item("kept", "not_sent", plan="keep"),
    item(
        "drift",
        "not_sent",
        plan="differs",
        differs=["attributes.cpu (8 asked for, 2 recorded)"],
        msg="the service cannot update it",
        changes=[{"name": "attributes.cpu", "old": 2, "new": 8}],
    ),
]


@pytest.fixture
def path(tmp_path) -> str:
    return str(tmp_path / "fleet.json")


def write(path: str, items: list[dict], run: str = "run-1", operation=MACHINE) -> None:
    report = Report(path, LEDGER, run, SERVICE, is_plan=False)
    assert add(report, items, operation=operation) == ""


def plan(path: str, items: list[dict], *not_listed: str) -> None:
    report = Report(path, LEDGER, "run-1", SERVICE, is_plan=True)
    assert add(report, items, not_listed=[*not_listed], ledger_id=ID) == ""


def add(
    report: Report,
    items: list[dict],
    operation=MACHINE,
    not_listed: list[str] = (),
    warnings: list[str] = (),
    ledger_id: str = "",
    serial: Serial | None = None,
    refused: str = "",
) -> str:
    """Add the result of a list to a report."""
    result = result_from({"results": items, "not_listed": not_listed})
    rows = rows_of(operation, result)
    return report.add_list(rows, [*warnings], ledger_id, serial or Serial(), refused)


def run_in(path: str) -> dict:
    return json.loads(Path(path).read_text(encoding="utf-8"))


def plan_of(path: str) -> str:
    return path.replace(".json", ".plan.json")


def suites(path: str) -> list[ElementTree.Element]:
    return list(ElementTree.parse(path.replace(".json", ".xml")).getroot())


def test_each_asset_is_reported_with_what_is_known(path):
    write(path, ITEMS)
    run = run_in(path)
    assert (run["run"], run["state"], run["service"], run["ledger"]) == (
        "run-1",
        "ended",
        SERVICE,
        LEDGER,
    )
    assert run["began_at"] <= run["ended_at"]
    words = ["created", "in doubt", "rejected", "not started", "unchanged"]
    assert [(row["item"], row["word"]) for row in run["results"]] == [*zip("abcde", words)]
    assert run["counts"] == {MACHINE.resource.name: dict.fromkeys(words, 1)}
    assert run["results"][0] == {
        "resource": MACHINE.resource.name,
        "item": "a",
        "asset": {"id": "1"},
        "word": "created",
        "outcome": "accepted",
        "changed": True,
        "failed": False,
        "status": 201,
        "request_attempts": 1,
        "seconds": 1.5,
    }


def test_a_report_has_what_it_takes_to_go_on(path):
    said = Message("the line went dead.", "virtual machine b", "list them", "2026-11-22T10:02:03Z")
    lost = [{"name": "attributes.login", "known": True}]
    asset = {"id": "1", "name": "a", "attributes": {"ip": "192.0.2.1", "cpu": 4}}
    write(path, [{**ITEMS[0], "asset": asset, "lost": lost}, {**ITEMS[1], "msg": said}])
    first, second = run_in(path)["results"]
    assert first["asset"] == {"id": "1", "attributes": {"ip": "192.0.2.1"}}
    assert first["lost"] == lost
    assert (second["msg"], second["command"], second["since"]) == ("The line went dead.", *said[2:])


@pytest.mark.parametrize(
    ("service", "ledger"),
    [("https://other.example", LEDGER), (SERVICE, "/srv/other.db"), (SERVICE, None)],
)
def test_a_report_of_a_run_is_of_one_service_and_one_ledger(path, service, ledger):
    late = Report(path, ledger, "run-1", service, is_plan=False)
    write(path, ITEMS[:1])
    before = Path(path).read_text()
    problem = "it has results of this run for another service or ledger"
    with pytest.raises(InvalidInput, match=f"^report: .*{problem}. Give a new file"):
        Report(path, ledger, "run-1", service, is_plan=False)
    assert problem in add(late, ITEMS)
    assert Path(path).read_text() == before
    assert add(Report(path, ledger, "run-2", service, is_plan=False), ITEMS) == ""


def test_the_xml_is_junit(path):
    write(path, ITEMS)
    (suite,) = suites(path)
    assert [suite.get(key) for key in ("tests", "failures", "skipped")] == ["5", "2", "1"]
    cases = {case.get("name"): case for case in suite}
    assert [case[0].tag if len(case) else "" for case in cases.values()] == [
        "",
        "failure",
        "failure",
        "skipped",
        "system-out",
    ]
    assert cases["b"].find("failure").get("message") == "Lost"
    assert cases["c"].find("failure").get("message") == "No  \\ud800"
    assert cases["e"].find("system-out").text == "Other values  "
    assert (cases["a"].get("time"), cases["a"].get("classname")) == ("1.5", MACHINE.resource.name)


def test_tasks_of_one_run_add_to_its_report_and_the_next_run_keeps_it_beside_its_own(path):
    write(path, ITEMS[:1])
    write(path, ITEMS[:1], operation=ROLE)
    assert [row["resource"] for row in run_in(path)["results"]] == [
        MACHINE.resource.name,
        ROLE.resource.name,
    ]
    assert [suite.get("tests") for suite in suites(path)] == ["1", "1"]
    whole = Path(path).read_text()
    for operation in (MACHINE, ROLE):
        write(path, ITEMS[1:2], "run-2", operation)
    assert (run_in(path)["run"], len(run_in(path)["results"])) == ("run-2", 2)
    previous = Path(path).with_name("fleet.previous.json")
    assert previous.read_text() == whole
    assert previous.stat().st_mode & 0o777 == 0o600
    write(path, ITEMS[:1], "run-3")
    assert json.loads(previous.read_text())["run"] == "run-2"


def test_what_another_list_of_the_run_has_is_listed(path):
    """As when two teams use the role in one play, on one ledger."""
    plan(path, [{**PLANNED[0], "item": "web"}], "app", "gone")
    plan(path, [{**PLANNED[0], "item": "app"}], "web", "gone")
    run = run_in(plan_of(path))
    assert [(row["item"], row["word"]) for row in run["results"]] == [
        ("web", "to create"),
        ("app", "to create"),
        ("gone", "not listed"),
    ]
    assert run["counts"] == {MACHINE.resource.name: {"to create": 2, "not listed": 1}}


def test_a_report_that_is_empty_or_damaged_is_replaced(path):
    write(path, ITEMS)
    text = Path(path).read_text()
    other = [
        re.sub(r"\[\n.*\]", rows, text, flags=re.DOTALL) for rows in ("[1]", "7", "[" * 99_999)
    ]
    for damaged in (text[:-9], *other):
        Path(path).write_text(damaged)
        write(path, ITEMS)
        assert len(run_in(path)["results"]) == len(ITEMS)


def refused(path: object, problem: str) -> None:
    """Assert that a path is refused before anything is sent."""
    with pytest.raises(InvalidInput, match=f"^report: .* cannot be written: .*{problem}"):
        Report(str(path), None, "run-1", SERVICE, is_plan=False)


@pytest.mark.parametrize("suffix", [".json", ".xml", ".html", ".previous.json"])
def test_what_is_not_a_report_is_refused_kept_and_never_opened(tmp_path, suffix):
    path, file = tmp_path / "fleet.json", tmp_path / f"fleet{suffix}"
    for text in ("", "[]", '{"runs": []}', "a: 1\n", "\0", "<testsuites></testsuites>"):
        file.write_text(text)
        refused(path, f"{file} exists and is not a report")
        assert [(each.name, each.read_text()) for each in tmp_path.iterdir()] == [(file.name, text)]
    file.unlink()
    for make in (os.mkfifo, os.mkdir, partial(os.symlink, "/dev/full")):
        make(file)
        refused(path, f"fleet{suffix} exists and is not a report")
        (os.rmdir if make is os.mkdir else os.unlink)(file)


@pytest.mark.parametrize("umask", [0o000, 0o077])
def test_new_files_are_for_their_owner_and_follow_no_link(path, tmp_path, umask):
    """Also a link that is put there in the meantime."""
    late, mine = Report(path, LEDGER, "run-1", SERVICE, is_plan=False), tmp_path / "mine"
    mine.write_text("mine")
    (tmp_path / "fleet.html").symlink_to(mine)
    before = os.umask(umask)
    try:
        add(late, ITEMS)
        (tmp_path / "fleet.html").unlink()
        write(path, ITEMS)
        plan(path, PLANNED)
    finally:
        os.umask(before)
    assert mine.read_text() == "mine"
    files = [*tmp_path.glob("fleet.*")]
    assert {file.stat().st_mode & 0o777 for file in files} == {0o600}
    assert len(files) == 6


def test_a_name_that_does_not_end_in_json_is_refused(tmp_path):
    for name in ("fleet", "fleet.xml", ".json"):
        with pytest.raises(InvalidInput, match=r"^report: .* has to end in \.json"):
            Report(str(tmp_path / name), None, "run-1", SERVICE, is_plan=False)


def test_an_unwritable_report_is_refused_before_anything_is_sent(tmp_path):
    for path, problem in (
        (tmp_path / "none/fleet.json", "No such file or directory"),
        ("/proc/fleet.json", ""),
    ):
        refused(path, problem)


@pytest.mark.parametrize("is_there", [False, True])
def test_a_report_that_cannot_be_written_at_the_end_raises_a_warning(tmp_path, is_there):
    (tmp_path / "d").mkdir()
    path = tmp_path / "d/fleet.json"
    report = Report(str(path), None, "run-1", SERVICE, is_plan=False)
    if is_there:
        path.write_text("mine")
    else:
        (tmp_path / "d").rename(tmp_path / "e")
    warning = add(report, ITEMS)
    assert warning.startswith("report: ")
    assert ("exists and is not a report" if is_there else "No such file or directory") in warning
    assert "The task was done" in warning
    assert "Nothing was sent" not in warning


def test_a_plan_for_a_merge_request_is_that_of_the_screen_in_a_fence(path, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(context, "CLIARGS", {"args": ("my fleet.yml",)})
    plan(path, PLANNED, gone := "removed-web1")
    head, counts, _empty, _how, *rest = (
        (tmp_path / "fleet.plan.md").read_text(encoding="utf-8").splitlines()
    )
    assert head == "<!-- infrastructure.services report -->"
    assert counts == "## Plan: 1 to create, 1 differs, 1 not listed, 1 unchanged"
    assert [line.rstrip() for line in rest] == [
        "",
        "```shell",
        "ansible-playbook 'my fleet.yml' -e fleet_approved=fleet.plan.json",
        "```",
        "",
        "```diff",
        "service: https://infrastructure.example.com",
        "",
        "virtual machines: 1 to create, 1 differs, 1 unchanged",
        "! drift  attributes.cpu 2 -> 8: the service cannot update it",
        "+ new    team web",
        (
            f"# 1 recorded and not in this list: {gone}. The run leaves them alone. To remove one,"
            " delete it on the service,"
        ),
        "    then forget its entry.",
        "```",
    ]
    names = sorted(each.name for each in tmp_path.iterdir())
    assert names == ["fleet.plan.html", "fleet.plan.json", "fleet.plan.md"]


HOSTILE = [
    "| `x` *y* [z](javascript:alert(1)) <b>",
    "```",
    "\n```\n# heading",
    "`" * 40 + "\r/close",
    "@everyone #1 https://evil.example",
]


def test_no_name_leaves_the_fence_of_a_merge_request(path, tmp_path):
    plan(path, [{**PLANNED[0], "item": name} for name in HOSTILE])
    text = (tmp_path / "fleet.plan.md").read_text(encoding="utf-8")
    before, fence, inside = re.split(r"^(`{3,})diff\n", text, maxsplit=1, flags=re.MULTILINE)
    assert len(fence) > 40
    assert (before.count(fence), inside.count(fence)) == (2, 1)
    assert inside.endswith(f"\n{fence}\n")
    assert "\r" not in inside
    assert [name for name in HOSTILE if name in before.replace(fence, "")] == []


def test_the_warnings_of_all_lists_and_the_ledger_are_in_each_file(path):
    for number in (1, 2, 1):
        report = Report(path, LEDGER, "run-1", SERVICE, is_plan=True)
        about = {"serial": Serial(number, 7), "warnings": [f"warning {number} <b>"]}
        assert add(report, PLANNED, ledger_id="id-1", **about) == ""
    run = run_in(plan_of(path))
    assert (run["ledger_id"], run["serial"]) == ("id-1", {"number": 1, "revision": 7})
    assert run["warnings"] == ["warning 1 <b>", "warning 2 <b>"]
    assert "warning 1 &lt;b&gt;" in Path(plan_of(path)).with_suffix(".html").read_text("utf-8")
    assert "warning 1 <b>" in Path(plan_of(path)).with_suffix(".md").read_text("utf-8")
