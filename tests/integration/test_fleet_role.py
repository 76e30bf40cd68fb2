# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The role `fleet`: from lists in variables to machines and roles, on the controller, and how it
reports failures.

A run has a play for each case, with a host and a token of its own, by which its results and
requests are known.
"""

from __future__ import annotations

import json
import re

import pytest
import yaml
from support.running import TOKEN, Ansible, Run

MACHINES = [
    {"name": "web01"},
    {"name": "web02", "attributes": {"cpu": 8, "subnet": {"mask": "255.0.0.0"}}},
]
ROLES = [{"id": "role-1", "attributes": {"login": True}}]
FLEET = {
    "fleet_defaults": {"attributes": {"cpu": 4, "subnet": {"dns": "192.0.2.1"}}},
    "fleet_virtual_machines": MACHINES,
    "fleet_application_roles": ROLES,
}
ABSENT = object()
NOTHING = {"fleet_virtual_machines": [], "fleet_application_roles": []}
FIRST = {"fleet_virtual_machines": MACHINES[:1], "fleet_application_roles": []}
OTHERS = [{"name": "new"}, {"name": "web02", "attributes": {"cpu": 16}}]
# Name of the case, up to a hyphen that of its ledger: (keywords of the play, variables of the
# role). Those that meet faults come first.
CASES = {
    "refused": ({}, {"fleet_concurrency": 1, "fleet_report": "{{ playbook_dir }}/report.json"}),
    "stop": ({}, FIRST),
    "skip": ({}, FIRST),
    "stop-again": ({}, {"fleet_in_doubt": "stop"}),
    "skip-again": ({}, {"fleet_in_doubt": "skip"}),
    "first": ({}, {"fleet_application_role_defaults": {"service": "cassandra"}}),
    "first-again": ({}, {"fleet_application_role_defaults": {"service": "cassandra"}}),
    "machines": ({}, {"fleet_application_roles": []}),
    "unreachable": ({"hosts": "fleet"}, {"fleet_ledger": "{{ playbook_dir }}/fleet.db"}),
    "empty-ledger": ({}, {"fleet_ledger": ""}),
    "null-ledger": ({}, {"fleet_ledger": None}),
    "no-ledger": ({}, {"fleet_ledger": ABSENT}),
    "template-ledger": ({}, {**FIRST, "fleet_ledger": "{{ there | default('') }}"}),
    "empty-lists": ({}, NOTHING),
    "misspelled": ({}, {**NOTHING, "fleet_vms": MACHINES, "fleet_concurency": 1}),
    "strings": ({}, {**FIRST, "fleet_virtual_machines": ["web01", "web02"]}),
    "no-dash": ({}, {**FIRST, "fleet_virtual_machines": MACHINES[0]}),
    "mistake": (
        {},
        {**FIRST, "fleet_virtual_machines": [{"name": "web01", "attributes": {"cpus": 4}}]},
    ),
}
# Afterwards, in check mode.
PLANNED = {
    "stop-planned": ({}, {"fleet_in_doubt": "stop"}),
    "skip-planned": ({}, {"fleet_in_doubt": "skip"}),
    "machines-planned": ({}, {"fleet_virtual_machines": OTHERS}),
    "machines-strict": ({}, {"fleet_virtual_machines": OTHERS, "fleet_on_difference": "fail"}),
}
HOSTS = {
    "all": {
        "hosts": {case: {} for case in (*CASES, *PLANNED)},
        "children": {
            "fleet": {
                "hosts": {"a": {}, "b": {}},
                "vars": {
                    "ansible_connection": "ssh",
                    "ansible_host": "192.0.2.1",
                    "ansible_become": True,
                    "ansible_python_interpreter": "/nonexistent/python",
                },
            }
        },
    }
}


def play(case: str, keywords: dict, variables: dict) -> dict:
    """The play of a case: the role, and a task that runs when it fails, so that the other cases
    follow.
    """
    ledger = {"fleet_ledger": f"{{{{ playbook_dir }}}}/{case.partition('-')[0]}.db"}
    given = {
        name: value
        for name, value in {**FLEET, **ledger, **variables}.items()
        if value is not ABSENT
    }
    return {
        "hosts": case,
        "gather_facts": False,
        **keywords,
        "vars": given,
        "module_defaults": {"group/infrastructure.services.all": {"access_token": case}},
        "tasks": [
            {
                "block": [{"import_role": {"name": "infrastructure.services.fleet"}}],
                "rescue": [{"name": "The role failed", "debug": {"msg": "failed"}}],
            }
        ],
    }


class Told:
    """What the cases returned and sent."""

    def __init__(self, runs: list[Run], conversation: list[dict], report: str) -> None:
        self.output = "".join(run.output for run in runs)
        self.report = json.loads(report)
        self._all = Run(0, self.output, [line for run in runs for line in run.results])
        self._conversation = conversation

    def tasks(self, case: str) -> list[str]:
        return [line["task"] for line in self._all.on(case).results]

    def failed(self, case: str) -> bool:
        return "The role failed" in self.tasks(case)

    def result(self, case: str, task: str = "Create the virtual machines") -> dict:
        return self._all.on(case).result(f"infrastructure.services.fleet : {task}")

    def said(self, case: str) -> str:
        """What was displayed during the play of a case."""
        return re.split(
            r"^PLAY ", self.output.partition(f"PLAY [{case}] ")[2], maxsplit=1, flags=re.MULTILINE
        )[0]

    def shown(self, case: str) -> str:
        return json.dumps(self._all.on(case).results)

    def bodies(self, case: str) -> list[dict]:
        return [
            json.loads(request["body"])
            for request in self._conversation
            if ["Authorization", f"Bearer {case}"] in request["headers"]
        ]

    def names(self, case: str) -> list[str]:
        """The names in the bodies of a case; an update has none."""
        return sorted(body.get("name") or "role-1" for body in self.bodies(case))


@pytest.fixture(scope="module")
def told(collections, running_service, tmp_path_factory) -> Told:
    directory = tmp_path_factory.mktemp("fleet")
    running_service.reset()
    running_service.seed("role-1", name="reader")
    running_service.fault(kind="status", status=403, operation="update_application_role")
    running_service.fault(kind="status", status=403, operation="create_virtual_machine")
    # One creation of the case `refused` passes; the answers to the first ones of `stop` and `skip`
    # are lost.
    running_service.fault(
        kind="drop", when="after", operation="create_virtual_machine", skip=1, count=2
    )
    ansible = Ansible(directory, collections, running_service.url, "local", HOSTS)
    runs = [
        ansible.playbook(
            yaml.safe_dump([play(case, *how) for case, how in cases.items()]),
            *options,
            INFRASTRUCTURE_SERVICES_LEDGER="",  # as if it were not set
        ).ok()
        for cases, options in ((CASES, []), (PLANNED, ["--check", "--diff"]))
    ]
    return Told(runs, running_service.conversation(), (directory / "report.json").read_text())


def test_machines_and_roles_are_sent_once_with_their_shared_defaults(told):
    assert len(set(told.tasks("first"))) <= 5
    assert sorted(told.bodies("first"), key=json.dumps) == sorted(
        [
            {"name": "web01", "attributes": {"cpu": 4, "subnet": {"dns": "192.0.2.1"}}},
            {
                "name": "web02",
                "attributes": {"cpu": 8, "subnet": {"dns": "192.0.2.1", "mask": "255.0.0.0"}},
            },
            {"service": "cassandra", "attributes": {"login": True}},
        ],
        key=json.dumps,
    )
    counts = re.compile(r"^(?:virtual machines|application roles): .*(?=, \d+ s$)", re.MULTILINE)
    said = counts.findall(told.said("first"))
    assert said == [
        "virtual machines: 2 created, 0 unchanged, 0 in doubt, 0 rejected",
        "application roles: 1 updated, 0 unchanged, 0 in doubt, 0 rejected",
    ]
    assert told.bodies("first-again") == []
    said = counts.findall(told.said("first-again"))
    assert said == [
        "virtual machines: 0 created, 2 unchanged, 0 in doubt, 0 rejected",
        "application roles: 0 updated, 1 unchanged, 0 in doubt, 0 rejected",
    ]


def test_check_mode_is_the_plan(told):
    assert told.names("machines") == ["web01", "web02"]
    said = told.said("machines-planned")
    assert "virtual machines: 1 to create, 1 differs, 1 not listed\n" in said
    assert "application roles: 1 to update\n" in said
    assert re.search(r"  ! web02 .*\n  \+ new\b.*\n  \. web01 ", said)
    assert "cpu 8 recorded, 16 listed" in " ".join(told.output.split())
    assert '"login": true' in told.output
    assert told.bodies("machines-planned") == []


def test_everything_is_attempted_and_failures_are_named_at_the_end(told):
    assert told.failed("refused")
    assert len(told.bodies("refused")) == 3
    first, second = told.result("refused"), told.result("refused", "Update the application roles")
    assert first["msg"].startswith("1 of 2 virtual machines failed (1 rejected): web01.")
    assert second["msg"].startswith("1 of 1 application roles failed (1 rejected): role-1.")
    assert first.keys().isdisjoint({"results", "ansible_facts", "not_listed", "diff"})
    assert first["counts"]["rejected"] == 1
    (one,) = told.report["runs"]
    assert {asset["name"]: asset["outcome"] for asset in one["assets"]} == {
        "web01": "rejected",
        "web02": "accepted",
        "role-1": "rejected",
    }


@pytest.mark.parametrize(
    ("word", "sent", "fails"), [("stop", ["role-1"], True), ("skip", ["role-1", "web02"], False)]
)
def test_a_machine_in_doubt_stops_the_run_or_is_skipped(told, word, sent, fails):
    assert told.names(word) == ["web01"]
    for case in (f"{word}-planned", f"{word}-again"):
        assert told.failed(case) is fails
        assert re.search(r"1 in doubt|in doubt since", told.said(case))
    assert told.names(f"{word}-planned") == []
    assert told.names(f"{word}-again") == sent


def test_it_runs_on_the_controller_once_whatever_the_inventory_says(told):
    assert told.names("unreachable") == ["role-1", "web01", "web02"]


@pytest.mark.parametrize(
    ("case", "first_task"),
    [
        ("empty-ledger", "Check the application roles"),
        ("null-ledger", "Check the application roles"),
        ("no-ledger", "Check the application roles"),
        ("template-ledger", "Create the virtual machines"),  # it has no application roles
    ],
)
def test_without_a_ledger_nothing_is_sent_and_the_variable_is_named(told, case, first_task):
    assert told.failed(case)
    result = told.result(case, first_task)
    assert result["outcome"] == "not_sent"
    assert result["msg"].startswith(
        "fleet_ledger: is missing: set it, or INFRASTRUCTURE_SERVICES_LEDGER in the environment, "
    )
    assert "argument_spec_data" not in told.said(case)
    assert told.bodies(case) == []


def test_an_empty_fleet_is_valid_and_says_that_it_is_empty(told):
    assert not told.failed("empty-lists")
    said = told.said("empty-lists")
    assert "virtual machines: the list is empty\n" in said
    assert "virtual machines: the list is empty" not in told.said("machines")
    assert told.bodies("empty-lists") == []


def test_the_defaults_of_the_machines_are_not_merged_into_the_roles(told):
    assert {"attributes": {"login": True}} in told.bodies("refused")


def test_a_misspelled_variable_is_refused_with_the_name_that_was_meant(told):
    assert told.failed("misspelled")
    said = told.result("misspelled")["msg"]
    assert said == (
        "fleet_concurency: there is no such variable; did you mean fleet_concurrency? fleet_vms: there is"
        " no such variable; did you mean fleet_virtual_machines? Nothing was sent."
    )
    assert told.bodies("misspelled") == []


def test_a_list_of_strings_is_refused_in_the_words_of_the_module(told):
    assert told.failed("strings")
    assert "write it as - name: web01" in told.result("strings")["msg"]
    assert "argument_spec_data" not in told.said("strings")
    assert told.names("strings") == []


def test_a_machine_that_is_not_in_a_list_is_refused_in_the_words_of_the_module(told):
    said = "fleet_virtual_machines: must be a list, not a dict. Nothing was sent."
    assert said in told.result("no-dash")["msg"]
    assert "argument_spec_data" not in told.said("no-dash")
    assert told.names("no-dash") == []


def test_a_machine_that_differs_fails_the_role_if_it_is_told_to(told):
    assert told.failed("machines-strict")
    assert "cpu 8 recorded, 16 listed: the service cannot update it" in " ".join(
        told.said("machines-strict").split()
    )


def test_a_mistake_in_every_machine_is_reported_once_at_the_end(told):
    assert told.failed("mistake")
    assert "Error while" not in told.output
    assert "cpus" in told.result("mistake")["msg"]
    assert told.bodies("mistake") == []


def test_a_failure_has_its_exit_status_and_no_secret_is_shown(ansible_once, service):
    play = {"hosts": "localhost", "gather_facts": False, "roles": ["infrastructure.services.fleet"]}
    missing = [{"id": "not there", "name": "x"}]
    variables = {**FLEET, "fleet_ledger": "ledger.db", "fleet_application_roles": missing}
    run = ansible_once.playbook(yaml.safe_dump([{**play, "vars": variables}]), "-vvv")
    assert run.rc == 2
    assert len(service.conversation()) == 3
    assert TOKEN not in run.output


def rows(output: str) -> int:
    """How many rows of a terminal with 80 columns an output takes."""
    return sum(max(1, -(-len(line) // 80)) for line in output.splitlines())


def of_fleet(machines: list[dict], **variables: object) -> dict:
    return {
        "hosts": "localhost",
        "gather_facts": False,
        "roles": ["infrastructure.services.fleet"],
        "vars": {"fleet_ledger": "fleet.db", "fleet_virtual_machines": machines, **variables},
    }


def going_on(play: dict) -> dict:
    """Return the same play, after which the next one runs even if the role fails."""
    role = {"import_role": {"name": "infrastructure.services.fleet"}}
    return {**play, "roles": [], "tasks": [{"block": [role], "rescue": [{"meta": "noop"}]}]}


@pytest.mark.matrix
def test_a_plan_of_120_machines_fits_on_one_screen_and_names_what_is_not_unchanged(
    ansible_once, service
):
    attributes = {"cpu": 4, "team": "web", "operating_system": "Debian 13"}
    old = [
        {"name": name, "attributes": attributes}
        for name in (*(f"vm{number}" for number in range(113)), "drift")
    ]
    gone, lost, new = (
        [{"name": name, "attributes": attributes} for name in names]
        for names in (["gone1", "gone2"], ["lost"], ["new1", "new2", "new3"])
    )
    service.fault(
        kind="drop", when="after", operation="create_virtual_machine", skip=len(old + gone)
    )
    ansible_once.playbook(yaml.safe_dump([of_fleet(old + gone), of_fleet(lost)]))
    listed = [*old[:-1], {"name": "drift", "attributes": {**attributes, "cpu": 8}}, *lost, *new]
    plan = ansible_once.playbook(yaml.safe_dump([of_fleet(listed)]), "--check").output
    assert (
        "\nvirtual machines: 3 to create, 1 differs, 1 in doubt, 2 not listed, 113 unchanged\n"
        in plan
    )
    assert (
        "\n  each:    team web, cpu 4, operating_system Debian 13\n  ? lost   in doubt since "
        in plan
    )
    assert "  ! drift  cpu 4 recorded, 8 listed: the service cannot update it\n" in plan
    assert re.findall(r"^  \+ (\S+)$", plan, re.MULTILINE) == ["new1", "new2", "new3"]
    assert re.findall(r"^  \. (\S+)  recorded, not listed: left alone$", plan, re.MULTILINE) == [
        "gone1",
        "gone2",
    ]
    assert not re.search(r"\bvm\d", plan)
    assert rows(plan) <= 50  # of which ansible-core's own words about the failed task take 10
    given = yaml.safe_dump([of_fleet(listed, fleet_in_doubt="skip")])
    with_diff = ansible_once.playbook(given, "--check", "--diff").ok().output
    assert with_diff.count('+        "cpu": 4') == 3
    assert not re.search(r"\bvm\d", with_diff)
    assert rows(with_diff) <= 90


LIST = {
    "virtual_machines": [{"name": f"vm{number}"} for number in range(500)],
    "ledger": "fleet.db",
    "results": "problems",
    "asset_fields": [],
    "max_unknown": 0,
}
OF_MODULE = {
    "hosts": "localhost",
    "gather_facts": False,
    "tasks": [{"infrastructure.services.compute_virtual_machines": LIST}],
}


@pytest.mark.parametrize("front", ["role", pytest.param("module", marks=pytest.mark.matrix)])
def test_one_lost_answer_among_500_machines_fits_on_one_screen(ansible_once, service, front):
    service.fault(kind="drop", when="after", operation="create_virtual_machine", skip=400)
    run = ansible_once.playbook(
        yaml.safe_dump([of_fleet(LIST["virtual_machines"]) if front == "role" else OF_MODULE])
    )
    assert run.rc == 2
    counts = (
        r"\nvirtual machines: 4\d\d created, (0 unchanged, )?1 in doubt, (0 rejected, )?\d+ (s|not)"
    )
    assert re.search(counts, run.output)
    assert (
        "  To settle it: ansible-playbook infrastructure.services.in_doubt -e ledger=" in run.output
    )
    assert run.output.count("connection was lost") <= 2
    assert rows(run.output) <= 60


@pytest.mark.matrix
def test_what_is_skipped_and_what_differs_is_named_on_one_screen(ansible_once, service):
    """In a run that is green: 4 of 120 machines are in doubt, the others differ."""
    machines = [{"name": f"vm{number:03}", "attributes": {"cpu": 4}} for number in range(120)]
    service.fault(kind="drop", when="after", operation="create_virtual_machine", skip=50, count=4)
    ansible_once.playbook(
        yaml.safe_dump([of_fleet(machines, fleet_max_unknown=0, fleet_concurrency=1)])
    )
    listed = [{**machine, "attributes": {"cpu": 8}} for machine in machines]
    run = ansible_once.playbook(yaml.safe_dump([of_fleet(listed, fleet_in_doubt="skip")])).ok()
    counts = r"\nvirtual machines: 0 created, 4 in doubt, 0 rejected, 116 differs, \d+ s\n"
    assert re.search(counts, run.output)
    assert rows(run.output) <= 60


@pytest.mark.matrix
def test_only_what_was_approved_is_sent(ansible_once, service):
    machines = [{"name": f"vm{number}", "attributes": {"cpu": 4}} for number in range(3)]
    roles = [{"id": "role-0001", "attributes": {"login": False}}]
    plan = dict(fleet_report="fleet.json", fleet_application_roles=roles)
    service.seed("role-0001", name="one")
    said = (
        ansible_once.playbook(yaml.safe_dump([of_fleet(machines, **plan)]), "--check").ok().output
    )
    assert "\nplan: fleet.plan.html, .json, .md, .xml\n" in said
    approved = dict(plan, fleet_approved="fleet.plan.json")
    other = [*machines[:2], {"name": "vm2", "attributes": {"cpu": "8"}}, {"name": "VM1"}]
    told = (
        "2 assets are not approved as listed now: vm2: attributes.cpu (8 now, 4 approved);"
        " VM1: the plan does not send it."
    )
    other_roles = [{"id": "role-0001", "attributes": {"login": True}}]
    told_of_role = (
        "1 asset is not approved as listed now: role-0001: attributes.login (true now,"
        " false approved)."
    )
    refused = [
        going_on(of_fleet(listed, **{**approved, "fleet_application_roles": given}))
        for listed, given in ((other, roles), (other, []), (machines, other_roles))
    ]
    run = ansible_once.playbook(yaml.safe_dump(refused))
    said = [line["result"]["msg"] for line in run.ok().results if line["result"]["failed"]]
    assert [words in msg for words, msg in zip((told, told, told_of_role), said)] == [True] * 3
    assert " changed=0 " in run.output  # the task that only checks changes nothing
    assert service.conversation() == []
    sent = of_fleet(machines, **approved)
    run = ansible_once.playbook(yaml.safe_dump([sent, sent])).ok()
    assert re.findall(r"virtual machines: (\d created, \d unchanged)", run.output) == [
        "3 created, 0 unchanged",
        "0 created, 3 unchanged",
    ]
    assert "\nreport: fleet.html, .json, .xml\n" in run.output


@pytest.mark.matrix
def test_five_of_a_fleet_are_tried_first(ansible_once, service):
    """The others are left out, in the plan and at the end, and are not taken for removed ones."""
    machines = [{"name": f"vm{number:02}"} for number in range(12)]
    roles = [{"id": "role-0001", "attributes": {"login": False}}]
    fleet = dict(fleet_application_roles=roles, fleet_report="fleet.json")
    ansible_once.playbook(yaml.safe_dump([of_fleet(machines[:1], fleet_ledger="fleet.db")])).ok()
    only = dict(fleet, fleet_only="vm0[0-3], vm11")
    play = yaml.safe_dump([of_fleet(machines, **only)])
    plan = ansible_once.playbook(play, "--check").ok().output
    assert "virtual machines: 4 to create, 1 unchanged\n" in plan
    left_out = "are left out (fleet_only: vm0[0-3], vm11)\n"
    assert f"  7 more of the list {left_out}" in plan
    assert f"  1 more of the list {left_out}" in plan  # of the roles
    assert (
        "7 more of the list are left out" in (ansible_once.directory / "fleet.plan.md").read_text()
    )
    wrong = of_fleet(machines, **dict(fleet, fleet_only=["vm1*", "web01"]))
    end = ansible_once.playbook(yaml.safe_dump([of_fleet(machines, **only), wrong]))
    assert "virtual machines: 4 created, 1 unchanged, " in end.output
    assert f"  7 more of the list {left_out}" in end.output
    assert end.rc == 2
    assert "fleet_only: web01 is in neither list" in end.output
    assert len(service.conversation()) == 5


@pytest.mark.matrix
def test_an_approved_plan_is_good_for_its_ledger_and_for_one_creation(ansible_once, service):
    machines = [{"name": f"vm{number}"} for number in range(3)]
    plan, approved = {"fleet_report": "fleet.json"}, {"fleet_approved": "fleet.plan.json"}
    ansible_once.playbook(yaml.safe_dump([of_fleet(machines[:1])])).ok()
    ansible_once.playbook(yaml.safe_dump([of_fleet(machines, **plan)]), "--check").ok()

    def applied(**more) -> dict:
        return going_on(of_fleet(machines, **{**approved, **more}))

    def said(*plays: dict) -> str:
        return " ".join(ansible_once.playbook(yaml.safe_dump([*plays])).ok().output.split())

    refused = said(applied(fleet_approved="nosuch.json"), applied(fleet_ledger="misspelled.db"))
    assert "there is no file" in refused
    assert "fleet.plan.json' was made against the ledger" in refused
    assert not (ansible_once.directory / "misspelled.db").exists()
    assert len(service.conversation()) == 1
    entry = {"resource": "compute_virtual_machine", "name": "vm1", "state": "absent"}
    forget = {
        "hosts": "localhost",
        "gather_facts": False,
        "tasks": [{"infrastructure.services.ledger_entry": {"ledger": "fleet.db", **entry}}],
    }
    sent = said(applied(), applied(), forget, applied())
    assert re.findall(r"virtual machines: (\d created, \d unchanged)", sent) == [
        "2 created, 1 unchanged",
        "0 created, 3 unchanged",
    ]
    told = "1 asset is not approved as listed now: vm1: it was created since the plan was made"
    assert told in sent.partition("0 created, 3 unchanged")[2]
    assert len(service.conversation()) == 3


def test_a_fault_of_one_list_is_found_before_a_request_of_the_other(ansible_once, service):
    service.seed("role-0001", name="one")
    machines, roles = [{"name": "vm0"}], [{"id": "role-0001", "attributes": {"login": True}}]
    wrong_machines = [*machines, {"name": "vm1", "atributes": {}}]
    wrong_roles = [*roles, {"id": "role-2", "atributes": {}}]
    plays = [
        of_fleet(wrong_machines, fleet_application_roles=roles, fleet_ledger="machines.db"),
        of_fleet(machines, fleet_application_roles=wrong_roles, fleet_ledger="roles.db"),
    ]
    run = ansible_once.playbook(yaml.safe_dump([going_on(play) for play in plays])).ok()
    told = "atributes: there is no such option (did you mean attributes?)"
    failed = [line["result"]["msg"] for line in run.results if line["result"]["failed"]]
    assert [told in message for message in failed] == [True, True]
    assert "changed=0 " in run.output
    assert service.conversation() == []
    assert not (ansible_once.directory / "roles.db").exists()


LOST = {"fleet_ledger": "lost.db"}
NAMED = {  # By what a message names: the variables of the role.
    "fleet_concurrency": {"fleet_concurrency": 0},
    "fleet_max_unknown": {"fleet_max_unknown": -1},
    "fleet_application_roles: must be a list": {"fleet_application_roles": {"id": "a"}},
    "fleet_virtual_machines: must be a list (CSV becomes one by | infrastructure": {
        "fleet_virtual_machines": "name,cpu\nweb01,4\n"
    },
    "name: is the same as that of fleet_virtual_machines[0]": {
        "fleet_virtual_machines": [{"name": "a"}] * 2
    },
    "fleet_report:": {"fleet_report": "/nonexistent/fleet.json"},
    "fleet_approved:": {"fleet_approved": "/nonexistent/fleet.plan.json"},
    "fleet_ledger: there is none at": {"fleet_ledger_create": False, "fleet_ledger": "none.db"},
    "set fleet_ledger_create to true": {"fleet_ledger_create": False, "fleet_ledger": "none.db"},
    "(fleet_max_unknown: 1)": {
        **LOST,
        "fleet_virtual_machines": [{"name": "lost"}, {"name": "other"}],
        "fleet_concurrency": 1,
    },
    "(fleet_in_doubt: stop)": {
        **LOST,
        "fleet_virtual_machines": [{"name": "lost"}, {"name": "other"}],
    },
    "(fleet_max_failures: 1)": {
        "fleet_max_failures": 1,
        "fleet_virtual_machines": [{"name": "no"}, {"name": "other"}],
        "fleet_concurrency": 1,
    },
    "set fleet_on_difference: warn": {
        "fleet_on_difference": "fail",
        "fleet_virtual_machines": [{"name": "made", "attributes": {"cpu": 8}}],
    },
}


@pytest.mark.matrix
def test_messages_name_the_variables_of_the_role(ansible_once, service):
    service.fault(kind="drop", when="after", operation="create_virtual_machine", skip=1)
    service.fault(kind="status", status=403, operation="create_virtual_machine", skip=1)
    first = of_fleet([{"name": "made", "attributes": {"cpu": 4}}])
    plays = [going_on(of_fleet([{"name": "made"}], **given)) for given in NAMED.values()]
    run = ansible_once.playbook(yaml.safe_dump([first, *plays])).ok()
    said = " ".join(run.output.split())
    assert [named for named in NAMED if named not in said] == []
    assert (
        re.findall(
            r"[^_/](?:max_unknown|max_failures|in_doubt|on_difference|virtual_machines): [^m]", said
        )
        == []
    )


SCREEN = """\
virtual machines: 497 created, 1 in doubt, 2 rejected, N s (2 x 429, N s waited)
  x vm100, vm101
      POST URL:
      status 403: the token lacks the permission for this operation; ask for it
      or use another client. No virtual machine was created.
  ? vm302
      POST URL: the
      connection was lost before a complete answer arrived, or what arrived is
      not HTTP. It is unknown whether the virtual machine was created. Look for
      it on the service: sent again, it may exist twice. The ledger does not
      send it again until it is settled.
  To settle it: ansible-playbook infrastructure.services.in_doubt -e ledger=DIRECTORY/fleet.db
report: fleet.html, .json, .xml
"""
SCREEN_OF_ROLES = """\
application roles: 1 updated, 0 unchanged, 0 in doubt, 0 rejected, N s
  ! role-1
      these fields were known and not sent, and came back different or not at
      all: name ("reader" known, null now), attributes.login (true known, null
      now). The service replaces what is not sent, or somebody else changed it.
      To restore them, add {"name": "reader", "attributes": {"login": true}} to
      the task, the item or its body, with send: complete.
report: fleet.html, .json, .xml
"""


@pytest.mark.matrix
def test_the_screen_of_500_machines_of_which_one_is_lost_two_are_rejected_and_a_role_loses_a_field(
    ansible_once, service
):
    service.settings(put="replace")
    service.seed("role-1", name="reader")
    entry = {
        "resource": "cassandra_application_role",
        "id": "role-1",
        "ledger": "fleet.db",
        "asset": {"id": "role-1", "name": "reader", "attributes": {"login": True}},
    }
    adopting = {
        "hosts": "localhost",
        "gather_facts": False,
        "tasks": [{"infrastructure.services.ledger_entry": entry}],
    }
    for fault in (
        {"status": 403, "skip": 100, "count": 2},
        {"status": 429, "skip": 200, "count": 2},
    ):
        service.fault(kind="status", operation="create_virtual_machine", **fault)
    service.fault(kind="drop", when="after", operation="create_virtual_machine", skip=300)
    machines = [{"name": f"vm{number}", "attributes": {"cpu": 4}} for number in range(500)]
    play = of_fleet(
        machines,
        fleet_report="fleet.json",
        fleet_max_unknown=0,
        fleet_concurrency=1,
        fleet_application_roles=[{"id": "role-1", "description": "two"}],
    )
    run = ansible_once.playbook(yaml.safe_dump([adopting, play]))
    said = run.output.replace(f"{service.url}/api/v1/services/compute/virtual_machines", "URL")
    said = re.sub(r"\b\d+ s\b", "N s", said).replace(str(ansible_once.directory), "DIRECTORY")
    # Whether the counts fit on one line depends on the digits of the seconds.
    said = said.replace(
        "created, 0 unchanged, 1 in doubt, 2 rejected,\n ", "created, 1 in doubt, 2 rejected,"
    )
    assert SCREEN in said
    assert SCREEN_OF_ROLES in said
    assert rows(run.output) <= 80
    report = json.loads((ansible_once.directory / "fleet.json").read_text())["runs"][0]
    waits = [wait for asset in report["assets"] for wait in asset.get("waits", ())]
    assert len(waits) == 2
    assert all(seconds > 0 for _began, seconds in waits)
    (role,) = [
        asset for asset in report["assets"] if asset["resource"] == "cassandra_application_role"
    ]
    assert role["lost"] == [
        {"name": "name", "known": "reader", "now": None},
        {"name": "attributes.login", "known": True, "now": None},
    ]
