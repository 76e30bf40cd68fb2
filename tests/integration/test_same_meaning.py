# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The same value means the same wherever a task runs and wherever its playbook is."""

from __future__ import annotations

import json
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


@pytest.mark.parametrize("place", PLACES)
def test_how_many_requests_a_list_sends_at_once_is_what_the_controller_says(ansible, place):
    with running(lambda sent: answer(201, json.loads(sent.body))) as service:
        listed = {
            "base_url": service.url,
            "virtual_machines": [{"name": f"vm{number}"} for number in range(9)],
        }
        play = [
            {
                "hosts": "localhost",
                "gather_facts": False,
                "tasks": [{"name": "Create", f"{VM}s": listed, **PLACES[place]}],
            }
        ]
        ansible.playbook(json.dumps(play) + "\n", **AS_ROOT, **{f"{PREFIX}CONCURRENCY": "1"}).ok()
        assert len(service.sent) == 9
        assert len({sent.connection for sent in service.sent}) == 1


@pytest.mark.parametrize("place", PLACES)
def test_a_relative_path_is_below_the_playbook_or_the_working_directory(ansible, place):
    """The working directory of the tests is `tmp_path`, the playbook is deeper; `PWD` does not
    matter.
    """
    (ansible.directory / "plays").mkdir()
    play = [
        {
            "hosts": "localhost",
            "gather_facts": False,
            "ignore_errors": True,
            **PLACES[place],
            "tasks": [
                {"name": "option", VM: {"name": "vm", "ca_path": "x.pem"}},
                {"name": "variable", VM: {"name": "vm"}},
                {
                    "name": "keyword",
                    VM: {"name": "vm"},
                    "environment": {f"{PREFIX}CA_PATH": "y.pem"},
                },
            ],
        }
    ]
    (ansible.directory / "plays/play.json").write_text(json.dumps(play))
    variables = {f"{PREFIX}CA_PATH": "x.pem", "PWD": "/nowhere"}
    run = ansible.command("ansible-playbook", "plays/play.json", **variables, **AS_ROOT)
    here = ansible.directory
    for name, path in {
        "option": here / "plays/x.pem",
        "variable": here / "x.pem",
        "keyword": here / "y.pem",
    }.items():
        assert f"{path} cannot be read" in run.result(name)["msg"], run.result(name)
        assert run.result(name)["outcome"] == "not_sent"


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


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("option", [*PATHS, "ledger", "report", "approved"])
def test_no_path_is_in_a_collection(ansible, place, option):
    inside = Path(ansible.collections, "ansible_collections/infrastructure/services/x.json")
    is_of_list = option in ("report", "approved")
    given = {"virtual_machines": [{"name": "vm"}]} if is_of_list else {"name": "vm"}
    module = f"{VM}s" if is_of_list else VM
    play = [
        {
            "hosts": "localhost",
            "gather_facts": False,
            **PLACES[place],
            "tasks": [{"name": "Create", module: {**given, option: str(inside)}}],
        }
    ]
    result = ansible.playbook(json.dumps(play) + "\n", **AS_ROOT).result("Create")
    assert (result["outcome"], result["failed"]) == ("not_sent", True)
    assert result["msg"].startswith(f"{option}: {inside} is inside an installed collection")
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
        ("latin.csv", "name;id\nvm\xe9;i\n".encode("latin-1"), "latin.csv is not UTF-8"),
        ("broken.json", b"[", "broken.json is not JSON ("),
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


@pytest.mark.parametrize("place", PLACES)
def test_check_mode_needs_no_token(ansible, place):
    tasks = [{"name": name, module: given} for name, (module, given) in PLANNED.items()]
    play = [{"hosts": "localhost", "gather_facts": False, **PLACES[place], "tasks": tasks}]
    variables = {**AS_ROOT, f"{PREFIX}ACCESS_TOKEN": None}
    run = ansible.playbook(json.dumps(play) + "\n", "--check", **variables).ok()
    for name in PLANNED:
        result = run.result(name)
        assert (result["outcome"], result["changed"], result["failed"]) == ("not_sent", True, False)
    sent = ansible.playbook(json.dumps([{**play[0], "ignore_errors": True}]) + "\n", **variables)
    assert "access_token: is missing" in sent.result("one")["msg"]
    assert "auth_url: needs client_id and client_secret" in sent.result("client")["msg"]


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


@pytest.mark.parametrize(
    "given", [{}, {"fleet_ledger": ""}, {"fleet_ledger": "{{ there | default('') }}"}], ids=str
)
def test_the_role_is_refused_without_a_ledger(ansible, given):
    with running(lambda sent: answer(201, json.loads(sent.body))) as service:
        run = ansible.playbook(
            fleet(**given), **{f"{PREFIX}BASE_URL": service.url, f"{PREFIX}LEDGER": ""}
        )
        assert (run.rc, service.sent) == (2, [])
    result = run.result(f"{FLEET} : Create the virtual machines")
    assert (result["outcome"], result["failed"]) == ("not_sent", True)
    assert result["msg"].startswith("fleet_ledger: is missing: set it")
    assert f"{PREFIX}LEDGER" in result["msg"]


def test_the_ledger_of_the_role_wins_over_the_environment(ansible):
    run = ansible.playbook(
        fleet(fleet_ledger="mine.db"), "--check", **{f"{PREFIX}LEDGER": "other.db"}
    ).ok()
    assert f"no ledger at {ansible.directory}/mine.db yet" in run.output
