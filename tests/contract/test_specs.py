# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""docs/openapi.yaml, the argument specs and the emulator know the same operations, fields and
types.
"""

from __future__ import annotations

from pathlib import Path

import pytest
import requests
import yaml
from ansible_collections.infrastructure.services.plugins.module_utils import _version
from ansible_collections.infrastructure.services.plugins.module_utils._resources import (
    application_role,
    planning,
)
from ansible_collections.infrastructure.services.plugins.module_utils._task import (
    options as shared_options,
)
from emulator import openapi, server
from support import CREATE, RESOURCES, UPDATE, run_task
from support.shapes import leaves, of_schema, of_spec, put, sample

ROOT = Path(__file__).resolve().parents[2]
DOCUMENT = openapi.load()
SCHEMAS = DOCUMENT["components"]["schemas"]
ATTRIBUTES = {
    name: of_spec({"type": "dict", "options": resource.attributes})
    for name, resource in RESOURCES.items()
}
LEAVES = [(name, path, kind) for name, shape in ATTRIBUTES.items() for path, kind in leaves(shape)]
WRONG = {"string": 7, "date-time": "tomorrow", "number": "four", "boolean": "yes"}

# The options that an environment variable can set, and those whose value is a secret.
FROM_ENVIRONMENT = {
    "base_url",
    "access_token",
    "auth_url",
    "client_id",
    "client_secret",
    "client_authentication",
    "scopes",
    "allow_http",
    "validate_certs",
    "ca_path",
    "client_cert",
    "client_key",
    "timeout",
    "retries",
    "ledger",
    "ledger_create",
}
MORE_VARIABLES = {"ca_path": ["REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE"]}
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
    assert ATTRIBUTES[resource] == of_schema(SCHEMAS[schema])


def test_the_envelope_is_that_of_the_document():
    strings = dict.fromkeys(planning.ENVELOPE, "string")
    assert of_schema(SCHEMAS["Envelope"]) == {**strings, "attributes": "object"}


def test_the_fields_of_both_bodies_are_those_of_the_document():
    assert set(SCHEMAS["VirtualMachineCreate"]["properties"]) == {"name", "attributes"}
    assert set(SCHEMAS["ApplicationRoleUpdate"]["properties"]) == {
        *application_role.FIELDS,
        "attributes",
    }


def test_the_operations_are_those_of_the_document():
    documented = {
        (path, method.upper()) for path, item in DOCUMENT["paths"].items() for method in item
    }
    assert documented == {
        (resource.operation.path, resource.operation.method) for resource in RESOURCES.values()
    }


@pytest.mark.parametrize("resource", RESOURCES)
def test_the_emulator_knows_every_field_and_answers_with_the_envelope(service, resource):
    """Every typed field is sent, accepted, and returned unchanged; the answer has the documented
    keys.
    """
    whole = sample(ATTRIBUTES[resource])
    result = run_task(resource, base_url=service.url, attributes=whole)
    assert (result["outcome"], result["warnings"]) == ("accepted", [])
    assert result["request"]["body"]["attributes"] == whole
    assert result["asset"]["attributes"] == whole
    assert set(result["asset"]) == set(planning.ENVELOPE)


@pytest.mark.parametrize("resource", RESOURCES)
def test_the_emulator_returns_every_field_that_has_no_value(service, resource):
    result = run_task(resource, base_url=service.url)
    assert set(result["asset"]["attributes"]) == set(ATTRIBUTES[resource])


@pytest.mark.parametrize(("resource", "path", "kind"), LEAVES, ids=str)
def test_the_emulator_refuses_a_field_of_the_wrong_type(service, resource, path, kind):
    operation = RESOURCES[resource].operation
    address, headers = (
        service.url + operation.path.format(id="role-0001"),
        {"Authorization": "Bearer t"},
    )
    for value, accepted in ((sample(kind), True), (WRONG[kind], False)):
        body = {"name": "web01", "attributes": put(path, value)}
        answer = requests.request(operation.method, address, json=body, headers=headers, timeout=10)
        assert answer.ok is accepted
        assert accepted or answer.status_code == 422


def test_environment_variables_set_the_options_they_may():
    options = {
        name: option
        for name, option in shared_options.ARGUMENT_SPEC.items()
        if "fallback" in option
    }
    assert set(options) == FROM_ENVIRONMENT
    for name, option in options.items():
        assert option["fallback"][1] == [
            f"INFRASTRUCTURE_SERVICES_{name.upper()}",
            *MORE_VARIABLES.get(name, []),
        ]


@pytest.mark.parametrize("resource", RESOURCES)
def test_secret_options_are_never_logged(resource):
    options = {**shared_options.ARGUMENT_SPEC, **RESOURCES[resource].options}
    assert {name for name, option in options.items() if option.get("no_log")} == SECRETS


def test_no_resource_reuses_the_name_of_a_shared_option():
    for resource in RESOURCES.values():
        assert set(resource.options) & set(shared_options.ARGUMENT_SPEC) == set()


def test_the_version_is_that_of_the_collection():
    assert (
        yaml.safe_load((ROOT / "galaxy.yml").read_text(encoding="utf-8"))["version"]
        == _version.VERSION
    )
