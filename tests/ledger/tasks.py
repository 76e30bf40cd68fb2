"""Runs tasks and lists with a ledger in this process, as the action plugins do, without Ansible."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from typing import Any

from ansible_collections.infrastructure.services.plugins.module_utils._errors import (
    ServicesError,
)
from ansible_collections.infrastructure.services.plugins.module_utils._result import Result
from ansible_collections.infrastructure.services.plugins.module_utils._task.specs import (
    VIRTUAL_MACHINES,
)
from ansible_collections.infrastructure.services.plugins.module_utils._task.task import (
    Context,
    carry_out,
)
from ansible_collections.infrastructure.services.plugins.module_utils._task.validation import (
    validate,
)
from ansible_collections.infrastructure.services.plugins.plugin_utils._ledger.entries import Key
from ansible_collections.infrastructure.services.plugins.plugin_utils._ledger.ledger import Ledger
from ansible_collections.infrastructure.services.plugins.plugin_utils._ledger.location import (
    open_database,
)
from ansible_collections.infrastructure.services.plugins.plugin_utils._ledger.moving import (
    move_ledger,
)
from ansible_collections.infrastructure.services.plugins.plugin_utils._ledger.recording import (
    Recording,
)
from ansible_collections.infrastructure.services.plugins.plugin_utils._ledger.seen import Seen
from support import CREATE, LEAST, SPECS
from support.ledgers import HOME, open_at
from support.lists import run_list

TOKEN = "token-of-the-tests"
RUN = "run-of-the-tests"
Opens = Callable[..., Ledger]


def task(
    location: str,
    resource: str = CREATE,
    check_mode: bool = False,
    show: Callable[[str], None] = lambda line: None,
    opens: Opens = open_at,
    **options: Any,
) -> dict:
    """Return the result of a task with the ledger at a location; `opens`: opens it."""
    given = {"access_token": TOKEN, "retry_max_delay": 0, **LEAST[resource], **options}
    opened: list[Ledger] = []
    validated = validate(SPECS[resource], given)
    context = Context(check_mode, validated.secrets)

    def open_ledger(service: str) -> Recording:
        opened.append(opens(location, service))
        return Recording(opened[0], validated.secrets, RUN, show=show)

    try:
        result = carry_out(validated, context, open_ledger)
        return {"warnings": [], **result.as_ansible()}
    except ServicesError as error:
        return Result.of_error(error).as_ansible()
    finally:
        for ledger in opened:
            ledger.close()


def list_task(
    location: str,
    names: list[str],
    spec: Any = VIRTUAL_MACHINES,
    check_mode: bool = False,
    approved: dict | None = None,
    rows: dict[str, int] | None = None,
    show: Callable[[str], None] = lambda line: None,
    **options: Any,
) -> dict:
    """Return the result of a list of machines; of others if the options have the list.

    `approved`, `rows`: the bodies of the approved plan, and the last row of each asset in it.
    """
    if names:
        options["virtual_machines"] = [{"name": name} for name in names]
    how = {"check_mode": check_mode, "approved": approved, "rows": rows, "show": show}
    try:
        return run_list(spec, {"results": "all", **options}, location=location, **how)
    except ServicesError as error:
        return Result.of_error(error).as_ansible()


def moved(source: str, target: str, check_mode: bool = False) -> dict:
    """Move a ledger and return the result; raise ServicesError."""
    seen = Seen(HOME, "run-of-the-tests")
    with closing(open_database(source)) as here, closing(open_database(target)) as place:
        return move_ledger(Ledger(here, seen, is_moving=True), place, seen, check_mode)


def key(name: str = "web01", resource: str = CREATE) -> Key:
    """Return the key of an asset."""
    return Key(resource, name)
