# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A ledger that does not exist yet is said once for a run, or refused; one that was replaced is
refused.
"""

from __future__ import annotations

import json
import platform
import shutil
from pathlib import Path

import psycopg
import pytest
from support.running import Run

MODULE = "infrastructure.services."
MACHINE = {"resource": "compute_virtual_machine", "name": "web01", "asset": {"id": "1"}}
TASKS = {
    "compute_virtual_machine": {"name": "web01"},
    "compute_virtual_machines": {"virtual_machines": [{"name": "web01"}]},
    "cassandra_application_role": {"id": "role-0001", "description": "one"},
    "cassandra_application_roles": {
        "application_roles": [{"id": "role-0001", "description": "one"}]
    },
    "ledger_entry": MACHINE,
    "ledger_entries": {"entries": [MACHINE]},
    "ledger_info": {},
}


def play(location: str, *tasks: dict) -> dict:
    """Return a play whose tasks name the ledger; it goes on when one fails."""
    defaults = {"group/infrastructure.services.all": {"ledger": location}}
    named = [
        {"name": f"task {number}", "ignore_errors": True, **task}
        for number, task in enumerate(tasks)
    ]
    return {
        "hosts": "localhost",
        "gather_facts": False,
        "module_defaults": defaults,
        "tasks": named,
    }


def run_plays(ansible, *plays: dict, check: bool = False) -> Run:
    return ansible.playbook(json.dumps(plays) + "\n", *(["--check"] if check else []))


def run(ansible, location: str, *tasks: dict, check: bool = False) -> Run:
    return run_plays(ansible, play(location, *tasks), check=check)


def left_behind(location: str, ansible) -> list[str]:
    """Return the tables or the files of a ledger."""
    if not location.startswith("postgresql"):
        return sorted(path.name for path in ansible.directory.glob("*.db*"))
    with psycopg.connect(location) as connection:
        return connection.execute(
            "SELECT relname FROM pg_class WHERE pg_table_is_visible(oid) AND relname LIKE 'infrastr%'"
        ).fetchall()


@pytest.fixture
def ansible(ansible_once):
    """Only the controller has a ledger, so there is no second run as a module."""
    return ansible_once


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.matrix)])
def where(request, ansible) -> str:
    return (
        f"{ansible.directory}/new.db"
        if request.param == "sqlite"
        else request.getfixturevalue("postgres")
    )


def shown(where: str) -> str:
    return where if where.startswith("/") else "postgresql://"


def test_a_ledger_that_must_exist_is_refused_before_anything_is_sent(ansible, where, emulator):
    tasks = [
        {MODULE + name: {**options, "ledger_create": False}} for name, options in TASKS.items()
    ]
    for check in (False, True):
        done = run(ansible, where, *tasks, check=check).ok()
        for number in range(len(TASKS)):
            result = done.result(f"task {number}")
            assert (result["failed"], result["outcome"]) == (True, "not_sent")
            assert f"ledger: there is none at {shown(where)}" in result["msg"]
            assert "ledger_create is false" in result["msg"]
    assert (left_behind(where, ansible), emulator.bodies()) == ([], [])


def test_a_new_ledger_is_said_once_for_a_run(ansible, where):
    create = {
        MODULE + "compute_virtual_machine": {"name": "{{ item }}"},
        "loop": ["web01", "web02", "web03"],
    }
    others = [{MODULE + name: options} for name, options in TASKS.items()]
    planned = run(ansible, where, create, *others, check=True).ok()
    assert planned.output.count("no ledger at ") == 1
    assert left_behind(where, ansible) == []
    created = run(ansible, where, create, *others).ok()
    assert created.output.count("is a new ledger: nothing was recorded before") == 1
    again = run(ansible, where, create, *others).ok().output
    assert "new ledger" not in again
    assert "no ledger at" not in again
    assert "password" not in again


def test_another_file_in_the_place_of_the_ledger_is_refused_by_the_next_task(ansible):
    path = f"{ansible.directory}/new.db"
    create = {MODULE + "compute_virtual_machine": {"name": "web01"}}
    replaced = {"ansible.builtin.shell": f"mv {path} {path}.old && cp {path}.old {path}"}
    done = run(ansible, path, create, replaced, create).ok()
    assert done.result("task 0")["changed"]
    assert "was removed or replaced while it was in use" in done.result("task 2")["msg"]


CREATING = {
    MODULE + "compute_virtual_machine": {"name": "{{ item }}"},
    "loop": ["web01", "web02"],
}


def copy_file(path: Path) -> Path:
    return shutil.copy(path, path.with_name(f"copy of {path.name}"))


def move_file(path: Path) -> Path:
    return path.rename(path.with_name(f"moved {path.name}"))


def replace_file(path: Path) -> Path:
    return copy_file(path).rename(path)


@pytest.mark.matrix
def test_a_file_that_was_last_used_elsewhere_is_said_once_and_in_the_plan(ansible):
    """A restored backup, a cache of a CI job, a forgotten copy: the other one may still be used."""
    changes = copy_file, move_file, replace_file
    paths = [ansible.directory / f"{change.__name__}.db" for change in changes]
    first = run_plays(ansible, *(play(str(path), CREATING, CREATING) for path in paths)).ok()
    again = run_plays(ansible, *(play(str(path), CREATING) for path in paths)).ok()
    assert "was last used as" not in first.output + again.output

    others = {str(change(path)): str(path) for change, path in zip(changes, paths)}
    told = {
        other: f"{other} was last used as {path} on {platform.node()}; if that one is still used,"
        " machines will be created twice"
        for other, path in others.items()
    }
    listed = {"virtual_machines": [{"name": "web03"}]}
    plays = [
        play(
            other,
            CREATING,
            {MODULE + "compute_virtual_machines": {**listed, "report": f"{other}.json"}},
        )
        for other in others
    ]

    def count_told(run: Run) -> list[int]:
        return [" ".join(run.ok().output.split()).count(text) for text in told.values()]

    assert count_told(run_plays(ansible, *plays, check=True)) == [1, 1, 1]
    for other, text in told.items():
        report = json.loads(Path(f"{other}.plan.json").read_text(encoding="utf-8"))
        assert report["runs"][0]["warnings"] == [text]
    assert count_told(run_plays(ansible, *plays)) == [1, 1, 1]
    assert "was last used as" not in run_plays(ansible, *plays).ok().output


@pytest.mark.matrix
def test_a_ledger_keeps_its_id_in_copies_and_the_plan_has_it(ansible, where):
    info = {MODULE + "ledger_info": {}}
    listed = {
        MODULE + "compute_virtual_machines": {
            "virtual_machines": [{"name": "web03"}],
            "report": "plan.json",
        }
    }
    assert run(ansible, where, info, check=True).ok().result("task 0")["ledger_id"] is None
    run(ansible, where, listed).ok()
    ledger_id = run(ansible, where, info).ok().result("task 0")["ledger_id"]
    assert len(ledger_id) == 32
    (report,) = json.loads((ansible.directory / "plan.json").read_text(encoding="utf-8"))["runs"]
    assert report["ledger_id"] == ledger_id


def test_a_list_with_a_fault_makes_no_ledger(ansible, where):
    listed = {"virtual_machines": [{"name": "web01"}, {"name": ""}]}
    done = run(ansible, where, {MODULE + "compute_virtual_machines": listed}).ok()
    assert "[1]: name: must not be empty" in done.result("task 0")["msg"]
    assert "new ledger" not in done.output
    assert left_behind(where, ansible) == []


@pytest.mark.matrix
def test_an_edit_that_is_refused_makes_no_ledger(ansible, where):
    """A misspelled ledger that is left empty would be used without a word by the next run."""
    refused = [
        {**MACHINE, "changed_at": "2026-01-02T03:04:05Z"},
        {**MACHINE, "asset": {"name": "web01"}},
    ]
    tasks = [{MODULE + "ledger_entry": entry} for entry in refused]
    tasks += [{MODULE + "ledger_entries": {"entries": [entry]}} for entry in refused]
    done = run(ansible, where, *tasks).ok()
    for number in range(len(tasks)):
        assert done.result(f"task {number}")["failed"]
    assert left_behind(where, ansible) == []
    assert (
        run(ansible, where, {MODULE + "ledger_entry": MACHINE}).ok().result("task 0")["edit"]
        == "adopted"
    )
