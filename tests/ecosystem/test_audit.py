# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Resource reporting counts each asset once: the queries of extensions/audit, run by jq as in AWX."""

from __future__ import annotations

import os
from itertools import permutations
from pathlib import Path

import ansible_runner
import jq
import pytest
import yaml
from ansible_collections.infrastructure.services.plugins.module_utils._errors import Message
from ansible_collections.infrastructure.services.plugins.module_utils._list.result import ListResult
from ansible_collections.infrastructure.services.plugins.module_utils._result import Result
from ansible_collections.infrastructure.services.plugins.module_utils._task.specs import (
    VIRTUAL_MACHINES,
)
from support import CREATE, RESOURCES, UPDATE, run_task
from support.fixtures import CONNECTIONS
from support.running import BIN, Ansible
from support.wire import Last, answer, serving

ROOT = Path(__file__).resolve().parents[2]
QUERIES = yaml.safe_load((ROOT / "extensions/audit/event_query.yml").read_text(encoding="utf-8"))
COMPILED = {name.rpartition(".")[2]: jq.compile(entry["query"]) for name, entry in QUERIES.items()}
PLURAL = {CREATE: "compute_virtual_machines", UPDATE: "cassandra_application_roles"}
ENVELOPE = {"id": "id-1", "name": "web01", "description": None, "attributes": {}}
URL = "https://service.example"


def rows(module: str, *results: dict) -> list[dict]:
    """What AWX makes of the results of one module: rows with the same canonical facts become one."""
    found = [row for result in results for row in COMPILED[module].input_value(result).all()]
    assert all(None not in row["canonical_facts"].values() for row in found)
    return [
        row
        for number, row in enumerate(found)
        if row["canonical_facts"] not in [other["canonical_facts"] for other in found[:number]]
    ]


def names(module: str, *results: dict) -> list[str]:
    return [row["name"] for row in rows(module, *results)]


def many(*results: dict) -> dict:
    """The result of a plural module for the results of its items, only the problems of which it
    lists.
    """
    collected = ListResult(
        VIRTUAL_MACHINES, [f"label{number}" for number in range(len(results))], None
    )
    for number, result in enumerate(results):
        warnings = [*map(Message, result.get("warnings", ()))]
        collected.add(number, Result.from_ansible({**result, "warnings": warnings}))
    result = collected.returned(collected.done(), "problems").as_ansible()
    ((_module, facts),) = result["ansible_facts"].items()
    return {**result, "ansible_facts": dict.fromkeys(PLURAL.values(), facts)}


def item(outcome: str, changed: bool = False, **more) -> dict:
    return {"outcome": outcome, "changed": changed, "failed": False, **more}


def test_there_is_a_query_for_every_module_that_sends():
    assert QUERIES.keys() == {
        f"infrastructure.services.{name}" for name in (*RESOURCES, *PLURAL.values())
    }
    assert all(entry.keys() == {"query"} for entry in QUERIES.values())


@pytest.mark.parametrize("resource", RESOURCES)
def test_an_accepted_asset_is_a_row_whose_facts_are_strings(resource):
    with serving(answer(200, ENVELOPE)) as wire:
        done = run_task(resource, base_url=wire.url)
    (row,) = rows(resource, done)
    assert (row["name"], row["canonical_facts"]) == ("web01", {"resource": resource, "id": "id-1"})
    assert rows(PLURAL[resource], many(done)) == [row]
    assert {*map(type, (*row["canonical_facts"].values(), *row["facts"].values()))} == {str}


@pytest.mark.parametrize("resource", RESOURCES)
@pytest.mark.parametrize(
    "said",
    [
        answer(400),
        answer(403),
        answer(500),
        answer(503),
        answer(200),
        answer(204),
        answer(303),
        Last(b""),
        Last(b"HTTP/1.1 201 -\r\nContent-Length: 9\r\n\r\n{"),
        answer(200, {**ENVELOPE, "id": None}),
        answer(200, {**ENVELOPE, "id": ""}),
    ],
)
def test_no_row_for_an_asset_that_is_refused_in_doubt_or_without_id(resource, said):
    with serving(said) as wire:
        done = run_task(resource, base_url=wire.url, retries=0)
    assert rows(resource, done) == rows(PLURAL[resource], many(done)) == []


@pytest.mark.parametrize("resource", RESOURCES)
def test_no_row_for_a_request_that_was_not_sent(resource):
    assert rows(resource, run_task(resource, base_url="ftp://x")) == []
    assert rows(resource, run_task(resource, check_mode=True, base_url=URL)) == []


def test_a_role_that_needs_no_update_is_a_row_again():
    current = {"id": "role-1", "name": "orders", "attributes": {"login": True}}
    settled = run_task(UPDATE, base_url=URL, id="role-1", current=current)
    assert (settled["changed"], names(UPDATE, settled)) == (False, ["orders"])
    planned = run_task(UPDATE, check_mode=True, base_url=URL, id="role-1", current=current)
    assert (planned["changed"], names(UPDATE, planned)) == (False, [])


PATHS = {
    "created": (item("accepted", True, asset=ENVELOPE), 1),
    "kept": (item("not_sent", asset=ENVELOPE), 1),
    "accepted, but not recorded": (item("accepted", True, failed=True, asset=ENVELOPE), 1),
    "accepted, answer lost": (item("accepted", True, failed=True), 0),
    "unknown": (item("unknown", failed=True), 0),
    "unknown, with what was recorded before": (item("unknown", failed=True, asset=ENVELOPE), 0),
    "rejected": (item("rejected", failed=True), 0),
    "not started": (item("not_sent", skipped=True), 0),
    "to be created": (item("not_sent", True, plan="create", asset={**ENVELOPE, "id": None}), 0),
    "to be updated": (item("not_sent", True, plan="update", asset=ENVELOPE), 0),
    "to be kept": (item("not_sent", plan="keep", asset=ENVELOPE), 0),
    "without an id among the asset_fields": (item("accepted", True, asset={"name": "web01"}), 0),
}


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("resource", RESOURCES)
def test_an_item_of_many_is_a_row_when_the_service_has_it(resource, path):
    result, expected = PATHS[path]
    assert len(rows(PLURAL[resource], many(result))) == expected


def test_an_asset_is_at_most_one_row_whatever_happens_to_it():
    for order in permutations(PATHS.values(), 3):
        lists = [many(result) for result, _rows in order]
        assert len(rows(PLURAL[CREATE], *lists)) == max(expected for _result, expected in order)


def test_a_list_has_a_row_for_each_asset_that_the_service_has():
    results = [result for result, _rows in PATHS.values() if "plan" not in result]
    results = [
        {**result, "asset": {**result["asset"], "id": f"id-{number}"}}
        if "id" in result.get("asset", {})
        else result
        for number, result in enumerate(results)
    ]
    assert len(rows(PLURAL[CREATE], many(*results))) == sum(
        expected for _result, expected in PATHS.values()
    )


def test_the_result_of_a_whole_loop_adds_no_rows():
    done = item("accepted", True, asset=ENVELOPE)
    assert (
        rows(CREATE, {"results": [done, done], "changed": True, "msg": "All items completed"}) == []
    )


ADOPT = {
    "name": "Adopt",
    "infrastructure.services.ledger_entry": {
        "resource": CREATE,
        "name": "app01",
        "asset": {"id": "id-of-app01", "attributes": {"cpu": 8}},
    },
}
LEDGER = "{{ playbook_dir }}/{{ inventory_hostname }}.db"


def create(name: str, task: str) -> dict:
    return {"name": task, f"infrastructure.services.{CREATE}": {"name": name}}


def create_all(task: str) -> dict:
    machines = [{"name": "web01"}, {"name": "web02"}]
    return {
        "name": task,
        f"infrastructure.services.{PLURAL[CREATE]}": {"virtual_machines": machines},
    }


def plays() -> list[dict]:
    """A machine that is planned, created, adopted, and created again, on both connections; and a
    list likewise.
    """
    again = [ADOPT, create("web01", "Create web01"), create("app01", "Create app01")]
    of_one = [
        {**create("web01", "Plan"), "check_mode": True},
        *again * 3,
        {**create("web01", "Plan again"), "check_mode": True},
    ]
    of_many = [
        {**create_all("Plan"), "check_mode": True},
        create_all("Create"),
        {**create_all("Plan again"), "check_mode": True},
        create_all("Create again"),
    ]
    common = {
        "gather_facts": False,
        "module_defaults": {
            "group/infrastructure.services.all": {
                "ledger": LEDGER,
                "access_token": "{{ inventory_hostname }}",
            }
        },
    }
    return [
        {"hosts": ",".join(CONNECTIONS), "tasks": of_one, **common},
        {"hosts": "list", "tasks": of_many, **common},
    ]


@pytest.fixture(scope="module")
def repeated(collections, running_service, tmp_path_factory):
    """One run of the plays: what Ansible recorded, and the tokens that the service received."""
    directory = tmp_path_factory.mktemp("audit")
    hosts = {
        **{name: {"ansible_connection": connection} for name, connection in CONNECTIONS.items()},
        "list": {},
    }
    running_service.reset()
    run = Ansible(
        directory, collections, running_service.url, "local", {"all": {"hosts": hosts}}
    ).playbook(yaml.safe_dump(plays()))
    return run.ok(), running_service.header("Authorization")


@pytest.mark.parametrize("connection", CONNECTIONS)
def test_created_rerun_and_adopted_with_a_ledger_each_machine_is_one_row(repeated, connection):
    run, tokens = repeated[0].on(connection), repeated[1]
    planned, replanned = run.result("Plan"), run.result("Plan again")
    assert (replanned["changed"], replanned["plan"], names(CREATE, planned, replanned)) == (
        False,
        "keep",
        [],
    )
    results = [
        planned,
        *(line["result"] for line in run.results if line["task"].startswith("Create")),
    ]
    assert tokens.count(f"Bearer {connection}") == 1
    assert [result["changed"] for result in results] == [
        True,
        True,
        False,
        False,
        False,
        False,
        False,
    ]
    assert names(CREATE, *results) == ["web01", "app01"]


def test_each_run_of_a_list_has_a_row_per_machine_and_none_in_check_mode(repeated):
    run, tokens = repeated[0].on("list"), repeated[1]
    for task, expected in (
        ("Plan", []),
        ("Create", ["web01", "web02"]),
        ("Plan again", []),
        ("Create again", ["web01", "web02"]),
    ):
        assert names(PLURAL[CREATE], run.result(task)) == expected, task
    assert tokens.count("Bearer list") == 2


MOST_KEPT = 700_000  # characters of a result; ansible-runner empties the event of a larger one
SIZES = (20, 120)


def of_size(size: int) -> list[dict]:
    """The plays that create so many machines: by the role with its defaults, and by the module with
    little returned.
    """
    machines = [
        {"name": f"vm{number:05}", "attributes": {"cpu": 4, "team": "web"}}
        for number in range(size)
    ]
    task = {"virtual_machines": machines, "results": "problems", "asset_fields": ["id"]}
    common = {"hosts": "localhost", "gather_facts": False}
    return [
        {
            **common,
            "roles": ["infrastructure.services.fleet"],
            "vars": {
                "fleet_ledger": f"{{{{ playbook_dir }}}}/{size}.db",
                "fleet_virtual_machines": machines,
            },
        },
        {**common, "tasks": [{"infrastructure.services.compute_virtual_machines": task}]},
    ]


@pytest.fixture(scope="module")
def events(collections, running_service, tmp_path_factory) -> list[dict]:
    """What ansible-runner keeps of four lists, the smaller ones first."""
    environment = {
        "ANSIBLE_COLLECTIONS_PATH": str(collections),
        "PATH": f"{BIN}{os.pathsep}{os.environ['PATH']}",
        "INFRASTRUCTURE_SERVICES_ACCESS_TOKEN": "a-token-of-the-tests",
        "INFRASTRUCTURE_SERVICES_BASE_URL": running_service.url,
    }
    run = ansible_runner.run(
        private_data_dir=str(tmp_path_factory.mktemp("runner")),
        playbook=[*of_size(SIZES[0]), *of_size(SIZES[1])],
        envvars=environment,
        quiet=True,
        inventory="localhost ansible_connection=local",
        timeout=120,
    )
    assert run.status == "successful"
    return [
        event["event_data"]["res"]
        for event in run.events
        if event["event"] == "runner_on_ok"
        and event["event_data"]["resolved_action"].endswith(f".{PLURAL[CREATE]}")
    ]


@pytest.mark.parametrize("front", ["the role", "the module"])
def test_ansible_runner_keeps_the_event_of_ten_thousand_machines(events, front):
    small, large = events[("the role", "the module").index(front) :: 2]
    each = (len(str(large)) - len(str(small))) / (SIZES[1] - SIZES[0])
    assert len(str(small)) + each * (10_000 - SIZES[0]) < MOST_KEPT


def test_each_machine_of_an_event_is_a_row_once(events):
    for event, size in zip(events, (SIZES[0], SIZES[0], SIZES[1], SIZES[1]), strict=True):
        assert sorted(row["name"] for row in COMPILED[PLURAL[CREATE]].input_value(event).all()) == [
            f"vm{number:05}" for number in range(size)
        ]
