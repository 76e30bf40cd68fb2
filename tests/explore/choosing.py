# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Who chooses what happens: chance, or every path with so many deviations from what is not special."""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Callable


class Random:
    """Chooses at random: mostly what is not special, and in half of the runs nobody is killed."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed).random
        self._switching = 0.02 + 0.4 * self._random()
        self._failing = 0.01 + 0.15 * self._random()
        self._spared = int(
            2 * self._random()
        )  # 1: nobody is killed, which is the first of the faults

    def __call__(self, ways: int, faults: int, is_forced: bool) -> int:
        if faults > self._spared and self._random() < self._failing * (
            faults if faults > 2 else 0.3
        ):  # the rare ones
            return ways + self._spared + int((faults - self._spared) * self._random())
        return (
            int(ways * self._random())
            if ways > 1 and (is_forced or self._random() < self._switching)
            else 0
        )


class Path:
    """Chooses what is not special, but where a path deviates; remembers how many options there
    were.
    """

    def __init__(
        self, deviations: dict[int, int], left: int = 0, met: dict[int, int] | None = None
    ) -> None:
        """`left`: how many further deviations other paths add to this one; `met`: how many were
        left, by state.
        """
        self._deviations, self._left, self._met, self.counts = deviations, left, met, []
        self._last = max(deviations, default=-1)  # until then, the path is that of another one

    def has_met(self, state: int) -> bool:
        """Whether another path was in this state, with as many deviations left; remember the state."""
        if self._met is None or len(self.counts) <= self._last:
            return False
        if self._met.get(state, -1) >= self._left:
            return True
        if self._left or len(self.counts) == self._last + 1:
            self._met[state] = self._left
        return False

    def __call__(self, ways: int, faults: int, is_forced: bool) -> int:
        self.counts.append(ways + faults)
        return self._deviations.get(len(self.counts) - 1, 0)


def every_path(most: int, run: Callable[[Path], None], is_cut: bool = True) -> int:
    """Run all paths with so many deviations at most; return how many there are.

    `is_cut`: whether one ends as soon as it is in a state that was looked at before, with all that
    can follow.
    """
    paths: deque[dict[int, int]] = deque(
        [{}]
    )  # those with few deviations first: they meet the most
    done, met = 0, {} if is_cut else None
    while paths:
        deviations = paths.popleft()
        path, done = Path(deviations, most - len(deviations), met), done + 1
        run(path)
        if len(deviations) < most:
            first = max(deviations, default=-1) + 1
            for at in range(first, len(path.counts)):
                paths += [{**deviations, at: option} for option in range(1, path.counts[at])]
    return done
