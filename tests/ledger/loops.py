# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Several processes that create machines at the same time: the same one, or the same loop."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack

from ledger.forked import Process

Fork = Callable[..., Process]


def created(service) -> list[str]:
    """Return the names of the service's machines."""
    return [asset["name"] for asset in service.api.store.snapshot()["virtual_machines"]]


def crowd(fork: Fork, location: str, service, count: int, name: str) -> list[dict]:
    """Create one machine in `count` processes at once, and return their results."""
    with ExitStack() as stack:
        processes = [
            stack.enter_context(fork("create", location, service.url, name))
            for _number in range(count)
        ]
        return [process.result() for process in processes]


def run(fork: Fork, location: str, service, count: int) -> list[dict]:
    """Return the results of one loop."""
    with fork("loop", location, service.url, count) as loop:
        return loop.results()


def race(fork: Fork, service, locations: list[str], count: int) -> Counter:
    """Run loops over the same machines, each with its own path to the ledger; return how often each
    was created.
    """
    with ExitStack() as stack:
        loops = [
            stack.enter_context(fork("loop", location, service.url, count))
            for location in locations
        ]
        said = [result for loop in loops for result in loop.results()]
    assert {result["outcome"] for result in said} <= {"accepted", "not_sent", "unknown"}
    return Counter(created(service))
