"""Every run of a module returns exactly the keys that its RETURN documents for that case, in
addition to Ansible's.
"""

from __future__ import annotations

import importlib

import pytest
import yaml
from ansible_collections.infrastructure.services.plugins.module_utils._resources.planning import (
    ENVELOPE,
)
from emulator import faults, openapi, server
from support import APPLICATION_ROLES, LEAST, OPERATION, UPDATE, VIRTUAL_MACHINES
from support.front import run_module, run_plural
from support.shapes import of_documentation, of_schema

SCHEMAS = openapi.load()["components"]["schemas"]
TYPES = {"str": str, "int": int, "dict": dict, "list": list, "bool": bool}
ANSIBLE = {"changed", "failed", "msg", "diff", "warnings", "invocation"}  # documented by Ansible

# What the service does, and what the task then reports; a failure returns what RETURN documents for
# "always" and "valid options".
FAILURES = {
    "not_sent": {"base_url": "http://127.0.0.1:9"},
    "rejected": {"kind": "status", "status": 403},
    "unknown": {"kind": "drop", "when": "before"},
    "accepted": {"kind": "status", "status": 204, "when": "after"},
}


@pytest.fixture(scope="module")
def service():
    with server.start(roles=["role-0001"]) as running:
        yield running


@pytest.fixture
def run(service):
    """Return a function that runs a module against the emulator."""
    service.api.reset()

    def run(module: str, options: dict, **how: object) -> dict:
        given = {
            "base_url": service.url,
            "access_token": "token-of-the-tests",
            "retries": 0,
            **LEAST[module],
        }
        return run_module(module, {**given, **options}, **how)

    return run


def documented(module: str) -> dict:
    """Return the RETURN of a module."""
    return yaml.safe_load(
        importlib.import_module(
            f"ansible_collections.infrastructure.services.plugins.modules.{module}"
        ).RETURN
    )


def check(module: str, result: dict, *cases: str) -> None:
    """Assert that the result has the keys that RETURN promises for these values of `returned`, with
    the right types.
    """
    promised = {
        key: value for key, value in documented(module).items() if value["returned"] in cases
    }
    assert set(result) - ANSIBLE == set(promised)
    for key, value in promised.items():
        assert result[key] is None or isinstance(result[key], TYPES[value["type"]]), key
        for item in result[key] if isinstance(result[key], list) else [result[key]]:
            assert set(value.get("contains", {})) <= set(item) if "contains" in value else True, key


ALWAYS, SUCCESS = "always", "on success"
VALID = "when the options can be used"
SENDS = "when there is something to send"
PLANNED = ("in check mode", f"{SUCCESS}, in check mode")


@pytest.mark.parametrize("module", OPERATION)
@pytest.mark.parametrize("check_mode", [False, True])
@pytest.mark.parametrize("diff", [False, True])
def test_a_success_returns_what_is_documented(run, module, check_mode, diff):
    result = run(module, {}, check_mode=check_mode, diff=diff)
    check(module, result, ALWAYS, VALID, SENDS, SUCCESS, *PLANNED * check_mode)
    assert result["changed"] is True
    assert set(result["asset"]) == set(ENVELOPE)
    assert result["ansible_facts"] == {module: result["asset"]}
    assert set(result["request"]) == set(documented(module)["request"]["contains"])
    assert ("diff" in result) is diff


def test_a_run_with_nothing_to_do_returns_what_is_documented(run):
    result = run(UPDATE, {"current": run(UPDATE, {})["asset"]})
    check(UPDATE, result, ALWAYS, VALID, SUCCESS)
    assert (result["changed"], result["outcome"]) == (False, "not_sent")


@pytest.mark.parametrize("module", OPERATION)
@pytest.mark.parametrize("outcome", FAILURES)
def test_a_failure_returns_what_is_documented(run, service, module, outcome):
    options = FAILURES[outcome] if "base_url" in FAILURES[outcome] else {}
    if not options:
        service.api.add_fault(faults.parse(FAILURES[outcome]))
    result = run(module, options)
    check(module, result, ALWAYS, VALID, SENDS)
    assert (result["failed"], result["outcome"], result["changed"]) == (
        True,
        outcome,
        outcome == "accepted",
    )
    assert result["msg"]


@pytest.mark.parametrize("module", OPERATION)
def test_a_refused_option_returns_what_is_documented(run, module):
    result = run(module, {"timeout": "soon"})
    check(module, result, ALWAYS)
    assert (result["failed"], result["outcome"], result["changed"]) == (True, "not_sent", False)


@pytest.mark.parametrize("plural", [VIRTUAL_MACHINES, APPLICATION_ROLES], ids=lambda it: it.name)
@pytest.mark.parametrize("check_mode", [False, True])
def test_a_list_returns_what_is_documented(service, plural, check_mode):
    service.api.reset()
    options = {
        "base_url": service.url,
        "access_token": "token-of-the-tests",
        "ledger": "none",
        "defaults": {"attributes": {"name": "of all"}},
        plural.option: [{plural.key: "role-0001", "attributes": {"name": "n"}}],
    }
    result = run_plural(plural, options, check_mode=check_mode)
    promised = documented(plural.name)
    assert not result.get("failed"), result["msg"]
    assert set(result) - ANSIBLE == set(promised) - {"not_listed"}
    fields = promised["results"]["contains"]
    always = {name for name, field in fields.items() if "returned" not in field}
    (item,) = result["results"]
    assert always <= set(item) <= set(fields)
    assert ("plan" in item) == check_mode
    assert item["asset"]["attributes"]["name"] == "n"
    assert set(promised["counts"]["sample"]) <= set(result["counts"])
    assert set(result["ansible_facts"][plural.name]) == {"role-0001"}


@pytest.mark.parametrize("module", OPERATION)
def test_the_asset_is_documented_with_every_field_of_the_envelope(module):
    assert of_documentation(documented(module)["asset"]) == of_schema(SCHEMAS["Envelope"])
