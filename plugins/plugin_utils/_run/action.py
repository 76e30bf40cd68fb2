# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What every action does: environment, options, signals, ledger; the work gets a TaskRun."""

from __future__ import annotations

import os
import time
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Callable, Iterator, Mapping

from ...module_utils._call.policy import Operation
from ...module_utils._errors import InvalidInput, ServicesError
from ...module_utils._result import Result, Returned
from ...module_utils._task.options import NO_LEDGER
from ...module_utils._task.signals import Interrupted, Signals, deferred
from ...module_utils._task.specs import ModuleSpec
from ...module_utils._task.validation import Options, validate
from ...module_utils._values import Params
from .._ledger.ledger import Ledger
from .._ledger.location import open_ledger
from .._ledger.seen import Seen
from .ansible_core import TaskAction, prints_lines, run_id, setting, untrusted
from .role import FLEET, spec_in_role
from .workers import is_orphan, prepare_workers, require_parent, show


@dataclass
class TaskRun:
    """One task for one host and item, as its action hands it to its work."""

    core: TaskAction
    task: Any  # its keywords and arguments
    spec: ModuleSpec  # with the names of the role
    signals: Signals
    controller_environment: dict[str, str]
    warnings: list[str] = field(default_factory=list)  # for the result

    @property
    def check_mode(self) -> bool:
        return bool(self.task.check_mode)

    @property
    def only_checks(self) -> bool:
        """Whether this is the task of the role that only finds faults before the first request."""
        is_plan = self.core.variable("ansible_check_mode")
        return bool(self.spec.names) and self.check_mode and not is_plan

    @cached_property
    def given(self) -> Params:
        """The options, not yet validated; raise InvalidInput."""
        try:
            return dict(self.core.all_given())
        except (TypeError, ValueError):
            raise InvalidInput(
                "the options",
                "one contains a value that JSON cannot represent (binary data, a set, a huge"
                " number)",
            ) from None

    @cached_property
    def options(self) -> Options:
        """The options, validated or with their faults; raise InvalidInput."""
        return validate(self.spec, self.given)

    @cached_property
    def operation(self) -> Operation:
        """The operation of the task; raise TypeError for one of the ledger alone."""
        return self.spec.operation_of(self.options.params)

    def show(self, *lines: str, stderr: bool = False) -> None:
        """Display lines about assets, a plan or a result, unless `no_log` hides them."""
        if not self.task.no_log:
            show(*lines, stderr=stderr or not prints_lines())

    def pause(self, seconds: float) -> None:
        """Wait before anything is sent; a signal, or the end of the run, ends the wait."""
        with self.signals.raised():
            time.sleep(seconds)
        require_parent()

    def open_ledger(self, given: str, base_url: str = "", writes: bool = False) -> Ledger:
        """Return the open ledger of an option; raise ServicesError.

        `base_url`, `writes`: as in `open_ledger`.
        """
        with self.signals.raised():
            ledger = open_ledger(given, self.seen, base_url, writes)
        ledger.sleep = self.pause
        return ledger

    def warn_if_back(self, ledger: Ledger) -> None:
        """Warn of a ledger that has gone back in time."""
        self.warnings += filter(None, [ledger.gone_back()])

    @cached_property
    def seen(self) -> Seen:
        """What this controller has seen of ledgers."""
        return Seen(setting("ANSIBLE_HOME"), run_id())


class Action(TaskAction):
    """Runs a task on the controller; each plugin has its module (`spec`) and its `work`."""

    spec: ModuleSpec
    # Does the task, given its options, which may have faults; raises ServicesError.
    work: Callable[[TaskRun], Result | Returned]

    def run(self, tmp: Any = None, task_vars: dict[str, Any] | None = None) -> Returned:
        """Run the task for one host and item with deferred signals, and return the result."""
        super().run(tmp, task_vars)
        self.task_vars = task_vars or {}
        self.module_was_started = False  # by this attempt of `until`
        with deferred() as signals:
            result = self._run(TaskRun(self, self.task, self.spec, signals, dict(os.environ)))
        if signals.caught:
            signals.terminate()
        if is_orphan():
            # The result would fill a pipe that nobody reads, so this worker would never end.
            os._exit(1)
        return untrusted(result.as_ansible())

    def _run(self, run: TaskRun) -> Result:
        """Do the task in its environment; its errors become results."""
        try:
            if self.task_vars.get("ansible_role_name") == FLEET:
                run.spec = spec_in_role(self.spec, self.task_vars, self.role_parameters())
            keyword = self.environment_keyword()
            within = environment({**run.controller_environment, **keyword})
            with within if keyword else nullcontext():
                self.creates = self.spec.operation is not None and run.operation.creates
                _require_keywords(run)
                return self._result(run)
        except InvalidInput as error:  # in a keyword or a variable
            return Result.of_error(error.renamed(run.spec.named, run.spec.no_effect))
        except Interrupted as error:
            return Result.of_error(error.failure())

    def _result(self, run: TaskRun) -> Result:
        """Do the work and return its result."""
        try:
            returned = self.work(run)
        except ServicesError as error:
            returned = run.options.failed(error)
        result = returned if isinstance(returned, Result) else Result.from_ansible(returned)
        # The result of a module has its own.
        said = [] if self.module_was_started else run.options.secrets.warnings()
        warnings = (*said, *run.warnings, *result.warnings)
        return result.but(diff=result.diff if run.task.diff else None, warnings=warnings)


def _require_keywords(run: TaskRun) -> None:
    """Raise InvalidInput for a task whose keywords and ledger do not fit each other."""
    task = run.task
    is_repeated = task.until or task.retries is not None
    if run.core.creates and is_repeated and run.options.params["ledger"] == NO_LEDGER:
        raise InvalidInput(
            "until",
            "cannot be used, nor retries, for a POST or PATCH without a ledger: each attempt could"
            " take effect again. Remove them. A creation may have them with a ledger, and any task"
            " with method: GET, which can wait for the effect",
        )
    if task.async_val and not run.spec.operation:
        raise InvalidInput("async", "cannot be combined with a module of the ledger. Remove async")


@contextmanager
def environment(variables: Mapping[str, str]) -> Iterator[None]:
    """Set exactly these environment variables; raise InvalidInput for one that is invalid."""
    before = dict(os.environ)
    try:
        os.environ.clear()
        try:
            for name, value in variables.items():
                os.environ[name] = value
        except (OSError, ValueError) as error:
            raise InvalidInput(
                "environment", f"the variable {name!r} cannot be set: {error}"
            ) from None
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)


prepare_workers()  # once a plugin is loaded, which is before the fork
