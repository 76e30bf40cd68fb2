# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whoever goes on next, and whatever is killed or lost meanwhile: nothing is created twice, and the
ledger knows.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from .casts import SETTINGS
from .choosing import Path, Random, every_path
from .counted import FAULTS, PATHS, RUNS
from .holding import problems_of
from .standing_in import STANDING_IN

IDS = [f"{cast}, {' to '.join(dict.fromkeys(kinds))}" for cast, kinds in SETTINGS]


@pytest.fixture(autouse=True)
def standing_in() -> Iterator[None]:
    with STANDING_IN.used():
        yield


@pytest.mark.parametrize(("cast", "kinds"), SETTINGS, ids=IDS)
def test_at_random(cast, kinds):
    for seed in range(RUNS):
        assert problems_of(cast, kinds, Random(seed), FAULTS) == [], seed


@pytest.mark.stress
@pytest.mark.parametrize(("cast", "kinds"), SETTINGS, ids=IDS)
def test_every_path(cast, kinds, record_property):
    most, paths = PATHS[cast, kinds]
    count = every_path(most, lambda path: _require_none(problems_of(cast, kinds, path, FAULTS)))
    record_property("paths", count)  # make stress writes it into .build/stress.xml
    assert paths / 2 < count < paths * 2, "tests/explore/counted.py says how many there are"


@pytest.mark.stress
@pytest.mark.parametrize(
    ("cast", "kinds"), [SETTINGS[number] for number in (0, 1, 4, 8, 12, 16)], ids=str
)
def test_runs_that_are_cut_lose_no_end(cast, kinds):
    """All ends are reached by the runs that are left, when one stops as soon as another one was in
    the same state.
    """
    ends: dict[bool, set[int | None]] = {True: set(), False: set()}
    for is_cut, found in ends.items():
        every_path(2, lambda path, found=found: found.add(_end(cast, kinds, path)), is_cut)
    assert ends[True] - {None} == ends[False]


def _end(cast: str, kinds: tuple[str, str], path: Path) -> int | None:
    """Return the state at the end of a run, None if it was cut."""
    assert problems_of(cast, kinds, path, FAULTS) == []
    return STANDING_IN.world.end


def _require_none(problems: list[str]) -> None:
    assert problems == []
