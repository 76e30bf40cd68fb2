# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is explored of each cast, as `make stress` counted it: deviations at most, and the paths
with so many.
"""

from __future__ import annotations

RUNS, FAULTS = 100, 3  # at random, of each cast in each setting; at most, in each run
PATHS = {
    ("a list and two users", ("file", "file")): (3, 24_282),
    ("a list and two users", ("server", "server")): (3, 100_775),
    ("a move and a list", ("file", "file")): (1, 172),
    ("a move and a list", ("file", "server")): (1, 239),
    ("a move and a list", ("server", "file")): (1, 252),
    ("a move and a list", ("server", "server")): (1, 329),
    ("a move and two tasks", ("file", "file")): (2, 4_138),
    ("a move and two tasks", ("file", "server")): (2, 7_976),
    ("a move and two tasks", ("server", "file")): (1, 248),
    ("a move and two tasks", ("server", "server")): (1, 326),
    ("a task and a list", ("file", "file")): (3, 8_757),
    ("a task and a list", ("server", "server")): (3, 63_614),
    ("a task that loses its session, and a user", ("server", "server")): (3, 22_850),
    ("an update that loses its session, and one that is killed", ("server", "server")): (3, 2_262),
    ("three tasks", ("file", "file")): (3, 22_488),
    ("three tasks", ("server", "server")): (3, 116_122),
    ("two lists", ("file", "file")): (3, 63_885),
    ("two lists", ("server", "server")): (2, 11_816),
    ("two moves and a task", ("file", "file")): (1, 110),
    ("two moves and a task", ("file", "pooler")): (1, 185),
    ("two moves and a task", ("file", "server")): (1, 165),
    ("two moves and a task", ("pooler", "pooler")): (1, 320),
    ("two moves and a task", ("server", "file")): (1, 193),
    ("two moves and a task", ("server", "server")): (1, 258),
    ("two tasks", ("file", "file")): (3, 3_095),
    ("two tasks", ("server", "server")): (3, 31_224),
    ("two tasks and a user", ("file", "file")): (3, 18_504),
    ("two tasks and a user", ("server", "server")): (3, 102_085),
    ("two updates", ("file", "file")): (3, 4_722),
    ("two updates", ("server", "server")): (3, 24_564),
    ("two users", ("file", "file")): (3, 9_421),
    ("two users", ("server", "server")): (2, 14_228),
}
