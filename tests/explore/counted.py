"""How many runs the explorer makes."""

from __future__ import annotations

RUNS, FAULTS = 40, 4
# Deviations of each path at most, and how many paths there are, by cast.
PATHS = {
    "two tasks": (3, 12_202),
    "task, user, task": (2, 1_735),
    "task, user who looks at once, task": (2, 1_756),
    "two updates": (2, 1_703),
    "task that is suspended, user, task": (2, 3679),
    "task that is suspended, slow user": (2, 497),
    "two runs with one approved plan, user who forgets": (2, 3079),
    "task, user who does not look": (3, 9_169),
    "task, restored backup": (3, 5_908),
    "task, move, task at the target": (2, 3001),
    "task, two moves to one place": (2, 4731),
    "two moves to two places": (2, 1_348),
    "task, user who does not look, move": (2, 2262),
    "task, new URL": (3, 5_247),
}
