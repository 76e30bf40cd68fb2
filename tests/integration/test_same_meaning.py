# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The same value means the same wherever a task runs and wherever its playbook is."""

from __future__ import annotations

import json
from itertools import product
from pathlib import Path

import pytest
from support.running import Ansible
from support.wire import answer, running

VM = "infrastructure.services.compute_virtual_machine"
PREFIX = "INFRASTRUCTURE_SERVICES_"
# As with sudo, the other user gets no variable of this one.
SUDO = """#!/bin/sh
while [ "$1" != /bin/sh ]; do shift; done
exec env -i PATH="$PATH" HOME="$HOME" "$@"
"""
PLACES = {"worker": {}, "become": {"become": True}}
AS_ROOT = {"ANSIBLE_BECOME_ALLOW_SAME_USER": "true", "ANSIBLE_PIPELINING": "true"}
PATHS = ("ca_path", "client_cert", "client_key")


@pytest.fixture
def ansible(collections, tmp_path) -> Ansible:
    sudo = tmp_path / "sudo"
    sudo.write_text(SUDO, encoding="utf-8")
    sudo.chmod(0o755)
    hosts = {"all": {"hosts": {"localhost": {"ansible_become_exe": str(sudo)}}}}
    return Ansible(tmp_path, collections, "https://127.0.0.1:9", "local", hosts)


def test_how_many_requests_a_list_sends_at_once_is_what_the_controller_says(ansible):
    with running(lambda sent: answer(201, json.loads(sent.body))) as service:
        tasks = [
            {
                f"{VM}s": {
                    "base_url": f"{service.url}/{place}",
                    "virtual_machines": [{"name": f"vm{number}"} for number in range(9)],
                },
                **keywords,
            }
            for place, keywords in PLACES.items()
        ]
        concurrency = {f"{PREFIX}CONCURRENCY": "1"}
        ansible.tasks(json.dumps(tasks), **AS_ROOT, **concurrency).ok()
        for place in PLACES:
            sent = service.sent_by(place)
            assert len(sent) == 9
            assert len({request.connection for request in sent}) == 1


def test_a_relative_path_is_below_the_playbook_or_the_working_directory(ansible):
    """The working directory of the tests is `tmp_path`, the playbook is deeper; `PWD` does not
    matter.
    """
    (ansible.directory / "plays").mkdir()
    plays = [
        {
            "hosts": "localhost",
            "gather_facts": False,
            "ignore_errors": True,
            **keywords,
            "tasks": [
                {"name": f"{place} option", VM: {"name": "vm", "ca_path": "x.pem"}},
                {"name": f"{place} variable", VM: {"name": "vm"}},
                {
                    "name": f"{place} keyword",
                    VM: {"name": "vm"},
                    "environment": {f"{PREFIX}CA_PATH": "y.pem"},
                },
            ],
        }
        for place, keywords in PLACES.items()
    ]
    (ansible.directory / "plays/play.json").write_text(json.dumps(plays))
    variables = {f"{PREFIX}CA_PATH": "x.pem", "PWD": "/nowhere"}
    run = ansible.command("ansible-playbook", "plays/play.json", **variables, **AS_ROOT)
    here = ansible.directory
    expected = {
        "option": here / "plays/x.pem",
        "variable": here / "x.pem",
        "keyword": here / "y.pem",
    }
    for place, (name, path) in product(PLACES, expected.items()):
        result = run.result(f"{place} {name}")
        assert f"{path} cannot be read" in result["msg"], result
        assert result["outcome"] == "not_sent"


def test_in_a_playbook_of_the_collection_it_is_below_the_working_directory(ansible):
    run = ansible.command(
        "ansible-playbook",
        "infrastructure.services.create_virtual_machine",
        "-e",
        "virtual_machine_name=vm",
        **{f"{PREFIX}CA_PATH": "x.pem", "PWD": None},
    )
    assert (
        f"{ansible.directory}/x.pem cannot be read"
        in run.result("Create the virtual machine")["msg"]
    )


def test_no_path_is_in_a_collection(ansible):
    inside = Path(ansible.collections, "ansible_collections/infrastructure/services/x.json")
    one, several = {"name": "vm"}, {"virtual_machines": [{"name": "vm"}]}
    tasks = [
        {"name": f"{place} {option}", module: {**given, option: str(inside)}, **keywords}
        for place, keywords in PLACES.items()
        for module, given, options in (
            (VM, one, (*PATHS, "ledger")),
            (f"{VM}s", several, ("report", "approved")),
        )
        for option in options
    ]
    run = ansible.tasks(json.dumps([{**task, "ignore_errors": True} for task in tasks]), **AS_ROOT)
    for task in tasks:
        result, option = run.result(task["name"]), task["name"].split()[1]
        assert (result["outcome"], result["failed"]) == ("not_sent", True)
        assert result["msg"].startswith(f"{option}: {inside} is inside an installed collection")
    assert len(tasks) == 12
    assert not inside.exists()


def test_the_file_of_a_playbook_is_below_the_working_directory(ansible):
    created = {
        "name": "vm",
        "base_url": "https://s",
        "resource": "compute_virtual_machine",
        "ledger": "ledger.db",
        "asset": {"id": "i", "name": "vm"},
    }
    ansible.tasks(json.dumps([{"infrastructure.services.ledger_entry": created}])).ok()
    for playbook in ("show_ledger", "in_doubt"):
        run = ansible.command(
            "ansible-playbook",
            f"infrastructure.services.{playbook}",
            "-e",
            "ledger=ledger.db",
            "-e",
            f"file={playbook}.csv",
            PWD=None,
        ).ok()
        assert (ansible.directory / f"{playbook}.csv").stat().st_mode & 0o777 == 0o600
        assert "NAME" not in run.output
    assert (
        (ansible.directory / "show_ledger.csv").read_text().splitlines()[1].startswith("vm,i,done,")
    )
    run = ansible.command(
        "ansible-playbook",
        "infrastructure.services.settle",
        "-e",
        "ledger=ledger.db",
        "-e",
        "file=show_ledger.csv",
        PWD="/nowhere",
    ).ok()
    assert "ledger entries: 1 unchanged; " in run.output


@pytest.mark.parametrize("playbook", ["show_ledger", "settle"])
def test_the_file_of_a_playbook_is_not_in_a_collection(ansible, playbook):
    inside = Path(ansible.collections, "ansible_collections/infrastructure/services/x.csv")
    run = ansible.command(
        "ansible-playbook",
        f"infrastructure.services.{playbook}",
        "-e",
        "ledger=ledger.db",
        "-e",
        f"file={inside}",
    )
    assert run.rc == 2
    assert f"file: {inside} is inside an installed collection" in " ".join(run.output.split())
    assert not inside.exists()


@pytest.mark.parametrize(
    ("name", "content", "told"),
    [
        ("none.csv", None, "none.csv cannot be read: No such file or directory"),
        pytest.param(
            "latin.csv",
            "name;id\nvm\xe9;i\n".encode("latin-1"),
            "latin.csv is not UTF-8",
            marks=pytest.mark.matrix,
        ),
        pytest.param("broken.json", b"[", "broken.json is not JSON (", marks=pytest.mark.matrix),
    ],
)
def test_a_file_that_cannot_be_read_is_named_and_nothing_is_changed(ansible, name, content, told):
    if content is not None:
        (ansible.directory / name).write_bytes(content)
    run = ansible.command(
        "ansible-playbook",
        "infrastructure.services.settle",
        "-e",
        "ledger=l.db",
        "-e",
        f"file={name}",
    )
    result = run.result("Record what it says")
    assert (result["outcome"], result["failed"]) == ("not_sent", True)
    assert result["msg"].startswith(f"file: {ansible.directory}/{told}")
    assert not (ansible.directory / "l.db").exists()


FLEET = "infrastructure.services.fleet"
PLANNED = {
    "one": (VM, {"name": "vm"}),
    "list": (f"{VM}s", {"virtual_machines": [{"name": "vm"}]}),
    "ledger": (VM, {"name": "vm", "ledger": "ledger.db"}),
    "client": (VM, {"name": "vm", "auth_url": "http://127.0.0.1:9/token", "client_id": "web"}),
}


def test_check_mode_needs_no_token(ansible):
    tasks = [
        {"name": f"{place} {name}", module: given, **keywords}
        for place, keywords in PLACES.items()
        for name, (module, given) in PLANNED.items()
    ]
    variables = {**AS_ROOT, f"{PREFIX}ACCESS_TOKEN": None}
    run = ansible.tasks(json.dumps(tasks), "--check", **variables).ok()
    for task in tasks:
        result = run.result(task["name"])
        assert (result["outcome"], result["changed"], result["failed"]) == ("not_sent", True, False)
    needing = [{**task, "ignore_errors": True} for task in tasks]
    sent = ansible.tasks(json.dumps(needing), **variables)
    for place in PLACES:
        assert "access_token: is missing" in sent.result(f"{place} one")["msg"]
        told = sent.result(f"{place} client")["msg"]
        assert "auth_url: needs client_id and client_secret" in told


def fleet(**variables) -> str:
    """Return a playbook that plans two machines with the role."""
    role = {
        "role": FLEET,
        "fleet_virtual_machines": [{"name": "vm1"}, {"name": "vm2"}],
        **variables,
    }
    return json.dumps([{"hosts": "localhost", "gather_facts": False, "roles": [role]}]) + "\n"


def test_the_role_takes_the_ledger_of_the_environment(ansible):
    (ansible.directory / "plays").mkdir()
    (ansible.directory / "plays/play.yml").write_text(fleet())
    with running(
        lambda sent: answer(201, {"id": json.loads(sent.body)["name"], **json.loads(sent.body)})
    ) as service:
        variables = {f"{PREFIX}BASE_URL": service.url, f"{PREFIX}LEDGER": "fleet.db"}
        for _run in range(2):
            ansible.command("ansible-playbook", "plays/play.yml", **variables).ok()
        assert len(service.sent) == 2
    assert (ansible.directory / "fleet.db").exists()
    assert not (ansible.directory / "plays/fleet.db").exists()


def test_the_ledger_of_the_role_wins_over_the_environment(ansible):
    run = ansible.playbook(
        fleet(fleet_ledger="mine.db"), "--check", **{f"{PREFIX}LEDGER": "other.db"}
    ).ok()
    assert f"no ledger at {ansible.directory}/mine.db yet" in run.output
