# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Runs a list of tasks in this process, from its options to its result."""

from __future__ import annotations

from functools import partial

from ansible_collections.infrastructure.services.plugins.module_utils._call.tokens import (
    FetchedToken,
    Memory,
)
from ansible_collections.infrastructure.services.plugins.module_utils._http.transport import (
    Transport,
)
from ansible_collections.infrastructure.services.plugins.module_utils._list.sending import send_all
from ansible_collections.infrastructure.services.plugins.module_utils._task.task import Context
from ansible_collections.infrastructure.services.plugins.module_utils._task.validation import (
    validate,
)
from ansible_collections.infrastructure.services.plugins.plugin_utils._ledger.location import (
    open_ledger,
)
from ansible_collections.infrastructure.services.plugins.plugin_utils._ledger.queue import Queue
from ansible_collections.infrastructure.services.plugins.plugin_utils._ledger.recording import (
    Recording,
)

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
    recording: type = Recording,
    **more,
) -> dict:
    """Return the result of a list; raise InvalidInput for options that are not valid.

    `ledger`: a Recording; `location`: where to open one for this list. `more`: further fields of
    the Context.
    """
    least = {"retry_max_delay": 0, **({} if "auth_url" in options else {"access_token": TOKEN})}
    given, memory = validate(spec, {**least, **options}), Memory()
    params, secrets = given.valid(), given.secrets
    token_source = partial(FetchedToken, memory=memory)
    context = Context(check_mode, secrets, connect, token_source, diff_mode=True, **more)
    if location:
        store = open_ledger(location, check_mode)
        queue, after = None if check_mode else Queue(store), 0 if "approved" in more else None
        ledger = recording(store, secrets, run, check_mode, queue, after)
    result = send_all(spec, params, context, ledger)
    return {"warnings": [], **result.returned(result.done(), params["results"]).as_ansible()}
