# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The playbooks of the collection, called by their FQCN."""

from __future__ import annotations

import json
import re
import shlex
import sqlite3
import sys
from contextlib import closing
from pathlib import Path

import pytest
import requests
import yaml
from contract.test_playbooks import DOCUMENTED
from support.checkout import CHECKOUT
from support.running import Run

CREATE = "infrastructure.services.create_virtual_machine"
DEMO = "infrastructure.services.demo"
EMULATOR = "infrastructure.services.emulator"
FLEET = "infrastructure.services.create_fleet"
IN_DOUBT = "infrastructure.services.in_doubt"
VM = "infrastructure.services.compute_virtual_machine"
UPDATE = "infrastructure.services.update_cassandra_application_role"

EVERYWHERE = {
    "fleet": "all",
    "virtual_machine_attributes": {},
}  # so that create_fleet takes each host

# What an inventory may say of machines that have no address yet, and on which nobody can log in.
UNREACHABLE = {
    "ansible_connection": "ssh",
    "ansible_host": "192.0.2.1",
    "ansible_user": "nobody",
    "ansible_become": True,
    "ansible_become_user": "nobody",
    "ansible_python_interpreter": "/nonexistent/python",
    "ansible_ssh_common_args": "-o ConnectTimeout=2",
}


def test_one_asset_is_sent_from_the_controller_whatever_the_inventory_says(ansible_once, service):
    service.seed("role-1", name="reader", attributes={"login": False})
    inventory = ansible_once.directory / "fleet.json"
    inventory.write_text(json.dumps({"all": {"vars": UNREACHABLE}}))
    variables = {
        "base_url": service.url,
        "access_token": "given",
        "virtual_machine_name": "web01",
        "virtual_machine_attributes": {"cpu": 4},
        "application_role_id": "role-1",
        "application_role_description": "Reads",
        "application_role_attributes": {"login": True},
    }
    ansible_once.command(
        "ansible-playbook",
        CREATE,
        UPDATE,
        "-i",
        str(inventory),
        "-e",
        json.dumps(variables),
        INFRASTRUCTURE_SERVICES_BASE_URL=None,
        INFRASTRUCTURE_SERVICES_ACCESS_TOKEN=None,
    ).ok()
    assert service.bodies() == [
        {"name": "web01", "attributes": {"cpu": 4}},
        {"description": "Reads", "attributes": {"login": True}},
    ]
    assert service.header("Authorization") == ["Bearer given"] * 2


def test_a_missing_variable_is_named(ansible_once, service):
    for playbook, variable in ((CREATE, "virtual_machine_name"), (UPDATE, "application_role_id")):
        run = ansible_once.playbook(playbook)
        assert run.rc != 0
        assert f"{variable} is missing: pass -e {variable}=" in " ".join(run.output.split())
        assert "Nothing was sent." in run.output
    assert service.conversation() == []


# The playbook, variables that it takes, and by the misspelled ones what was meant.
MISSPELLED = [
    (
        CREATE,
        {"virtual_machine_name": "a"},
        {
            "base_ulr": "base_url",
            "ledgr": "ledger",
            "fleet_ledger": "ledger",
            "virtual_machine_attribute": "virtual_machine_attributes",
        },
    ),
    (
        UPDATE,
        {"application_role_id": "a"},
        {"application_role_atributes": "application_role_attributes"},
    ),
    (
        FLEET,
        {**EVERYWHERE, "ledger": "l.db"},
        {
            "acess_token": "access_token",
            "fleet_ledger_creat": "fleet_ledger_create",
            "fleet_reprot": "fleet_report",
        },
    ),
    (IN_DOUBT, {"ledger": "l.db"}, {"nmes": "names"}),
    (
        "infrastructure.services.move_ledger",
        {"ledger": "l.db", "to": "m.db"},
        {"ledger_creat": "ledger_create"},
    ),
]


@pytest.mark.matrix
@pytest.mark.parametrize(("playbook", "given", "misspelled"), MISSPELLED)
def test_a_misspelled_variable_is_refused(ansible_once, service, playbook, given, misspelled):
    """On the command line, and the first ones in a file."""
    variables = json.dumps({**given, **dict.fromkeys(misspelled, "x")})
    (ansible_once.directory / "given.yml").write_text(variables)
    run = ansible_once.playbook(playbook, "-e", "@given.yml" if playbook == CREATE else variables)
    assert run.rc != 0
    said = " ".join(run.output.split())
    for wrong, meant in misspelled.items():
        assert f"{wrong}: there is no such variable; did you mean {meant}?" in said
    assert service.conversation() == []
    assert not [*ansible_once.directory.glob("*.db")]


@pytest.mark.parametrize(
    ("playbook", "given", "wrong"),
    [
        (EMULATOR, {"emulator_background": True}, ["emulator_prot", "emulatr_port"]),
        pytest.param(DEMO, {"demo_directory": "."}, ["emulator_dlay"], marks=pytest.mark.matrix),
    ],
)
def test_an_unknown_variable_of_the_emulator_is_refused(ansible_once, playbook, given, wrong):
    given = {"emulator_port": 0, **given, **dict.fromkeys(wrong, 1)}
    run = ansible_once.playbook(playbook, "-e", json.dumps(given))
    assert run.rc != 0
    said = " ".join(run.output.split())
    assert f"{', '.join(sorted(wrong))}: there is no such variable; " in said
    assert "emulator_delay" in said.partition("there is no such variable; ")[2]


@pytest.mark.matrix
def test_a_misspelled_variable_of_an_imported_playbook_is_refused(ansible_once, service):
    given = {"virtual_machine_name": "a", "ledgr": "l.db"}
    run = ansible_once.playbook(json.dumps([{"import_playbook": CREATE, "vars": given}]) + "\n")
    assert run.rc != 0
    assert "ledgr: there is no such variable; did you mean ledger?" in " ".join(run.output.split())
    assert service.conversation() == []
    given["ledger"] = given.pop("ledgr")
    ansible_once.playbook(json.dumps([{"import_playbook": CREATE, "vars": given}]) + "\n").ok()
    assert service.bodies() == [{"name": "a", "attributes": {}}]
    assert (ansible_once.directory / "l.db").exists()


def test_a_variable_for_an_inventory_is_left_alone(ansible_once, service):
    given = {
        "virtual_machine_name": "a",
        "ledger": "l.db",
        "env": "test",
        "team": "web",
        "ansible_become": False,
    }
    ansible_once.playbook(CREATE, "-e", json.dumps(given)).ok()
    assert service.bodies() == [{"name": "a", "attributes": {}}]


def test_with_a_ledger_one_asset_is_sent_once(ansible_once, service):
    service.seed("role-1", name="reader")
    variables = {
        "base_url": service.url,
        "access_token": "given",
        "ledger": "ledger.db",
        "virtual_machine_name": "web01",
        "application_role_id": "role-1",
        "application_role_attributes": {"login": True},
    }
    for _time in range(2):
        ansible_once.command(
            "ansible-playbook",
            CREATE,
            UPDATE,
            "-e",
            json.dumps(variables),
            INFRASTRUCTURE_SERVICES_BASE_URL=None,
            INFRASTRUCTURE_SERVICES_ACCESS_TOKEN=None,
        ).ok()
    assert service.bodies() == [
        {"name": "web01", "attributes": {}},
        {"attributes": {"login": True}},
    ]


@pytest.mark.matrix
def test_the_demo_fits_on_one_screen(ansible_once, tmp_path):
    where = tmp_path / "emulator"
    given = {
        "demo_directory": str(tmp_path),
        "demo_keep": True,
        "emulator_directory": str(where),
        "emulator_port": 0,
        "emulator_delay": 0.01,
        "emulator_settings": {"put": "replace"},
        "emulator_python": sys.executable,
        "emulator_extensions": str(CHECKOUT / "extensions"),
    }
    assert DOCUMENTED["demo"] == given.keys()
    try:
        run = ansible_once.playbook(DEMO, "-e", json.dumps(given)).ok()
        url = (where / "url").read_text().strip()
        settings = requests.get(f"{url}/_emulator/settings", timeout=5).json()
    finally:
        ansible_once.playbook(
            EMULATOR, "-e", f"emulator_state=absent emulator_directory={where}"
        ).ok()
    assert settings["put"] == "replace"
    story = told_by(run)
    assert [line.split() for line in story if line.startswith("   the page:")] == [
        ["the", "page:", url]
    ]
    assert len(story) <= 36  # on a screen of 40 lines, with the output of make and the set-up
    assert max(len(line) for line in story if str(tmp_path) not in line) <= 80
    assert [line.split() for line in story if line.startswith("   db02")] == [["db02", "unknown"]]
    assert "again          not_sent" in "\n".join(story)
    assert len([line for line in story if line.startswith("   batch100..299  accepted")]) == 1
    assert not re.findall("(?s)(?:WARNING|DEPRECATION).{300}", run.output)
    (bodies,) = [line.split()[-1] for line in story if "their bodies" in line]
    received = json.loads(Path(bodies).read_text())
    assert [request["method"] for request in received] == [
        "POST",
        "POST",
        "POST",
        "PUT",
        "POST",
        *["POST"] * 200,
    ]
    assert all(len(json.loads(request["body"])["attributes"]) >= 20 for request in received[:3])


@pytest.mark.matrix
def test_the_demo_needs_no_variable_and_leaves_no_emulator(ansible_once):
    run = ansible_once.playbook(DEMO, PWD=None).ok()
    assert "the page:" not in "".join(told_by(run))
    assert sorted(path.name for path in ansible_once.directory.glob("demo*")) == [
        "demo-requests.json",
        "demo.db",
        "demo.db.lock",
        "demo.ledger.yml",
    ]
    assert not Path(run.result("Create a directory for the emulator")["path"]).exists()


def told_by(run: Run) -> list[str]:
    """The lines of the story that `make demo` shows."""
    told = [line["result"]["msg"] for line in run.results if line["task"] == "Tell the story"]
    return [line.removeprefix("|") for lines in told for line in lines]


def test_a_fleet_is_created_from_the_controller_whatever_the_inventory_says(ansible_once, service):
    hosts = {
        "web01": {"virtual_machine_attributes": {"cpu": 2}},
        "web02": {"virtual_machine_attributes": {}},
    }
    fleet = {"hosts": hosts, "vars": UNREACHABLE}
    (ansible_once.directory / "fleet.yml").write_text(
        json.dumps(
            {"all": {"children": {"fleet": fleet}, "hosts": {"localhost": {}}, "vars": UNREACHABLE}}
        )
    )
    own = "{{ hostvars.localhost.ansible_facts.compute_virtual_machines[inventory_hostname].id }}"
    look = {
        "name": "Look",
        "ansible.builtin.debug": {"msg": [own, "{{ ansible_facts.keys() | length }}"]},
    }
    (ansible_once.directory / "all.yml").write_text(
        json.dumps(
            [
                {"import_playbook": FLEET},
                {"hosts": "fleet", "gather_facts": False, "connection": "local", "tasks": [look]},
            ]
        )
    )
    run = ansible_once.command(
        "ansible-playbook", "all.yml", "-i", "fleet.yml", "-e", "ledger=ledger.db"
    )
    run.ok()
    assert (ansible_once.directory / "ledger.db").exists()
    ids = [run.on(host).result("Look")["msg"] for host in ("web01", "web02")]
    assert ids[0][0] != ids[1][0]
    assert {int(facts) for _id, facts in ids} == {0}
    assert sorted(service.bodies(), key=lambda body: body["name"]) == [
        {"name": "web01", "attributes": {"cpu": 2}},
        {"name": "web02", "attributes": {}},
    ]


NONE = {"virtual_machine_attributes": {}}


@pytest.mark.matrix
def test_a_host_without_attributes_is_refused_by_name(ansible_once, service):
    hosts = {
        "web01": NONE,
        "web02": {"virtual_machine_atributes": {"cpu": 4}},
        "web03": {"virtual_machine_attributes": None},
        "web04": {},
    }
    ansible_once.inventory = {"all": {"children": {"fleet": {"hosts": hosts}}}}
    run = ansible_once.playbook(FLEET, "-e", "ledger=l.db")
    assert run.rc != 0
    assert run.result("Require the attributes of each host")["msg"] == (
        "web02, web03, web04: virtual_machine_attributes is missing, so a machine without attributes would be created."
        " Nothing was sent. Set the variable for each host, to {} where no attributes are meant."
    )
    assert service.conversation() == []
    assert not (ansible_once.directory / "l.db").exists()


def test_many_hosts_without_attributes_are_counted(ansible_once):
    ansible_once.inventory = {
        "all": {"children": {"fleet": {"hosts": {f"web{n}": {} for n in range(10, 30)}}}}
    }
    run = ansible_once.playbook(FLEET, "-e", "ledger=l.db")
    assert (
        "web18, web19 and 10 more: virtual_machine_attributes is missing"
        in (run.result("Require the attributes of each host")["msg"])
    )


@pytest.mark.matrix
@pytest.mark.parametrize("group", ["east", "west"])
def test_groups_with_values_of_their_own_need_a_run_each(ansible_once, service, group):
    """The first host is of the one or the other; a template has another value for each."""
    groups = {
        name: {
            "hosts": {f"{name}1": NONE, f"{name}2": NONE},
            "vars": {
                "base_url": service.url if name == group else "http://127.0.0.1:9",
                "fleet_ledger": f"{name}.db",
                "access_token": f"canary-{name}",
                "fleet_defaults": {"attributes": {"team": "{{ team }}"}},
                "team": name,
            },
        }
        for name in ("east", "west")
    }
    shared = {"fleet_report": "fleet.json", "fleet_only": ["*"]}
    ansible_once.inventory = {"all": {"children": {"fleet": {"children": groups}}, "vars": shared}}
    run = ansible_once.playbook(FLEET)
    assert run.rc != 0
    differing = ("access_token", "base_url", "fleet_defaults", "fleet_ledger")
    assert run.result("infrastructure.services.fleet : Create the virtual machines")["msg"] == (
        " ".join(f"{name} differs between east1 and west1." for name in differing)
        + " This playbook uses one value for all hosts, so run it once for each group:"
        " -e fleet=GROUP. Nothing was sent."
    )
    assert "canary" not in run.output
    assert service.conversation() == []
    assert not [*ansible_once.directory.glob("*.db")]
    ansible_once.playbook(FLEET, "-e", f"fleet={group}").ok()
    assert sorted(service.bodies(), key=str) == [
        {"name": f"{group}{number}", "attributes": {"team": group}} for number in (1, 2)
    ]


@pytest.mark.matrix
def test_an_empty_variable_counts_as_unset(ansible_once, service):
    """As `-e ledger=$NOTSET` is."""
    service.seed("role-1", name="reader")
    given = {
        "base_url": "",
        "access_token": "",
        "ledger": "",
        "virtual_machine_name": "web01",
        "application_role_id": "role-1",
        "application_role_attributes": {"login": True},
    }
    run = ansible_once.playbook(CREATE, "-e", json.dumps(given)).ok()
    assert "No ledger is set, so running this again will create another machine" in " ".join(
        run.output.split()
    )
    environment = {"INFRASTRUCTURE_SERVICES_LEDGER": str(ansible_once.directory / "env.db")}
    for _time in range(2):
        ansible_once.command(
            "ansible-playbook", CREATE, UPDATE, "-e", json.dumps(given), **environment
        ).ok()
    assert [body for body in service.bodies() if "name" in body] == [
        {"name": "web01", "attributes": {}}
    ] * 2
    shown = ansible_once.command(
        "ansible-playbook",
        "infrastructure.services.show_ledger",
        "-e",
        "ledger=",
        "-e",
        "base_url=",
        **environment,
    ).ok()
    assert "web01" in shown.output


LISTED = [{"name": "listed", "attributes": {"cpu": 1}}]
# Each variable of the role, a value, and what shows that create_fleet took it.
OF_ROLE = {
    "fleet_ledger": "l.db",
    "fleet_ledger_create": True,
    "fleet_virtual_machines": LISTED,
    "fleet_application_roles": [{"id": "role-1", "name": "orders"}],
    "fleet_defaults": {"attributes": {"team": "web"}},
    "fleet_application_role_defaults": {"description": "one"},
    "fleet_concurrency": 2,
    "fleet_asset_fields": ["id", "name"],
    "fleet_in_doubt": "skip",
    "fleet_on_difference": "fail",
    "fleet_only": [],
    "fleet_max_unknown": 3,
    "fleet_max_failures": 4,
    "fleet_report": "fleet.json",
    "fleet_approved": "",
}


@pytest.mark.matrix
@pytest.mark.parametrize(
    "place",
    [
        "command line",
        "inventory",
        pytest.param("import_playbook", marks=pytest.mark.matrix),
    ],
)
def test_create_fleet_takes_each_variable_of_the_role(ansible_once, service, place):
    service.seed("role-1", name="reader")
    role = yaml.safe_load(
        (CHECKOUT / "roles/fleet/meta/argument_specs.yml").read_text(encoding="utf-8")
    )
    assert role["argument_specs"]["main"]["options"].keys() == OF_ROLE.keys()
    ansible_once.inventory = {"all": {"children": {"fleet": {"hosts": {"web01": {}}}}}}
    here = {
        name: OF_ROLE if name == place else {}
        for name in ("command line", "inventory", "import_playbook")
    }
    ansible_once.inventory["all"]["children"]["fleet"]["vars"] = here["inventory"]
    play = json.dumps([{"import_playbook": FLEET, "vars": here["import_playbook"]}]) + "\n"
    run = ansible_once.playbook(
        play, "-e", json.dumps(here["command line"]), ANSIBLE_INJECT_INVOCATION="true"
    ).ok()
    assert sorted(service.bodies(), key=str) == [
        {"name": "listed", "attributes": {"cpu": 1, "team": "web"}},
        {"name": "orders", "description": "one"},
    ]
    options = run.result("infrastructure.services.fleet : Create the virtual machines")[
        "invocation"
    ]["module_args"]
    assert {
        f"fleet_{name}": options[name]
        for name in (
            "concurrency",
            "asset_fields",
            "in_doubt",
            "on_difference",
            "max_unknown",
            "max_failures",
        )
    }.items() <= (OF_ROLE.items())
    assert {path.name for path in ansible_once.directory.iterdir()} >= {"l.db", "fleet.json"}


@pytest.mark.parametrize("variable", ["ledger_create", "fleet_ledger_create"])
def test_a_ledger_that_create_fleet_must_not_make_is_not_made(ansible_once, service, variable):
    ansible_once.inventory = {"all": {"children": {"fleet": {"hosts": {"web01": NONE}}}}}
    run = ansible_once.playbook(FLEET, "-e", "ledger=l.db", "-e", f"{variable}=false")
    assert run.rc != 0
    assert "fleet_ledger_create" in run.output
    assert service.conversation() == []
    assert not (ansible_once.directory / "l.db").exists()


@pytest.mark.matrix
@pytest.mark.parametrize(
    ("playbook", "more"),
    [
        ("create_virtual_machine", ["virtual_machine_name=web01"]),
        (
            "update_cassandra_application_role",
            ["application_role_id=role-1", "application_role_description=one"],
        ),
        ("settle", ["file=machines.csv"]),
        ("ledger_from_report", ["report=fleet.json"]),
    ],
)
def test_a_ledger_that_no_playbook_may_make_is_not_made(ansible_once, service, playbook, more):
    (ansible_once.directory / "machines.csv").write_text("name,id\nweb01,i-1\n", encoding="utf-8")
    made = ansible_once.directory / "made.db"
    machine = {
        "name": "Create",
        "infrastructure.services.compute_virtual_machines": {
            "virtual_machines": [{"name": "web01"}],
            "ledger": str(made),
            "report": "fleet.json",
        },
    }
    ansible_once.tasks(json.dumps([machine])).ok()
    given = [
        word for each in ("ledger=l.db", "ledger_create=false", *more) for word in ("-e", each)
    ]
    run = ansible_once.playbook(f"infrastructure.services.{playbook}", *given)
    assert run.rc != 0
    assert "ledger_create" in run.output
    assert not (ansible_once.directory / "l.db").exists()


def shown(run: Run) -> list[str]:
    """The lines that the playbook shows, which are plain ones on the screen."""
    lines = run.ok().result("Read the ledger")["text"]
    assert "\n".join(lines) in run.output
    return lines


def test_a_ledger_that_does_not_exist_is_not_taken_for_an_empty_one(ansible_once):
    path = f"{ansible_once.directory}/ledger.db"
    run = ansible_once.playbook(IN_DOUBT, "-e", f"ledger={path}")
    assert run.rc == 2
    assert f"There is no ledger at {path}" in run.output


@pytest.mark.matrix
def test_a_watcher_fails_if_something_is_in_doubt_or_there_is_no_ledger(ansible_once, service):
    watch = ["-e", "ledger=fleet.db", "-e", "fail=true"]
    assert ansible_once.playbook(IN_DOUBT, *watch).rc == 2
    service.fault(kind="drop", when="after")
    ansible_once.playbook(create(ansible_once.directory / "fleet.db", "web01", "web02"))
    ansible_once.playbook(IN_DOUBT, *watch[:2]).ok()
    failed = ansible_once.playbook(IN_DOUBT, *watch)
    assert failed.rc == 2
    assert "If web01 is there, record it" in failed.output
    assert f"1 in doubt in {ansible_once.directory}/fleet.db: see above." in failed.output
    absent = "ledger=fleet.db resource=compute_virtual_machine name=web01 state=absent"
    ansible_once.adhoc("infrastructure.services.ledger_entry", absent).ok()
    ansible_once.playbook(IN_DOUBT, *watch).ok()


@pytest.mark.matrix
def test_a_ledger_has_what_reports_have_and_nothing_in_doubt_is_created(ansible_once, service):
    """A ledger is lost; an older one has an entry of its own, which stays as it is."""
    again = "infrastructure.services.ledger_from_report"

    def run(names: str, report: str) -> Run:
        machines = [{"name": name, "attributes": ATTRIBUTES} for name in names.split()]
        options = {
            "virtual_machines": machines,
            "ledger": "fleet.db",
            "report": report,
            "in_doubt": "skip",
            "concurrency": 1,
        }
        task = {"name": "Create", "infrastructure.services.compute_virtual_machines": options}
        return ansible_once.tasks(json.dumps([task]))

    assert run("old", "old.json").rc == 0
    (ansible_once.directory / "fleet.db").rename(ansible_once.directory / "backup.db")
    service.fault(kind="drop", when="after")
    assert run("lost", "first.json").rc == 2
    run("there lost", "second.json").ok()
    (ansible_once.directory / "backup.db").replace(ansible_once.directory / "fleet.db")
    variables = ["-e", "ledger=fleet.db", "-e", "report=second.json,first.json,old.json"]
    planned = ansible_once.playbook(again, *variables, "--check").ok().output
    assert "1 adopted, 1 unchanged, 1 recorded as in doubt; 1 still in doubt" in planned
    done = ansible_once.playbook(again, *variables).ok().output
    assert "1 adopted, 1 unchanged, 1 recorded as in doubt; 1 still in doubt" in done
    assert "  recorded as in doubt: lost\n" in done
    done = ansible_once.playbook(again, *variables).ok().output
    assert "2 unchanged, 1 left in doubt; 1 still in doubt" in done
    run("old there lost", "third.json").ok()
    assert len(service.conversation()) == 3
    refused = ansible_once.playbook(again, "-e", "report=fleet.db", "-e", "ledger=fleet.db")
    assert refused.rc == 2
    assert "fleet.db is no report of a run" in refused.output


def create(ledger: Path, *names: str) -> str:
    """A play that creates machines, and goes on when that fails."""
    return (
        json.dumps(
            [
                {
                    "hosts": "localhost",
                    "gather_facts": False,
                    "tasks": [
                        {
                            "name": name,
                            VM: {"name": name, "attributes": ATTRIBUTES, "ledger": str(ledger)},
                            "ignore_errors": True,
                        }
                        for name in names
                    ],
                }
            ]
        )
        + "\n"
    )


ATTRIBUTES = {"ip": "192.0.2.10", "team": "web"}
ODD = ("web01 state=absent", "it's")  # names that mean something else on a command line


@pytest.mark.matrix
def test_assets_in_doubt_are_listed_with_how_to_settle_them(ansible_once, service):
    path = ansible_once.directory / "ledger.db"
    service.fault(kind="drop", when="after", count=4)
    ansible_once.playbook(create(path, "web01", "web02", *ODD))
    with closing(sqlite3.connect(path)) as database:
        database.executescript(
            "UPDATE infrastructure_services_entry SET state = 'intent' WHERE name = 'web02'"
        )
    said = shown(ansible_once.playbook(IN_DOUBT, "-e", f"ledger={path}"))
    assert said[0] == f"{path}: 1 intent, 3 unknown"
    assert said[1].split() == ["NAME", "STATE", "SINCE", "(UTC)", "ADDRESS", "TEAM", "ID"]
    for name in ("web01", "web02", *ODD):
        (line,) = [line for line in said[3:7] if line.startswith(f"{name}  ")]
        assert line.removeprefix(name).split()[0] == ("intent" if name == "web02" else "unknown")
    assert "A request in state intent may still be in flight" in said[7]
    for name in ODD:
        assert (
            f"{name} cannot be put on a command line: use a task of infrastructure.services.ledger_entry."
            in said
        )
    assert (
        len([line for line in said if "ansible localhost" in line]) == 4
    )  # two for each of the others

    found, gone = [
        said.index(f"If {name} is there, record it, with its id at the end:")
        for name in ("web01", "web02")
    ]
    for line in (said[found + 1].replace("asset=id=", "asset=id=found"), said[gone + 3]):
        command, *arguments = shlex.split(line)
        assert '"' not in line
        ansible_once.command(command, *arguments).ok()
    tasks = [
        {
            "infrastructure.services.ledger_entry": {
                "ledger": str(path),
                "resource": "compute_virtual_machine",
                "name": name,
                "state": "absent",
            }
        }
        for name in ODD
    ]
    tasks.append(
        {"name": "Create", VM: {"name": "web01", "attributes": ATTRIBUTES, "ledger": str(path)}}
    )
    created = ansible_once.tasks(json.dumps(tasks)).ok().result("Create")
    assert (created["asset"]["id"], created["changed"], "warnings" in created) == (
        "found",
        False,
        False,
    )
    assert shown(ansible_once.playbook(IN_DOUBT, INFRASTRUCTURE_SERVICES_LEDGER=str(path))) == [
        f"Nothing is in doubt in {path}."
    ]
    (ansible_once.directory / "ledger.yml").write_text(
        json.dumps(
            {
                "plugin": "infrastructure.services.ledger",
                "ledger": str(path),
                "keyed_groups": [
                    {"key": "compute_virtual_machine.attributes.team", "prefix": "team"}
                ],
            }
        )
    )
    listed = json.loads(
        ansible_once.command("ansible-inventory", "-i", "ledger.yml", "--list").ok().output
    )
    assert listed["_meta"]["hostvars"]["web01"]["ansible_host"] == ATTRIBUTES["ip"]
    (name,) = listed["team_web"]["hosts"]
    assert name == "web01"


@pytest.mark.matrix
def test_the_commands_for_a_ledger_with_spaces_in_its_path_name_it_in_the_environment(
    ansible_once, service
):
    path = ansible_once.directory / "here/a b/ledger.db"
    path.parent.mkdir(parents=True)
    environment = {"INFRASTRUCTURE_SERVICES_LEDGER": str(path)}
    service.fault(kind="drop", when="after")
    ansible_once.playbook(create(path, "web01"))
    said = shown(ansible_once.playbook(IN_DOUBT, **environment))
    assert "in flight" not in "".join(said)
    (line,) = [
        line
        for line in said
        if "-m infrastructure.services.ledger_entry" in line and "state=absent" in line
    ]
    variable, command, *arguments = shlex.split(line)
    assert variable == f"INFRASTRUCTURE_SERVICES_LEDGER={path}"
    assert "CHANGED" in ansible_once.command(command, *arguments, **environment).ok().output


@pytest.mark.matrix
def test_the_ledger_is_shown_as_a_table(ansible_once, service):
    tasks = [
        {VM: {"name": name, "attributes": ATTRIBUTES, "ledger": "ledger.db"}}
        for name in ("web01", "db01")
    ]
    ansible_once.tasks(json.dumps(tasks)).ok()
    path = ansible_once.directory / "ledger.db"
    run = ansible_once.playbook(
        "infrastructure.services.show_ledger", "-e", f"ledger={path}", "-e", "names=web*"
    )
    count, head, group, row = shown(run)
    assert (count, head.split()[0]) == (f"{path}: 1 done", "NAME")
    assert group == f"compute_virtual_machine at {service.url}"
    name, state, _day, _time, address, team, _id = row.split()
    assert (name, state, address, team) == ("web01", "done", *ATTRIBUTES.values())
    both = ansible_once.playbook(
        "infrastructure.services.show_ledger",
        "-e",
        f"ledger={path}",
        "-e",
        '{"names": "web*, db*", "states": "done, "}',
    )
    assert [row.split()[0] for row in shown(both)[3:]] == ["db01", "web01"]
    none = ansible_once.playbook(
        "infrastructure.services.show_ledger", "-e", f"ledger={path}", "-e", "run=another"
    )
    assert shown(none) == [
        f"No entry of {path} matches run: another. Without these filters there are 2 done."
    ]
    doubt = ansible_once.playbook(IN_DOUBT, "-e", f"ledger={path}", "-e", "names=wbe*")
    assert shown(doubt) == [
        f"No entry of {path} matches names: wbe*; states: in_doubt. Without these filters there are 2 done."
    ]
    refused = ansible_once.playbook(IN_DOUBT, "-e", f"ledger={path}", "-e", "states=done")
    assert "states: the playbook in_doubt has its own" in refused.output
    assert not re.search("WARNING|DEPRECATION", run.output + none.output)
