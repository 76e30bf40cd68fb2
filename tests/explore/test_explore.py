# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whoever goes on next, and whatever is killed or lost meanwhile: nothing is created twice, and the ledger knows."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from .casts import SETTINGS
from .choosing import Random, every_path
from .holding import problems_of
from .standing_in import STANDING_IN

RUNS, FAULTS = 100, 3  # of each cast in each setting; at most, in each run
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
def test_all_with_up_to_two_deviations(cast, kinds):
    every_path(2, lambda path: _require_none(problems_of(cast, kinds, path, FAULTS)))


def _require_none(problems: list[str]) -> None:
    assert problems == []
