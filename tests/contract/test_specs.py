"""docs/openapi.yaml, the argument specs and the emulator know the same operations, fields and
types.
"""

from __future__ import annotations

import pytest
from ansible_collections.infrastructure.services.plugins.module_utils._resources import (
    planning,
    resources,
)
from ansible_collections.infrastructure.services.plugins.module_utils._resources.resources import (
    OPERATIONS,
    RESOURCES,
)
from ansible_collections.infrastructure.services.plugins.module_utils._task import (
    options as shared_options,
)
from emulator import openapi, server
from support import CREATE, OPERATION, SPECS, UPDATE, run_task
from support.shapes import of_schema, of_spec, sample

DOCUMENT = openapi.load()
SCHEMAS = DOCUMENT["components"]["schemas"]
ATTRIBUTES = {
    name: of_spec({"type": "dict", "options": resource.attributes})
    for name, resource in RESOURCES.items()
}
# The emulator reads the document.
EDIT = "edit plugins/module_utils/_resources/resources.py (left) or docs/openapi.yaml (right)"
SECRETS = {"access_token", "client_secret", "auth_parameters"}


@pytest.fixture(scope="module")
def service():
    with server.start(unknown_id="create") as running:
        yield running


@pytest.mark.parametrize(
    ("schema", "resource"),
    [
        ("VirtualMachineAttributes", CREATE),
        ("VirtualMachineCreateAttributes", CREATE),
        ("ApplicationRoleAttributes", UPDATE),
    ],
)
def test_attributes_are_those_of_the_document(schema, resource):
    assert ATTRIBUTES[resource] == of_schema(SCHEMAS[schema]), EDIT


def test_the_envelope_is_that_of_the_document():
    strings = dict.fromkeys(planning.ENVELOPE, "string")
    assert of_schema(SCHEMAS["Envelope"]) == {**strings, "attributes": "object"}


def test_the_fields_of_both_bodies_are_those_of_the_document():
    assert set(SCHEMAS["VirtualMachineCreate"]["properties"]) == {"name", "attributes"}
    assert set(SCHEMAS["ApplicationRoleUpdate"]["properties"]) == {
        *resources.UPDATED,
        "attributes",
    }


def test_the_operations_are_those_of_the_document():
    documented = {
        (path, method.upper()) for path, item in DOCUMENT["paths"].items() for method in item
    }
    assert documented == {(operation.path, operation.method) for operation in OPERATIONS.values()}


@pytest.mark.parametrize("resource", OPERATION)
def test_the_emulator_knows_every_field_and_answers_with_the_envelope(service, resource):
    """Every typed field is sent, accepted, and returned unchanged; the answer has the documented
    keys.
    """
    whole = sample(ATTRIBUTES[resource])
    known = {"current": {"id": "role-0001"}} if resource == UPDATE else {}
    result = run_task(resource, base_url=service.url, attributes=whole, **known)
    assert (result["outcome"], result["warnings"]) == ("accepted", [])
    assert result["request"]["body"]["attributes"] == whole
    assert result["asset"]["attributes"] == whole
    assert set(result["asset"]) == set(planning.ENVELOPE)


@pytest.mark.parametrize("resource", OPERATION)
def test_secret_options_are_never_logged(resource):
    options = SPECS[resource].documented()["argument_spec"]
    assert {name for name, option in options.items() if option.get("no_log")} == SECRETS


def test_no_resource_reuses_the_name_of_a_shared_option():
    for operation in OPERATIONS.values():
        assert set(operation.options) & set(shared_options.ARGUMENT_SPEC) == set()
