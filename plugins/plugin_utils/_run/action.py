# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Runs a module inside the Ansible worker where that is safe, else on the target; the results are the same."""

from __future__ import annotations

import os
from dataclasses import asdict, replace
from functools import partial
from typing import Any, Callable, NamedTuple, Sequence

from ansible.errors import AnsibleConnectionFailure, AnsibleError

from ...module_utils._call.operation import effect_of
from ...module_utils._errors import ACCEPTED, NOT_SENT, REJECTED, UNKNOWN, ServicesError
from ...module_utils._http.transport import requests
from ...module_utils._resources.every import KEYS
from ...module_utils._resources.flow import Recorded, Resource, kept_in
from ...module_utils._secrets import Secrets, password_in
from ...module_utils._task import task
from ...module_utils._task.options import ARGUMENT_SPEC
from ...module_utils._task.validation import Options
from .._ledger.recording import predict, record
from . import core
from .checked import CheckedAction
from .environment import environment
from .kept import kept_transport
from .parent import require_parent
from .shared_token import keep_token
from .signals import Interrupted

_PATHS = [name for name, option in ARGUMENT_SPEC.items() if option["type"] == "path"]
_JOB = "ansible_job_id"  # in the result when a module was started with async
_SHELL_CANNOT_START = (126, 127)  # POSIX: the command was found but cannot be run, or was not found


class Conditions(NamedTuple):
    """What decides where a task runs."""

    connection: str
    is_async: bool
    becomes: bool
    has_requests: bool


def runs_in_worker(conditions: Conditions) -> bool:
    """Whether the module would run on the worker's host anyway, as the same user."""
    return (
        conditions.connection == "local" and conditions.has_requests and not (conditions.is_async or conditions.becomes)
    )


class ServicesAction(CheckedAction):
    """The action plugin of a module that sends requests for its `resource`."""

    resource: Resource
    _kept_in = ""  # the command that lists what is in doubt, where a ledger keeps this task from being sent again
    # The last task of this process that may have created an asset, and its result. `until` makes a new action for each
    # attempt, but the task object stays the same.
    _last: tuple[object, dict] = (None, {})

    @property
    def _may_exist(self) -> dict:
        """The result of an earlier attempt of this task under `until`, if it may have created the asset."""
        task, result = ServicesAction._last
        return result if task is self._task else {}

    def run(self, tmp=None, task_vars=None):
        result = self._attempt(tmp, task_vars)
        return {name: result[name] for name in result if name != "attempts" or not core.counts_attempts(self)}

    def _attempt(self, tmp, task_vars) -> dict:
        if _JOB in self._may_exist and self._task.poll:
            ServicesAction._last = self._ended_job(core.last_result(self, task_vars or {}))
        if self._may_exist:
            return self._repeated_result(self._may_exist)
        result = super().run(tmp, task_vars)
        if self._may_exist:  # as the ledger and the keyword timeout left the result
            ServicesAction._last = (self._task, dict(result))
        return result

    def _run(self) -> dict:
        in_worker = runs_in_worker(self._conditions())
        if not in_worker and self.given_ledger() == "":
            return self._run_module(self.given_options())
        options = self.validated()
        try:
            require_parent()
            result = self._run_valid(options, in_worker)
        except ServicesError as error:
            result = warned(options.secrets.scrub(error.result()), options.secrets)
        return self.with_invocation(result, options) if in_worker else result

    def _run_valid(self, options: Options, in_worker: bool) -> dict:
        options.valid()
        params, secrets = options.params, options.secrets
        prepared = task.prepare(self.resource, {**params, **self._absolute_paths(params)})
        ledger = self.open_ledger(params["ledger"]) if params["ledger"] else None
        if ledger and not params["force"]:
            self._kept_in = ledger.in_doubt_command
            self.resource = kept_in(self.resource, self._kept_in)
            prepared = replace(prepared, resource=self.resource)
        execute = partial(self._run_in_worker, prepared, secrets)
        execute = execute if in_worker else partial(self._run_on_target, options.given, prepared, execute)
        if not ledger:
            return execute(None)
        return (
            predict(ledger, prepared, execute)
            if self._task.check_mode
            else record(ledger, prepared, secrets, core.run_id(), execute)
        )

    def known_outcome(self) -> str:
        return self._may_exist.get("outcome", NOT_SENT)

    def _repeated_result(self, result: dict) -> dict:
        """Return the result of the earlier attempt instead of making another one."""
        why = "This attempt sent nothing: the keyword until does not repeat a creation that may have happened."
        if result.get("failed"):
            return dict(result, msg=f"{why} The earlier attempt: {result['msg']}")
        return dict(result, warnings=[*result.get("warnings", []), why])

    def _ended_job(self, polled: Any) -> tuple[object, dict]:
        """Return what to keep of an earlier attempt with async, whose job ansible-core has polled and removed.

        `polled`: its result, as the task registers it. It is kept as a failure, which is not polled for a job again.
        """
        polled = polled if isinstance(polled, dict) else {}
        if polled.get("outcome") in (NOT_SENT, REJECTED):
            return None, {}
        if "outcome" not in polled:
            error = polled.get("msg", "the async job was not awaited")
            return self._task, dict(self._no_result(error, self._task.args, UNKNOWN), failed=True)
        result = {
            "msg": f"{self._asset(self._task.args)}: {effect_of(self.resource.operation, polled['outcome'])}",
            **polled,
        }
        return self._task, {name: value for name, value in result.items() if name != _JOB} | {"failed": True}

    def _run_in_worker(self, prepared: task.Task, secrets: Secrets, recorded: Recorded | None) -> dict:
        """Run the task in this process."""
        ends = (core.TIMEOUT, Interrupted, MemoryError)
        runtime = task.Runtime(
            self._task.check_mode, kept_transport, keep_token, require_parent, self.signals.raised, ends
        )
        done = task.perform(prepared, recorded, runtime, secrets)
        result = warned(done.result, secrets, done.warnings)
        return self._remembered(
            core.untrusted(task.presentable(result, secrets, self._task.diff, self._display.verbosity))
        )

    def _run_on_target(self, given: dict, prepared: task.Task, in_worker: Callable, recorded: Recorded | None) -> dict:
        """Run the module on the target, unless there is nothing to send; the ledger stays on the controller."""
        if prepared.plan(recorded).settled:
            return in_worker(recorded)
        known = {task.KEPT_IN: self._kept_in, task.RECORDED: recorded and asdict(recorded)}
        return self._run_module({**given, "base_url": prepared.settings.base_url, "ledger": "", **known})

    def _run_module(self, arguments: dict) -> dict:
        """Run the module on the target and return its result unchanged; add `outcome` where it is missing."""
        try:
            with environment(self.controller_environment), self.signals.raised():
                shell = self.run_shell()
                if shell["rc"] != 0:
                    said = " ".join(filter(None, (shell.get("stderr", "").strip(), shell.get("stdout", "").strip())))
                    return _not_started(
                        f"No shell can be run on the target as the user of the task: {said}", shell["rc"]
                    )
                result = self.run_module(arguments, self.task_vars)
        except AnsibleConnectionFailure as error:
            result = dict(self._no_result(error, arguments), unreachable=True)
        except ServicesError as error:  # the run of Ansible has ended
            result = error.result()
        except (AnsibleError, core.TIMEOUT, Interrupted) as error:
            result = dict(self._no_result(error, arguments), failed=True)
        if "outcome" not in result:
            cannot_start = result.get("rc") in _SHELL_CANNOT_START or core.is_python_too_old(result)
            result["outcome"] = NOT_SENT if cannot_start or self._task.check_mode else UNKNOWN
        return self._remembered(result)

    def _no_result(self, error: object, arguments: dict, outcome: str = "") -> dict:
        """Return what is known of a module that gave no result."""
        operation, outcome = self.resource.operation, outcome or (UNKNOWN if self.module_was_started else NOT_SENT)
        request = f" to {operation.method} {arguments.get('base_url') or ''}{operation.path}"
        problem = f"the module{request if outcome == UNKNOWN else ''} gave no result ({str(error).rstrip('.')})"
        msg = f"{self._asset(arguments)}: {problem}. {effect_of(operation, outcome)}"
        secrets = self.validated().secrets
        for password in password_in(str(arguments.get("base_url"))):  # the module would refuse it, but gave no result
            secrets.add(password)
        return secrets.scrub(dict(changed=False, outcome=outcome, msg=msg))

    def _asset(self, arguments: dict) -> str:
        """Return how a message names the asset of the task."""
        operation = self.resource.operation
        return f"{operation.noun} {arguments.get(KEYS[operation.resource], '')}".strip()

    def _remembered(self, result: dict) -> dict:
        """Keep the result of a creation that may have happened, for further attempts of `until`."""
        if self.resource.operation.method == "POST" and result["outcome"] in (UNKNOWN, ACCEPTED):
            ServicesAction._last = (self._task, dict(result))
        return result

    def _absolute_paths(self, params: dict) -> dict:
        """Return the path options made absolute; the local connection runs modules in the playbook's directory."""
        return {name: os.path.join(self._loader.get_basedir(), params[name]) for name in _PATHS if params.get(name)}

    def _conditions(self) -> Conditions:
        return Conditions(
            connection=self._connection.transport,
            is_async=bool(self._task.async_val),
            becomes=self.becomes,
            has_requests=requests is not None,
        )


def warned(result: dict, secrets: Secrets, warnings: Sequence[str] = ()) -> dict:
    """Return the result with its warnings, those about weak credentials first."""
    every = [*secrets.warnings(), *warnings]
    return dict(result, warnings=every) if every else result


def _not_started(msg: str, rc: int) -> dict:
    return dict(failed=True, changed=False, outcome=NOT_SENT, msg=msg, rc=rc)
