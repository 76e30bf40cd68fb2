"""Whoever goes on next, and whatever is killed or lost: nothing is created twice, and the ledger knows."""

from __future__ import annotations

import pytest

from .casts import CASTS, DATABASES, problems_of
from .choosing import Path, Random, every_path
from .counted import FAULTS, PATHS, RUNS
from .defects import DEFECTS

ENOUGH = 1_000  # runs at random, to find a defect
SETTINGS = [(cast, database) for cast in CASTS for database in DATABASES]


@pytest.mark.parametrize(("cast", "database"), SETTINGS)
def test_at_random(cast, database):
    for seed in range(RUNS):
        problems = problems_of(CASTS[cast], Random(seed), FAULTS, tried_for=DATABASES[database])
        assert problems == [], seed


@pytest.mark.parametrize("name", DEFECTS)
def test_finds_each_defect(name):
    cast, changed, connection = DEFECTS[name]
    how = dict(changed=changed, connection=connection)
    runs = (problems_of(CASTS[cast], Random(seed), FAULTS, **how) for seed in range(ENOUGH))
    assert any(runs)


@pytest.mark.stress
@pytest.mark.parametrize("cast", CASTS)
def test_every_path(cast):
    def run(path: Path) -> None:
        assert problems_of(CASTS[cast], path, FAULTS, tried_for=DATABASES["PostgreSQL"]) == []

    most, counted = PATHS[cast]
    assert counted / 2 < every_path(most, run) < counted * 2
