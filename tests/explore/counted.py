# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is explored of each cast, as `make stress` counted it: deviations at most, and the paths
with so many.
"""

from __future__ import annotations

RUNS, FAULTS = 100, 3  # at random, of each cast in each setting; at most, in each run
PATHS = {
    ("a list and two users", ("file", "file")): (3, 26_468),
    ("a list and two users", ("server", "server")): (3, 90_408),
    ("a move and a list", ("file", "file")): (1, 175),
    ("a move and a list", ("file", "server")): (1, 242),
    ("a move and a list", ("server", "file")): (1, 256),
    ("a move and a list", ("server", "server")): (1, 333),
    ("a move and two tasks", ("file", "file")): (2, 4_255),
    ("a move and two tasks", ("file", "server")): (2, 8_173),
    ("a move and two tasks", ("server", "file")): (1, 253),
    ("a move and two tasks", ("server", "server")): (1, 331),
    ("a task and a list", ("file", "file")): (3, 10_199),
    ("a task and a list", ("server", "server")): (3, 35_819),
    ("a task that loses its session, and a user", ("server", "server")): (3, 22_850),
    ("an update that loses its session, and one that is killed", ("server", "server")): (3, 1_774),
    ("three tasks", ("file", "file")): (3, 24_073),
    ("three tasks", ("server", "server")): (3, 72_689),
    ("two lists", ("file", "file")): (3, 72_715),
    ("two lists", ("server", "server")): (2, 8_668),
    ("two moves and a task", ("file", "file")): (1, 113),
    ("two moves and a task", ("file", "pooler")): (1, 188),
    ("two moves and a task", ("file", "server")): (1, 168),
    ("two moves and a task", ("pooler", "pooler")): (1, 324),
    ("two moves and a task", ("server", "file")): (1, 197),
    ("two moves and a task", ("server", "server")): (1, 262),
    ("two tasks", ("file", "file")): (3, 3_365),
    ("two tasks", ("server", "server")): (3, 17_241),
    ("two tasks and a user", ("file", "file")): (3, 20_192),
    ("two tasks and a user", ("server", "server")): (3, 64_429),
    ("two updates", ("file", "file")): (3, 5_066),
    ("two updates", ("server", "server")): (3, 24_564),
    ("two users", ("file", "file")): (3, 9_773),
    ("two users", ("server", "server")): (2, 14_814),
}
