# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Tasks that send one request: in the worker where that is safe, otherwise on the target."""

from __future__ import annotations

import os
from functools import cache
from importlib.util import find_spec

from ...module_utils._call.place import Place
from ...module_utils._call.tokens import Credentials
from ...module_utils._http.tls_context import ConnectionSettings
from ...module_utils._http.transport import Transport
from ...module_utils._result import Result
from ...module_utils._secrets import printable
from ...module_utils._task.task import Context, Planned, Task, carry_out, perform, prepare
from ...module_utils._task.validation import Options
from .._ledger.recording import Recording
from .action import Action
from .ansible_core import run_id
from .ledgers import reused_ledger
from .run_memory import TokenMemory, run_memory
from .target import Target
from .worker import require_parent


class SendingAction(Action):
    """Sends the request of a module for one asset; gives the same result as the module."""

    @property
    def runs_here(self) -> bool:
        """Whether this process does the task: the module would run here, as this user."""
        keywords = self.keywords
        is_elsewhere = not keywords.is_local or keywords.becomes or keywords.is_async
        return find_spec("requests") is not None and not is_elsewhere

    def run_on_target(self) -> Result | None:
        """Return the result of the module, None if the task runs here or has a ledger."""
        if self.runs_here or self.ledger_given() != "":
            return None
        return self.remember(Target(self, self.options_given()).run())

    def context(self, options: Options, place: Place) -> Context:
        """Return how the task runs."""
        keywords = self.keywords
        return Context(keywords.check_mode, options.secrets, place, keywords.diff, keywords.no_log)

    def work(self, options: Options) -> Result:
        params = self.with_absolute_paths(options.params)
        check_mode = self.keywords.check_mode
        task = prepare(self.spec.sent, params, check_mode)
        context = self.context(options, TaskPlace(self, task))
        target = None if self.runs_here else Target(self, options.given)

        def send(planned: Planned, context: Context) -> Result:
            return self.remember(target.send(planned) if target else perform(planned, context))

        if not params["ledger"]:
            return carry_out(task.planned(), context, send=send)
        ledger = reused_ledger(self, params, check_mode)
        recording = Recording(ledger, options.secrets, run_id(), check_mode)
        (planned,) = recording.look_up([task])
        result = carry_out(planned, context, recording, send)
        if recording.warnings:
            result = result.but(warnings=(*recording.warnings, *result.warnings))
        return result


class Worker(Place):
    """The Ansible worker."""

    def __init__(self, action: Action) -> None:
        self._action = action

    def token_memory(self, credentials: Credentials) -> TokenMemory:
        return TokenMemory(run_memory(), credentials)

    require_reader = staticmethod(require_parent)


class TaskPlace(Worker):
    """The worker for one asset; the next items of a loop reuse its transport."""

    def __init__(self, action: Action, task: Task) -> None:
        super().__init__(action)
        self._task = task
        self.interruptible = action.signals.raised

    def connect(self, settings: ConnectionSettings) -> Transport:
        return reused_transport(settings)

    def wait(self, seconds: float) -> None:
        """Wait, and show a line about it if that takes a second or more."""
        if seconds >= 1:
            line = f"{self._task.asset}: waiting {seconds:,.0f} s before a further attempt"
            self._action.say(printable(line))
        super().wait(seconds)


def reused_transport(settings: ConnectionSettings) -> Transport:
    """Return the transport of this process, which the next items of a loop reuse.

    One that was inherited through fork() belongs to the parent. Raise MissingLibrary or
    InvalidInput.
    """
    return _transport_of(os.getpid(), settings)


@cache
def _transport_of(_process: int, settings: ConnectionSettings) -> Transport:
    return Transport(settings)
