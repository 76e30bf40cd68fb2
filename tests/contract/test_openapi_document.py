"""The OpenAPI document: valid, in step with the interface's field tables, and silent where the
interface is.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import yaml
from emulator.openapi import DOCUMENT, load, operations
from openapi_spec_validator import OpenAPIV31SpecValidator

RAW = yaml.safe_load(DOCUMENT.read_text(encoding="utf-8"))
SCHEMAS = load()["components"]["schemas"]

# The fields of the interface (sections 2, 2.1 and 2.2), deliberately written down a second time.
ENVELOPE = """
id string, name string, description string, service string, attributes object, platform string, region string,
tenant string
"""
VIRTUAL_MACHINE = """
bios_serial_number string, cdc_security object, cdc_security.anti_tamper string, cdc_security.connectivity string,
cdc_security.customer_id string, cdc_security.s1_version string, cdc_security.uuid string,
cmdb_application_service string, cmdb_management_group string, cpu number, creation_date date-time, datacenter string,
global_status object, global_status.label string, global_status.status number, instance string, ip string,
last_reboot_date date-time, memory_used_percent number, name string, operating_system string, partitions array,
partitions[] object, partitions[].capacity number, partitions[].free number, partitions[].path string,
puppet_classes array, puppet_classes[] string, status string, subnet object, subnet.dns string, subnet.gateway string,
subnet.mask string, subnet.network string, team string, vm_ram number, volumes array, volumes[] object,
volumes[].name string, volumes[].size_gb number
"""
APPLICATION_ROLE = """
cluster_id string, effective_grants array, effective_grants[] object, effective_grants[].permissions array,
effective_grants[].permissions[] string, effective_grants[].resource_kind string,
effective_grants[].resource_name string, effective_grants[].source string, login boolean, name string,
password_last_rotated_at date-time, password_location string
"""


def table(text: str) -> dict[str, str]:
    return dict(row.split() for row in text.replace("\n", " ").split(","))


def kinds(schema: dict) -> list[str]:
    return [schema["type"]] if isinstance(schema["type"], str) else schema["type"]


def fields(schema: dict, above: str = "") -> Iterator[tuple[str, str]]:
    """Yield the path of each field of a schema, with its type or format; null is ignored."""
    for name, field in schema.get("properties", {}).items():
        yield from described(field, f"{above}.{name}" if above else name)
    if "items" in schema:
        yield from described(schema["items"], f"{above}[]")


def described(field: dict, path: str) -> Iterator[tuple[str, str]]:
    (kind,) = set(kinds(field)) - {"null"}
    yield path, field.get("format", kind)
    yield from fields(field, path)


def walk(node: object, path: str = "") -> Iterator[tuple[str, dict]]:
    """Yield every object of the document with its path."""
    if isinstance(node, dict):
        yield path, node
    for key, item in (
        node.items()
        if isinstance(node, dict)
        else enumerate(node)
        if isinstance(node, list)
        else ()
    ):
        yield from walk(item, f"{path}/{key}")


def test_the_document_is_valid():
    OpenAPIV31SpecValidator(RAW).validate()


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        ("VirtualMachineAttributes", VIRTUAL_MACHINE),
        ("VirtualMachineCreateAttributes", VIRTUAL_MACHINE),
        ("ApplicationRoleAttributes", APPLICATION_ROLE),
    ],
)
def test_the_attributes_are_those_of_the_interface(schema, expected):
    assert dict(fields(SCHEMAS[schema])) == table(expected), (
        f"edit docs/openapi.yaml ({schema}), or the table above"
    )


def test_the_envelope_is_that_of_the_interface():
    assert {path: kind for path, kind in fields(SCHEMAS["Envelope"]) if "." not in path} == table(
        ENVELOPE
    )


def test_nothing_is_invented():
    """Required fields, allowed values, bounds and closed objects are not shown by the interface, so
    they are absent.
    """
    open_points = {
        *("required", "enum", "const", "pattern", "minimum", "maximum", "minLength"),
        *("maxLength", "default", "minItems", "maxItems", "additionalProperties"),
        *("unevaluatedProperties", "readOnly"),
    }
    schemas = [
        node
        for path, node in walk(RAW["components"]["schemas"])
        if not path.endswith("/properties")
    ]
    assert len(schemas) > 100
    assert [node for node in schemas if open_points & set(node)] == []
    formats = {node["format"] for node in schemas if "format" in node}
    assert formats == {"date-time"}


def test_the_operations_are_those_of_the_interface():
    assert {(operation.name, operation.method) for operation in operations(load())} == {
        ("create_virtual_machine", "POST"),
        ("update_application_role", "PUT"),
    }
    assert set(RAW["paths"]) == {
        "/api/v1/services/compute/virtual_machines",
        "/api/v1/services/cassandra/application_roles/{id}",
    }
