# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The flow of every action plugin of the collection: environment, signals, `until`, and the end of a worker."""

from __future__ import annotations

import os

from ...module_utils._errors import NOT_SENT, InvalidInput, RequestFailed
from ...module_utils._task.signals import Interrupted, Signals, deferred
from ...module_utils._task.specs import ModuleSpec
from . import at_exit, core, process, until
from .environment import environment


class Action(core.ObservedAction):
    """Runs a task on the controller; the subclasses say which module it is (`spec`) and do its work."""

    spec: ModuleSpec
    _supports_async = True
    _supports_check_mode = True

    def work(self, signals: Signals) -> dict:
        """Do what the task asks for and return its result."""
        raise NotImplementedError

    def run(self, tmp=None, task_vars=None):
        super().run(tmp, task_vars)
        self.task_vars = task_vars or {}
        result = until.earlier(self) or self._run()
        return {name: result[name] for name in result if name != "attempts" or not core.counts_attempts(self)}

    def _run(self) -> dict:
        self.controller_environment = dict(os.environ)
        with deferred() as signals:
            result = until.keep(self, self._result(signals))
            if signals.caught and "msg" in result:
                at_exit.show_message(self._last_words(result))
        signals.terminate()
        process.exit_orphan()
        return result

    def _result(self, signals: Signals) -> dict:
        try:
            with environment({**self.controller_environment, **core.task_environment(self)}):
                return self.work(signals)
        except InvalidInput as error:  # in the keyword environment
            return error.result()
        except core.TIMEOUT as error:
            msg = f"The keyword timeout ended the task. {error}".strip()
        except Interrupted as error:
            msg = f"The task was interrupted ({error})."
        return RequestFailed(msg, until.remembered(self).get("outcome", NOT_SENT)).result()

    def _last_words(self, result: dict) -> str:
        """Return what to show of a task that a signal ended, whose result nobody receives."""
        if not self._task.no_log:
            return result["msg"]
        outcome = result.get("outcome", NOT_SENT)
        return f"{self._task.action}: a task with no_log was interrupted; its outcome is {outcome}."
