# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Runs the module on the target: where the connection or `become` of the task leads."""

from __future__ import annotations

import os
from dataclasses import asdict

from ansible.errors import AnsibleConnectionFailure, AnsibleError

from ...module_utils._call.operation import effect_of
from ...module_utils._errors import NOT_SENT, UNKNOWN, Message, ServicesError
from ...module_utils._fields import Params
from ...module_utils._result import Result, Returned
from ...module_utils._task.options import ENVIRONMENT_PREFIX
from ...module_utils._task.signals import Interrupted
from ...module_utils._task.task import RECORDED, Planned
from ...module_utils._task.validation import validate, variable_of
from .action import Action
from .ansible_core import is_python_too_old, why_failed
from .worker import environment

_NOT_THERE = " A machine that does not exist cannot be logged in to: add delegate_to: localhost."
# POSIX: the command was found but cannot be run, or was not found.
_SHELL_CANNOT_START = (126, 127)


class Target:
    """Runs the module of a task; its result always has an outcome."""

    def __init__(self, action: Action, given: Params) -> None:
        """Raise InvalidInput for a path in a collection; `given`: the options of the task."""
        self._action = action
        self._given = {**given, **self._from_environment(given)}
        if action.keywords.is_local:
            self._given = action.with_absolute_paths(self._given)

    def _from_environment(self, given: Params) -> dict[str, str]:
        """Return the options that variables set, including variables of the controller.

        Files of the controller may be missing on the target: a path on another machine comes from
        the keyword `environment` alone.
        """
        action = self._action
        found = {}
        for name, option in action.spec.options.items():
            if given.get(name) is not None:
                continue
            variable = variable_of(option)
            is_elsewhere = option["type"] == "path" and not action.keywords.is_local
            if is_elsewhere and variable not in action.task_environment:
                continue
            if variable:
                found[name] = os.environ[variable]
        return found

    def send(self, planned: Planned) -> Result:
        """Run the module for a task whose ledger stays on the controller."""
        recorded = asdict(planned.recorded) if planned.recorded else None
        base_url = planned.task.settings.base_url
        self._given.update({"base_url": base_url, "ledger": "", RECORDED: recorded})
        return self.run()

    def run(self) -> Result:
        """Run the module and return its result unchanged, except for a missing `outcome`."""
        action = self._action
        try:
            # Those variables are among the arguments.
            action.keep_from_shell(ENVIRONMENT_PREFIX)
            with environment(action.controller_environment), action.signals.raised():
                shell = action.run_shell()
                if shell["rc"] != 0:
                    return _no_shell(shell)
                result = action.run_module(dict(self._given))
        except AnsibleConnectionFailure as error:
            # Ansible would poll a job whose start was lost unless it failed, and return a result of
            # its own.
            is_async = action.keywords.is_async
            return self._no_result(error).but(failed=is_async, more={"unreachable": True})
        except ServicesError as error:  # the run of Ansible has ended
            return Result.of_error(error)
        except (AnsibleError, Interrupted) as error:
            return self._no_result(error)
        return Result.from_ansible(result) if "outcome" in result else self._with_outcome(result)

    def _with_outcome(self, returned: Returned) -> Result:
        """Return a result of ansible-core instead of the module, with `outcome`.

        Either a job was started, or the module failed.
        """
        result = Result.from_ansible(returned)
        outcome = UNKNOWN
        if returned.get("rc") in _SHELL_CANNOT_START or is_python_too_old(returned):
            outcome = NOT_SENT
        if self._action.keywords.check_mode:
            outcome = NOT_SENT
        if "ansible_job_id" in returned and not result.failed:
            return result.but(outcome=outcome)
        failure = self._failed(self._message(why_failed(returned), outcome), outcome)
        return result.but(failed=True, changed=False, outcome=outcome, msg=failure.msg)

    def _no_result(self, error: BaseException) -> Result:
        """Return the known effect of a module that gave no result."""
        outcome = UNKNOWN if self._action.module_was_started else NOT_SENT
        msg = self._message(str(error), outcome)
        if isinstance(error, AnsibleConnectionFailure) and outcome == NOT_SENT:
            msg += _NOT_THERE
        return self._failed(msg, outcome)

    def _message(self, why: str, outcome: str) -> str:
        """Return the message about a module that gave no result."""
        spec = self._action.spec
        operation = spec.sent.operation
        name = self._given.get(spec.key, "")
        asset = f"{operation.noun}s" if spec.option else operation.label(str(name)).strip()
        request = ""
        if outcome == UNKNOWN:
            base_url = self._given.get("base_url") or ""
            request = f" to {operation.method} {base_url}{operation.path}"
        problem = f"the module{request} gave no result ({why.rstrip('.')})"
        return f"{asset}: {problem}. {effect_of(operation, outcome)}"

    def _failed(self, msg: str, outcome: str) -> Result:
        secrets = validate(self._action.spec, self._action.options_given()).secrets
        return Result(outcome=outcome, failed=True, msg=Message(secrets.scrub_message(msg)))


def _no_shell(shell: Returned) -> Result:
    output = [shell.get("stderr", "").strip(), shell.get("stdout", "").strip()]
    said = " ".join(filter(None, output))
    msg = f"No shell can be run on the target as the user of the task: {said}"
    return Result(failed=True, msg=Message(msg), more={"rc": shell["rc"]})
