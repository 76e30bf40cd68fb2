"""Whoever goes on next, and whatever is killed or lost: nothing is created twice, and the ledger knows."""

from __future__ import annotations

import pytest

from .casts import CASTS, problems_of
from .choosing import Path, Random, every_path

RUNS = 60
FAULTS = (0, 4, 4, 4, 4)  # of run to run
# Seconds for which a call whose answer was lost is tried again; below 0: not once more.
TRIED_FOR = (10, -1)
DEVIATIONS = {"update": 2}  # of each path at most, 1 for all others


@pytest.mark.parametrize("name", CASTS)
def test_at_random(name):
    for seed in range(RUNS):
        tried_for = TRIED_FOR[seed % len(TRIED_FOR)]
        faults = FAULTS[seed % len(FAULTS)]
        problems = problems_of(CASTS[name], Random(seed), faults, tried_for=tried_for)
        assert problems == [], seed


@pytest.mark.stress
@pytest.mark.parametrize("tried_for", TRIED_FOR)
@pytest.mark.parametrize("name", CASTS)
def test_every_path(name, tried_for):
    def run(path: Path) -> None:
        assert problems_of(CASTS[name], path, FAULTS[1], tried_for=tried_for) == [], path.deviations

    every_path(DEVIATIONS.get(name, 1), run)
