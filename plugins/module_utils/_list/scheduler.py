# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The threads of a list: each takes items from the gate, one after the other."""

from __future__ import annotations

import math
import threading
from typing import Any, Callable

from .._errors import EndOfThread
from .._result import Result
from .gate import Gate, Item

# Seconds between checks by the main thread, the only one that receives signals.
_POLL_INTERVAL = 0.5


class Scheduler:
    """Does the items of a list in threads, until all have ended or the gate is closed."""

    def __init__(
        self, gate: Gate, do: Callable[[Item], Result | None], threads: Any = threading
    ) -> None:
        """`do`: returns the result of an item, None while another run holds it.

        `threads`: the module threading, or a fake.
        """
        # Whether it only waits for the requests in flight.
        self.is_ending = False
        self._gate = gate
        self._do = do
        self._running = 0  # threads
        self._crash = ""  # why one of them ended unexpectedly
        self._new_thread = threads.Thread
        self._finished = threads.Event()

    def run(
        self, most: int, grace: float, watch: Callable[[], str], show_progress: Callable[[], None]
    ) -> None:
        """Do the items with at most `most` threads.

        `watch`: returns why to stop now, '' to continue. Requests in flight then get `grace`
        seconds; the items of later ones stay in the gate's `begun`. `show_progress`: called at
        every check.
        """
        self._start(min(most, self._gate.pending))
        deadline = math.inf
        while self._running and self._gate.clock() < deadline:
            self._finished.wait(_POLL_INTERVAL)
            why = "" if self.is_ending else watch() or self._crash
            if why:
                self._gate.stop(why)
                self.is_ending = True
                deadline = self._gate.clock() + grace
            show_progress()

    def _start(self, count: int) -> None:
        for number in range(count):
            with self._gate.lock:
                self._running += 1
            try:
                self._new_thread(target=self._work, daemon=True).start()
            except RuntimeError:  # the system cannot start another thread
                self._exit("" if number else "no thread could be started")
                return

    def _work(self) -> None:
        with EndOfThread(self._exit):
            item = self._gate.begin()
            while item:
                result = self._do(item)
                if result is None:
                    self._gate.put_back(item)
                else:
                    self._gate.end(item, result)
                item = self._gate.begin()

    def _exit(self, crash: str) -> None:
        with self._gate.lock:
            self._running -= 1
            if crash:
                self._crash = crash
                self._gate.stop(crash)
            if not self._running:
                self._finished.set()
            self._gate.wake_all()
