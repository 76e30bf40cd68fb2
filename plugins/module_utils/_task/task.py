# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""One task from its options to its result, the same wherever it runs."""

from __future__ import annotations

import json
import time
from contextlib import nullcontext
from dataclasses import dataclass, field
from typing import Any, Callable, ContextManager

from .. import _secrets
from .._call.client import Client
from .._call.operation import effect_of
from .._call.settings import Settings
from .._call.tokens import FetchedToken
from .._errors import UNKNOWN, RequestFailed, ServicesError
from .._http import strict_json
from .._http.values import ConnectionSettings
from .._resources.flow import Plan, Recorded, Resource, Wanted, carry_out
from .._secrets import Secrets
from . import options

# What the action plugin passes of the ledger to the module: the argument of flow.kept_in, and the fields of a Recorded.
KEPT_IN, RECORDED = "_infrastructure_services_kept_in", "_infrastructure_services_recorded"
LONGEST_ERROR_BODY = 1000  # characters in a result
_UNCHECKED = "validate_certs is false: anyone between here and the service can read the token and change what is sent."


@dataclass(frozen=True)
class Task:
    """What a task asks for, validated; nothing has been opened or built yet."""

    resource: Resource
    settings: Settings
    wanted: Wanted
    is_listed: bool = False  # whether it is one of a list

    def plan(self, recorded: Recorded | None = None) -> Plan:
        """Return what the task asks of the service, given what the ledger has recorded; raise InvalidInput."""
        return self.resource.plan(self.wanted, recorded)


@dataclass(frozen=True)
class Runtime:
    """What a task needs from the place where it runs."""

    check_mode: bool
    connect: Callable[[ConnectionSettings], Any]  # makes a transport or returns a kept one
    keep_token: Callable = FetchedToken  # the same for a fetched token
    guard: Callable[[], None] = lambda: None  # raises ServicesError when nothing may be sent any more
    interruptible: Callable[[], ContextManager] = nullcontext  # what may interrupt a task does so within it
    interrupts: tuple[type[BaseException], ...] = (MemoryError,)  # exceptions that interrupt a task from outside
    sleep: Callable[[float], None] = time.sleep  # waits the given seconds before a further attempt


@dataclass
class Done:
    """The result of a task, and what to warn about."""

    result: dict
    warnings: list[str] = field(default_factory=list)


def prepare(resource: Resource, params: dict) -> Task:
    """Return the task that validated options ask for; raise InvalidInput."""
    return Task(resource, options.settings_from(params), resource.read(params))


def perform(
    task: Task, recorded: Recorded | None, runtime: Runtime, secrets: Secrets, plan: Plan | None = None
) -> Done:
    """Run a task; our own errors become a failed result, and so does an interrupt.

    `recorded`: what the ledger has recorded of the asset; `secrets`: receives the fetched tokens; `plan`: what the task
    asks of the service, if already known.
    """
    settings, done = task.settings, Done({})
    client = Client(settings, runtime.connect, runtime.keep_token, guard=runtime.guard, sleep=runtime.sleep)
    try:
        plan = plan or task.plan(recorded)
        with runtime.interruptible():
            done.result = _carried_out(task, plan, runtime, client)
    except ServicesError as error:
        done.result = error.result()
    except runtime.interrupts as error:
        done.result = done.result or interrupted(task, client.outcome, error).result()
    for token in client.tokens:
        secrets.add(token)
    done.result["trace"] = client.trace
    unchecked = [] if settings.connection.validate_certs else [_UNCHECKED]
    done.warnings = [*unchecked, *client.warnings, *done.result.pop("warnings", [])]
    return done


def _carried_out(task: Task, plan: Plan, runtime: Runtime, client: Client) -> dict:
    try:
        return carry_out(task.resource, task.wanted, plan, runtime.check_mode, client)
    except ServicesError as error:
        return error.result()


def interrupted(task: Task, outcome: str, error: BaseException) -> RequestFailed:
    """Return the failure of a task that was interrupted from outside."""
    operation, wanted = task.resource.operation, task.wanted
    what = f"{operation.noun} {wanted.key}: the task was interrupted ({str(error) or type(error).__name__})"
    url = f"{task.settings.base_url}{operation.path.format(id=wanted.segment)}"
    request = f" while {operation.method} {url} was in flight" if outcome == UNKNOWN else ""
    return RequestFailed(f"{what}{request}. {effect_of(operation, outcome)}", outcome)


def presentable(result: dict, secrets: Secrets, diff_mode: bool, verbosity: int) -> dict:
    """Return the result as the user sees it: `diff` and `trace` only if requested, and no secret anywhere."""
    hidden = {"diff": not diff_mode, "trace": verbosity < 3}
    shown = secrets.scrub({key: value for key, value in result.items() if not hidden.get(key)})
    if "error_body" in shown:  # truncated only now: scrubbing cannot match half a secret
        shown["error_body"] = _scrubbed_body(result["error_body"], secrets)[:LONGEST_ERROR_BODY]
    return shown


def _scrubbed_body(body: str, secrets: Secrets) -> str:
    """Return a body without secrets; JSON is decoded first, since it may escape them."""
    try:
        said = json.loads(body)
        is_deep = strict_json.depth(said) > strict_json.MAX_DEPTH
    except ValueError:
        return secrets.scrub_message(body)
    except RecursionError:
        is_deep = True
    if is_deep:
        return "(nested too deeply to be shown)"
    return _secrets.printable(json.dumps(secrets.scrub_message(said), ensure_ascii=False))
