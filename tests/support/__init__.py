"""Runs a task in this process, from its options to its scrubbed result, over real sockets."""

from __future__ import annotations

from dataclasses import replace
from unittest.mock import patch

from . import checkout  # noqa: F401  makes the collection importable

# isort: split
from ansible_collections.infrastructure.services.plugins.module_utils._errors import (
    ServicesError,
)
from ansible_collections.infrastructure.services.plugins.module_utils._http import transport
from ansible_collections.infrastructure.services.plugins.module_utils._resources.resources import (
    OPERATIONS,
)
from ansible_collections.infrastructure.services.plugins.module_utils._result import Result
from ansible_collections.infrastructure.services.plugins.module_utils._task import specs, task
from ansible_collections.infrastructure.services.plugins.module_utils._task.journal import NoLedger
from ansible_collections.infrastructure.services.plugins.module_utils._task.task import Context
from ansible_collections.infrastructure.services.plugins.module_utils._task.validation import (
    validate,
)

VIRTUAL_MACHINES, APPLICATION_ROLES = specs.VIRTUAL_MACHINES, specs.APPLICATION_ROLES
SPECS = {spec.name: spec for spec in (specs.VIRTUAL_MACHINE, specs.APPLICATION_ROLE)}
CREATE, UPDATE = "compute_virtual_machine", "cassandra_application_role"
OPERATION = {name: OPERATIONS[name] for name in (CREATE, UPDATE)}
# The emulator has the operations whose answer is an asset.
NOT_EMULATED = {"api_request", *(name for name in OPERATIONS if OPERATIONS[name].removes)}

# The minimum that each module needs in addition to base_url.
LEAST = {
    CREATE: {"name": "web01", "ledger": "none"},
    UPDATE: {"id": "role-0001", "attributes": {"login": True}},
}


def run_task(
    resource: str, check_mode: bool = False, send_once=transport.send_once, **options
) -> dict:
    """Return the scrubbed result of a task, with `warnings`; missing options are taken from LEAST."""
    given = {
        "access_token": "token-of-the-tests",
        "retry_max_delay": 0,
        **LEAST[resource],
        **options,
    }
    return run_exactly(resource, given, check_mode, send_once)


class Known(NoLedger):
    """Knows an entry of the task; None for none."""

    def __init__(self, entry) -> None:
        self.entry = entry

    def plan_all(self, tasks, check_mode=False):
        return [replace(each, entry=self.entry).planned() for each in tasks]


def run_exactly(
    resource: str,
    options: dict,
    check_mode: bool = False,
    send_once=transport.send_once,
    recorded=None,
) -> dict:
    """Return the result of a task that has exactly these options."""
    given = validate(SPECS[resource], options)
    context = Context(check_mode, given.secrets)
    try:
        with patch.object(transport, "send_once", send_once):
            result = task.carry_out(given, context, lambda _service: Known(recorded))
    except ServicesError as error:
        result = context.secrets.scrub(Result.of_error(error))
    return {"warnings": [], **result.as_ansible()}


def validated(resource: str, options: dict) -> dict:
    """Return the options as they are validated."""
    return validate(SPECS[resource], options).valid()
