# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The two resources, and how a task plans and applies a change of one."""

from __future__ import annotations

from .._fields import Spec
from .application_role import APPLICATION_ROLE
from .planning import ENVELOPE
from .virtual_machine import VIRTUAL_MACHINE

RESOURCES = {
    resource.operation.resource: resource for resource in (APPLICATION_ROLE, VIRTUAL_MACHINE)
}

# The option that identifies an asset of each resource.
KEYS = {APPLICATION_ROLE.operation.resource: "id", VIRTUAL_MACHINE.operation.resource: "name"}


def _names(options: Spec) -> set[str]:
    """Return the names of options and of their suboptions."""
    names = set(options)
    for option in options.values():
        names |= _names(option.get("options", {}))
    return names


# Words that every asset and request may contain.
WORDS = [*ENVELOPE]
for _resource in RESOURCES.values():
    _operation = _resource.operation
    WORDS += [_operation.resource, _operation.path, _operation.noun]
    WORDS += sorted(_names(_resource.options))
