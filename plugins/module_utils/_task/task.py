# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""One task from its options to its result, the same wherever it runs."""

from __future__ import annotations

import json
import re
import time
from contextlib import nullcontext
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Any, Callable, ContextManager

from ansible.module_utils.errors import NoLogError, RequiredError

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
# The start of ansible-core's message about a value of the wrong type; 2.16 shows the type as `repr` does.
_NOT_CONVERTED = re.compile(
    r"(?:argument|Elements value for option) '([^']+)'(?: found in '([^']+)')? is of type .*?(?: found in '([^']+)'\.)?"
    r" and we were unable to convert to [\w-]+: "
)
_WRONG_TYPE = re.compile(r"(?:<class '(\w+)'>|\"(.*)\") cannot be converted to (an? \w+)")  # the rest of that message
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


def argument_spec(own: dict, constraints: dict) -> dict[str, Any]:
    """Return what AnsibleModule and ArgumentSpecValidator take: a module's own options and the shared ones."""
    every = {**options.ARGUMENT_SPEC, **own}
    fresh = {name: dict(every[name], default={}) for name in every if every[name].get("default") == {}}
    return dict(argument_spec={**every, **fresh}, **constraints)  # validation modifies a default in place


def readable(spec: dict, params: dict) -> dict:
    """Return the options, with the name of its type in place of each value that should be a dict but is not.

    One that is null is left out where it has a fallback or a default: null means not given, but for ansible-core any
    value is one that was given.

    ansible-core looks for suboptions in a value before it checks the type, and fails with a traceback for a number; for
    a string it reports that it is not a dict. Version 2.16 joins the items of a list that are not valid choices: they
    must be strings.
    """
    inner = {name: option["options"] for name, option in spec.items() if "options" in option}
    chosen = {name for name, option in spec.items() if "choices" in option and isinstance(params.get(name), list)}
    shown = {**params, **{name: [str(item) for item in params[name]] for name in chosen}}
    return {
        name: _readable(inner[name], value) if name in inner else value
        for name, value in shown.items()
        if value is not None or not _has_substitute(spec.get(name, {}))
    }


def _has_substitute(option: dict) -> bool:
    return "fallback" in option or option.get("default") is not None


def _readable(spec: dict, value: Any) -> Any:
    if isinstance(value, list):
        return [type(item).__name__ if item is None else _readable(spec, item) for item in value]
    if isinstance(value, dict):
        return readable(spec, value)
    return value if value is None or isinstance(value, str) else type(value).__name__


def refusal(validated: Any, msg: str) -> str:
    """Return the message for options that ansible-core refuses with `msg`; one that names no option is replaced.

    ansible-core looks for secrets in suboptions first, and an error there does not name the option.
    """
    errors = validated.errors.errors if validated else []
    missing = " ".join(error.msg for error in errors if isinstance(error, RequiredError))
    hints = [
        f"{option} can also come from the environment variable {options.ENVIRONMENT_PREFIX}{option.upper()}"
        for option in ("base_url", "ledger")
        if re.search(rf"\b{option}\b", missing)
    ]
    if hints:
        return "; ".join([msg, *hints])
    named = [error.msg for error in errors if not isinstance(error, NoLogError)]
    if named and isinstance(errors[0], NoLogError) and msg == errors[0].msg:
        return meant(named[0])
    return meant(msg) if errors and msg.endswith(errors[0].msg) else msg  # else it is about the items of a list


def meant(msg: str) -> str:
    """Return ansible-core's message about options, starting with the full name of one that could not be converted.

    For unknown options it suggests known ones with a similar spelling.
    """
    msg = _NOT_CONVERTED.sub(lambda match: f"{_dotted(match[2] or match[3])}{match[1]}: ", msg)
    msg = _WRONG_TYPE.sub(lambda match: f"must be {match[3]}, not {match[1] or match[2]}", msg)
    unknown, said, known = msg.partition(". Supported parameters include: ")
    listed = unknown.rpartition(" module: ")[2]  # AnsibleModule puts the name of the module in front
    names = [name.rpartition(".")[2] for name in listed.split(", ")] if said else []
    near = [match for name in names for match in get_close_matches(name, re.findall(r"\w+", known), 1)]
    return f"{unknown}. Did you mean {', '.join(near)}?{said[1:]}{known}" if near else msg


def _dotted(place: str | None) -> str:
    """Return `attributes -> volumes` as the start of an option's full name."""
    return f"{place.replace(' -> ', '.')}." if place else ""


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
