# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Runs the module on the target, where the connection of a task or its `become` leads."""

from __future__ import annotations

import os
from dataclasses import asdict

from ansible.errors import AnsibleConnectionFailure, AnsibleError

from ...module_utils._call.operation import effect_of
from ...module_utils._errors import NOT_SENT, UNKNOWN, ServicesError
from ...module_utils._task.options import ENVIRONMENT_PREFIX
from ...module_utils._task.signals import Interrupted, Signals
from ...module_utils._task.task import RECORDED, Planned
from ...module_utils._task.validation import validate, variable_of
from . import core
from .given import absolute_path, options_given
from .process import environment

_NOT_THERE = " A machine that does not exist cannot be logged in to: add delegate_to: localhost."
_SHELL_CANNOT_START = (126, 127)  # POSIX: the command was found but cannot be run, or was not found


class Target:
    """Runs the module of a task with the options that were given, and reports what is known however
    that ends.
    """

    def __init__(self, action, given: dict, signals: Signals) -> None:
        """Raise InvalidInput for a path that cannot be meant."""
        self._action, self._signals = action, signals
        self._given = {**given, **_from_environment(action, given)}
        if is_here(action):
            self._given.update(_absolute_paths(action, self._given))

    def send(self, planned: Planned) -> dict:
        """Run the module for a task whose ledger stays on the controller."""
        recorded = planned.recorded and asdict(planned.recorded)
        base_url = planned.task.settings.base_url
        return self.run({**self._given, "base_url": base_url, "ledger": "", RECORDED: recorded})

    def run(self, arguments: dict | None = None) -> dict:
        """Run the module and return its result unchanged; add `outcome` where it is missing."""
        action, arguments = self._action, self._given if arguments is None else arguments
        try:
            core.keep_from_shell(
                action._connection, ENVIRONMENT_PREFIX
            )  # they are among the arguments
            with environment(action.controller_environment), self._signals.raised():
                shell = action.run_shell()
                if shell["rc"] != 0:
                    return _no_shell(shell)
                result = action.run_module(arguments)
        except AnsibleConnectionFailure as error:
            # Ansible would poll a job whose start was lost unless it failed, and return a result of
            # its own.
            of_job = dict(failed=True) if action._task.async_val else {}
            return dict(_no_result(action, error, arguments), unreachable=True, **of_job)
        except ServicesError as error:  # the run of Ansible has ended
            return error.result()
        except (AnsibleError, Interrupted) as error:
            return dict(_no_result(action, error, arguments), failed=True)
        return result if "outcome" in result else _with_outcome(action, result, arguments)


def is_here(action) -> bool:
    """Whether the module runs on this machine, where files are what they are for the controller."""
    return action._connection.transport == "local"


def _from_environment(action, given: dict) -> dict:
    """Return the options that variables set: those of the controller, too, so that the place does
    not matter.

    But its files may not be there on the target: a path on another machine comes from the keyword
    `environment` alone.
    """
    found = {}
    for name, option in action.spec.options.items():
        variable = variable_of(option) if given.get(name) is None else ""
        is_path = option["type"] == "path"
        if variable and (not is_path or is_here(action) or variable in action.task_environment):
            found[name] = os.environ[variable]
    return found


def _absolute_paths(action, given: dict) -> dict:
    """Return the paths as the worker takes them; the module itself refuses what is no text."""
    names = [
        name
        for name, option in action.spec.options.items()
        if option["type"] == "path" and given.get(name)
    ]
    texts = {name: given[name] for name in names if isinstance(given[name], str)}
    return {
        name: absolute_path(action, name, os.path.expandvars(text)) for name, text in texts.items()
    }


def _no_shell(shell: dict) -> dict:
    said = " ".join(
        filter(None, (shell.get("stderr", "").strip(), shell.get("stdout", "").strip()))
    )
    msg = f"No shell can be run on the target as the user of the task: {said}"
    return dict(failed=True, changed=False, outcome=NOT_SENT, msg=msg, rc=shell["rc"])


def _with_outcome(action, result: dict, arguments: dict) -> dict:
    """Return a result that is not the module's own: a job was started, or ansible-core says why the
    module failed.
    """
    cannot_start = result.get("rc") in _SHELL_CANNOT_START or core.is_python_too_old(result)
    outcome = NOT_SENT if cannot_start or action._task.check_mode else UNKNOWN
    if "ansible_job_id" in result and not result.get("failed"):
        return dict(result, outcome=outcome)
    msg = _message(action, core.why_failed(result), arguments, outcome)
    own = dict(failed=True, changed=False, outcome=outcome, msg=msg)
    return {**result, **_scrubbed(action, own)}


def _no_result(action, error: BaseException, arguments: dict) -> dict:
    """Return what is known of a module that gave no result."""
    outcome = UNKNOWN if action.module_was_started else NOT_SENT
    hint = _NOT_THERE if isinstance(error, AnsibleConnectionFailure) and outcome == NOT_SENT else ""
    msg = f"{_message(action, str(error), arguments, outcome)}{hint}"
    return _scrubbed(action, dict(changed=False, outcome=outcome, msg=msg))


def _message(action, why: str, arguments: dict, outcome: str) -> str:
    """Return the message about a module that gave no result."""
    spec, operation = action.spec, action.spec.resource.operation
    asset = (
        f"{operation.noun}s"
        if spec.option
        else f"{operation.noun} {arguments.get(spec.key, '')}".strip()
    )
    request = f" to {operation.method} {arguments.get('base_url') or ''}{operation.path}"
    problem = (
        f"the module{request if outcome == UNKNOWN else ''} gave no result ({why.rstrip('.')})"
    )
    return f"{asset}: {problem}. {effect_of(operation, outcome)}"


def _scrubbed(action, result: dict) -> dict:
    return validate(action.spec, options_given(action)).secrets.scrub(result)
