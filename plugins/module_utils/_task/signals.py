# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The signals that end a task: noted, or raised where only a target could be left waiting."""

from __future__ import annotations

import gc
import os
import signal
from contextlib import contextmanager
from types import FrameType
from typing import Iterator

from .._errors import NOT_SENT, ServicesError

# The last one is of the keyword `timeout`.
_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGALRM)


class Interrupted(BaseException):
    """A signal, or the keyword `timeout`, interrupted the task."""

    def failure(self) -> ServicesError:
        """Return the failure of a task that had not sent anything."""
        why = str(self)
        msg = f"{why[:1].upper()}{why[1:]} before it sent anything. Run it again."
        return ServicesError(msg, NOT_SENT)


class Signals:
    """The signals that came within `deferred`."""

    def __init__(self) -> None:
        self.caught: list[int] = []  # those that terminate a process
        self.why = ""  # why the task has to end, '' if it does not have to
        self._raises = False

    def terminate(self) -> None:
        """Terminate the process by the signal that came to do so."""
        os.kill(os.getpid(), self.caught[0])

    def note(self, number: int, _frame: FrameType | None) -> None:
        """Handle a signal: remember it, and raise within `raised`."""
        why = "the task was interrupted (the keyword timeout expired)"
        if number != signal.SIGALRM:
            self.caught.append(number)
            why = f"the task was interrupted (signal {signal.Signals(number).name})"
        self.why = self.why or why
        self._raise()

    def _raise(self) -> None:
        if self._raises and self.why:
            self._raises = False
            raise Interrupted(self.why)

    @contextmanager
    def raised(self) -> Iterator[None]:
        """Raise Interrupted within the context, once; also for an earlier signal.

        Everywhere else a task goes on: a write to the ledger that is cut off could not be reported
        truthfully. No garbage is collected meanwhile: Python drops what a handler raises in a
        finalizer, and ansible-core has such.
        """
        is_collecting = gc.isenabled()
        try:
            gc.disable()
            self._raises = True
            self._raise()
            yield
        finally:
            self._raises = False
            if is_collecting:
                gc.enable()


@contextmanager
def deferred() -> Iterator[Signals]:
    """Defer the signals that terminate a process or a task."""
    signals = Signals()
    # Under nohup, SIGHUP has no effect.
    heeded = [number for number in _SIGNALS if signal.getsignal(number) is not signal.SIG_IGN]
    before = {number: signal.signal(number, signals.note) for number in heeded}
    try:
        yield signals
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
