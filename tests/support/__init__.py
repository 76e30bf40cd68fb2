# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Runs a task in this process, from its options to its scrubbed result, over real sockets."""

from __future__ import annotations

from ansible.module_utils.common.arg_spec import ArgumentSpecValidator
from ansible_collections.infrastructure.services.plugins.module_utils._http.transport import Transport
from ansible_collections.infrastructure.services.plugins.module_utils._resources import (
    application_role,
    virtual_machine,
)
from ansible_collections.infrastructure.services.plugins.module_utils._task import task

RESOURCES = {resource.OPERATION.resource: resource for resource in (virtual_machine, application_role)}
CREATE, UPDATE = "compute_virtual_machine", "cassandra_application_role"

# The least that each module needs beside base_url.
LEAST = {CREATE: {"name": "web01"}, UPDATE: {"id": "role-0001", "attributes": {"login": True}}}


def run_task(resource: str, check_mode: bool = False, connect=Transport, **options) -> dict:
    """Return the result of a task, scrubbed, with `warnings`; options that are missing are filled from LEAST.

    Options that ansible-core refuses raise AssertionError: tests of those run the module.
    """
    given = {"access_token": "token-of-the-tests", "retry_max_delay": 0, **LEAST[resource], **options}
    return run_exactly(resource, given, check_mode, connect)


def run_exactly(resource: str, options: dict, check_mode: bool = False, connect=Transport) -> dict:
    """Return the result of a task that has these options and no others."""
    validated = ArgumentSpecValidator(**task.argument_spec(RESOURCES[resource])).validate(options)
    assert not validated.error_messages, validated.error_messages
    done = task.perform(RESOURCES[resource], validated.validated_parameters, check_mode, connect)
    return dict(task.presentable(done.result, done.secrets, diff_mode=True, verbosity=3), warnings=done.warnings)
