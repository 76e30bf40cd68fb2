# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What outlives a task in its worker: connections and open ledgers, for the next items of a loop."""

from __future__ import annotations

import os
import threading
from typing import Any, Callable, Hashable

from ...module_utils._http.values import ConnectionSettings
from .._ledger.location import Ledger, open_ledger

_MOST = 8  # of each kind; a loop over more services or ledgers reopens some


class Kept(threading.local):
    """A cache of things that can be closed, by key; beyond _MOST, the least recently used one is closed.

    Each thread has its own, so that none closes what another one is using. Objects inherited through fork() are neither
    used nor closed: their connections still belong to the parent.
    """

    def __init__(self) -> None:
        self._things: dict[tuple[int, Hashable], Any] = {}  # by process and key, the most recently used last

    def get(self, key: Hashable, make: Callable[[], Any]) -> Any:
        """Return what is kept for the key, or else what `make` returns; raise what `make` raises."""
        own = os.getpid(), key
        thing = self._things.pop(own) if own in self._things else make()
        self._things[own] = thing
        mine = [kept for kept in self._things if kept[0] == own[0]]
        for _pid, oldest in mine[:-_MOST]:
            self.forget(oldest)
        return thing

    def forget(self, key: Hashable) -> None:
        """Close what is kept for the key."""
        thing = self._things.pop((os.getpid(), key), None)
        if thing is not None:
            thing.close()


_ledgers, _transports = Kept(), Kept()


def kept_ledger(location: str, read_only: bool) -> Ledger:
    """Return this thread's open ledger; raise LedgerError or MissingLibrary.

    A reader that found no ledger is not kept: others may create it.
    """
    ledger = _ledgers.get((location, read_only), lambda: open_ledger(location, read_only))
    if not ledger.version:
        _ledgers.forget((location, read_only))
    return ledger


def kept_transport(settings: ConnectionSettings):
    """Return this thread's Transport for the settings; raise MissingLibrary or InvalidInput."""
    from ...module_utils._http.transport import Transport  # noqa: PLC0415 (requests, which not every task needs)

    return _transports.get(settings, lambda: Transport(settings))
