# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Waits for a condition instead of sleeping, and sees who waits for a lock of a ledger."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import psycopg

LONGEST = 60.0  # seconds; only a failure takes this long
WAITING = """
SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND query LIKE 'SELECT pg_try_advisory_lock%'
AND pid NOT IN (SELECT pid FROM pg_locks WHERE locktype = 'advisory' AND granted)
"""


def until(condition: Callable[[], object], seconds: float = LONGEST) -> None:
    """Wait until the condition holds; raise AssertionError if it takes too long."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.01)


def waiting(location: str) -> int:
    """Return how many processes wait for a lock of this ledger.

    The kernel lists those of SQLite's lock file. On PostgreSQL they ask again and again, so they
    are those that asked last for a lock and have none.
    """
    if location.startswith("postgresql:"):
        with psycopg.connect(location) as connection:
            return connection.execute(WAITING).fetchone()[0]
    try:
        inode = os.stat(f"{location}.lock").st_ino
    except FileNotFoundError:
        return 0
    lines = Path("/proc/locks").read_text().splitlines()
    return sum(line.split()[1] == "->" and f":{inode} " in line for line in lines)


def children(pid: int) -> list[int]:
    """Return the processes that a process has started, such as the workers of ansible-playbook."""
    return [int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def time_out(pid: int) -> None:
    """End the tasks of an ansible-playbook as the keyword `timeout` does: with the signal that its
    timer sends.
    """
    for worker in children(pid):
        with suppress(ProcessLookupError):
            os.kill(worker, signal.SIGALRM)


def is_asleep(pid: int) -> bool:
    """Whether a process waits for something rather than for its turn."""
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "S"
