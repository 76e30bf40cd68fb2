# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Runs a list of tasks in this process, from its options to its result."""

from __future__ import annotations

from ansible_collections.infrastructure.services.plugins.module_utils._http.transport import (
    Transport,
)
from ansible_collections.infrastructure.services.plugins.module_utils._list.items import (
    prepare_all,
    with_defaults,
)
from ansible_collections.infrastructure.services.plugins.module_utils._list.sending import (
    ListTask,
)
from ansible_collections.infrastructure.services.plugins.module_utils._task.task import Context
from ansible_collections.infrastructure.services.plugins.module_utils._task.validation import (
    validate,
)
from ansible_collections.infrastructure.services.plugins.plugin_utils._ledger.location import (
    open_ledger,
)
from ansible_collections.infrastructure.services.plugins.plugin_utils._ledger.recording import (
    ListRecording,
)

from .places import PlaceOfTests

TOKEN = "token-of-the-tests"


def run_list(
    spec,
    options: dict,
    *,
    check_mode: bool = False,
    connect=Transport,
    ledger=None,
    location: str = "",
    run: str = "run-of-the-tests",
    recording: type = ListRecording,
    approved: dict | None = None,
    no_log: bool = False,
    **more,
) -> dict:
    """Return the result of a list; raise InvalidInput for options that are not valid.

    `ledger`: a ListRecording; `location`: where to open one for this list. `more`: functions
    of the place.
    """
    least = {"retry_max_delay": 0, **({} if "auth_url" in options else {"access_token": TOKEN})}
    given = validate(spec, {**least, **options})
    params, secrets = given.valid(), given.secrets
    place = PlaceOfTests(connect, **more)
    context = Context(check_mode, secrets, place, diff_mode=True, no_log=no_log)
    params = with_defaults(spec, params)
    tasks = prepare_all(spec, params, check_mode)
    if location:
        store = open_ledger(location, check_mode)
        after = None if approved is None else 0
        ledger = recording(store, secrets, run, check_mode, after)
    result = ListTask(spec, params, context, ledger).carry_out(tasks, approved)
    return {"warnings": [], **result.returned(result.done(), params["results"]).as_ansible()}
