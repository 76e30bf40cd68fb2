# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The flow of every action plugin: environment, options, signals, and `until`."""

from __future__ import annotations

import os
from typing import Any, Iterable

from ...module_utils._errors import (
    ACCEPTED,
    NOT_SENT,
    UNKNOWN,
    InvalidInput,
    Message,
    RequestFailed,
    ServicesError,
)
from ...module_utils._fields import Params
from ...module_utils._result import Result, Returned
from ...module_utils._task.options import LEDGER_VARIABLE
from ...module_utils._task.signals import Interrupted, Signals, deferred
from ...module_utils._task.specs import ModuleSpec
from ...module_utils._task.validation import Options, converted, validate
from .._ledger.location import absolute
from .ansible_core import TaskAction, untrusted, wants_invocation
from .display import leave_message, prepare_display, say, show_lines
from .one_value import require_one_value
from .role import ONLY_CHECKS, names_in_role, shared_names, spec_in_role
from .run_memory import run_memory
from .worker import environment, is_orphan, parent

_WHY = (
    "This attempt sent nothing: the keyword until does not repeat a"
    " creation that may have happened."
)
_UNRECORDED = (
    "No ledger is set, so running this again will create another machine."
    f" Set ledger, or {LEDGER_VARIABLE} in the environment, to the path of a file;"
    ' ledger: "" says that this is intended.'
)
_NO_LEDGER = (
    f"is missing: set it, or {LEDGER_VARIABLE} in the environment, to a"
    " path (an SQLite file) or a postgresql:// URL,"
    " so that running again is safe"
)


class Attempts:
    """The earlier attempts of the task that this process runs, which `until` repeats."""

    def __init__(self) -> None:
        self._task: object = None
        self._creation: Result | None = None
        self._has_changed = False

    def forget_others(self, task: object) -> None:
        """Forget the attempts of any other task; the task object is the same for all of its own."""
        if task is not self._task:
            self._task = task
            self._creation = None
            self._has_changed = False

    @property
    def outcome(self) -> str:
        """The outcome of a creation that may have happened, otherwise NOT_SENT."""
        return self._creation.outcome if self._creation else NOT_SENT

    def remember_creation(self, result: Result) -> None:
        """Keep further attempts from sending the request of this result again."""
        self._creation = result

    def creation(self) -> Result | None:
        """Return the result of a creation that is not repeated, None if this attempt may send."""
        result = self._creation
        if result is None:
            return None
        if result.failed:
            return result.but(msg=Message(f"{_WHY} The earlier attempt: {result.msg}"))
        return result.but(warnings=(*result.warnings, _WHY))

    def end(self, result: Result) -> Result:
        """Return the result of an attempt; it is `changed` if an earlier one was."""
        self._has_changed = self._has_changed or result.changed
        if self._has_changed and not result.changed:
            result = result.but(changed=True)
        if self._creation:  # with the message of the ledger
            self._creation = result
        return result


_ATTEMPTS = Attempts()  # Ansible makes a new action for each attempt


class Action(TaskAction):
    """Runs a task on the controller; subclasses name their module (`spec`) and do its work."""

    spec: ModuleSpec
    signals: Signals
    controller_environment: dict[str, str]
    task_environment: dict[str, str]  # the keyword `environment`

    def __init_subclass__(cls, **more: Any) -> None:
        """Prepare this process for its workers once a plugin is loaded, which is before the fork."""
        super().__init_subclass__(**more)
        if hasattr(cls, "spec"):
            parent()
            prepare_display()
            run_memory()

    def work(self, options: Options) -> Result | Returned:
        """Do the task, given valid options, and return the result; raise ServicesError."""
        raise NotImplementedError

    def run_on_target(self) -> Result | None:
        """Return the result of the module if it does the whole task, None otherwise."""
        return None

    def options_given(self) -> Params:
        """Return the options of the task, not yet validated; raise InvalidInput."""
        try:
            return dict(self.all_given())
        except (TypeError, ValueError):
            problem = (
                "one contains a value that JSON cannot represent (binary data, a"
                " set, a huge number)"
            )
            raise InvalidInput("the options", problem) from None

    @property
    def creates(self) -> bool:
        return self.spec.resource is not None and self.spec.resource.operation.method == "POST"

    @property
    def only_checks(self) -> bool:
        """Whether the task only finds faults before the first request of the role."""
        return self.keywords.check_mode and bool(self.variable(ONLY_CHECKS))

    def show(self, lines: Iterable[str]) -> None:
        """Display lines about assets, a plan or a result, unless `no_log` hides them."""
        if not self.keywords.no_log:
            show_lines(lines)

    def say(self, line: str) -> None:
        """Display a line about assets on stderr, unless `no_log` hides it."""
        if not self.keywords.no_log:
            say(self.signals, line)

    def list_variable(self, name: str, place: str) -> list[str]:
        """Return the texts of a variable, converted as a list option; raise InvalidInput.

        `place`: the name in messages.
        """
        given = self.variable(name)
        if not given:
            return []
        texts, problems = converted(dict(type="list", elements="str"), given, place, place)
        if problems:
            raise InvalidInput("; ".join(problems))
        return list(texts)

    def ledger_given(self) -> Any:
        """Return the option `ledger` before it is validated, '' if none is given."""
        given = self.arguments.get("ledger")
        return os.environ.get(LEDGER_VARIABLE, "") if given is None else given

    def absolute_path(self, option: str, path: str) -> str:
        """Return the absolute path for an option, or for the variable that sets it.

        Raise InvalidInput for a path in a collection.
        """
        return absolute(option, path, self.playbook_directory, self.arguments.get(option) is None)

    def with_absolute_paths(self, options: Params) -> Params:
        """Return options, valid or not, with absolute paths.

        Raise InvalidInput for a path in a collection. A path that is not a text stays as it is.
        """
        texts = {name: options.get(name) for name in self.spec.paths}
        paths = {
            name: self.absolute_path(name, os.path.expandvars(text))
            for name, text in texts.items()
            if text and isinstance(text, str)
        }
        return {**options, **paths}

    def remember(self, result: Result) -> Result:
        """Return the result; `until` does not repeat a creation that may have happened."""
        if self.creates and result.outcome in (UNKNOWN, ACCEPTED):
            _ATTEMPTS.remember_creation(result)
        return result

    def run(self, tmp: Any = None, task_vars: dict[str, Any] | None = None) -> Returned:
        """Run the task for one host and item, and return the result."""
        super().run(tmp, task_vars)
        self.controller_environment = dict(os.environ)
        _ATTEMPTS.forget_others(self.task)
        result = _ATTEMPTS.creation() or self._run_with_signals()
        return untrusted(result.as_ansible())

    def _run_with_signals(self) -> Result:
        """Run the task with deferred signals, then let them terminate this process."""
        with deferred() as self.signals:
            result = _ATTEMPTS.end(self._run_in_environment())
            if self.signals.caught and result.msg.text:
                hidden = (
                    f"{self.module}: a task with no_log was interrupted; its outcome is"
                    f" {result.outcome}."
                )
                leave_message(hidden if self.keywords.no_log else str(result.msg))
        if self.signals.caught:
            self.signals.terminate()
        if is_orphan():
            # The result would fill a pipe that nobody reads, so this worker would never end.
            os._exit(1)
        return result

    def _run_in_environment(self) -> Result:
        """Run the task in its environment, on the target or here; its errors become results."""
        try:
            names = names_in_role(self.task_vars, self.variables_given())
            if names:
                self.spec = spec_in_role(self.spec, names)
            shared = shared_names(self.task_vars, names)
            if shared:
                require_one_value(self.task_vars, shared, self.template)
            self._require_known_attempts()
            self.task_environment = self.environment_keyword()
            with environment({**self.controller_environment, **self.task_environment}):
                self._require_ledger()
                result = self.run_on_target() or self._run_here()
                return self._with_warning(result)
        except InvalidInput as error:  # in a keyword or a variable
            return Result.of_error(error.renamed(self.spec.named, self.spec.no_effect))
        except Interrupted as error:
            outcome = _ATTEMPTS.outcome
            effect = " before it sent anything. Run it again" if outcome == NOT_SENT else ""
            failure = RequestFailed(f"The task was interrupted ({error}){effect}.", outcome)
            return Result.of_error(failure)

    def _require_ledger(self) -> None:
        """Raise InvalidInput for a task of the role without a ledger."""
        if self.spec.names and not self.ledger_given():
            raise InvalidInput(self.spec.named("ledger"), _NO_LEDGER)

    def _require_known_attempts(self) -> None:
        """Raise InvalidInput for a creation that is repeated before its last job has ended."""
        if self.keywords.is_async and self.creates and self.keywords.counts_attempts:
            why = (
                "cannot be combined with until or retries in a task that creates:"
                " no attempt knows how the job"
            )
            advice = "before it ended. Remove async, or until and retries"
            raise InvalidInput("async", f"{why} {advice}")

    def _run_here(self) -> Result:
        """Do the task here, or partly on the target, and return its result with `invocation`."""
        options = validate(self.spec, self.options_given())
        try:
            options.valid()
            returned = self.work(options)
        except ServicesError as error:
            returned = options.failed(error)
        result = returned if isinstance(returned, Result) else Result.from_ansible(returned)
        if self.module_was_started:  # its result has warnings and invocation
            return result
        return result.but(
            diff=result.diff if self.keywords.diff else None,
            invocation=options.invocation() if wants_invocation(self.task_vars) else None,
            warnings=(*options.secrets.warnings(), *result.warnings),
        )

    def _with_warning(self, result: Result) -> Result:
        """Return the result; the first creation of a run without a ledger gets a warning.

        An empty option `ledger` means that this is intended.
        """
        is_recorded = self.arguments.get("ledger") is not None or os.environ.get(LEDGER_VARIABLE)
        has_created = self.creates and (result.changed or result.outcome == UNKNOWN)
        if is_recorded or not has_created or self.keywords.no_log:
            return result
        if not run_memory().is_first(_UNRECORDED):
            return result
        return result.but(warnings=(*result.warnings, _UNRECORDED))
