# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The front of a module for a list: AnsibleModule around the same tasks that run in the worker."""

from __future__ import annotations

import select
import signal
import sys
from contextlib import suppress

from .._call.tokens import FetchedToken, Memory
from .._errors import ServicesError
from .._http.transport import Transport
from .._resources.plural import Plural
from .._task.module import LEDGER_ELSEWHERE, ServicesModule
from .._task.shutdown import recorded_signals
from .._task.task import Runtime, argument_spec
from .items import own_options
from .sending import Place, perform_all

_REPORT_ELSEWHERE = (
    "report: it is written on the controller, so the module has to run there, with a local connection and without"
    " become. Nothing was sent. Add delegate_to: localhost and become: false"
)
_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class PluralModule(ServicesModule):
    """Leaves the items to their own validation, as the worker does: AnsibleModule reports only the first fault."""

    def __init__(self, plural: Plural) -> None:
        self._plural = plural
        own = own_options(plural, with_items=True)
        super().__init__(own, **argument_spec(own, {}))

    def _load_params(self):
        self.argument_spec = {
            **self.argument_spec,
            self._plural.option: self._plural.plain_options[self._plural.option],
        }
        super()._load_params()

    def _invocation(self) -> dict:
        return {"module_args": self._plural.without_items(super()._invocation()["module_args"])}


def main(plural: Plural) -> None:
    """Run the module and exit."""
    module = PluralModule(plural)
    for option, problem in (("ledger", LEDGER_ELSEWHERE), ("report", _REPORT_ELSEWHERE)):
        if module.params[option]:
            module.fail_json(problem, outcome="not_sent")
    secrets = module.known_secrets()
    memory = Memory()
    runtime = Runtime(module.check_mode, Transport, lambda *credentials: FetchedToken(*credentials, memory))
    warnings: list[str] = []
    with recorded_signals(*_SIGNALS) as signals:
        place = Place(runtime, module._diff, module._verbosity, module.no_log, lambda: _end(signals))
        try:
            done = perform_all(plural, module.params, place, secrets)
            result, warnings = done.result, done.warnings
        except ServicesError as error:
            result = secrets.scrub(error.result())
    for warning in (*secrets.warnings(), *warnings):
        module.warn(warning)
    if result.pop("failed", False):
        module.fail_json(**result)
    module.exit_json(**result)


def _end(signals: list[int]) -> str:
    """Return why to stop now, empty to go on."""
    if signals:
        return f"the module received {signal.Signals(signals[0]).name}"
    return "" if _is_read() else "nothing reads the result any more"


def _is_read() -> bool:
    """Whether anything can still read what this process writes; a pipe without a reader is an error condition."""
    with suppress(OSError, ValueError):
        poll = select.poll()
        poll.register(sys.stdout.fileno(), 0)
        return not any(event & select.POLLERR for _file, event in poll.poll(0))
    return True
