# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Ends a task in order when a signal terminates it: the result of its requests is recorded."""

from __future__ import annotations

import gc
import os
import signal
import threading
from contextlib import contextmanager
from types import FrameType
from typing import Iterator

GRACE = 10.0  # seconds for requests in flight after a signal
# Seconds for the ledger to withdraw intents of requests that were never sent.
LEDGER_GRACE = 1.0
_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Interrupted(BaseException):
    """A signal, or the keyword `timeout`, interrupted the task while a request was in flight."""


class Signals:
    """The signals that came within `deferred`."""

    def __init__(self) -> None:
        self.caught: list[int] = []  # those that terminate a process
        self.is_late = False  # whether the keyword `timeout` has expired
        self._raises = False

    @property
    def name(self) -> str:
        """The name of the first signal that came to terminate the process, '' if none came."""
        return signal.Signals(self.caught[0]).name if self.caught else ""

    @property
    def by_ctrl_c(self) -> bool:
        """Whether the first of them was Ctrl-C."""
        return self.caught[:1] == [signal.SIGINT]

    def terminate(self) -> None:
        """Terminate the process by the signal that came to do so."""
        os.kill(os.getpid(), self.caught[0])

    def note(self, number: int, _frame: FrameType | None) -> None:
        """Handle a signal: remember it, and raise within `raised`."""
        if number == signal.SIGALRM:
            self.is_late = True
        else:
            self.caught.append(number)
        self._raise()

    def _raise(self) -> None:
        if self._raises and (self.caught or self.is_late):
            self._raises = False
            cause = f"signal {self.name}" if self.caught else "the keyword timeout expired"
            raise Interrupted(cause)

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
    """Defer the signals that terminate a process or a task; do nothing outside the main thread."""
    signals = Signals()
    if threading.current_thread() is not threading.main_thread():
        yield signals
        return
    before = {number: signal.signal(number, signals.note) for number in _heeded()}
    try:
        yield signals
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _heeded() -> Iterator[int]:
    """Yield the signals that have an effect now."""
    for number in _SIGNALS:
        if signal.getsignal(number) is not signal.SIG_IGN:  # as under nohup
            yield number
    # As for the keyword `timeout`.
    if callable(signal.getsignal(signal.SIGALRM)):
        yield signal.SIGALRM
