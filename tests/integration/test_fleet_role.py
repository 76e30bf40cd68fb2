"""The role `fleet`: from lists in variables to machines and roles, on the controller, and how it
reports failures.

A run has a play for each case, with a host and a token of its own, by which its results and
requests are known.
"""

from __future__ import annotations

import json
import re

import pytest
from support.ledgers import create
from support.running import Ansible, Run

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
OTHER = [{"name": "web01", "attributes": {"cpu": 16}}, {"name": "web03"}]
WITH_ID = [{"name": "old", "id": "vm-7"}, {"name": "new"}]
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
    "first-other": ({}, {"fleet_virtual_machines": OTHER, "fleet_application_roles": []}),
    "unreachable": ({"hosts": "fleet"}, {"fleet_ledger": "{{ playbook_dir }}/fleet.db"}),
    "ids": ({}, {"fleet_virtual_machines": WITH_ID, "fleet_application_roles": []}),
    "ids-again": ({}, {"fleet_virtual_machines": WITH_ID, "fleet_application_roles": []}),
    "empty-ledger": ({}, {"fleet_ledger": ""}),
    "no-ledger": ({}, {"fleet_ledger": ABSENT}),
    "empty-lists": ({}, NOTHING),
}
# Afterwards, in check mode.
PLANNED = {
    "stop-planned": ({}, {"fleet_in_doubt": "stop"}),
    "skip-planned": ({}, {"fleet_in_doubt": "skip"}),
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
        "module_defaults": {"group/infrastructure.services.all": {"access_token": f"token-{case}"}},
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

    def bodies(self, case: str) -> list[dict]:
        return [
            json.loads(request["body"])
            for request in self._conversation
            if ["Authorization", f"Bearer token-{case}"] in request["headers"]
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
    for name in {"fleet", *(case.partition("-")[0] for case in CASES)}:
        create(f"{directory}/{name}.db", running_service.url)
    runs = [
        ansible.playbook(
            [play(case, *how) for case, how in cases.items()],
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
    said = told.said("first")
    assert "virtual machines: 2 created, " in said
    assert "application roles: 1 updated, " in said
    assert told.bodies("first-again") == []
    assert "virtual machines: 2 unchanged, " in told.said("first-again")


def test_a_machine_of_another_team_with_the_same_name_fails_alone(told):
    msg = told.result("first-other")["msg"]
    assert msg.startswith("1 of 2 virtual machines failed (1 differs): web01.")
    assert "virtual machines: 1 created, 1 differs, " in told.said("first-other")
    assert told.names("first-other") == ["web03"]


def test_everything_is_attempted_and_failures_are_named_at_the_end(told):
    assert told.failed("refused")
    assert len(told.bodies("refused")) == 3
    assert {"attributes": {"login": True}} in told.bodies("refused")  # without those of machines
    first, second = told.result("refused"), told.result("refused", "Update the application roles")
    assert first["msg"].startswith("1 of 2 virtual machines failed (1 rejected): web01.")
    assert second["msg"].startswith("1 of 1 application roles failed (1 rejected): role-1.")
    assert first.keys().isdisjoint({"results", "ansible_facts", "not_listed", "diff"})
    outcomes = {row["item"]: row["outcome"] for row in told.report["results"]}
    assert outcomes == {"web01": "rejected", "web02": "accepted", "role-1": "rejected"}


@pytest.mark.parametrize(
    ("word", "sent", "fails"), [("stop", ["role-1"], True), ("skip", ["role-1", "web02"], False)]
)
def test_a_machine_in_doubt_stops_the_run_or_is_skipped(told, word, sent, fails):
    assert told.names(word) == ["web01"]
    for case in (f"{word}-planned", f"{word}-again"):
        assert told.failed(case) is fails
        assert re.search(r"1 in doubt|in doubt since", told.said(case))
    assert (told.names(f"{word}-planned"), told.names(f"{word}-again")) == ([], sent)


def test_a_machine_with_an_id_is_adopted_and_never_sent(told):
    assert "virtual machines: 1 created, 1 adopted, " in told.said("ids")
    assert " 2 unchanged, " in told.said("ids-again")
    assert told.names("ids") == ["new"]


def test_it_runs_on_the_controller_once_whatever_the_inventory_says(told):
    assert told.names("unreachable") == ["role-1", "web01", "web02"]


@pytest.mark.parametrize("case", ["empty-ledger", "no-ledger"])
def test_without_a_ledger_nothing_is_sent_and_the_variable_is_named(told, case):
    assert told.failed(case)
    result = told.result(case, "Check the application roles")
    assert result["outcome"] == "not_sent"
    assert result["msg"].startswith(
        "fleet_ledger: is missing: set it, or the environment variable INFRASTRUCTURE_SERVICES_LEDGER"
    )
    assert told.bodies(case) == []


def test_an_empty_fleet_is_valid_and_says_that_it_is_empty(told):
    assert not told.failed("empty-lists")
    assert "virtual machines: the list is empty, 0 s\n" in told.said("empty-lists")
    assert told.bodies("empty-lists") == []


@pytest.fixture
def ledger(ansible, service) -> None:
    """The ledger of `of_fleet`."""
    create(f"{ansible.directory}/fleet.db", service.url)


def of_fleet(machines: list[dict], **variables: object) -> dict:
    return {
        "hosts": "localhost",
        "gather_facts": False,
        "roles": ["infrastructure.services.fleet"],
        "vars": {
            "fleet_ledger": "{{ playbook_dir }}/fleet.db",
            "fleet_virtual_machines": machines,
            **variables,
        },
    }


@pytest.mark.matrix
def test_a_misspelled_variable_or_parameter_of_the_role_is_refused(ansible, service):
    """Ansible's own check of arguments would print all variables with their descriptions."""
    role = {"role": "infrastructure.services.fleet", "machines": MACHINES}
    run = ansible.playbook([{**of_fleet([], fleet_concurency=1), "roles": [role]}])
    (msg,) = [line["result"]["msg"] for line in run.results if line["result"]["failed"]]
    assert msg == (
        "fleet_concurency: there is no such variable; did you mean fleet_concurrency? machines:"
        " there is no such variable; did you mean fleet_virtual_machines? Nothing was sent."
    )
    assert (run.rc, service.conversation()) == (2, [])


def going_on(play: dict) -> dict:
    """Return the same play, after which the next one runs even if the role fails."""
    role = {"import_role": {"name": "infrastructure.services.fleet"}}
    return {**play, "roles": [], "tasks": [{"block": [role], "rescue": [{"meta": "noop"}]}]}


@pytest.mark.matrix
@pytest.mark.usefixtures("ledger")
def test_five_of_a_fleet_are_tried_first(ansible, service):
    """The others are left out, in the plan and at the end, and are not taken for removed ones."""
    machines = [{"name": f"vm{number:02}"} for number in range(12)]
    roles = [{"id": "role-0001", "attributes": {"login": False}}]
    fleet = dict(fleet_application_roles=roles, fleet_report="fleet.json")
    ansible.playbook([of_fleet(machines[:1])]).ok()
    only = dict(fleet, fleet_only="vm0[0-3], vm11")
    plan = ansible.playbook([of_fleet(machines, **only)], "--check").ok().output
    assert "virtual machines: 4 to create, 1 unchanged\n" in plan
    left_out = "are left out (fleet_only: vm0[0-3], vm11)\n"
    assert f"  7 more of the list {left_out}" in plan
    assert f"  1 more of the list {left_out}" in plan  # of the roles
    assert "7 more of the list are left out" in (ansible.directory / "fleet.plan.md").read_text()
    wrong = of_fleet(machines, **dict(fleet, fleet_only=["vm1*", "web01"]))
    end = ansible.playbook([of_fleet(machines, **only), wrong])
    assert "virtual machines: 4 created, 1 unchanged, " in end.output
    assert f"  7 more of the list {left_out}" in end.output
    assert end.rc == 2
    assert "fleet_only: web01 is in neither list" in end.output
    assert len(service.conversation()) == 5


A_ROLE, WRONG = {"id": "role-0001", "attributes": {"login": True}}, {"atributes": {}}
NEAR = "atributes: there is no such option (did you mean attributes?)"
# What a run is refused for, before a request of either list: its variables, the message.
REFUSED = [
    *(({"fleet_only": nothing}, "fleet_only: is empty: give names") for nothing in ("", [], None)),
    (
        {"fleet_virtual_machines": [{"name": "vm1", **WRONG}], "fleet_application_roles": [A_ROLE]},
        NEAR,
    ),
    ({"fleet_application_roles": [A_ROLE, {"id": "role-2", **WRONG}]}, NEAR),
]


@pytest.mark.usefixtures("ledger")
def test_what_is_refused_is_refused_before_anything_is_sent(ansible, service):
    """An empty `fleet_only` selects nothing, as `-e fleet_only=$UNSET` in a pipeline."""
    service.seed("role-0001", name="one")
    plays = [going_on(of_fleet([{"name": "vm0"}], **given)) for given, _said in REFUSED]
    run = ansible.playbook(plays).ok()
    failed = [line["result"]["msg"] for line in run.results if line["result"]["failed"]]
    assert len(failed) == len(REFUSED)
    assert [said in msg for msg, (_given, said) in zip(failed, REFUSED)] == [True] * len(REFUSED)
    assert "changed=0 " in run.output
    assert service.conversation() == []


LOST = {"fleet_ledger": "{{ playbook_dir }}/lost.db"}
NAMED = {  # By what a message names: the variables of the role.
    "fleet_concurrency": {"fleet_concurrency": 0},
    "name: is the same as that of fleet_virtual_machines[0]": {
        "fleet_virtual_machines": [{"name": "a"}] * 2
    },
    "fleet_report:": {"fleet_report": "/nonexistent/fleet.json"},
    "fleet_ledger: there is no ledger at": {"fleet_ledger": "{{ playbook_dir }}/none.db"},
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
    "(in the role fleet_on_difference)": {
        "fleet_virtual_machines": [{"name": "made", "attributes": {"cpu": 8}}],
    },
}


@pytest.mark.matrix
@pytest.mark.usefixtures("ledger")
def test_messages_name_the_variables_of_the_role(ansible, service):
    create(f"{ansible.directory}/lost.db", service.url)
    service.fault(kind="drop", when="after", operation="create_virtual_machine", skip=1)
    service.fault(kind="status", status=403, operation="create_virtual_machine", skip=1)
    first = of_fleet([{"name": "made", "attributes": {"cpu": 4}}])
    plays = [going_on(of_fleet([{"name": "made"}], **given)) for given in NAMED.values()]
    run = ansible.playbook([first, *plays]).ok()
    said = " ".join(run.output.split())
    assert [named for named in NAMED if named not in said] == []
    assert (
        re.findall(
            r"[^_/](?:max_unknown|max_failures|in_doubt|on_difference|virtual_machines): [^m]", said
        )
        == []
    )
