# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Runs a task with a ledger in this process, as the action plugin does, but without Ansible."""

from __future__ import annotations

from dataclasses import replace

from ansible_collections.infrastructure.services.plugins.module_utils._call.place import Place
from ansible_collections.infrastructure.services.plugins.module_utils._errors import (
    ServicesError,
)
from ansible_collections.infrastructure.services.plugins.module_utils._result import Result
from ansible_collections.infrastructure.services.plugins.module_utils._task import credentials
from ansible_collections.infrastructure.services.plugins.module_utils._task.task import (
    Context,
    carry_out,
    prepare,
)
from ansible_collections.infrastructure.services.plugins.plugin_utils._ledger.entries import Key
from ansible_collections.infrastructure.services.plugins.plugin_utils._ledger.location import (
    open_ledger,
)
from ansible_collections.infrastructure.services.plugins.plugin_utils._ledger.recording import (
    Recording,
)
from ansible_collections.infrastructure.services.plugins.plugin_utils._ledger.store import Ledger
from support import CREATE, LEAST, RESOURCES, validated

TOKEN = "token-of-the-tests"


def task(ledger: Ledger | str, resource: str = CREATE, check_mode: bool = False, **options) -> dict:
    """Return the result of a task; `ledger`: an open one, or where to open one for this task only."""
    params = validated(
        resource, {"access_token": TOKEN, "retry_max_delay": 0, **LEAST[resource], **options}
    )
    secrets = credentials.secrets_of(RESOURCES[resource].options, params)
    own = isinstance(ledger, str)

    context = Context(check_mode, secrets, Place(), diff_mode=True)
    try:
        ledger = open_ledger(ledger, check_mode) if own else ledger
        recording = Recording(ledger, secrets, "run-of-the-tests", check_mode)
        (planned,) = recording.look_up([prepare(RESOURCES[resource], params)])
        result = carry_out(planned, context, recording)
        warnings = *recording.warnings, *result.warnings
        return {"warnings": [], **replace(result, warnings=warnings).as_ansible()}
    except ServicesError as error:
        return Result.of_error(error).as_ansible()
    finally:
        if own and not isinstance(ledger, str):
            ledger.close()


def key(service, name: str = "web01", resource: str = CREATE) -> Key:
    """Return the key of a task that uses the service."""
    return Key(service.url, resource, name)
