# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Runs a task in this process, from its options to its scrubbed result, over real sockets."""

from __future__ import annotations

from . import checkout  # noqa: F401  makes the collection importable

# isort: split
from ansible_collections.infrastructure.services.plugins.module_utils._errors import (
    ServicesError,
)
from ansible_collections.infrastructure.services.plugins.module_utils._http.transport import (
    Transport,
)
from ansible_collections.infrastructure.services.plugins.module_utils._resources.application_role import (
    APPLICATION_ROLE,
)
from ansible_collections.infrastructure.services.plugins.module_utils._resources.virtual_machine import (
    VIRTUAL_MACHINE,
)
from ansible_collections.infrastructure.services.plugins.module_utils._result import Result
from ansible_collections.infrastructure.services.plugins.module_utils._task import specs, task
from ansible_collections.infrastructure.services.plugins.module_utils._task.validation import (
    validate,
)

from .places import PlaceOfTests

RESOURCES = {
    resource.operation.resource: resource for resource in (VIRTUAL_MACHINE, APPLICATION_ROLE)
}
SPECS = {spec.name: spec for spec in (specs.VIRTUAL_MACHINE, specs.APPLICATION_ROLE)}
CREATE, UPDATE = "compute_virtual_machine", "cassandra_application_role"

# The minimum that each module needs in addition to base_url.
LEAST = {CREATE: {"name": "web01"}, UPDATE: {"id": "role-0001", "attributes": {"login": True}}}


def run_task(resource: str, check_mode: bool = False, connect=Transport, **options) -> dict:
    """Return the scrubbed result of a task, with `warnings`; missing options are taken from LEAST."""
    given = {
        "access_token": "token-of-the-tests",
        "retry_max_delay": 0,
        **LEAST[resource],
        **options,
    }
    return run_exactly(resource, given, check_mode, connect)


def run_exactly(
    resource: str, options: dict, check_mode: bool = False, connect=Transport, recorded=None
) -> dict:
    """Return the result of a task that has exactly these options."""
    given = validate(SPECS[resource], options)
    context = task.Context(check_mode, given.secrets, PlaceOfTests(connect), diff_mode=True)
    try:
        planned = task.prepare(RESOURCES[resource], given.valid()).planned(recorded)
        result = task.carry_out(planned, context)
    except ServicesError as error:
        result = task.presentable(Result.of_error(error), context)
    return {"warnings": [], **result.as_ansible()}


def validated(resource: str, options: dict) -> dict:
    """Return the options as they are validated."""
    return validate(SPECS[resource], options).valid()
