# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The faults as data: what one is, and which one a request meets; scripts.py executes it."""

from __future__ import annotations

import base64
import binascii
from dataclasses import asdict, dataclass, field, replace
from typing import Callable

from . import openapi
from .messages import is_whole

OPERATIONS = (*(operation.name for operation in openapi.operations(openapi.load())), "token", "any")
JUNK = "\x16\x03\x01 this is not HTTP\r\n\r\n"


@dataclass(frozen=True)
class Fault:
    """One fault; KINDS says which parameters belong to which kind, README.md what they mean."""

    kind: str
    operation: str = "any"
    count: int | None = 1  # None: until reset
    skip: int = 0
    when: str = ""
    status: int = 0
    headers: tuple[tuple[str, str], ...] = ()
    body: str = ""
    location: str = ""
    seconds: float = 0.0
    part: str = "headers"
    bytes: int = 0
    ending: str = "drop"
    text: str = JUNK
    base64: str = ""
    id: int = field(default=0, compare=False)  # assigned by api.py

    @property
    def prevents(self) -> bool:
        """Whether the request never reaches the store."""
        return self.when == "before" and self.kind != "delay"

    def as_dict(self) -> dict[str, object]:
        """Return the fault as a dict, without the parameters of other kinds."""
        own = (*COMMON, *KINDS[self.kind].parameters)
        return {key: value for key, value in asdict(self).items() if key in own}


@dataclass(frozen=True)
class Kind:
    """When a kind can strike (the first is the default); a parameter of None is required."""

    moments: tuple[str, ...]
    parameters: dict[str, object]


COMMON = ("kind", "operation", "count", "skip", "when")
KINDS = {
    "status": Kind(("before", "after"), {"status": None, "headers": (), "body": ""}),
    "redirect": Kind(("before", "after"), {"status": 307, "headers": (), "location": None}),
    "delay": Kind(("before", "after"), {"seconds": 1.0}),
    "drop": Kind(("before", "after"), {}),
    "reset": Kind(("before", "after"), {}),
    "garbage": Kind(("after", "before"), {"part": "headers", "text": JUNK, "base64": ""}),
    "truncate": Kind(("after",), {"part": "headers", "bytes": 0, "ending": "drop"}),
    "drip": Kind(("after",), {"part": "headers", "seconds": 1.0}),
    "close": Kind(("after",), {"seconds": 0.0}),
}


def _is_count(value: object) -> bool:
    return is_whole(value, 0)


def is_seconds(value: object) -> bool:
    """Whether the value is a number of seconds that is reasonable to wait."""
    return isinstance(value, (int, float)) and not isinstance(value, bool) and 0 <= value <= 3600


def _is_text(value: object) -> bool:
    return isinstance(value, str)


def _is_base64(value: object) -> bool:
    try:
        return isinstance(value, str) and isinstance(base64.b64decode(value, validate=True), bytes)
    except (binascii.Error, ValueError):
        return False


def _is_field(value: object) -> bool:
    return isinstance(value, str) and value.isascii() and value.isprintable()


def _is_headers(value: object) -> bool:
    pairs = list(value.items()) if isinstance(value, dict) else value
    return isinstance(pairs, (list, tuple)) and all(
        isinstance(pair, (list, tuple)) and len(pair) == 2 and all(map(_is_field, pair))
        for pair in pairs
    )


RULES: dict[str, Callable[[object], bool]] = {
    "kind": lambda value: isinstance(value, str) and value in KINDS,
    "operation": lambda value: isinstance(value, str) and value in OPERATIONS,
    "count": lambda value: value is None or _is_count(value),
    "skip": _is_count,
    "when": _is_text,
    "status": lambda value: is_whole(value, 100, 999),
    "headers": _is_headers,
    "body": _is_text,
    "location": _is_field,
    "seconds": is_seconds,
    "part": lambda value: value in ("headers", "body"),
    "bytes": _is_count,
    "ending": lambda value: value in ("drop", "reset"),
    "text": _is_text,
    "base64": _is_base64,
}


def parse(said: object) -> Fault:
    """Return the fault that a JSON value describes; raise ValueError with a message."""
    if not isinstance(said, dict) or not RULES["kind"](said.get("kind")):
        raise ValueError(f"a fault is an object whose kind is one of {', '.join(KINDS)}")
    kind = KINDS[said["kind"]]
    values = {"when": kind.moments[0], **kind.parameters, **said}
    for name, value in values.items():
        if name not in COMMON and name not in kind.parameters:
            raise ValueError(
                f"{said['kind']} has no {name}; it has {', '.join((*COMMON, *kind.parameters))}"
            )
        if name not in said and value is None:
            raise ValueError(f"{said['kind']} needs {name}")
        if not RULES[name](value) or (name == "when" and value not in kind.moments):
            raise ValueError(f"{name} of {said['kind']} cannot be {value!r}")
    if "headers" in values:
        headers = values["headers"]
        values["headers"] = tuple(
            map(tuple, headers.items() if isinstance(headers, dict) else headers)
        )
    return Fault(**{**values, "count": values.get("count", 1) or None})


def select(
    faults: tuple[Fault, ...], operation: str | None
) -> tuple[Fault | None, tuple[Fault, ...]]:
    """Return the fault that this request meets, if any, and the faults that are left.

    A request meets at most one: the first, in the order they were queued, that matches its
    operation and has let enough requests pass.
    """
    left = list(faults)
    for index, fault in enumerate(faults):
        if fault.operation not in ("any", operation):
            continue
        if fault.skip:
            left[index] = replace(fault, skip=fault.skip - 1)
            continue
        if fault.count is not None:
            left[index : index + 1] = (
                [replace(fault, count=fault.count - 1)] if fault.count > 1 else []
            )
        return fault, tuple(left)
    return None, tuple(left)
