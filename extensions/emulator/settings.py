# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The switches: one for each point that the interface leaves open, with the values that it accepts."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, replace
from typing import Callable

from .faults import OPERATIONS, is_seconds
from .messages import is_whole


def _one_of(*choices: str) -> Callable[[object], bool]:
    return lambda value: isinstance(value, str) and value in choices


def _is_bool(value: object) -> bool:
    return isinstance(value, bool)


def _is_success(value: object) -> bool:
    return is_whole(value, 200, 299)


def _is_text_or_null(value: object) -> bool:
    return value is None or isinstance(value, str)


def _is_int_or_null(value: object) -> bool:
    return value is None or is_whole(value)


def _is_count_or_null(least: int) -> Callable[[object], bool]:
    return lambda value: value is None or is_whole(value, least)


def _is_delay(value: object) -> bool:
    return (
        isinstance(value, dict)
        and set(value) <= set(OPERATIONS)
        and all(map(is_seconds, value.values()))
    )


def _is_texts(value: object) -> bool:
    return isinstance(value, (list, tuple)) and all(isinstance(item, str) for item in value)


def _is_texts_or_null(value: object) -> bool:
    return value is None or _is_texts(value)


RULES: dict[str, Callable[[object], bool]] = {
    "required": _one_of("strict", "lenient"),
    "put": _one_of("merge", "replace"),
    "unknown_id": _one_of("refuse", "create"),
    "unset": _one_of("null", "omit"),
    "unique_names": _is_bool,
    "create_status": _is_success,
    "update_status": _is_success,
    "authorization": _one_of("required", "off"),
    "token": _is_text_or_null,
    "client_id": _is_text_or_null,
    "client_secret": _is_text_or_null,
    "client_authentication": _one_of("any", "basic", "post"),
    "grant_types": _is_texts,
    "scopes": _is_texts_or_null,
    "expires_in": _is_int_or_null,
    "delay": _is_delay,
    "rate": _is_count_or_null(1),
    "capacity": _is_count_or_null(1),
    "queue": _is_count_or_null(0),
    "retry_after": _is_count_or_null(0),
}


@dataclass(frozen=True)
class Settings:
    """How the emulator decides what the interface leaves open; README.md explains each one."""

    required: str = "strict"
    put: str = "merge"
    unknown_id: str = "refuse"
    unset: str = "null"
    unique_names: bool = False
    create_status: int = 201
    update_status: int = 200
    authorization: str = "required"
    token: str | None = None
    client_id: str | None = None
    client_secret: str | None = None
    client_authentication: str = "any"
    grant_types: tuple[str, ...] = ("client_credentials",)
    scopes: tuple[str, ...] | None = None
    expires_in: int | None = 3600
    delay: dict[str, float] = field(default_factory=dict)
    rate: int | None = None
    capacity: int | None = None
    queue: int | None = None
    retry_after: int | None = None

    def __post_init__(self) -> None:
        for name, is_possible in RULES.items():
            if not is_possible(getattr(self, name)):
                raise ValueError(f"{name} cannot be {getattr(self, name)!r}")

    def changed(self, values: object) -> Settings:
        """Return the settings with these values changed; raise ValueError for a wrong one."""
        if not isinstance(values, dict) or not set(values) <= set(RULES):
            raise ValueError(f"the settings are an object with any of {', '.join(RULES)}")
        return replace(self, **values)

    def as_dict(self) -> dict[str, object]:
        """Return them in a form for JSON."""
        return asdict(self)


DEFAULT = Settings()
