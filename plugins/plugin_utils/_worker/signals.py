# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Ends a task in order when a signal terminates its process: requests in flight are recorded first."""

from __future__ import annotations

import os
import signal
import threading
from contextlib import contextmanager
from typing import Iterator

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Interrupted(BaseException):
    """A signal came to terminate the process while a request was in flight."""


class Signals:
    """The signals that came within `deferred`; the first of them is raised again when it ends."""

    def __init__(self) -> None:
        self.caught: list[int] = []
        self._raises = False

    def note(self, number: int, _frame) -> None:
        """Handle a signal: remember it, and raise Interrupted within `raised`."""
        self.caught.append(number)
        if self._raises:
            self._raises = False
            raise Interrupted(f"signal {signal.Signals(number).name}")

    @contextmanager
    def raised(self) -> Iterator[None]:
        """Raise Interrupted within the context, once."""
        self._raises = True
        try:
            yield
        finally:
            self._raises = False


@contextmanager
def deferred() -> Iterator[Signals]:
    """Defer the signals that terminate a process; in any thread but the main one, do nothing."""
    signals = Signals()
    if threading.current_thread() is not threading.main_thread():
        yield signals
        return
    heeded = [number for number in _SIGNALS if signal.getsignal(number) is not signal.SIG_IGN]  # as under nohup
    before = {number: signal.signal(number, signals.note) for number in heeded}
    try:
        yield signals
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        if signals.caught:
            os.kill(os.getpid(), signals.caught[0])
