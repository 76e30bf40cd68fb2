# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The report of a run: what it says about each asset, which runs it contains, and how write
failures are handled.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import re
from collections.abc import Callable
from functools import partial
from pathlib import Path
from xml.etree import ElementTree

import pytest
from ansible_collections.infrastructure.services.plugins.module_utils._errors import (
    InvalidInput,
    Message,
)
from ansible_collections.infrastructure.services.plugins.module_utils._task.specs import (
    APPLICATION_ROLES,
    VIRTUAL_MACHINES,
)
from ansible_collections.infrastructure.services.plugins.plugin_utils._ledger.location import (
    open_ledger,
)
from ansible_collections.infrastructure.services.plugins.plugin_utils._screen.approval import (
    ApprovedPlan,
    approved_plan,
)
from ansible_collections.infrastructure.services.plugins.plugin_utils._screen.assets import (
    assets_of,
)
from ansible_collections.infrastructure.services.plugins.plugin_utils._screen.formats import FORMATS
from ansible_collections.infrastructure.services.plugins.plugin_utils._screen.report import (
    AboutList,
    Report,
)
from jsonschema import Draft202012Validator
from support.checkout import CHECKOUT
from support.results import result_from

NO_LEDGER = AboutList()
MACHINE, ROLE = (spec.resource.operation for spec in (VIRTUAL_MACHINES, APPLICATION_ROLES))
SCHEMA = Draft202012Validator(
    json.loads((CHECKOUT / "docs/report.schema.json").read_text(encoding="utf-8"))
)
SERVICE, LEDGER = "https://infrastructure.example.com", "/srv/fleet.db"
TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"
ITEMS = [
    {
        "item": "a",
        "outcome": "accepted",
        "changed": True,
        "failed": False,
        "status": 201,
        "seconds": 1.5,
        "trace_id": TRACE,
        "asset": {"id": "1"},
        "request_attempts": 1,
    },
    {
        "item": "b",
        "outcome": "unknown",
        "changed": True,
        "failed": True,
        "status": None,
        "seconds": 2.0,
        "msg": "lost",
    },
    {
        "item": "c",
        "outcome": "rejected",
        "changed": False,
        "failed": True,
        "status": 403,
        "msg": "no \x1b\ud800",
    },
    {
        "item": "d",
        "outcome": "not_sent",
        "changed": False,
        "failed": False,
        "skipped": True,
        "status": None,
    },
    {
        "item": "e",
        "outcome": "not_sent",
        "changed": False,
        "failed": False,
        "status": None,
        "msg": "other values \x1b",
    },
]


@pytest.fixture
def path(tmp_path) -> str:
    return str(tmp_path / "fleet.json")


def write(path: str, items: list[dict], run: str = "run-1", operation=MACHINE) -> None:
    report = Report(path, LEDGER, run, SERVICE, is_plan=False)
    assert add(report, items, operation=operation) == ""


def plan(path: str, items: list[dict], not_listed: int = 0) -> None:
    plan_beside(path, items, [f"gone{number}" for number in range(not_listed)])


def plan_beside(path: str, items: list[dict], not_listed: list[str]) -> None:
    report = Report(path, LEDGER, "run-1", SERVICE, is_plan=True)
    assert add(report, items, not_listed=not_listed) == ""


def add(
    report: Report, items: list[dict], about: AboutList = NO_LEDGER, operation=MACHINE, **more
) -> str:
    """Add the result of a list to a report."""
    return report.add_list(
        operation, assets_of(operation, result_from({"results": items, **more})), about
    )


def runs(path: str) -> list[dict]:
    report = json.loads(Path(path).read_text(encoding="utf-8"))
    SCHEMA.validate(report)
    return report["runs"]


def plan_of(path: str) -> str:
    return path.replace(".json", ".plan.json")


def suites(path: str) -> list[ElementTree.Element]:
    return list(ElementTree.parse(path.replace(".json", ".xml")).getroot())


def test_each_asset_is_reported_with_what_is_known(path):
    write(path, ITEMS)
    (run,) = runs(path)
    assert (run["run"], run["state"], run["began_at"] <= run["ended_at"]) == (
        "run-1",
        "ended",
        True,
    )
    assert [asset["name"] for asset in run["assets"]] == list("abcde")
    assert run["counts"] == {
        MACHINE.resource: {
            "created": 1,
            "unchanged": 1,
            "in doubt": 1,
            "rejected": 1,
            "not begun": 1,
        }
    }
    assert [asset["result"] for asset in run["assets"]] == [
        "created",
        "in doubt",
        "rejected",
        "not begun",
        "unchanged",
    ]
    assert run["assets"][0] == {
        "resource": MACHINE.resource,
        "name": "a",
        "id": "1",
        "result": "created",
        "outcome": "accepted",
        "changed": True,
        "failed": False,
        "status": 201,
        "request_attempts": 1,
        "seconds": 1.5,
        "trace_id": TRACE,
    }
    assert (run["service"], run["ledger"]) == (SERVICE, LEDGER)


def test_a_report_has_what_it_takes_to_go_on(path):
    said = Message("the line went dead.", "virtual machine b", "list them", "2026-11-22T10:02:03Z")
    lost = [{"name": "attributes.login", "known": True}]
    made = {**ITEMS[0], "asset": {"id": "1", "attributes": {"ip": "192.0.2.1"}}, "lost": lost}
    write(path, [made, {**ITEMS[1], "msg": said}])
    first, second = runs(path)[0]["assets"]
    assert (first["id"], first["address"], first["lost"]) == ("1", "192.0.2.1", lost)
    assert (second["cause"], second["command"], second["since"]) == said[:1] + said[2:]
    assert second["msg"] == str(said)


@pytest.mark.parametrize(
    ("service", "ledger", "problem"),
    [
        (
            "https://other.example",
            LEDGER,
            f"the service {SERVICE}, and this list has https://other.example",
        ),
        (SERVICE, "/srv/other.db", f"the ledger {LEDGER}, and this list has /srv/other.db"),
        (SERVICE, "", f"the ledger {LEDGER}, and this list has none"),
    ],
)
def test_a_report_of_a_run_is_of_one_service_and_one_ledger(path, service, ledger, problem):
    late = Report(path, ledger, "run-1", service, is_plan=False)
    write(path, ITEMS[:1])
    before = Path(path).read_text()
    with pytest.raises(InvalidInput, match=f"^report: .*{re.escape(problem)}. Give a new file"):
        Report(path, ledger, "run-1", service, is_plan=False)
    assert problem in add(late, ITEMS)
    assert Path(path).read_text() == before
    assert add(Report(path, ledger, "run-2", service, is_plan=False), ITEMS) == ""


def test_the_password_of_a_ledger_is_not_in_a_report(path):
    report = Report(
        path,
        "postgresql://u:secret-of-the-ledger@db.example.com/l",
        "run-1",
        SERVICE,
        is_plan=False,
    )
    assert add(report, ITEMS) == ""
    assert runs(path)[0]["ledger"] == "postgresql://db.example.com/l"
    assert "secret-of" not in Path(path).read_text()


@pytest.mark.parametrize(
    ("given", "is_plan", "line"),
    [
        ("fleet.json", False, "report: fleet.html, .json, .xml"),
        ("fleet.json", True, "plan: fleet.plan.html, .json, .md, .xml"),
        ("fleet.html", False, "report: fleet.html, .json, .xml"),
        ("fleet.md", False, "report: fleet.html, .json, .xml"),
        ("fleet", False, "report: fleet, .html, .xml"),
        ("fleet", True, "plan: fleet.plan, .html, .md, .xml"),
        ("fleet.v2.txt", False, "report: fleet.v2.html, .txt, .xml"),
    ],
)
def test_the_line_on_the_screen_names_each_file_that_is_written(
    tmp_path, monkeypatch, given, is_plan, line
):
    monkeypatch.chdir(tmp_path)
    report = Report(str(tmp_path / given), "", "r", SERVICE, is_plan)
    assert report.where == line
    assert add(report, PLANNED if is_plan else ITEMS) == ""
    first, *others = line.partition(": ")[2].split(", ")
    base = first if given == "fleet" else os.path.splitext(first)[0]
    assert {file.name for file in tmp_path.iterdir()} == {first, *(base + each for each in others)}


def test_the_xml_is_junit(path):
    write(path, ITEMS)
    (suite,) = suites(path)
    assert {key: suite.get(key) for key in ("tests", "failures", "errors", "skipped", "time")} == {
        "tests": "5",
        "failures": "1",
        "errors": "1",
        "skipped": "1",
        "time": "3.500",
    }
    cases = {case.get("name"): case for case in suite}
    assert [case[0].tag if len(case) else "" for case in cases.values()] == [
        "properties",
        "error",
        "failure",
        "skipped",
        "system-out",
    ]
    assert {each.get("name"): each.get("value") for each in cases["a"][0]} == {"id": "1"}
    assert cases["b"].find("error").get("message") == "lost"
    assert cases["c"].find("failure").get("message") == "no \ufffd\ufffd"
    assert cases["e"].find("system-out").text == "other values \ufffd"
    assert (cases["a"].get("time"), cases["a"].get("classname")) == ("1.500", MACHINE.resource)


def test_tasks_of_one_run_add_to_its_report_and_the_next_run_replaces_it(path):
    write(path, ITEMS[:1])
    write(path, ITEMS[:1], operation=ROLE)
    (run,) = runs(path)
    assert [asset["resource"] for asset in run["assets"]] == [MACHINE.resource, ROLE.resource]
    assert [suite.get("tests") for suite in suites(path)] == ["1", "1"]
    write(path, ITEMS[1:2], "run-2")
    assert [(run["run"], len(run["assets"])) for run in runs(path)] == [("run-2", 1)]


def test_a_run_with_an_interrupted_list_stays_interrupted(path):
    for about in (AboutList(interrupted="the task received SIGINT"), NO_LEDGER):
        assert add(Report(path, LEDGER, "run-1", SERVICE, is_plan=False), ITEMS[:1], about) == ""
    assert runs(path)[0]["interrupted"] == "the task received SIGINT"


def test_a_run_that_goes_on_after_another_replaces_its_report(path):
    for run, items in (("run-1", ITEMS[:1]), ("run-2", ITEMS[1:2]), ("run-1", ITEMS[2:3])):
        write(path, items, run)
    assert [(run["run"], [asset["name"] for asset in run["assets"]]) for run in runs(path)] == [
        ("run-1", ["c"])
    ]


def test_what_another_list_of_the_run_has_is_listed(path):
    """As when two teams use the role in one play, on one ledger."""
    plan_beside(path, [{**PLANNED[0], "item": "web"}], ["app", "gone"])
    plan_beside(path, [{**PLANNED[0], "item": "app"}], ["web", "gone"])
    (run,) = runs(plan_of(path))
    assert [(asset["name"], asset["result"]) for asset in run["assets"]] == [
        ("web", "to create"),
        ("gone", "not listed"),
        ("app", "to create"),
    ]
    assert run["counts"] == {MACHINE.resource: {"to create": 2, "not listed": 1}}


def test_a_list_without_assets_is_not_mentioned(path):
    plan_beside(path, [], [])
    assert runs(plan_of(path))[0]["counts"] == {}


def test_a_report_that_is_empty_or_damaged_is_replaced(path):
    write(path, ITEMS)
    text = Path(path).read_text()
    run = '{"run": "run-1", "state": "ended", "began_at": "", "counts": {}, "assets": [{}]}'
    other = [
        re.sub(r"\[.*\]", runs, text, flags=re.DOTALL)
        for runs in ("[1]", "[{}]", '{"a": 1}', f"[{run}]")
    ]
    for damaged in ("", text[:-9], *other):
        Path(path).write_text(damaged)
        write(path, ITEMS)
        assert len(runs(path)) == 1


def refused(path: object, problem: str, ledger: str = "") -> None:
    """Assert that a path is refused before anything is sent."""
    with pytest.raises(InvalidInput, match=f"^report: .* cannot be written: .*{problem}"):
        Report(str(path), ledger, "run-1", SERVICE, is_plan=False)


@pytest.mark.parametrize("suffix", [".json", ".xml", ".html"])
def test_a_file_that_is_not_a_report_is_refused_and_kept(tmp_path, suffix):
    path = tmp_path / "fleet.json"
    file = tmp_path / f"fleet{suffix}"
    for text in ("[]", "{}", '{"runs": []}', "a: 1\n", "\0", " ", "<testsuites></testsuites>"):
        file.write_text(text)
        refused(path, f"{file} exists and is not a report")
        assert [(each.name, each.read_text()) for each in tmp_path.iterdir()] == [(file.name, text)]


@pytest.mark.parametrize("suffix", [".json", ".xml", ".html"])
def test_anything_but_a_regular_file_is_refused_and_never_opened(tmp_path, suffix):
    path, file = tmp_path / "fleet.json", tmp_path / f"fleet{suffix}"
    for make in (
        os.mkfifo,
        os.mkdir,
        partial(os.symlink, "/dev/full"),
        partial(os.symlink, "/dev/null"),
    ):
        make(file)
        refused(path, f"fleet{suffix} is not a regular file")
        (os.rmdir if make is os.mkdir else os.unlink)(file)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("suffix", ["", "-journal", "-wal", "-shm", ".lock"])
def test_the_files_of_the_ledger_are_refused(tmp_path, suffix):
    (tmp_path / "link.json").symlink_to(f"l.db{suffix}")
    ledger = open_ledger(str(tmp_path / "l.db"))
    before = sorted(tmp_path.iterdir())
    for path in (f"l.db{suffix}", "link.json"):
        refused(tmp_path / path, "is a file of the ledger", ledger.file)
    assert sorted(tmp_path.iterdir()) == before
    ledger.close()


def test_the_ledger_is_not_mistaken_for_the_xml(tmp_path):
    ledger = open_ledger(str(tmp_path / "fleet.xml"))
    refused(tmp_path / "fleet.json", "is a file of the ledger", ledger.file)
    ledger.close()


def test_a_link_is_followed_and_the_mode_is_kept(tmp_path):
    (tmp_path / "far").mkdir()
    (tmp_path / "fleet.json").symlink_to("far/report.json")
    for _again in range(2):
        write(str(tmp_path / "fleet.json"), ITEMS)
        assert (tmp_path / "fleet.json").is_symlink()
        assert len(runs(str(tmp_path / "far/report.json"))) == 1
        (tmp_path / "far/report.json").chmod(0o600)
    assert (tmp_path / "far/report.json").stat().st_mode & 0o777 == 0o600
    assert sorted(os.listdir(tmp_path)) == ["far", "fleet.html", "fleet.json", "fleet.xml"]
    assert os.listdir(tmp_path / "far") == ["report.json"]


def at_once(path: str, names: list[str], run: Callable[[str], str]) -> None:
    """Have one process per name write its machine, all at the same time."""
    context = multiprocessing.get_context("fork")
    barrier = context.Barrier(len(names))

    def work(name: str) -> None:
        barrier.wait(30)
        report = Report(path, LEDGER, run(name), SERVICE, is_plan=False)
        barrier.wait(30)
        assert add(report, [{**ITEMS[0], "item": name}]) == ""

    processes = [context.Process(target=work, args=(name,)) for name in names]
    for process in processes:
        process.start()
    for process in processes:
        process.join(60)
    assert [process.exitcode for process in processes] == [0] * len(names)


def test_tasks_that_write_at_once_lose_nothing(path, tmp_path):
    names = [f"vm{number}" for number in range(8)]
    for number in range(4):
        at_once(path, names, lambda name, number=number: f"run-{number}")
        (run,) = runs(path)
        assert (run["run"], run["state"]) == (f"run-{number}", "ended")
        assert sorted(asset["name"] for asset in run["assets"]) == names
        assert [suite.get("tests") for suite in suites(path)] == ["8"]
    assert sorted(os.listdir(tmp_path)) == ["fleet.html", "fleet.json", "fleet.xml"]


def test_of_runs_that_write_at_once_one_is_reported_in_both_files(path):
    names = ["vm1", "vm2", "vm3", "vm4"]
    at_once(path, names, lambda name: f"run of {name}")
    (run,) = runs(path)
    (suite,) = suites(path)
    assert [run["run"], suite[0].get("name")] == [
        f"run of {asset['name']}" if key else asset["name"]
        for asset in run["assets"]
        for key in (True, False)
    ]


def test_nothing_is_written_before_a_task_ends(path, tmp_path):
    Report(path, "", "run-1", SERVICE, is_plan=True)
    assert os.listdir(tmp_path) == []
    write(path, ITEMS[:1])
    before = Path(path).read_text()
    Report(path, "", "run-2", SERVICE, is_plan=False)
    assert Path(path).read_text() == before


def test_an_unwritable_report_is_refused_before_anything_is_sent(tmp_path):
    for path, problem in (
        (tmp_path / "none/fleet.json", "No such file or directory"),
        (tmp_path, "not a regular"),
        (tmp_path / "a\0b", "null"),
        (tmp_path / "\ud800", "surrogates"),
        ("/proc/fleet.json", ""),
    ):
        refused(path, problem)


@pytest.mark.parametrize(
    ("given", "files"),
    [
        ("fleet.json", {"fleet.json", "fleet.xml", "fleet.html"}),
        ("fleet.xml", {"fleet.json", "fleet.xml", "fleet.html"}),
        ("fleet.md", {"fleet.json", "fleet.xml", "fleet.html"}),
        ("fleet", {"fleet", "fleet.xml", "fleet.html"}),
    ],
)
def test_the_suffix_of_the_path_is_of_no_consequence(tmp_path, given, files):
    for _run in range(2):
        write(str(tmp_path / given), ITEMS)
        assert set(os.listdir(tmp_path)) == files


@pytest.mark.parametrize(
    "place", [None, "a directory", "a named pipe", "exists and is not a report"]
)
def test_a_report_that_cannot_be_written_at_the_end_raises_a_warning(tmp_path, place):
    (tmp_path / "d").mkdir()
    path = tmp_path / "d/fleet.json"
    report = Report(str(path), "", "run-1", SERVICE, is_plan=False)
    if place is None:
        (tmp_path / "d").rename(tmp_path / "e")
    else:
        {"a directory": Path.mkdir, "a named pipe": os.mkfifo}.get(
            place, lambda at: at.write_text("mine")
        )(path)
    warning = add(report, ITEMS)
    assert warning.startswith("report: ")
    assert {None: "No such file or directory", "exists and is not a report": place}.get(
        place, "regular"
    ) in warning
    assert "The task was done" in warning
    assert "Nothing was sent" not in warning


@pytest.mark.parametrize("suffix", FORMATS)
def test_every_text_begins_as_what_a_report_is_known_by(path, suffix):
    plan(path, [])
    head = FORMATS[suffix].head
    assert Path(plan_of(path)).with_suffix(suffix).read_text(encoding="utf-8").startswith(head)


HOSTILE = [
    "<script>alert(1)</script>",
    "</table><img src=x onerror=alert(1)>",
    "a & b",
    "</style>",
    "\x1b[2J\ud800",
    "| `x` *y* [z](javascript:alert(1)) <b>",
]


PLANNED = [
    {
        "item": "new",
        "plan": "create",
        "outcome": "not_sent",
        "changed": True,
        "failed": False,
        "body": {"name": "new", "attributes": {"team": "web"}},
    },
    {"item": "kept", "plan": "keep", "outcome": "not_sent", "changed": False, "failed": False},
    {
        "item": "drift",
        "plan": "differs",
        "outcome": "not_sent",
        "changed": False,
        "failed": False,
        "differs": ["attributes.cpu (8 asked for, 2 recorded)"],
        "msg": "the service cannot update it",
        "changes": [{"name": "attributes.cpu", "old": 2, "new": 8}],
    },
]


def test_a_plan_is_a_table_for_a_merge_request_problems_first(path, tmp_path):
    plan(path, PLANNED, 1)
    assert (tmp_path / "fleet.plan.md").read_text(encoding="utf-8").splitlines() == [
        "<!-- infrastructure.services report -->",
        "https://infrastructure.example.com",
        "",
        "**compute virtual machines**: 1 to create, 1 differs, 1 not listed, 1 unchanged",
        "",
        "| Result | Name | Note |",
        "|---|---|---|",
        "| differs | <code>drift</code> | cpu 2 recorded, 8 listed: the service cannot update it |",
        "| to create | <code>new</code> | team web |",
        "| not listed | <code>gone0</code> | recorded, not listed: left alone |",
    ]
    assert {case.get("name"): case[0].tag for case in suites(plan_of(path))[0] if len(case)} == {
        "drift": "system-out",
        "gone0": "skipped",
    }


def test_a_table_for_a_merge_request_is_short_and_names_in_it_mean_nothing(path, tmp_path):
    many = [{**PLANNED[0], "item": f"vm{number}"} for number in range(300)]
    plan(path, [{**PLANNED[0], "item": name * 9} for name in HOSTILE] + many)
    text = (tmp_path / "fleet.plan.md").read_text(encoding="utf-8")
    lines = text.splitlines()
    assert lines[-1] == "and 206 more: the page of the plan has them"
    rows = [line for line in lines if line.startswith("| to create")]
    assert (len(rows), {line.count("|") for line in rows}) == (100, {4})
    assert not re.search(r"[`*\[]|<(?!/?code>|!--)|\\", "\n".join(rows))
    assert len(text) < 65_536  # the longest comment of some services


def test_of_500_creations_and_two_updates_the_updates_are_in_a_merge_request(path, tmp_path):
    new = [{**PLANNED[0], "item": f"vm{number}"} for number in range(500)]
    unsent = [{"name": f"attributes.field_{number}", "value": 1} for number in range(20)]
    changes = [{"name": "description", "old": "one " * 50, "new": "two"}]
    role = {**PLANNED[0], "plan": "update", "changes": changes, "unsent": unsent}
    plan(path, [*new, {**role, "item": "a"}, {**role, "item": "b"}])
    text = (tmp_path / "fleet.plan.md").read_text(encoding="utf-8")
    lines = text.splitlines()
    rows = [line for line in lines if line.startswith("| to ")]
    assert [row[:30] for row in rows[:2]] == [
        "| to update | <code>a</code> |",
        "| to update | <code>b</code> |",
    ]
    assert rows[0].endswith("field&#95;19 are known and not sent: send: complete keeps them |")
    assert len(rows) == 100
    assert lines[-1] == "and 402 more: the page of the plan has them"


def test_a_long_plan_is_less_than_a_comment_may_have(path, tmp_path):
    changes = [{"name": "description", "old": "one", "new": "two " * 500}]
    role = {**PLANNED[0], "plan": "update", "changes": changes}
    plan(path, [{**role, "item": f"role-{number}"} for number in range(90)])
    text = (tmp_path / "fleet.plan.md").read_text(encoding="utf-8")
    assert len(text) < 65_536
    assert "more: the page of the plan has them" in text


def test_what_is_planned_and_what_is_done_in_one_run_are_two_reports(path):
    write(path, ITEMS[:1])
    plan(path, PLANNED, 1_200)
    (planned,) = runs(plan_of(path))
    assert (planned["state"], planned["counts"][MACHINE.resource]["not listed"]) == (
        "planned",
        1_200,
    )
    assert [(run["state"], [asset["name"] for asset in run["assets"]]) for run in runs(path)] == [
        ("ended", ["a"])
    ]


def test_what_new_machines_share_is_told_once_in_a_merge_request(path, tmp_path):
    bodies = [
        {"name": f"web{number}", "attributes": {"team": "web", "ip": f"192.0.2.{number}"}}
        for number in (1, 2)
    ]
    plan(path, [{**PLANNED[0], "item": body["name"], "body": body} for body in bodies])
    text = (tmp_path / "fleet.plan.md").read_text(encoding="utf-8")
    assert "each new one: team web" in text
    assert text.count("team") == 1
    assert "| to create | <code>web1</code> | ip 192.0.2.1 |" in text


def test_only_what_a_plan_of_the_service_sends_is_approved(path):
    plan(path, PLANNED)
    assert approved_plan(plan_of(path), MACHINE.resource, SERVICE).bodies == {
        "new": PLANNED[0]["body"]
    }
    assert approved_plan(plan_of(path), ROLE.resource, SERVICE).bodies == {}


def nested(levels: int) -> list:
    return [nested(levels - 1)] if levels else []


def forged(change: Callable[[dict], object]) -> Callable[[str], str]:
    def forge(text: str) -> str:
        report = json.loads(text)
        change(report["runs"][0])
        return json.dumps(report)

    return forge


@pytest.mark.parametrize(
    ("forge", "problem"),
    [
        (lambda text: "", "is no plan of this collection"),
        (lambda text: text[:-9], "is no plan of this collection"),
        (lambda text: "[]", "is no plan of this collection"),
        (lambda text: '{"runs": [{"state": "planned"}]}', "is no plan of this collection"),
        (forged(lambda run: run.update(state="ended")), "is no plan of this collection"),
        (
            forged(lambda run: run.update(service="https://other.example")),
            "is a plan for https://other.example, and this",
        ),
        (
            forged(lambda run: run["assets"].append(run["assets"][0])),
            "plans new twice with the same body, and an approval is good for one request of each. ",
        ),
        (
            lambda text: text.replace('"body": {', '"body": {}, "body": {'),
            "is no plan of this collection",
        ),
        (
            lambda text: text.replace("infrastructure.services report", "another report"),
            "is no plan of this",
        ),
        (
            forged(lambda run: run["assets"][0].pop("body")),
            "is damaged: it has an asset without its body, or its history_rows",
        ),
        (forged(lambda run: run["assets"][0].update(body="x")), "is damaged"),
        (lambda text: text.replace('"runs": [', '"runs": [{},'), "is no plan of this collection"),
        (lambda text: "[" * 200_000, "is no plan of this collection"),
        (
            forged(lambda run: run["assets"][0].update(name=["new"])),
            "is no plan of this collection",
        ),
        (forged(lambda run: run["assets"][0].update(name=1)), "is no plan of this collection"),
        (forged(lambda run: run.update(ledger=["x"])), "is no plan of this collection"),
        (forged(lambda run: run.update(ledger_id=7)), "is no plan of this collection"),
        (forged(lambda run: run.update(history_end=7)), "is no plan of this collection"),
        (forged(lambda run: run.update(began_at=7)), "is no plan of this collection"),
        (forged(lambda run: run["assets"][0]["body"].update(a=nested(70))), "is damaged"),
        (forged(lambda run: run.update(service="a\x1b[31m")), "is a plan for a [31m, and"),
        (forged(lambda run: run.update(service="a" * 9000)), "for (too long to be shown), and"),
    ],
)
def test_what_is_no_plan_approves_nothing(path, forge, problem):
    plan(path, PLANNED)
    file = Path(plan_of(path))
    file.write_text(forge(file.read_text(encoding="utf-8")), encoding="utf-8")
    with pytest.raises(InvalidInput) as refused:
        approved_plan(str(file), MACHINE.resource, SERVICE)
    assert refused.value.msg.startswith("approved: ")
    assert problem in refused.value.msg


@pytest.mark.parametrize("name", ["none.json", "", "\0", "report.json"])
def test_a_file_that_cannot_be_read_approves_nothing(tmp_path, name):
    write(str(tmp_path / "report.json"), ITEMS)
    with pytest.raises(InvalidInput, match=r"^approved: "):
        approved_plan(str(tmp_path / name), MACHINE.resource, SERVICE)


PLACE, OTHER = "/srv/fleet.db", "/srv/fleets.db"


@pytest.mark.parametrize(
    ("made", "used", "is_refused"),
    [
        ((PLACE, "1"), (PLACE, "1"), False),
        ((PLACE, "1"), (OTHER, "1"), False),  # the ledger was moved
        ((PLACE, "1"), (PLACE, "2"), True),
        ((PLACE, "1"), (OTHER, None), True),  # misspelled
        ((PLACE, "1"), (None, None), True),
        ((PLACE, None), (PLACE, None), False),
        ((PLACE, None), (PLACE, "2"), False),  # made by the first list of the run
        ((PLACE, None), (OTHER, None), True),
        ((PLACE, None), (OTHER, "2"), True),
        ((None, None), (None, None), False),
        ((None, None), (PLACE, "1"), True),
    ],
    ids=str,
)
def test_a_plan_is_for_the_ledger_that_it_was_made_against(made, used, is_refused):
    plan = ApprovedPlan("/p.json", {}, *made, 0)
    if not is_refused:
        plan.require_ledger(*used)
        return
    with pytest.raises(
        InvalidInput, match=r"^approved: '/p.json' was made .* the ledger of this list is "
    ):
        plan.require_ledger(*used)


@pytest.mark.parametrize("end", ["a\0", "\ud800", "ä"])
def test_a_plan_with_a_history_end_that_no_ledger_has_written_is_damaged(path, end):
    plan(path, PLANNED)
    file = Path(plan_of(path))
    change = forged(lambda run: run.update(history_end=end))
    file.write_text(change(file.read_text("utf-8")), encoding="utf-8")
    with pytest.raises(InvalidInput, match="history_end are wrong"):
        approved_plan(str(file), MACHINE.resource, SERVICE)


@pytest.mark.parametrize("rows", [None, -1, "0", 1.5, True, 2**63])
def test_a_plan_without_the_length_of_the_history_is_damaged(path, rows):
    plan(path, PLANNED)
    file = Path(plan_of(path))
    file.write_text(
        forged(lambda run: run.update(history_rows=rows))(file.read_text("utf-8")), encoding="utf-8"
    )
    with pytest.raises(InvalidInput, match="is damaged"):
        approved_plan(str(file), MACHINE.resource, SERVICE)


def test_the_warnings_of_all_lists_and_the_ledger_are_in_each_file(path):
    for number in (1, 2, 1):
        about = AboutList("id-1", number, f"{number} end", (f"warning {number} <b>",))
        assert add(Report(path, LEDGER, "run-1", SERVICE, is_plan=True), PLANNED, about) == ""
    run = json.loads(Path(plan_of(path)).read_text("utf-8"))["runs"][0]
    ledger = (run["ledger_id"], run["history_rows"], run["history_end"])
    assert ledger == ("id-1", 1, "1 end")
    assert run["warnings"] == ["warning 1 <b>", "warning 2 <b>"]
    for suffix in (".html", ".md", ".xml"):
        text = Path(plan_of(path)).with_suffix(suffix).read_text("utf-8")
        assert "warning 1 &lt;b&gt;" in text or "warning 1 &#60;b&#62;" in text, suffix
