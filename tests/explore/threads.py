# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Processes and their threads, as the scheduler of a run knows them."""

from __future__ import annotations

import hashlib
import math
import threading
from collections.abc import Callable
from queue import SimpleQueue
from typing import Any


class Process:
    """One process of a controller: its threads die together."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.is_dead = False
        self.at_death: list[Callable[[], None]] = []  # what the operating system does then
        self.sessions: dict[object, Any] = {}  # with servers, by place
        self.seen = hash(
            name
        )  # a digest of all that its threads have met, which decides what they do next
        self.bytes = 0  # that were asked of os.urandom

    def urandom(self, size: int) -> bytes:
        """Return bytes that no other process gets, the same ones in each run that is the same until
        then.
        """
        self.bytes += size
        return hashlib.sha256(f"{self.name} {self.bytes}".encode()).digest()[:size]


class Actor:
    """One thread."""

    def __init__(
        self, process: Process, act: Callable[[], None], is_background: bool = False
    ) -> None:
        self.process, self.act, self.is_background = process, act, is_background
        self.go = threading.Semaphore(0)
        self.ready: Callable[[], bool] | None = None  # what it waits for
        self.waits = self.wakes = math.inf  # for how long at most, and until when
        self.is_back = False  # at a point where others went on
        self.has_ended = False
        self.error: BaseException | None = None

    def state(self) -> tuple:
        """Return what a digest has of it; of one that ended or was killed, nothing more can come."""
        if self.process.is_dead or self.has_ended:
            return self.process.name, self.process.is_dead
        return self.process.name, self.process.seen, self.is_back, self.ready is None, self.wakes


class _Pool:
    """Threads that are used again, since starting one takes longer than many a run."""

    def __init__(self) -> None:
        self._idle: list[SimpleQueue] = []

    def run(self, work: Callable[[], None]) -> None:
        if self._idle:
            self._idle.pop().put(work)
            return
        inbox: SimpleQueue = SimpleQueue()
        inbox.put(work)
        threading.Thread(target=self._serve, args=[inbox], daemon=True).start()

    def _serve(self, inbox: SimpleQueue) -> None:
        while True:
            inbox.get()()
            self._idle.append(inbox)


POOL = _Pool()
