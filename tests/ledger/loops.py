# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Loops in separate processes, and races between them."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from contextlib import ExitStack
from pathlib import Path

from ledger.test_together import created

LOOPER = Path(__file__).with_name("looper.py")
LONGEST = 60  # seconds after which a loop counts as hung


class Loop:
    """A process that creates web0, web1, ...; `said`: its results so far."""

    def __init__(self, location: str, url: str, count: int) -> None:
        self._line = [sys.executable, str(LOOPER), location, url, str(count)]
        self.said: list[dict] = []

    def __enter__(self) -> Loop:
        self._process = subprocess.Popen(self._line, stdout=subprocess.PIPE, text=True)
        return self

    def __exit__(self, *_error: object) -> None:
        self._process.kill()
        self._process.communicate()

    def wait(self, count: int) -> None:
        """Wait for `count` results."""
        self.said += [json.loads(self._process.stdout.readline()) for _number in range(count)]

    def results(self) -> list[dict]:
        """Return all results, once the process has exited."""
        rest, _errors = self._process.communicate(timeout=LONGEST)
        assert self._process.returncode == 0
        self.said += map(json.loads, rest.splitlines())
        return self.said


def run(location: str, url: str, count: int) -> list[dict]:
    """Return the results of one loop."""
    with Loop(location, url, count) as loop:
        return loop.results()


def race(service, locations: list[str], count: int) -> Counter:
    """Run loops over the same machines, each with its own path to the ledger; return how often each was created."""
    with ExitStack() as stack:
        loops = [stack.enter_context(Loop(location, service.url, count)) for location in locations]
        said = [result for loop in loops for result in loop.results()]
    assert {result["outcome"] for result in said} <= {"accepted", "not_sent", "unknown"}
    return Counter(created(service))
