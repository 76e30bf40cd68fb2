# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A module for a list: the tasks that also run in the worker, ended by signals and by a reader that is gone."""

from __future__ import annotations

import select
import signal
import sys
from contextlib import suppress

from .._call.tokens import FetchedToken, Memory
from .._errors import InvalidInput
from .._http.transport import Transport
from .._task import front
from .._task.shutdown import recorded_signals
from .._task.specs import ModuleSpec
from .._task.task import Done, Runtime
from .sending import Place, perform_all

_REPORT_ELSEWHERE = (
    "it is written on the controller, so the module has to run there, with a local connection and without"
    " become. Nothing was sent. Add delegate_to: localhost and become: false"
)
_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def main(spec: ModuleSpec) -> None:
    """Run the module and exit."""
    front.main(spec, _send)


def _send(module: front.ServicesModule) -> Done:
    """Do the tasks of the list; raise ServicesError before anything is sent."""
    options = module.options
    if options.params["report"]:
        raise InvalidInput("report", _REPORT_ELSEWHERE)
    memory = Memory()
    runtime = Runtime(module.check_mode, Transport, lambda *credentials: FetchedToken(*credentials, memory))
    with recorded_signals(*_SIGNALS) as signals:
        place = Place(runtime, module._diff, module._verbosity, module.no_log, lambda: _end(signals))
        return perform_all(options.spec, options.params, place, options.secrets)


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
