# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A gate and its threads, as a test sees them: what was begun, what has ended, and why it stopped."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from ansible_collections.infrastructure.services.plugins.module_utils._list.congestion import (
    CongestionControl,
)
from ansible_collections.infrastructure.services.plugins.module_utils._list.gate import (
    Gate,
    Item,
    Limits,
)
from ansible_collections.infrastructure.services.plugins.module_utils._list.scheduler import (
    Scheduler,
)
from ansible_collections.infrastructure.services.plugins.module_utils._result import Result


class Slot:
    """What an item does with the gate."""

    def __init__(self, gate: Gate, item: Item) -> None:
        self.gate, self.item, self.pause = gate, item, gate.pause

    def acquire(self) -> bool:
        """Enter the gate."""
        return self.gate.enter(self.item)

    def release(self, feedback: str, retry_after: float | None = None) -> None:
        """Leave it."""
        self.gate.leave(self.item, feedback, retry_after)


class Scheduled:
    """Items that are done in threads; `do` takes the number of an item and its slot."""

    def __init__(
        self,
        items: int,
        do: Callable,
        control: CongestionControl,
        *,
        clock: Callable[[], float] = time.monotonic,
        threads=threading,
        **limits,
    ) -> None:
        self.control = control
        self.gate = Gate(items, control, Limits(**limits), clock, threads)
        self.stop, self.begun = self.gate.stop, self.gate.begun

        def work(item):
            return do(item.number, Slot(self.gate, item))

        self.run = Scheduler(self.gate, work, threads).run

    @property
    def reason(self) -> str:
        """Why it stopped, empty if it did not."""
        return self.gate.reason

    @property
    def ended(self) -> dict[int, Result]:
        """The results of the items that have ended."""
        return {item.number: item.result for item in self.gate.ended}
