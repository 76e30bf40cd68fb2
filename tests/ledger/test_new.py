"""A ledger that does not exist yet is said once for a run, or refused; one that was replaced is
refused.
"""

from __future__ import annotations

import json

import psycopg
import pytest
from ledger.entries import execute
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
    "ledger_info": {},
}


def play(location: str, *tasks: dict) -> dict:
    """Return a play whose tasks name the ledger; it goes on when one fails."""
    named = [
        {"name": f"task {number}", "ignore_errors": True, **task}
        for number, task in enumerate(tasks)
    ]
    here = {"hosts": "localhost", "gather_facts": False, "tasks": named}
    return {**here, "module_defaults": {"group/infrastructure.services.all": {"ledger": location}}}


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


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.matrix)])
def where(request, ansible) -> str:
    if request.param == "postgres":
        return request.getfixturevalue("postgres")
    return f"{ansible.directory}/new.db"


def shown(where: str) -> str:
    return where if where.startswith("/") else "postgresql://"


def test_a_ledger_that_must_exist_is_refused_before_anything_is_sent(ansible, where, service):
    tasks = [
        {MODULE + name: {**options, "ledger_create": False}, "check_mode": check}
        for name, options in TASKS.items()
        for check in (False, True)
    ]
    done = run(ansible, where, *tasks).ok()
    for number in range(len(tasks)):
        result = done.result(f"task {number}")
        assert (result["failed"], result["outcome"]) == (True, "not_sent")
        assert f"ledger: there is none at {shown(where)}" in result["msg"]
        assert "ledger_create is false" in result["msg"]
    assert (left_behind(where, ansible), [*service.api.conversation]) == ([], [])


def test_a_new_ledger_is_said_once_for_a_run(ansible, where):
    create = {
        MODULE + "compute_virtual_machine": {"name": "{{ item }}"},
        "loop": ["web01", "web02", "web03"],
    }
    others = [{MODULE + name: options} for name, options in TASKS.items()]
    planned = run(ansible, where, create, *others, check=True).ok()
    assert planned.output.count("is a new ledger: nothing was recorded before") == 1
    assert left_behind(where, ansible) == []
    created = run(ansible, where, create, *others).ok()
    assert created.output.count("is a new ledger: nothing was recorded before") == 1
    again = run(ansible, where, create, *others).ok().output
    assert "new ledger" not in again
    assert "password" not in again


def lose_the_last_row(location: str) -> None:
    """Do to a ledger what a restored backup or a failover does."""
    for table in ("entry", "history"):
        execute(location, f"DELETE FROM infrastructure_services_{table} WHERE name = 'web02'")


def test_a_ledger_that_has_gone_back_in_time_says_so(ansible, where):
    create = [{MODULE + "compute_virtual_machine": {"name": name}} for name in ("web01", "web02")]
    assert "gone back in time" not in run(ansible, where, *create).ok().output
    lose_the_last_row(where)
    listed = {"virtual_machines": [{"name": "web01"}]}
    tasks = [create[0], {MODULE + "compute_virtual_machines": listed}]
    for check in (True, False):
        said = " ".join(run(ansible, where, *tasks, check=check).ok().output.split())
        assert "has gone back in time, as after a restored backup" in said
        assert "ansible-playbook infrastructure.services.settle" in said


def test_a_list_or_an_edit_with_a_fault_makes_no_ledger(ansible, where):
    """A misspelled ledger that is left empty would be used without a word by the next run."""
    listed = {"virtual_machines": [{"name": "web01"}, {"name": ""}]}
    refused = [
        {**MACHINE, "changed_at": "2026-01-02T03:04:05Z"},
        {"entries": [{**MACHINE, "asset": {"name": "web01"}}]},
    ]
    tasks = [{MODULE + "compute_virtual_machines": listed}]
    tasks += [{MODULE + "ledger_entry": entry} for entry in refused]
    done = run(ansible, where, *tasks).ok()
    assert [done.result(f"task {number}")["failed"] for number in range(3)] == [True] * 3
    assert "[1]: name: must not be empty" in done.result("task 0")["msg"]
    assert "new ledger" not in done.output
    assert left_behind(where, ansible) == []
    adopted = run(ansible, where, {MODULE + "ledger_entry": MACHINE}).ok().result("task 0")
    assert adopted["names"]["adopted"] == ["web01"]
