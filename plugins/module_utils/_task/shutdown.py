# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Grace periods of a task that is told to stop, and signals that are recorded instead of ending the process at once."""

from __future__ import annotations

import signal
import threading
from contextlib import contextmanager
from typing import Iterator

GRACE = 10.0  # seconds for requests in flight when a task is told to stop
LEDGER_GRACE = 1.0  # seconds for the ledger to withdraw the intents of requests that were never sent
MAX_SHUTDOWN = GRACE + LEDGER_GRACE + 2.5  # seconds until a worker has reported everything, polling included


@contextmanager
def recorded_signals(*numbers: int) -> Iterator[list[int]]:
    """Record these signals within the context, in order of arrival; ignored ones stay ignored.

    Works in the main thread only; in any other nothing is recorded.
    """
    came: list[int] = []
    if threading.current_thread() is not threading.main_thread():
        yield came
        return
    before = {number: signal.getsignal(number) for number in numbers}
    mine = [number for number, handler in before.items() if handler not in (signal.SIG_IGN, None)]
    for number in mine:
        signal.signal(number, lambda received, _frame: came.append(received))
    try:
        yield came
    finally:
        for number in mine:
            signal.signal(number, before[number])
