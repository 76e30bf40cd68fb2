# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What every action plugin of the collection does before its own work: environment, options, secrets, ledger."""

from __future__ import annotations

import json
import os
from typing import Any

from ...module_utils._errors import NOT_SENT, InvalidInput, RequestFailed
from ...module_utils._task.options import LEDGER_VARIABLE
from ...module_utils._task.specs import ModuleSpec
from ...module_utils._task.validation import Options, validate
from .._ledger.location import located
from .._ledger.store import Ledger
from . import at_exit, core
from .environment import environment
from .kept import kept_ledger
from .parent import is_orphan
from .signals import Interrupted, deferred

NOT_WITH_ASYNC = (
    "cannot be combined with async, since nothing would record how the task ended. Nothing was sent. Remove async"
)


class CheckedAction(core.ObservedAction):
    """An action plugin whose options are validated in the worker, as a module does."""

    spec: ModuleSpec
    _supports_async = True
    _supports_check_mode = True

    def run(self, tmp=None, task_vars=None):
        super().run(tmp, task_vars)
        self.task_vars = task_vars or {}
        self.controller_environment = dict(os.environ)
        variables = {**self.controller_environment, **core.task_environment(self)}
        with deferred() as self.signals:
            result = self._run_until_ended(variables)
            if self.signals.caught and "msg" in result:
                at_exit.show_message(self._interrupted_message(result))
        if is_orphan():
            os._exit(1)  # the result would fill a pipe that nobody reads, and this process would never end
        return result

    def _run_until_ended(self, variables: dict[str, str]) -> dict:
        try:
            with environment(variables):
                return self._run()
        except InvalidInput as error:  # in the keyword environment
            return error.result()
        except core.TIMEOUT as error:
            return self._ended(f"The keyword timeout ended the task. {error}".strip())
        except Interrupted as error:
            return self._ended(f"The task was interrupted ({error}).")

    def _ended(self, msg: str) -> dict:
        return RequestFailed(msg, self.known_outcome()).result()

    def _run(self) -> dict:
        """Run the task and return its result."""
        raise NotImplementedError

    def _interrupted_message(self, result: dict) -> str:
        """Return what to show of a task that a signal ended, whose result nobody receives."""
        if not self._task.no_log:
            return result["msg"]
        outcome = result.get("outcome", NOT_SENT)
        return f"{self._task.action}: a task with no_log was interrupted; its outcome is {outcome}."

    def known_outcome(self) -> str:
        """Return the outcome of a task that was ended before it had a result."""
        return NOT_SENT

    def validated(self) -> Options:
        """Return the options; raise InvalidInput for what cannot be passed to a module."""
        return validate(self.spec, self.given_options())

    def given_options(self) -> dict:
        """Return the options as a module gets them; raise InvalidInput for what cannot be passed to one."""
        try:
            return json.loads(json.dumps(self._task.args, cls=core.ENCODER))
        except (TypeError, ValueError):
            problem = "contains a value that JSON cannot represent (binary data, a set, a huge number)"
            raise InvalidInput(".".join(_not_json(self._task.args)), problem) from None

    def given_ledger(self) -> Any:
        """Return the option `ledger` before it is validated; empty for none."""
        given = self._task.args.get("ledger")
        return os.environ.get(LEDGER_VARIABLE, "") if given is None else given

    def open_ledger(self, location: str, read_only: bool = False) -> Ledger:
        """Return the ledger, read-only in check mode; raise InvalidInput, LedgerError or MissingLibrary."""
        if self._task.async_val:
            raise InvalidInput("ledger", NOT_WITH_ASYNC)
        from_environment = self._task.args.get("ledger") is None
        place = located(location, self._loader.get_basedir(), from_environment)
        ledger = kept_ledger(place, read_only or self._task.check_mode)
        ledger.interruptible = self.signals.raised
        return ledger

    def with_invocation(self, result: dict, options: Options) -> dict:
        """Return the result, with its options where this ansible-core has them in results."""
        if core.wants_invocation(self.task_vars):
            result["invocation"] = options.invocation()
        return result


def _not_json(value: Any) -> list[str]:
    """Return the path to the innermost part that JSON cannot represent."""
    parts = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, part in parts:
        try:
            json.dumps(part, cls=core.ENCODER)
        except (TypeError, ValueError):
            return [str(key), *_not_json(part)]
    return []
