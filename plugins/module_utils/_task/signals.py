# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Ends a task in order when a signal terminates it or its process: what is known of its requests is
recorded.
"""

from __future__ import annotations

import os
import signal
import threading
from contextlib import contextmanager
from typing import Iterator

GRACE = 10.0  # seconds for requests in flight when a task is told to stop
LEDGER_GRACE = (
    1.0  # seconds for the ledger to withdraw the intents of requests that were never sent
)
_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Interrupted(BaseException):
    """A signal came to terminate the process, or the keyword `timeout` expired, while a request was
    in flight.
    """


class Signals:
    """The signals that came within `deferred`."""

    def __init__(self) -> None:
        self.caught: list[int] = []  # those that terminate a process
        self.is_late = False  # whether the keyword `timeout` has expired
        self._raises = False

    @property
    def name(self) -> str:
        """The name of the first signal that came to terminate the process, empty for none."""
        return signal.Signals(self.caught[0]).name if self.caught else ""

    def terminate(self) -> None:
        """Terminate the process by the signal that came to do so, if one did."""
        if self.caught:
            os.kill(os.getpid(), self.caught[0])

    def note(self, number: int, _frame) -> None:
        """Handle a signal: remember it, and raise within `raised`."""
        if number == signal.SIGALRM:
            self.is_late = True
        else:
            self.caught.append(number)
        self._raise()

    def _raise(self) -> None:
        if self._raises and (self.caught or self.is_late):
            self._raises = False
            raise Interrupted(
                f"signal {self.name}" if self.caught else "the keyword timeout expired"
            )

    @contextmanager
    def raised(self) -> Iterator[None]:
        """Raise Interrupted within the context, once; also for an earlier signal.

        Everywhere else a task goes on: a write to the ledger that is cut off could not be reported
        truthfully.
        """
        self._raises = True
        try:
            self._raise()
            yield
        finally:
            self._raises = False


@contextmanager
def deferred() -> Iterator[Signals]:
    """Defer the signals that terminate a process or a task; in any thread but the main one, do
    nothing.
    """
    if threading.current_thread() is not threading.main_thread():
        yield Signals()
        return
    signals = Signals()
    heeded = [
        number for number in _SIGNALS if signal.getsignal(number) is not signal.SIG_IGN
    ]  # as under nohup
    heeded += (
        [signal.SIGALRM] if callable(signal.getsignal(signal.SIGALRM)) else []
    )  # as for the keyword `timeout`
    before = {number: signal.signal(number, signals.note) for number in heeded}
    try:
        yield signals
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
