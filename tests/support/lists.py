"""Runs a list of tasks in this process, from its options to its result."""

from __future__ import annotations

from unittest.mock import patch

from ansible_collections.infrastructure.services.plugins.module_utils._http import transport
from ansible_collections.infrastructure.services.plugins.module_utils._list.lists import (
    carry_out_list,
)
from ansible_collections.infrastructure.services.plugins.module_utils._result import Result
from ansible_collections.infrastructure.services.plugins.module_utils._task.journal import NoLedger
from ansible_collections.infrastructure.services.plugins.module_utils._task.task import Context
from ansible_collections.infrastructure.services.plugins.module_utils._task.validation import (
    validate,
)
from ansible_collections.infrastructure.services.plugins.plugin_utils._ledger.recording import (
    Recording,
)

from support.ledgers import open_at

TOKEN = "token-of-the-tests"


def run_list(
    spec,
    options: dict,
    *,
    check_mode: bool = False,
    send_once=None,
    ledger=None,
    location: str = "",
    approved: dict | None = None,
    rows: dict[str, int] | None = None,
    show=str,
    no_log: bool = False,
    watch=str,
    progress=lambda *numbers: None,
) -> dict:
    """Return the result of a list; raise InvalidInput for options that are not valid.

    `ledger`: a Recording; `location`: where to open one for this list, `rows`: of the approved
    plan; `watch`: returns why to stop; `progress`: is called as `Progress.show`.
    """
    least = {
        "ledger": "none",
        "retry_max_delay": 0,
        **({} if "auth_url" in options else {"access_token": TOKEN}),
    }
    given = validate(spec, {**least, **options})
    given.valid()
    context = Context(
        check_mode,
        given.secrets,
        no_log=no_log,
        why_to_stop=watch,
    )
    opened = []

    def open_ledger(service):
        if location:
            opened.append(open_at(location, service))
            return Recording(opened[0], given.secrets, "run-of-the-tests", rows, show)
        return ledger or NoLedger()

    try:
        with patch.object(transport, "send_once", send_once or transport.send_once):
            plan = approved and {name: Result(body=body) for name, body in approved.items()}
            result = carry_out_list(given, context, open_ledger, plan, progress)
    finally:
        for each in opened:
            each.close()
    return {"warnings": [], **result.returned(result.done()).as_ansible()}
