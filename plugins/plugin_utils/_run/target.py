# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Runs the module on the target: where the connection or `become` of the task leads."""

from __future__ import annotations

import os
from typing import Callable

from ansible.errors import AnsibleConnectionFailure, AnsibleError

from ...module_utils._call.policy import READS, effect_of
from ...module_utils._errors import NOT_SENT, UNKNOWN, Message, ServicesError
from ...module_utils._result import Result
from ...module_utils._task.options import ENVIRONMENT_PREFIX, NO_LEDGER, variable_of
from ...module_utils._task.signals import Interrupted
from .action import TaskRun, environment
from .ansible_core import is_python_too_old, why_failed


class Target:
    """Runs the module of a task; its result always has an outcome."""

    def __init__(self, run: TaskRun) -> None:
        self._run = run
        # No ledger is on a target, and a location may have a password in it.
        self._given = {**run.given, "ledger": run.options.params["ledger"] and NO_LEDGER}
        keyword = run.core.environment_keyword()
        for name, option in run.spec.options.items():
            variable = variable_of(name)
            if option["type"] == "path" and run.core.is_local:
                self._given[name] = run.options.params[name]
            # Files of the controller may be missing on another machine.
            elif option["type"] == "path" and variable not in keyword:
                continue
            elif variable and self._given.get(name) is None:
                self._given[name] = os.environ[variable]

    def run(self) -> Result:
        """Run a no-op on the target, then the module, and return its result."""
        return self._guarded(self._run_shell) or self._guarded(self._run_module) or Result()

    def _run_shell(self) -> None:
        shell = self._run.core.run_shell()
        if shell["rc"] != 0:
            said = f"{shell['stderr']} {shell['stdout']}".strip()
            raise ServicesError(
                f"No shell can be run on the target as the user of the task: {said}"
            )

    def _run_module(self) -> Result:
        """Run the module and return its result unchanged, except for a missing `outcome`.

        A result without is of ansible-core: either a job was started, or the module failed.
        """
        returned = self._run.core.run_module(self._given)
        result = Result.from_ansible(returned)
        if "outcome" in returned:
            return result
        # POSIX: the command was found but cannot be run, or was not found.
        cannot_start = returned.get("rc") in (126, 127) or is_python_too_old(returned)
        is_predicted = self._run.check_mode and self._run.operation.method not in READS
        outcome = NOT_SENT if cannot_start or is_predicted else UNKNOWN
        if "ansible_job_id" in returned and not result.failed:
            return result.but(outcome=outcome)
        failure = self._no_result(why_failed(returned), outcome)
        result = result.but(failed=True, changed=False, outcome=outcome, msg=failure.msg)
        return self._run.options.secrets.scrub(result)  # it may have the module's traceback

    def _guarded(self, step: Callable[[], Result | None]) -> Result | None:
        """Return the result of a step on the target, also if the connection is lost."""
        core = self._run.core
        try:
            # Those variables are among the arguments.
            core.keep_from_shell(ENVIRONMENT_PREFIX)
            with environment(self._run.controller_environment), self._run.signals.raised():
                return step()
        except ServicesError as error:  # the run of Ansible has ended
            return Result.of_error(error)
        except (AnsibleError, Interrupted) as error:
            outcome = UNKNOWN if core.module_was_started else NOT_SENT
            if not isinstance(error, AnsibleConnectionFailure):
                return self._no_result(str(error), outcome)
            # Ansible would poll a job whose start was lost unless it failed, and return a result of
            # its own.
            failed = bool(self._run.task.async_val)
            failure = self._no_result(
                str(error),
                outcome,
                " A machine that does not exist cannot be logged in to:"
                " add delegate_to: localhost.",
            )
            return failure.but(failed=failed, more={"unreachable": True})

    def _no_result(self, why: str, outcome: str, not_sent: str = "") -> Result:
        """Return the known effect of a module that gave no result; `not_sent`: advice for that."""
        spec = self._run.spec
        operation = self._run.operation
        asset = operation.resource.label(str(self._given.get(spec.key, ""))).strip()
        if spec.option:
            asset = f"{operation.resource.noun}s"
        msg = (
            f"{asset}: the module gave no result ({why.rstrip('.')})."
            f" {effect_of(operation, outcome)}{not_sent if outcome == NOT_SENT else ''}"
        )
        scrubbed = Message(self._run.options.secrets.scrub(msg))
        return Result(outcome=outcome, failed=True, msg=scrubbed)
