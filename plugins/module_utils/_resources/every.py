# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What needs both resources: the options that identify assets, and the words of the interface (docs/openapi.yaml)."""

from __future__ import annotations

from typing import Any, Iterator

from .application_role import APPLICATION_ROLE
from .flow import ENVELOPE
from .virtual_machine import VIRTUAL_MACHINE

# The option that identifies an asset of each resource.
KEYS = {APPLICATION_ROLE.operation.resource: "id", VIRTUAL_MACHINE.operation.resource: "name"}


def _names(options: dict[str, Any]) -> Iterator[str]:
    for name, option in options.items():
        yield name
        yield from _names(option.get("options", {}))


def _words() -> Iterator[str]:
    yield from ENVELOPE
    for resource in (APPLICATION_ROLE, VIRTUAL_MACHINE):
        operation = resource.operation
        yield from (operation.resource, operation.path, operation.noun)
        yield from _names(resource.options)


# What assets and requests contain whatever a task is given, the names of fields among it.
WORDS = tuple(sorted(set(_words())))
