"""Waits for a condition instead of sleeping."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

LONGEST = 60.0  # seconds; only a failure takes this long


def until(condition: Callable[[], object], seconds: float = LONGEST) -> None:
    """Wait until the condition holds; raise AssertionError if it takes too long."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.01)


def children(pid: int) -> list[int]:
    """Return the processes that a process has started, such as the workers of ansible-playbook."""
    return [int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def gone(pids: list[int]) -> bool:
    """Return whether none of the processes exists any more."""
    return not any(os.path.exists(f"/proc/{pid}") for pid in pids)


def time_out(pid: int) -> None:
    """End the tasks of an ansible-playbook as the keyword `timeout` does: with the signal that its
    timer sends.
    """
    for worker in children(pid):
        with suppress(ProcessLookupError):
            os.kill(worker, signal.SIGALRM)
