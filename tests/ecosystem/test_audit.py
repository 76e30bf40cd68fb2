# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Resource reporting counts each asset once: the queries of extensions/audit, run by jq as in AWX."""

from __future__ import annotations

from itertools import permutations
from pathlib import Path

import jq
import pytest
import yaml
from support import CREATE, RESOURCES, UPDATE, run_task
from support.fixtures import CONNECTIONS
from support.running import Ansible
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
    return [row for number, row in enumerate(found)
            if row["canonical_facts"] not in [other["canonical_facts"] for other in found[:number]]]


def names(module: str, *results: dict) -> list[str]:
    return [row["name"] for row in rows(module, *results)]


def many(*results: dict) -> dict:
    """The result of a plural module for the results of its items."""
    kept = ("changed", "failed", "outcome", "status", "asset", "msg", "plan", "skipped")
    items = [{"item": "label", **{key: result[key] for key in kept if key in result}} for result in results]
    return {"results": items, "changed": True, "outcome": "unknown", "counts": {}}


def item(outcome: str, changed: bool = False, **more) -> dict:
    return {"outcome": outcome, "changed": changed, "failed": False, **more}


def test_there_is_a_query_for_every_module_that_sends():
    assert QUERIES.keys() == {f"infrastructure.services.{name}" for name in (*RESOURCES, *PLURAL.values())}
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
@pytest.mark.parametrize("said", [answer(400), answer(403), answer(500), answer(503), answer(200), answer(204),
                                  answer(303), Last(b""), Last(b"HTTP/1.1 201 -\r\nContent-Length: 9\r\n\r\n{"),
                                  answer(200, {**ENVELOPE, "id": None}), answer(200, {**ENVELOPE, "id": ""})])
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
    "not begun": (item("not_sent", skipped=True), 0),
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
        results = [result for result, _rows in order]
        assert len(rows(PLURAL[CREATE], many(*results))) == max(expected for _result, expected in order)


def test_the_result_of_a_whole_loop_adds_no_rows():
    done = item("accepted", True, asset=ENVELOPE)
    assert rows(CREATE, {"results": [done, done], "changed": True, "msg": "All items completed"}) == []


CREATED = """
- name: {task}
  infrastructure.services.compute_virtual_machine: {{name: {name}, ledger: "{{{{ playbook_dir }}}}/ledger.db"}}
"""
ADOPTED = """
- name: Adopt
  infrastructure.services.ledger_entry:
    ledger: "{{ playbook_dir }}/ledger.db"
    resource: compute_virtual_machine
    name: app01
    asset: {id: id-of-app01, attributes: {cpu: 8}}
"""


@pytest.mark.parametrize("connection", CONNECTIONS)
def test_created_rerun_and_adopted_with_a_ledger_each_machine_is_one_row(collections, service, tmp_path, connection):
    ansible = Ansible(tmp_path, collections, service.url, CONNECTIONS[connection])
    tasks = ADOPTED + "".join(CREATED.format(task=f"Create {name}", name=name) for name in ("web01", "app01"))
    planned = ansible.tasks(CREATED.format(task="Plan", name="web01"), "--check").ok().result("Plan")
    runs = [ansible.tasks(tasks).ok() for _run in range(3)]
    replanned = ansible.tasks(CREATED.format(task="Plan", name="web01"), "--check").ok().result("Plan")
    assert (replanned["changed"], replanned["plan"], names(CREATE, planned, replanned)) == (False, "keep", [])
    results = [planned, *(run.result(f"Create {name}") for run in runs for name in ("web01", "app01"))]
    assert [request["method"] for request in service.conversation()] == ["POST"]
    assert [result["changed"] for result in results] == [True, True, False, False, False, False, False]
    assert names(CREATE, *results) == ["web01", "app01"]


LISTED = """
- name: {task}
  infrastructure.services.compute_virtual_machines:
    virtual_machines: [{{name: web01}}, {{name: web02}}]
    ledger: "{{{{ playbook_dir }}}}/ledger.db"
"""


def test_each_run_of_a_list_has_a_row_per_machine_and_none_in_check_mode(ansible_once, service):
    for task, options, expected in (("Plan", ["--check"], []), ("Create", [], ["web01", "web02"]),
                                    ("Plan again", ["--check"], []), ("Create again", [], ["web01", "web02"])):
        result = ansible_once.tasks(LISTED.format(task=task), *options).ok().result(task)
        assert names(PLURAL[CREATE], result) == expected, task
