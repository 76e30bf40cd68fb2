# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Runs a task in this process, from its options to its scrubbed result, over real sockets."""

from __future__ import annotations

from . import checkout  # noqa: F401  makes the collection importable

# isort: split
from ansible.module_utils.common.arg_spec import ArgumentSpecValidator
from ansible_collections.infrastructure.services.plugins.module_utils._errors import ServicesError
from ansible_collections.infrastructure.services.plugins.module_utils._http.transport import Transport
from ansible_collections.infrastructure.services.plugins.module_utils._resources.application_role import (
    APPLICATION_ROLE,
)
from ansible_collections.infrastructure.services.plugins.module_utils._resources.virtual_machine import VIRTUAL_MACHINE
from ansible_collections.infrastructure.services.plugins.module_utils._task import credentials, task

RESOURCES = {resource.operation.resource: resource for resource in (VIRTUAL_MACHINE, APPLICATION_ROLE)}
CREATE, UPDATE = "compute_virtual_machine", "cassandra_application_role"

# The minimum that each module needs in addition to base_url.
LEAST = {CREATE: {"name": "web01"}, UPDATE: {"id": "role-0001", "attributes": {"login": True}}}


def run_task(resource: str, check_mode: bool = False, connect=Transport, **options) -> dict:
    """Return the scrubbed result of a task, with `warnings`; missing options are taken from LEAST.

    Options that ansible-core rejects raise AssertionError: tests of those run the module.
    """
    given = {"access_token": "token-of-the-tests", "retry_max_delay": 0, **LEAST[resource], **options}
    return run_exactly(resource, given, check_mode, connect)


def run_exactly(resource: str, options: dict, check_mode: bool = False, connect=Transport, recorded=None) -> dict:
    """Return the result of a task that has exactly these options."""
    resource, params = RESOURCES[resource], validated(resource, options)
    secrets, warnings = credentials.secrets_of(resource.options, params), []
    try:
        runtime = task.Runtime(check_mode, connect)
        done = task.perform(task.prepare(resource, params), recorded, runtime, secrets)
        result, warnings = done.result, done.warnings
    except ServicesError as error:
        result = error.result()
    return task.presentable(dict(result, warnings=warnings), secrets, diff_mode=True, verbosity=3)


def validated(resource: str, options: dict) -> dict:
    """Return the options as ansible-core converts them."""
    spec = task.argument_spec(RESOURCES[resource].options, RESOURCES[resource].constraints)
    result = ArgumentSpecValidator(**spec).validate(options)
    assert not result.error_messages, result.error_messages
    return result.validated_parameters
