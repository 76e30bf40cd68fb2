# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Measure by how much an attempt overruns its deadline, with every kind of drip.

python tests/benchmark/deadline.py [--drips 100] [--timeout 0.5]
"""

from __future__ import annotations

import argparse
import itertools
import statistics
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
__import__("conftest")  # makes the checkout importable as the collection
from faults.drips import DRIPS, endure
from faults.lab import Authority

BAR = 50.0  # milliseconds, worst case on a quiet machine


def measure(drips: int, timeout: float) -> dict[str, list[float]]:
    """Return the milliseconds past the deadline, by kind of drip."""
    over: dict[str, list[float]] = {case.what: [] for case in DRIPS}
    with tempfile.TemporaryDirectory() as directory:
        authority = Authority(Path(directory))
        for case in itertools.islice(itertools.cycle(DRIPS), drips):
            _result, seconds = endure(case, Path(directory), authority, timeout)
            over[case.what].append((seconds - timeout) * 1000)
    return over


def main() -> None:
    """Print a line for each kind and one for all."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--drips", type=int, default=100, help="how many, all kinds in turn")
    parser.add_argument("--timeout", type=float, default=0.5, help="seconds of each attempt")
    given = parser.parse_args()
    over = measure(given.drips, given.timeout)
    print(f"{given.drips} drips against a deadline of {given.timeout:g} s: milliseconds over it")
    print(f"{'what drips':36}{'runs':>6}{'median':>9}{'worst':>9}")
    together = [value for values in over.values() for value in values]
    for what, values in [*over.items(), ("all", together)]:
        if values:
            print(f"{what:36}{len(values):6}{statistics.median(values):9.1f}{max(values):9.1f}")
    print(f"the bar, on a quiet machine: {BAR:g} ms at worst")


if __name__ == "__main__":
    main()
