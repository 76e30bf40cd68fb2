# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is explored of each cast, as `make stress` counted it: deviations at most, and the paths with so many."""

from __future__ import annotations

RUNS, FAULTS = 100, 3  # at random, of each cast in each setting; at most, in each run
PATHS = {
    ("a list and two users", ("file", "file")): (3, 24_282),
    ("a list and two users", ("server", "server")): (3, 100_775),
    ("a move and a list", ("file", "file")): (3, 35_720),
    ("a move and a list", ("file", "server")): (2, 16_982),
    ("a move and a list", ("server", "file")): (2, 8_901),
    ("a move and a list", ("server", "server")): (2, 31_863),
    ("a move and two tasks", ("file", "file")): (3, 43_447),
    ("a move and two tasks", ("file", "server")): (2, 17_442),
    ("a move and two tasks", ("server", "file")): (2, 13_693),
    ("a move and two tasks", ("server", "server")): (2, 39_768),
    ("a task and a list", ("file", "file")): (3, 8_757),
    ("a task and a list", ("server", "server")): (3, 63_614),
    ("a task that loses its session, and a user", ("server", "server")): (3, 53_918),
    ("an update that loses its session, and one that is killed", ("server", "server")): (3, 8_043),
    ("three tasks", ("file", "file")): (3, 22_488),
    ("three tasks", ("server", "server")): (3, 116_122),
    ("two lists", ("file", "file")): (3, 63_885),
    ("two lists", ("server", "server")): (2, 12_965),
    ("two tasks", ("file", "file")): (3, 3_095),
    ("two tasks", ("server", "server")): (3, 31_213),
    ("two tasks and a user", ("file", "file")): (3, 18_504),
    ("two tasks and a user", ("server", "server")): (3, 102_085),
    ("two updates", ("file", "file")): (3, 4_722),
    ("two updates", ("server", "server")): (3, 61_489),
    ("two users", ("file", "file")): (3, 9_421),
    ("two users", ("server", "server")): (2, 15_263),
}
