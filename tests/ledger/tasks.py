# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Runs a task with a ledger in this process, as the action plugin does, but without Ansible."""

from __future__ import annotations

from ansible_collections.infrastructure.services.plugins.module_utils._errors import ServicesError
from ansible_collections.infrastructure.services.plugins.module_utils._http.transport import Transport
from ansible_collections.infrastructure.services.plugins.module_utils._task import credentials
from ansible_collections.infrastructure.services.plugins.module_utils._task import task as task_module
from ansible_collections.infrastructure.services.plugins.plugin_utils._ledger.entries import Key
from ansible_collections.infrastructure.services.plugins.plugin_utils._ledger.location import open_ledger
from ansible_collections.infrastructure.services.plugins.plugin_utils._ledger.recording import predict, record
from ansible_collections.infrastructure.services.plugins.plugin_utils._ledger.store import Ledger
from support import CREATE, LEAST, RESOURCES, validated

TOKEN = "token-of-the-tests"


def task(ledger: Ledger | str, resource: str = CREATE, check_mode: bool = False, **options) -> dict:
    """Return the result of a task; `ledger`: an open one, or where to open one for this task only."""
    params = validated(resource, {"access_token": TOKEN, "retry_max_delay": 0, **LEAST[resource], **options})
    secrets = credentials.secrets_of(RESOURCES[resource].options, params)
    own = isinstance(ledger, str)

    def execute(recorded):
        done = task_module.perform(prepared, recorded, task_module.Runtime(check_mode, Transport), secrets)
        shown = task_module.presentable(done.result, secrets, diff_mode=True, verbosity=0)
        return dict(shown, warnings=done.warnings)

    try:
        ledger = open_ledger(ledger, check_mode) if own else ledger
        prepared = task_module.prepare(RESOURCES[resource], params)
        if check_mode:
            return predict(ledger, prepared, execute)
        return record(ledger, prepared, secrets, "run-of-the-tests", execute)
    except ServicesError as error:
        return error.result()
    finally:
        if own and not isinstance(ledger, str):
            ledger.close()


def key(service, name: str = "web01", resource: str = CREATE) -> Key:
    """Return the key of a task that uses the service."""
    return Key(service.url, resource, name)
