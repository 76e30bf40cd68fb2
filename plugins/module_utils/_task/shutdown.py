# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Signals that would end the process at once, noted instead."""

from __future__ import annotations

import signal
import threading
from contextlib import contextmanager
from typing import Iterator

GRACE = 10.0  # seconds for what is on its way when a task is to end
LEDGER_GRACE = 1.0  # seconds for the ledger to take back what was never sent
MAX_SHUTDOWN = GRACE + LEDGER_GRACE + 2.5  # seconds after which a worker has said all; it polls every half second


@contextmanager
def recorded_signals(*numbers: int) -> Iterator[list[int]]:
    """Note these signals within the context, in the order in which they come; those that are ignored stay so.

    Only the main thread can; another one notes nothing.
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
