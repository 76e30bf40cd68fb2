"""The design of the ledger holds in every order of its steps, and fails without any of its guards."""

from __future__ import annotations

import pytest

from .model import explore
from .model_casts import CASTS, LIMITS
from .model_world import GUARDS

# More than two seconds of processor each.
SLOW = (
    "two updates, backup",
    "three tasks",
    "task with two attempts, person, task",
    "update with two attempts, update",
    "task that is slow, person, task",
    "task that loses the answer of its begin, person, task",
    "late answer, two persons, task",
)
FINDS = [(name, guard) for name, cast in CASTS.items() for guard in cast.finds]


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=[pytest.mark.stress] if name in SLOW else []) for name in CASTS],
)
def test_holds(name: str) -> None:
    assert not explore(CASTS[name]).violations


@pytest.mark.parametrize(("name", "guard"), FINDS)
def test_needs_each_guard(name: str, guard: str) -> None:
    assert explore(CASTS[name], guard).violations


def test_has_a_cast_for_each_guard() -> None:
    assert sorted(guard for _name, guard in FINDS) == sorted(GUARDS)


@pytest.mark.stress
@pytest.mark.parametrize("name", LIMITS)
def test_knows_its_limits(name: str) -> None:
    assert explore(LIMITS[name]).violations
