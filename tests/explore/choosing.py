# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Who chooses what happens: chance, or every path with so many deviations from what is not special."""

from __future__ import annotations

import random
from collections.abc import Callable


class Random:
    """Chooses at random: mostly what is not special, and in half of the runs nobody is killed."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed).random
        self._switching = 0.02 + 0.4 * self._random()
        self._failing = 0.01 + 0.15 * self._random()
        self._spared = int(2 * self._random())  # 1: nobody is killed, which is the first of the faults

    def __call__(self, ways: int, faults: int, is_forced: bool) -> int:
        if faults > self._spared and self._random() < self._failing * (faults if faults > 2 else 0.3):  # the rare ones
            return ways + self._spared + int((faults - self._spared) * self._random())
        return int(ways * self._random()) if ways > 1 and (is_forced or self._random() < self._switching) else 0


class Path:
    """Chooses what is not special, but where a path deviates; remembers how many options there were."""

    def __init__(self, deviations: dict[int, int]) -> None:
        self._deviations, self.counts = deviations, []

    def __call__(self, ways: int, faults: int, is_forced: bool) -> int:
        self.counts.append(ways + faults)
        return self._deviations.get(len(self.counts) - 1, 0)


def every_path(most: int, run: Callable[[Path], None]) -> int:
    """Run all paths with so many deviations at most; return how many there are."""
    paths, done = [{}], 0
    while paths:
        deviations = paths.pop()
        path, done = Path(deviations), done + 1
        run(path)
        if len(deviations) < most:
            first = max(deviations, default=-1) + 1
            for at in range(first, len(path.counts)):
                paths += [{**deviations, at: option} for option in range(1, path.counts[at])]
    return done
