# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What every action does: environment, options, signals, ledger; the work gets a TaskRun."""

from __future__ import annotations

import os
import time
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Callable, Iterator, Mapping

from ...module_utils._call.policy import Operation
from ...module_utils._errors import UNKNOWN, InvalidInput, ServicesError
from ...module_utils._result import Result, Returned
from ...module_utils._task.options import LEDGER_VARIABLE
from ...module_utils._task.specs import ModuleSpec
from ...module_utils._task.task import Interrupted, Signals, deferred
from ...module_utils._task.validation import Options, validate
from ...module_utils._values import Params
from .._ledger.ledger import Ledger
from .._ledger.location import last_seen, note_seen, open_ledger, playbook_command
from .._ledger.recording import Recording
from .ansible_core import TaskAction, prints_lines, setting, untrusted
from .role import FLEET, spec_in_role
from .workers import is_orphan, prepare_workers, run_memory, show

_UNRECORDED = (
    "No ledger is set, so running this again will create another machine."
    f" Set ledger, or {LEDGER_VARIABLE} in the environment, to the path of a file;"
    ' ledger: "" says that this is intended.'
)


@dataclass
class TaskRun:
    """One task for one host and item, as its action hands it to its work."""

    core: TaskAction
    task: Any  # its keywords and arguments
    spec: ModuleSpec  # with the names of the role
    signals: Signals
    controller_environment: dict[str, str]
    warnings: list[str] = field(default_factory=list)  # for the result
    ledger: Ledger | None = None  # that the task writes
    recording: Recording | None = None  # of a task that sends

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
        """Wait before anything is sent; a signal ends the wait."""
        with self.signals.raised():
            time.sleep(seconds)

    def open_ledger(self, ledger: str, base_url: str = "", read_only: bool = False) -> Ledger:
        """Return the open ledger of an option; raise ServicesError.

        `base_url`, `read_only`: as in Ledger.
        """
        may_create = self.options.params["ledger_create"]
        forbids = "" if may_create else self.spec.named("ledger_create")
        with self.signals.raised():
            opened = open_ledger(ledger, base_url, read_only, forbids, run_memory())
        if not read_only:
            self.ledger = opened
        return opened

    def tell_news(self, ledger: Ledger) -> None:
        """Show once in a run that a ledger is new; warn of one that has gone back in time."""
        seen = last_seen(setting("ANSIBLE_HOME"), ledger.header.ledger_id)
        if ledger.went_back or not ledger.has_row(seen):
            self.warnings.append(
                f"{ledger.where} has gone back in time, as after a restored backup: it lacks rows"
                " that this controller has seen, and what was created since then would be created"
                " again. Record it first, from the reports of those runs:"
                f" {playbook_command(ledger.shown, 'settle')} -e file=REPORT"
            )
        elif ledger.is_new:
            line = f"{ledger.where} is a new ledger: nothing was recorded before"
            if not self.only_checks and run_memory().is_first(line):
                show(line, stderr=True)


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
        """Do the work, note the last row that it has written, and return its result."""
        try:
            returned = self.work(run)
        except ServicesError as error:
            returned = run.options.failed(error)
        if run.ledger:
            with suppress(ServicesError):  # the next task notes it
                serial = run.ledger.serial()
                if not run.ledger.went_back:  # else the next run says so
                    note_seen(setting("ANSIBLE_HOME"), run.ledger.header.ledger_id, serial)
        result = returned if isinstance(returned, Result) else Result.from_ansible(returned)
        # The result of a module has its own.
        said = [] if self.module_was_started else run.options.secrets.warnings()
        has_created = self.creates and (result.changed or result.outcome == UNKNOWN)
        is_meant = run.options.params["ledger"] is not None
        if has_created and not is_meant and run_memory().is_first(_UNRECORDED):
            run.warnings.append(_UNRECORDED)
        warnings = (*said, *run.warnings, *result.warnings)
        return result.but(diff=result.diff if run.task.diff else None, warnings=warnings)


def _require_keywords(run: TaskRun) -> None:
    """Raise InvalidInput for a task whose keywords and ledger do not fit each other."""
    params, task = run.options.params, run.task
    is_repeated = task.until or task.retries is not None
    if run.core.creates and is_repeated and (params["force"] or not params["ledger"]):
        raise InvalidInput(
            "until",
            "cannot be used, nor retries, for a POST or PATCH without a ledger or with force: each"
            " attempt could take effect again. Remove them. A creation may have them with a ledger"
            " and without force, and any task with method: GET, which can wait for the effect",
        )
    if params["ledger"] and task.async_val:
        raise InvalidInput(
            "ledger",
            "cannot be combined with async: nothing would record how the task ended. Remove async",
        )


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
