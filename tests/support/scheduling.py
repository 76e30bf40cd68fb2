"""A gate and its threads, as a test sees them: what was begun, what has ended, and why it stopped."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from ansible_collections.infrastructure.services.plugins.module_utils._errors import ServicesError
from ansible_collections.infrastructure.services.plugins.module_utils._list.gate import (
    Gate,
    Item,
)
from ansible_collections.infrastructure.services.plugins.module_utils._list.threads import (
    run_threads,
)
from ansible_collections.infrastructure.services.plugins.module_utils._list.width import (
    Width,
)
from ansible_collections.infrastructure.services.plugins.module_utils._result import Result


class Slot:
    """What an item does with the gate."""

    def __init__(self, gate: Gate, item: Item) -> None:
        self.gate, self.item, self.pause = gate, item, gate.pause

    def acquire(self) -> bool:
        """Enter the gate; return whether it let the item in."""
        try:
            self.gate.enter(self.item)
        except ServicesError:
            return False
        return True

    def release(self, feedback: str, retry_after: float | None = None) -> None:
        """Leave it."""
        self.gate.leave(self.item, feedback, retry_after)


class Scheduled:
    """Items that are done in threads; `do` takes the number of an item and its slot."""

    def __init__(
        self,
        items: int,
        do: Callable,
        width: Width,
        *,
        clock: Callable[[], float] = time.monotonic,
        threads=threading,
        max_unknown: int = 0,
    ) -> None:
        def limit(unknown: int, _failures: int) -> str:
            return f"{unknown} in doubt" if 0 < max_unknown <= unknown else ""

        self.width = width
        self.gate = Gate(range(items), width, limit, clock, threads)
        self.stop, self.begun = self.gate.stop, self.gate.begun
        self._do, self._threads = do, threads

    def run(self, most: int, watch: Callable[[], str] = str) -> None:
        """Do all items."""

        def work(item):
            return self._do(item.name, Slot(self.gate, item))

        run_threads(self.gate, work, most, lambda _is_ending: watch(), self._threads)

    @property
    def reason(self) -> str:
        """Why it stopped, empty if it did not."""
        return self.gate.reason

    @property
    def ended(self) -> dict[int, Result]:
        """The results of the items that have ended."""
        return self.gate.ended
