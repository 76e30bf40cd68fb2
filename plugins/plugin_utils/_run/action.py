# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The flow of every action plugin of the collection: environment, options, signals, `until`, the
end of a worker.
"""

from __future__ import annotations

import os
from typing import Any, Callable

from ...module_utils._errors import (
    ACCEPTED,
    NOT_SENT,
    UNKNOWN,
    InvalidInput,
    RequestFailed,
    ServicesError,
    in_words,
)
from ...module_utils._task.options import LEDGER_VARIABLE
from ...module_utils._task.signals import Interrupted, Signals, deferred
from ...module_utils._task.specs import ModuleSpec
from ...module_utils._task.validation import Options, validate
from . import core, process
from .cache import is_first
from .given import names_in_role, options_given, require_ledger, spec_in_role

_WHY = "This attempt sent nothing: the keyword until does not repeat a creation that may have happened."
_UNRECORDED = (
    "No ledger remembers what this run creates, so running it again creates another machine. Set ledger, or"
    f' {LEDGER_VARIABLE} in the environment, to the path of a file; ledger: "" says that this is meant.'
)
# The last task of this process that may have created an asset, and its result. Ansible makes a new
# action for each attempt of `until`, but the task object stays the same. `changed`: the last task
# that changed something.
_last: dict[str, Any] = {"task": None, "result": {}, "changed": None}


class Action(core.ObservedAction):
    """Runs a task on the controller; the subclasses say which module it is (`spec`) and do its
    work.
    """

    spec: ModuleSpec
    work: Callable[
        ..., dict
    ]  # takes valid options and the signals, returns the result; raises ServicesError
    _supports_async = True
    _supports_check_mode = True

    @property
    def creates(self) -> bool:
        """Whether the task sends what must not be sent twice."""
        return self.spec.resource is not None and self.spec.resource.operation.method == "POST"

    def hand_over(self, signals: Signals) -> dict | None:
        """Return the result of the module if all of the task is for the target, None if it is for
        the worker.
        """

    def given(self) -> dict:
        """Return the options of the task, not yet validated; raise InvalidInput."""
        return options_given(self)

    def _refuse_async_creation(self) -> None:
        """Raise InvalidInput for a creation that would be repeated without knowing how the job
        before it ended.
        """
        if self._task.async_val and self.creates and core.counts_attempts(self):
            why = "cannot be combined with until or retries in a task that creates: no attempt knows how the job"
            raise InvalidInput(
                "async", f"{why} before it ended. Remove async, or until and retries"
            )

    def remember(self, result: dict) -> dict:
        """Return the result; a creation that may have happened is not repeated by further attempts
        of `until`.
        """
        if self.creates and result["outcome"] in (UNKNOWN, ACCEPTED):
            _last.update(task=self._task, result=dict(result))
        return result

    def _remembered(self) -> dict:
        """Return the result of an attempt of the task that may have created the asset, empty for
        none.
        """
        return _last["result"] if _last["task"] is self._task else {}

    def _earlier(self) -> dict:
        """Return the result of a task that an earlier attempt may have carried out, empty for one
        to run.
        """
        result = self._remembered()
        if result.get("failed"):
            return dict(result, msg=f"{_WHY} The earlier attempt: {result['msg']}")
        return dict(result, warnings=[*result.get("warnings", []), _WHY]) if result else {}

    def _with_earlier_change(self, result: dict) -> dict:
        """Return the result, which is `changed` if an earlier attempt of the task has changed
        something.
        """
        if result.get("changed"):
            _last["changed"] = self._task
        return dict(result, changed=True) if _last["changed"] is self._task else result

    def run(self, tmp=None, task_vars=None):
        super().run(tmp, task_vars)
        self.task_vars = task_vars or {}
        self.controller_environment = dict(os.environ)
        return self._earlier() or self._run()

    def _run(self) -> dict:
        with deferred() as signals:
            result = self._with_earlier_change(core.untrusted(in_words(self._ended(signals))))
            if self._remembered():
                _last.update(result=dict(result))  # as the ledger and the keyword timeout left it
            if signals.caught and "msg" in result:
                hidden = f"{self._task.action}: a task with no_log was interrupted; its outcome is {result['outcome']}."
                process.show_message(hidden if self._task.no_log else result["msg"])
        signals.terminate()
        if (
            process.is_orphan()
        ):  # the result would fill a pipe that nobody reads, so this worker would never end
            os._exit(1)
        return result

    def _ended(self, signals: Signals) -> dict:
        try:
            if names := names_in_role(self.task_vars, core.variables_given(self)):
                self.spec = spec_in_role(self.spec, names)
            self._refuse_async_creation()
            self.task_environment = core.task_environment(self)
            with process.environment({**self.controller_environment, **self.task_environment}):
                require_ledger(self)
                result = self.hand_over(signals) or self._result(
                    validate(self.spec, self.given()), signals
                )
                return self._with_warning(result)
        except InvalidInput as error:  # in a keyword or a variable
            return error.result()
        except Interrupted as error:
            outcome = self._remembered().get("outcome", NOT_SENT)
            effect = " before it sent anything. Run it again" if outcome == NOT_SENT else ""
            return RequestFailed(f"The task was interrupted ({error}){effect}.", outcome).result()

    def _with_warning(self, result: dict) -> dict:
        """Return the result; the first of a run that created without a ledger, unless with an empty
        one, warns.
        """
        is_recorded = self._task.args.get("ledger") is not None or os.environ.get(LEDGER_VARIABLE)
        has_created = self.creates and (result.get("changed") or result.get("outcome") == UNKNOWN)
        if is_recorded or not has_created or self._task.no_log or not is_first(_UNRECORDED):
            return result
        return dict(result, warnings=[*result.get("warnings", ()), _UNRECORDED])

    def _result(self, options: Options, signals: Signals) -> dict:
        """Return the result of a task that is done here, or partly on the target, with warnings and
        invocation.
        """
        try:
            options.valid()
            result = self.work(options, signals)
        except ServicesError as error:
            result = options.failed(error)
        if self.module_was_started:  # it has warned, and shown its options
            return result
        if not self._task.diff:
            result.pop("diff", None)
        warnings = [*options.secrets.warnings(), *result.pop("warnings", ())]
        invocation = (
            {"invocation": options.invocation()} if core.wants_invocation(self.task_vars) else {}
        )
        return {**result, **({"warnings": warnings} if warnings else {}), **invocation}
