# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Lets the threads of a list share commits: one of them writes what all have waiting."""

from __future__ import annotations

import threading
from collections import deque
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Deque

from .database import Write
from .entries import Change, LedgerError
from .ledger import Ledger


@dataclass(frozen=True)
class _Job:
    change: Change
    answer: Future[bool] = field(default_factory=Future)


class Commits:
    """Writes the changes of threads, all that wait in one transaction."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._jobs: Deque[_Job] = deque()
        self._turn = threading.Lock()
        self._lost: LedgerError | None = None  # why nothing more is begun

    def write(self, change: Change) -> bool:
        """Return the effect of a change, which this thread or another one has written.

        As Ledger.write. Raises LedgerError.
        """
        own = _Job(change)
        self._jobs.append(own)
        with self._turn:
            if not own.answer.done():
                self._write_all([self._jobs.popleft() for _job in range(len(self._jobs))])
        return own.answer.result()

    def _write_all(self, jobs: list[_Job]) -> None:
        """Write jobs; once that failed, only outcomes are tried."""
        outcomes = [job for job in jobs if job.change.kind is Write.OUTCOME]
        try:
            if outcomes != jobs and not self._lost:
                self._write(jobs)
            self._write([job for job in outcomes if not job.answer.done()])
        finally:  # no thread waits for ever
            for job in jobs:
                if not job.answer.done():
                    job.answer.set_exception(self._lost or LedgerError("nothing was written"))

    def _write(self, jobs: list[_Job]) -> None:
        try:
            effects = self._ledger.write([job.change for job in jobs]) if jobs else []
        except LedgerError as error:
            self._lost = error
            return
        for job, effect in zip(jobs, effects):
            job.answer.set_result(effect)
