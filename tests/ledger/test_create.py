"""A ledger is created by `ledger_create` alone, once; every other task needs one that exists."""

from __future__ import annotations

import json
from contextlib import closing
from pathlib import Path

import pytest
from ansible_collections.infrastructure.services.plugins.module_utils._errors import (
    InvalidInput,
    LedgerError,
)
from ansible_collections.infrastructure.services.plugins.plugin_utils._ledger.location import (
    open_database,
    open_ledger,
)
from ansible_collections.infrastructure.services.plugins.plugin_utils._ledger.moving import create
from ansible_collections.infrastructure.services.plugins.plugin_utils._ledger.seen import Seen
from ledger.entries import execute
from ledger.tasks import moved
from support.ledgers import SERVICE

MODULE = "infrastructure.services."
MACHINE = {"resource": "compute_virtual_machine", "name": "web01", "asset": {"id": "1"}}
ROLE = {"id": "role-0001", "description": "one"}
TASKS = {
    "compute_virtual_machine": {"name": "web01"},
    "compute_virtual_machines": {"virtual_machines": [{"name": "web01"}]},
    "cassandra_application_role": ROLE,
    "cassandra_application_roles": {"application_roles": [ROLE]},
    "ledger_entry": MACHINE,
    "ledger_info": {},
    "ledger_move": {"to": "/nowhere/else.db"},
}
DROPPED = ", ".join(f"infrastructure_services_{table}" for table in ("ledger", "entry", "history"))


@pytest.fixture
def made(location, tmp_path):
    """Return a function that creates a ledger as the module does; `home`: of the controller."""

    def made(url: str = SERVICE, replaces: str = "", check_mode: bool = False, home: str = "here"):
        with closing(open_database(location)) as place:
            return create(place, url, replaces, Seen(str(tmp_path / home), "run"), check_mode)

    return made


def lose(location: str) -> None:
    """Remove a ledger, as with a workspace or a schema that is gone."""
    if location.startswith("/"):
        Path(location).unlink()
    else:
        execute(location, f"DROP TABLE {DROPPED}")


def test_it_is_there_after_the_first_time(made, location):
    planned = made(check_mode=True)
    assert (planned["changed"], planned["ledger_id"]) == (True, None)
    with pytest.raises(LedgerError, match="there is no ledger at"):
        open_ledger(location, Seen("/nowhere", "run"))
    first = made()
    assert (first["changed"], first["outcome"], first["base_url"]) == (True, "not_sent", SERVICE)
    for check_mode in (True, False):
        assert made(check_mode=check_mode) == {**first, "changed": False}
        with pytest.raises(LedgerError, match=f"belongs to the service {SERVICE}, and base_url is"):
            made("https://other.example", check_mode=check_mode)


def test_a_place_where_there_was_one_is_refused_unless_it_is_replaced(made, location):
    """By this controller, which has seen it; the new one has an id of its own."""
    first = made()["ledger_id"]
    lose(location)
    for check_mode in (True, False):
        for wrong in ("", "0" * 32):
            with pytest.raises(LedgerError, match=f"has used the ledger {first} at .*give its id"):
                made(replaces=wrong, check_mode=check_mode)
    second = made(replaces=first)
    assert second["changed"]
    assert second["ledger_id"] != first
    rows = execute(location, "SELECT replaces FROM infrastructure_services_ledger")
    assert rows == [(first,)]
    assert made(replaces=first)["changed"] is False
    lose(location)
    assert made(home="elsewhere")["changed"]


def test_what_was_moved_is_no_place_for_a_new_one(made, location, tmp_path):
    made()
    moved(location, str(tmp_path / "new.db"))
    with pytest.raises(LedgerError, match=r"was moved to .*new\.db, which is the ledger now"):
        made()


def test_of_two_at_once_one_creates(made, location, monkeypatch):
    """The other one finds it when it runs again."""
    with closing(open_database(location)) as late:
        first = made()
        monkeypatch.setattr(late, "has_tables", bool)  # it looked before
        with pytest.raises(LedgerError, match=r"exists|is there already"):
            create(late, SERVICE, "", Seen("/nowhere", "run"), False)
    assert made() == {**first, "changed": False}


@pytest.mark.parametrize("make", [Path.mkdir, Path.touch, lambda path: None])
def test_a_file_that_cannot_be_created_leaves_nothing_behind(tmp_path, make):
    """Nor is an empty file, as an emptied one, filled."""
    path = tmp_path / "there"
    make(path)
    place = path / "ledger.db" if not path.exists() else path
    before = sorted(tmp_path.rglob("*"))
    refused = pytest.raises(InvalidInput, match=r"regular file|is there already|does not exist")
    with refused, closing(open_database(str(place))) as database:
        create(database, SERVICE, "", Seen("/nowhere", "run"), False)
    assert sorted(tmp_path.rglob("*")) == before


def test_every_other_task_needs_one_that_exists(ansible):
    """In check mode, too; the message has the command, which then works."""
    place = f"{ansible.directory}/new.db"
    tasks = [
        {"name": f"{name} {check}", MODULE + name: options, "check_mode": check}
        for name, options in TASKS.items()
        for check in (False, True)
    ]
    here = {"hosts": "localhost", "gather_facts": False, "ignore_errors": True, "tasks": tasks}
    defaults = {"group/infrastructure.services.all": {"ledger": place}}
    done = ansible.playbook(json.dumps([{**here, "module_defaults": defaults}]) + "\n").ok()
    for task in tasks:
        result = done.result(task["name"])
        assert (result["failed"], result["outcome"]) == (True, "not_sent")
        assert "ledger: there is no ledger at " in result["msg"]
        assert "Correct the location, or restore the ledger if there was one." in result["msg"]
        command = f"infrastructure.services.create_ledger -e ledger={place}"
        assert f"run once: ansible-playbook {command}" in result["msg"]
    assert not [*ansible.directory.glob("new.db*")]
    ansible.playbook(*command.split()).ok()
    arguments = json.dumps({"ledger": place, **MACHINE})
    ansible.adhoc("infrastructure.services.ledger_entry", arguments).ok()
