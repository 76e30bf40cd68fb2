# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Lets the threads of a list share commits: one of them writes what all have waiting."""

from __future__ import annotations

import threading

from .entries import Change, LedgerError, Write
from .ledger import Ledger


class Commits:
    """Writes the changes of threads, all that wait in one transaction."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._joining = threading.Lock()
        self._waiting: list[Change] = []  # the next transaction
        self._is_over = threading.Event()  # set once it has ended
        self._turn = threading.Lock()
        self._effects: dict[int, bool] = {}  # by the revision of a change
        self._lost: LedgerError | None = None  # why nothing more is begun

    def write(self, change: Change) -> bool:
        """Return the effect of a change, which this thread or another one has written.

        As Ledger.write. Raises LedgerError.
        """
        with self._joining:
            self._waiting.append(change)
            changes, is_over = self._waiting, self._is_over
        if changes[0] is change:  # it writes all that join before its turn
            with self._turn:
                with self._joining:
                    self._waiting, self._is_over = [], threading.Event()
                try:
                    self._write_all(changes)
                finally:
                    is_over.set()
        is_over.wait()
        effect = self._effects.pop(change.revision, None)
        if effect is None:
            raise self._lost or LedgerError("nothing was written")
        return effect

    def _write_all(self, changes: list[Change]) -> None:
        """Write changes; once that failed, only outcomes are tried."""
        outcomes = [change for change in changes if change.kind is Write.OUTCOME]
        if len(outcomes) < len(changes) and not self._lost:
            self._write(changes)
        self._write([change for change in outcomes if change.revision not in self._effects])

    def _write(self, changes: list[Change]) -> None:
        try:
            effects = self._ledger.write(changes) if changes else []
        except LedgerError as error:
            self._lost = error
        else:
            self._effects.update(zip((change.revision for change in changes), effects))
