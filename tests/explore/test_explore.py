"""Whoever goes on next, and whatever is killed or lost: nothing is created twice, and the ledger knows."""

from __future__ import annotations

import pytest

from .casts import CASTS, problems_of
from .choosing import Random

RUNS, FAULTS = 150, 4
# Seconds for which a call whose answer was lost is tried again; below 0: not once more.
TRIED_FOR = (10, -1)


@pytest.mark.parametrize("name", CASTS)
def test_at_random(name):
    for seed in range(RUNS):
        tried_for = TRIED_FOR[seed % len(TRIED_FOR)]
        problems = problems_of(CASTS[name], Random(seed), FAULTS, tried_for=tried_for)
        assert problems == [], seed
