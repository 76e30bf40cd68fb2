"""One form for what four sources say about the same fields, so that they can be compared with `==`.

A shape is a leaf (`string`, `date-time`, `number`, `boolean`, `object`), a dict of shapes, or a
list of one shape.
"""

from __future__ import annotations

from typing import Iterator

from ansible_collections.infrastructure.services.plugins.module_utils._values import DATE_TIME

ANSIBLE_TYPES = {
    "str": "string",
    "float": "number",
    "bool": "boolean",
    "dict": "object",
    "int": "number",
}


def of_spec(option: dict) -> object:
    """Return the shape of an option of an argument spec."""
    if "options" in option:
        fields = {name: of_spec(inner) for name, inner in option["options"].items()}
        return [fields] if option["type"] == "list" else fields
    if option["type"] == "list":
        return [_of_type(option["elements"])]
    return _of_type(option["type"])


def _of_type(kind: str) -> str:
    return "date-time" if kind is DATE_TIME else ANSIBLE_TYPES[kind]  # to Ansible it is just "str"


def of_documentation(option: dict) -> object:
    """Return the shape of a documented option or return value, where a date-time is a string."""
    inner = option.get("suboptions", option.get("contains"))
    if inner is not None:
        fields = {name: of_documentation(documented) for name, documented in inner.items()}
        return [fields] if option["type"] == "list" else fields
    if option["type"] == "list":
        return [ANSIBLE_TYPES[option["elements"]]]
    return ANSIBLE_TYPES[option["type"]]


def of_schema(schema: dict) -> object:
    """Return the shape of a JSON schema whose references are inlined; nullability is ignored."""
    if "properties" in schema:
        return {name: of_schema(inner) for name, inner in schema["properties"].items()}
    kinds = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
    (kind,) = set(kinds) - {"null"}
    return [of_schema(schema["items"])] if kind == "array" else schema.get("format", kind)


def leaves(shape: object, path: tuple = ()) -> Iterator[tuple[tuple, str]]:
    """Yield each leaf with its path; 0 in a path is the first item of a list."""
    inner = (
        shape.items()
        if isinstance(shape, dict)
        else enumerate(shape)
        if isinstance(shape, list)
        else ()
    )
    for key, item in inner:
        yield from leaves(item, (*path, key))
    if isinstance(shape, str):
        yield path, shape


def sample(shape: object) -> object:
    """Return a value of this shape that has every field."""
    if isinstance(shape, dict):
        return {name: sample(inner) for name, inner in shape.items()}
    if isinstance(shape, list):
        return [sample(inner) for inner in shape]
    return {
        "string": "text",
        "date-time": "2026-01-02T03:04:05Z",
        "number": 4,
        "boolean": True,
        "object": {},
    }[shape]


def put(path: tuple, value: object) -> object:
    """Return a value that holds nothing but `value` at this path."""
    for key in reversed(path):
        value = [value] if key == 0 else {key: value}
    return value
