"""Resource reporting counts each asset once: the queries of extensions/audit, run by jq as in AWX."""

from __future__ import annotations

from pathlib import Path

import jq
import pytest
import yaml
from ansible_collections.infrastructure.services.plugins.module_utils._errors import Message
from ansible_collections.infrastructure.services.plugins.module_utils._list.result import ListResult
from ansible_collections.infrastructure.services.plugins.module_utils._result import Result
from ansible_collections.infrastructure.services.plugins.module_utils._task.specs import (
    VIRTUAL_MACHINES,
)
from support import CREATE, OPERATION, UPDATE, run_task
from support.wire import answer, serving

ROOT = Path(__file__).resolve().parents[2]
QUERIES = yaml.safe_load((ROOT / "extensions/audit/event_query.yml").read_text(encoding="utf-8"))
COMPILED = {name.rpartition(".")[2]: jq.compile(entry["query"]) for name, entry in QUERIES.items()}
PLURAL = {CREATE: "compute_virtual_machines", UPDATE: "cassandra_application_roles"}
ENVELOPE = {"id": "id-1", "name": "web01", "description": None, "attributes": {}}


def rows(module: str, *results: dict) -> list[dict]:
    """What AWX makes of the results of one module: rows with the same canonical facts become one."""
    found = [row for result in results for row in COMPILED[module].input_value(result).all()]
    assert all(None not in row["canonical_facts"].values() for row in found)
    return [
        row
        for number, row in enumerate(found)
        if row["canonical_facts"] not in [other["canonical_facts"] for other in found[:number]]
    ]


def many(*results: dict) -> dict:
    """The result of a plural module for the results of its items, only the problems of which it
    lists.
    """
    items = {}
    for number, result in enumerate(results):
        warnings = [*map(Message, result.get("warnings", ()))]
        items[f"label{number}"] = Result.from_ansible({**result, "warnings": warnings})
    params = {"asset_fields": None, "results": "problems"}
    collected = ListResult(VIRTUAL_MACHINES, params, items)
    result = collected.returned(collected.done()).as_ansible()
    ((_module, facts),) = result["ansible_facts"].items()
    return {**result, "ansible_facts": dict.fromkeys(PLURAL.values(), facts)}


def item(outcome: str, changed: bool = False, **more) -> dict:
    return {"outcome": outcome, "changed": changed, "failed": False, **more}


def test_there_is_a_query_for_every_module_that_sends():
    assert QUERIES.keys() == {
        f"infrastructure.services.{name}" for name in (*OPERATION, *PLURAL.values())
    }
    assert all(entry.keys() == {"query"} for entry in QUERIES.values())


@pytest.mark.parametrize("resource", OPERATION)
def test_an_accepted_asset_is_a_row_whose_facts_are_strings(resource):
    with serving(answer(200, ENVELOPE)) as wire:
        done = run_task(resource, base_url=wire.url)
    (row,) = rows(resource, done)
    assert (row["name"], row["canonical_facts"]) == ("web01", {"resource": resource, "id": "id-1"})
    assert rows(PLURAL[resource], many(done)) == [row]
    assert {*map(type, (*row["canonical_facts"].values(), *row["facts"].values()))} == {str}
    kept = item("not_sent", asset=done["asset"])  # as the next run returns it, with a ledger
    assert rows(resource, done, kept) == rows(PLURAL[resource], many(done), many(kept)) == [row]


PATHS = {
    "created": (item("accepted", True, asset=ENVELOPE), 1),
    "kept": (item("not_sent", asset=ENVELOPE), 1),
    "adopted": (item("not_sent", True, asset=ENVELOPE), 1),
    "accepted, but not recorded": (item("accepted", True, failed=True, asset=ENVELOPE), 1),
    "accepted, answer lost": (item("accepted", True, failed=True), 0),
    "without an id": (item("accepted", True, asset={**ENVELOPE, "id": None}), 0),
    "with an empty id": (item("accepted", True, asset={**ENVELOPE, "id": ""}), 0),
    "unknown": (item("unknown", failed=True), 0),
    "rejected": (item("rejected", failed=True), 0),
    "not started": (item("not_sent", skipped=True), 0),
    "to be created": (item("not_sent", True, plan="create", asset={**ENVELOPE, "id": None}), 0),
    "to be updated": (item("not_sent", True, plan="update", asset=ENVELOPE), 0),
    "to be adopted": (item("not_sent", True, plan="adopt", asset=ENVELOPE), 0),
    "to be kept": (item("not_sent", plan="keep", asset=ENVELOPE), 0),
    "without an id among the asset_fields": (item("accepted", True, asset={"name": "web01"}), 0),
}


CASES = [
    (resource, path)
    for resource in OPERATION
    for path in PATHS
    if resource == CREATE or "adopted" not in path  # only machines are
]


@pytest.mark.parametrize(("resource", "path"), CASES)
def test_an_asset_is_a_row_when_the_service_has_it(resource, path):
    result, expected = PATHS[path]
    assert len(rows(PLURAL[resource], many(result))) == expected
    if "asset_fields" not in path and path != "to be kept":
        assert len(rows(resource, result)) == expected
