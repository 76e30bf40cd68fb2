"""Who chooses: chance, or each path with so many deviations from what is not special."""

from __future__ import annotations

import random
from collections.abc import Callable


class Random:
    """Chooses at random, in each run with other probabilities."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self._switching = 0.02 + 0.4 * self._random.random()
        self._failing = 0.01 + 0.15 * self._random.random()

    def __call__(self, ways: int, faults: int) -> int:
        if faults:
            is_failing = self._random.random() < self._failing
            return ways + self._random.randrange(faults) if is_failing else 0
        return self._random.randrange(ways) if self._random.random() < self._switching else 0


class Path:
    """Deviates at some choices; remembers how many options each of them had."""

    def __init__(self, deviations: dict[int, int]) -> None:
        self.deviations = deviations
        self.counts: list[int] = []

    def __call__(self, ways: int, faults: int) -> int:
        self.counts.append(ways + faults)
        return self.deviations.get(len(self.counts) - 1, 0)


def every_path(most: int, run: Callable[[Path], None]) -> int:
    """Run all paths with so many deviations at most; return how many there are."""
    paths: list[dict[int, int]] = [{}]
    count = 0
    while paths:
        deviations = paths.pop()
        path = Path(deviations)
        run(path)
        count += 1
        if len(deviations) < most:
            for at in range(max(deviations, default=-1) + 1, len(path.counts)):
                paths += [{**deviations, at: option} for option in range(1, path.counts[at])]
    return count
