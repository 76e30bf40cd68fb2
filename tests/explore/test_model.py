"""The design of the ledger holds in every order of its steps, and fails without any of its guards."""

from __future__ import annotations

import pytest

from .model import explore
from .model_casts import CASTS, FINDS, LIMITS, TOGETHER
from .model_world import GUARDS

# More than a second of processor each.
SLOW = (
    "clock set back",
    "update with two attempts, update",
    "module on a target",
    "module on a target that is lost",
    "task with two attempts, person, task",
    "three tasks",
    "two updates",
    "two moves to two places",
    "task that loses the answer of its begin, person, task",
    "late answer, two persons, task",
    "task that is slow, person, task",
)


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=[pytest.mark.stress] if name in SLOW else []) for name in CASTS],
)
def test_holds(name: str) -> None:
    assert not explore(CASTS[name]).violations


@pytest.mark.parametrize("guard", GUARDS)
def test_needs_each_guard(guard: str) -> None:
    left_out = {guard, TOGETHER.get(guard, guard)}
    assert explore(CASTS[FINDS[guard]], *left_out).violations


@pytest.mark.stress
@pytest.mark.parametrize("name", LIMITS)
def test_knows_its_limits(name: str) -> None:
    assert explore(LIMITS[name]).violations
