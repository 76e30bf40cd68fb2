# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""One task from its options to its result, the same wherever it runs."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, Callable, ContextManager, Protocol

from .. import _secrets
from .._call.client import Client
from .._call.operation import effect_of
from .._call.place import Place
from .._call.settings import Settings
from .._errors import REJECTED, UNKNOWN, InvalidInput, Message, RequestFailed, ServicesError
from .._fields import Params
from .._http import strict_json
from .._resources import KEYS
from .._resources.applying import apply_plan
from .._resources.planning import Entry, Plan, Recorded, Resource, Wanted
from .._result import Result
from .._secrets import Secrets
from . import options
from .signals import Interrupted

# The parameter by which the action plugin passes a Recorded to the module.
RECORDED = "_infrastructure_services_recorded"
LONGEST_ERROR_BODY = 1000  # characters in a result
_UNCHECKED = (
    "validate_certs is false: anyone between here and the service can"
    " read the token and change what is sent."
)


@dataclass(frozen=True)
class Task:
    """A task with validated options; nothing has been opened or built yet."""

    resource: Resource
    settings: Settings
    wanted: Wanted
    is_listed: bool = False  # whether it is one of a list

    @property
    def asset(self) -> str:
        """The asset in messages, such as `virtual machine web01`."""
        return self.resource.operation.label(self.wanted.key)

    def planned(self, recorded: Recorded | None = None, entry: Entry | None = None) -> Planned:
        """Return the task with its plan; `recorded`: a record that the plan can rely on."""
        try:
            return Planned(self, self.resource.plan(self.wanted, recorded), recorded, entry)
        except InvalidInput as error:
            return Planned(self, entry=entry, error=error)


@dataclass(frozen=True)
class Planned:
    """A task with its plan, or with the error that keeps it from one; made once and handed down."""

    task: Task
    plan: Plan | None = None
    recorded: Recorded | None = None
    entry: Entry | None = None  # as it was read
    error: ServicesError | None = None  # instead of a plan

    def required_plan(self) -> Plan:
        """Return the plan; raise the error if there is none."""
        if self.plan is None:
            raise self.error or ServicesError("there is no plan")
        return self.plan


@dataclass(frozen=True)
class Context:
    """How a task runs."""

    check_mode: bool
    secrets: Secrets  # including the fetched tokens
    place: Place
    diff_mode: bool = False
    no_log: bool = False


class Begun(Protocol):
    """A task that holds the lock of its asset in the ledger."""

    @property
    def planned(self) -> Planned:
        """The task with its latest plan."""

    @property
    def intent(self) -> object:
        """The recorded intent, None if there is nothing to send after all."""

    def record(self, result: Result) -> Result:
        """Record how the task ended and return its result, with the next step if it is in doubt."""


class Recorder(Protocol):
    """The ledger of a task for one asset, which plugin_utils implements."""

    def record_intent(self, planned: Planned) -> ContextManager[Begun]:
        """Record the intent and hold the asset's lock in the context; raise ServicesError."""


class ListRecorder(Recorder, Protocol):
    """The ledger of the tasks of a list, used by its threads."""

    warnings: list[str]  # of all tasks together

    @property
    def lost(self) -> str:
        """Why the list stops: an outcome could not be recorded; '' while outcomes can be recorded."""

    def look_up(self, tasks: list[Task]) -> list[Planned]:
        """Return the tasks, each with its plan or with the error that forbids it."""

    def created_since_plan(self, tasks: list[Task]) -> set[str]:
        """Return the names of assets that were created or adopted after the approved plan was made."""

    def not_listed(self, tasks: list[Task]) -> list[str]:
        """Return the names that are recorded at the same service but not in the list."""

    def with_next_step(self, result: Result, task: Task, state: str) -> Result:
        """Return the result, with how to settle a creation whose entry is now in this state."""

    def show_waiting(self) -> None:
        """Show which assets wait for other tasks."""

    def give_up(self, results: list[tuple[Task, Result]]) -> None:
        """Record that tasks which did not end in time, and can no longer send, sent nothing."""

    def close(self) -> None:
        """Close the ledger, which no thread uses any more."""


def prepare(resource: Resource, params: Params, check_mode: bool = False) -> Task:
    """Return the task that validated options ask for; raise InvalidInput."""
    return Task(resource, options.settings_from(params, check_mode), resource.wanted(params))


def perform(planned: Planned, context: Context) -> Result:
    """Apply a plan in this process and return the result as users see it.

    Our own errors and interrupts become failed results.
    """
    task = planned.task
    plan = planned.required_plan()
    place = context.place
    result: Result | None = None
    client = Client(task.settings, place)
    try:
        with place.interruptible():
            try:
                result = apply_plan(task.resource, task.wanted, plan, context.check_mode, client)
            except ServicesError as error:
                result = Result.of_error(error)
    except (Interrupted, MemoryError) as error:
        result = result or Result.of_error(interrupted(task, client.outcome, error))
    for token in client.tokens:
        context.secrets.mask(token)
    unchecked = [] if task.settings.connection.validate_certs else [_UNCHECKED]
    said = map(Message, (*unchecked, *_blank(task), *client.warnings))
    result = result.but(warnings=(*said, *result.warnings), **_omitted(task, plan, result))
    return presentable(result, context)


def carry_out(
    planned: Planned,
    context: Context,
    ledger: Recorder | None = None,
    send: Callable[[Planned, Context], Result] = perform,
) -> Result:
    """Carry out a planned task and return its result; raise ServicesError before anything is sent.

    `send`: sends the request of a plan and returns the result.
    """
    plan = planned.required_plan()
    if plan.settled:
        return perform(planned, context)
    if context.check_mode or not ledger:
        return send(planned, context)
    with ledger.record_intent(planned) as begun:
        if not begun.intent:  # another task has done it meanwhile
            return perform(begun.planned, context)
        return begun.record(send(begun.planned, context))


def _omitted(task: Task, plan: Plan, result: Result) -> dict[str, Any]:
    """Return what a list omits: the copies of the asset; a rejected body goes to the report."""
    if not task.is_listed:
        return {}
    body = plan.body if result.outcome == REJECTED else None
    return dict(request=None, ansible_facts=None, body=body)


def _blank(task: Task) -> list[str]:
    """Return a warning about a name or id with a blank at one end, which is hard to see."""
    option = KEYS[task.resource.operation.resource]
    key = task.wanted.key
    other = key.strip()
    if key == other:
        return []
    why = f'"{key}" begins or ends with a blank, so it is another asset than "{other}"'
    return [_secrets.printable(f"{option}: {why}.")]


def interrupted(task: Task, outcome: str, error: BaseException) -> RequestFailed:
    """Return the failure of a task that was interrupted from outside."""
    operation = task.resource.operation
    what = f"the task was interrupted ({str(error) or type(error).__name__})"
    if outcome == UNKNOWN:
        url = f"{task.settings.base_url}{operation.path.format(id=task.wanted.segment)}"
        what = f"{what} while {operation.method} {url} was in flight"
    text = f"{what}. {effect_of(operation, outcome)}"
    return RequestFailed(Message(text, task.asset), outcome)


def presentable(result: Result, context: Context) -> Result:
    """Return the result as users see it: without secrets, and with `diff` only if requested."""
    if result.diff is not None and not context.diff_mode:
        result = result.but(diff=None)
    shown = context.secrets.scrub(result)
    if not result.error_body:
        return shown
    body = _scrubbed_body(result.error_body, context.secrets)
    # Never half a secret.
    return shown.but(error_body=body[:LONGEST_ERROR_BODY])


def _scrubbed_body(body: str, secrets: Secrets) -> str:
    """Return a body without secrets; JSON is decoded first, because it may escape them."""
    try:
        said = json.loads(body)
        is_deep = strict_json.depth(said) > strict_json.MAX_DEPTH
    except ValueError:
        return str(secrets.scrub_message(body))
    except RecursionError:
        is_deep = True
    if is_deep:
        return "(nested too deeply to be shown)"
    return _secrets.printable(json.dumps(secrets.scrub_message(said), ensure_ascii=False))
