# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The operations of the OpenAPI document with their paths, and validators built once."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from pathlib import Path
from typing import Any, Dict

import yaml
from jsonschema import Draft202012Validator, FormatChecker

DOCUMENT = Path(__file__).resolve().parents[2] / "docs" / "openapi.yaml"
_DATE_TIME = re.compile(
    r"(\d{4}-\d\d-\d\d)[Tt](\d\d:\d\d:\d\d)(?:\.\d+)?([Zz]|[+-]\d\d:\d\d)", re.ASCII
)
Document = Dict[str, Any]  # the OpenAPI document, or an object in it
_METHODS = ("get", "put", "post", "delete", "options", "head", "patch", "trace")


@dataclass(frozen=True)
class Operation:
    """One operation: a POST creates an asset, a PUT updates the one whose id is in the path."""

    name: str  # its operationId
    method: str
    path: re.Pattern[str]
    service: str
    collection: str  # of the assets, as in the path
    body: Draft202012Validator
    fields: tuple[str, ...]  # of the body
    attributes: tuple[str, ...]  # of the asset

    @property
    def creates(self) -> bool:
        """Whether it makes a new asset each time."""
        return self.method == "POST"


@cache
def load(path: Path = DOCUMENT) -> Document:
    """Return the document with every `$ref` replaced by what it points to; all callers share it."""
    document = yaml.safe_load(path.read_text(encoding="utf-8"))
    return {key: _inline(value, document) for key, value in document.items()}


def operations(document: Document) -> list[Operation]:
    """Return the operations of a loaded document."""
    return [
        _operation(template, method, described)
        for template, item in document["paths"].items()
        for method, described in item.items()
        if method in _METHODS and "requestBody" in described
    ]


def _operation(template: str, method: str, described: Document) -> Operation:
    service, collection = template.split("/")[4:6]  # of /api/v1/services/SERVICE/COLLECTION
    body = _schema(described["requestBody"])
    _envelope, own = _schema(described["responses"]["2XX"])["allOf"]
    attributes = own["properties"]["attributes"]["properties"]
    name, path = described["operationId"], _expression(template)
    return Operation(
        name,
        method.upper(),
        path,
        service,
        collection,
        validator(body),
        (*body["properties"],),
        (*attributes,),
    )


def validator(schema: Document) -> Draft202012Validator:
    """Return a validator that also checks `date-time`, the only format that the interface names."""
    formats = FormatChecker(formats=())
    formats.checks("date-time")(is_date_time)
    return Draft202012Validator(schema, format_checker=formats)


def is_date_time(value: object) -> bool:
    """Whether the value is an RFC 3339 date-time; the format says nothing about other types."""
    if not isinstance(value, str):
        return True
    match = _DATE_TIME.fullmatch(value)
    if not match:
        return False
    zone = match[3] if match[3] not in "Zz" else "+00:00"
    try:
        datetime.fromisoformat(f"{match[1]}T{match[2]}{zone}")
    except ValueError:
        return False
    return True


def _schema(described: Document) -> Document:
    schema: Document = described["content"]["application/json"]["schema"]
    return schema


def _expression(template: str) -> re.Pattern[str]:
    """Turn `/a/{id}` into an expression whose group `id` is one path segment."""
    parts = re.split(r"\{(\w+)\}", template)
    return re.compile(
        "".join(
            f"(?P<{part}>[^/]+)" if odd % 2 else re.escape(part) for odd, part in enumerate(parts)
        )
    )


def _inline(node: object, document: Document) -> object:
    if isinstance(node, list):
        return [_inline(item, document) for item in node]
    if not isinstance(node, dict):
        return node
    if "$ref" not in node:
        return {key: _inline(value, document) for key, value in node.items()}
    target = document
    for key in node["$ref"].removeprefix("#/").split("/"):
        target = target[key]
    return _inline(target, document)
