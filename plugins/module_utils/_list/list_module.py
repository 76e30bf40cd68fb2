# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A module for a list: the tasks that also run in the worker, ended by signals and by a reader that is gone."""

from __future__ import annotations

import select
import sys
from contextlib import suppress
from dataclasses import replace
from functools import partial

from .._call.tokens import FetchedToken, Memory
from .._errors import InvalidInput
from .._task import front
from .._task.signals import Signals, deferred
from .._task.specs import ModuleSpec
from .._task.task import Context
from .sending import send_all

_REPORT_ELSEWHERE = (
    "it is written on the controller, so the module has to run there, with a local connection and without"
    " become. Nothing was sent. Add delegate_to: localhost and become: false"
)


def main(spec: ModuleSpec) -> None:
    """Run the module and exit."""
    front.main(spec, _send)


def _send(module: front.ServicesModule, context: Context) -> dict:
    """Do the tasks of the list; raise ServicesError before anything is sent."""
    options, memory = module.options, Memory()
    if options.params["report"]:
        raise InvalidInput("report", _REPORT_ELSEWHERE)
    keep_token = partial(FetchedToken, memory=memory)
    with deferred() as signals:
        context = replace(context, keep_token=keep_token, watch=lambda: _end(signals))
        return send_all(options.spec, options.params, context)


def _end(signals: Signals) -> str:
    """Return why to stop now, empty to go on."""
    if signals.caught:
        return f"the module received {signals.name}"
    return "" if _is_read() else "nothing reads the result any more"


def _is_read() -> bool:
    """Whether anything can still read what this process writes; a pipe without a reader is an error condition."""
    with suppress(OSError, ValueError):
        poll = select.poll()
        poll.register(sys.stdout.fileno(), 0)
        return not any(event & select.POLLERR for _file, event in poll.poll(0))
    return True
