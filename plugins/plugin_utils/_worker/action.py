# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Runs a module inside the Ansible worker where that is safe, else by the ordinary way; the results are the same."""

from __future__ import annotations

import json
import os
from functools import cache, partial
from types import ModuleType
from typing import Callable, NamedTuple

from ansible import constants
from ansible.module_utils.common.arg_spec import ArgumentSpecValidator
from ansible.module_utils.errors import UnsupportedError
from ansible.plugins.action.normal import ActionModule as OrdinaryAction

from ...module_utils import _secrets
from ...module_utils._errors import InvalidInput, ServicesError
from ...module_utils._http.transport import requests
from ...module_utils._resources.flow import Recorded
from ...module_utils._task import task
from ...module_utils._task.options import ENVIRONMENT_PREFIX
from .._ledger.location import located
from .._ledger.recording import booked
from .._ledger.store import Ledger
from .core import ENCODER, run_id, untrusted
from .kept import kept_ledger, kept_transport
from .shared_token import keep_token

_SWITCH = "INJECT_INVOCATION"  # of ansible-core 2.21; before it the invocation was always there, and shown at -vvv
_SWITCHED = constants.config.get_configuration_definitions().get(_SWITCH) and constants.config.get_config_value(_SWITCH)
_LEDGER_VARIABLE = f"{ENVIRONMENT_PREFIX}LEDGER"
_SECRET = [name for name, option in task.SHARED_OPTIONS.items() if option.get("no_log")]
_PATHS = [name for name, option in task.SHARED_OPTIONS.items() if option["type"] == "path"]


class Facts(NamedTuple):
    """What decides where a task runs."""

    connection: str
    is_async: bool
    becomes: bool
    has_environment: bool
    has_requests: bool


def runs_in_process(facts: Facts) -> bool:
    """Whether the module would run beside the worker anyway, as the same user and with the same environment."""
    return (
        facts.connection == "local"
        and facts.has_requests
        and not (facts.is_async or facts.becomes or facts.has_environment)
    )


@cache
def _validator(resource: ModuleType) -> ArgumentSpecValidator:
    return ArgumentSpecValidator(**task.argument_spec(resource))


class ServicesAction(OrdinaryAction):
    """The action plugin of a module; `resource` is the module_utils file that does its work."""

    resource: ModuleType

    def run(self, tmp=None, task_vars=None):
        result = self._run(tmp, task_vars)
        if not self._wants_invocation():
            result.pop("invocation", None)  # most of a result, and a cost in each step that Ansible takes with it
        return result

    def _run(self, tmp: None, task_vars: dict | None) -> dict:
        here, ledger = runs_in_process(self._facts()), self._ledger()
        if not here and not ledger:
            return super().run(tmp, task_vars)
        self._given = json.loads(json.dumps(self._task.args, cls=ENCODER))  # as the module would get them
        validated = _validator(self.resource).validate(self._given)
        self._params = validated.validated_parameters
        self._secrets = {*validated._no_log_values, *_secrets.password_in(ledger)}
        execute = self._here if here else partial(self._there, task_vars)
        try:
            self._check(validated)
            result = self._by_the_book(ledger, execute) if ledger else execute(None)
        except ServicesError as error:
            self._secrets |= task.given_secrets(self._params)
            result = error.result()
        if here and self._wants_invocation():
            result["invocation"] = {"module_args": self._shown_params()}
        return untrusted(_secrets.scrub(result, self._secrets))

    def _ledger(self) -> str:
        """Return where the ledger is before the options are validated; empty for none, be it given so or not given."""
        given = self._task.args.get("ledger")
        return os.environ.get(_LEDGER_VARIABLE, "") if given is None else str(given)

    def _check(self, validated) -> None:
        """Raise what AnsibleModule says of options that it refuses."""
        if validated.error_messages:
            unsupported = isinstance(validated.errors[0], UnsupportedError)
            prefix = f"Unsupported parameters for ({self._task.action}) module: " if unsupported else ""
            raise ServicesError(f"{prefix}{task.refusal(validated, validated.errors.msg)}")

    def _by_the_book(self, location: str, execute: Callable[[Recorded | None], dict]) -> dict:
        ledger = self._open(location)
        return booked(ledger, self.resource, self._params, self._task.check_mode, self._secrets, execute, run_id())

    def _open(self, location: str) -> Ledger:
        """Return the ledger, only to be read in check mode; a relative path is below the playbook's directory."""
        if self._task.async_val:
            raise InvalidInput("ledger", "does not go with async: nobody would write down how the task ended")
        return kept_ledger(located(location, self._loader.get_basedir(), False), self._task.check_mode)

    def _here(self, recorded: Recorded | None) -> dict:
        """Run the task in this process."""
        paths = {name: self._below_playbook(self._params[name]) for name in _PATHS if self._params[name]}
        params, check_mode = {**self._params, **paths}, self._task.check_mode
        done = task.perform(self.resource, params, check_mode, kept_transport, keep_token, recorded)
        self._secrets |= done.secrets
        result = dict(done.result, warnings=done.warnings) if done.warnings else done.result
        return task.presentable(result, self._secrets, self._task.diff, self._display.verbosity)

    def _there(self, task_vars: dict | None, recorded: Recorded | None) -> dict:
        """Run the module, unless there is nothing to send; the ledger is not its business."""
        if self.resource.plan(self._params, recorded).settled:
            return self._here(recorded)
        known = {"current": recorded.asset} if recorded and not self._params.get("current") else {}
        self._task.args = {**self._given, **known, "base_url": self._params["base_url"], "ledger": ""}
        return super().run(None, task_vars)

    def _below_playbook(self, path: str) -> str:
        """Return a path as the local connection means it, which runs modules in the playbook's directory."""
        return os.path.join(self._loader.get_basedir(), path)

    def _facts(self) -> Facts:
        return Facts(
            connection=self._connection.transport,
            is_async=bool(self._task.async_val),
            becomes=bool(self._connection.become),
            has_environment=any(self._task.environment or ()),
            has_requests=requests is not None,
        )

    def _shown_params(self) -> dict:
        """Return the options for the invocation, their secrets gone: all the rest then needs no scrubbing as a rule."""
        hidden = {name: self._params[name] for name in _SECRET if name in self._params}
        return {**self._params, **_secrets.scrub(hidden, self._secrets)}

    def _wants_invocation(self) -> bool:
        return self._display.verbosity >= 3 if _SWITCHED is None else _SWITCHED
