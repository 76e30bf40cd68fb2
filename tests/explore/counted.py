# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is explored of each cast, as `make stress` counted it: deviations at most, and the paths with so many."""

from __future__ import annotations

RUNS, FAULTS = 100, 3  # at random, of each cast in each setting; at most, in each run
PATHS = {
    ("a list and two users", ("file", "file")): (2, 3_948),
    ("a list and two users", ("server", "server")): (2, 9_691),
    ("a move and a list", ("file", "file")): (2, 10_657),
    ("a move and a list", ("file", "server")): (2, 36_277),
    ("a move and a list", ("server", "file")): (2, 25_346),
    ("a move and a list", ("server", "server")): (1, 369),
    ("a move and two tasks", ("file", "file")): (2, 11_105),
    ("a move and two tasks", ("file", "server")): (2, 36_885),
    ("a move and two tasks", ("server", "file")): (2, 34_060),
    ("a move and two tasks", ("server", "server")): (1, 422),
    ("a task and a list", ("file", "file")): (3, 23_995),
    ("a task and a list", ("server", "server")): (2, 5_221),
    ("a task that loses its session, and a user", ("server", "server")): (2, 6_095),
    ("an update that loses its session, and one that is killed", ("server", "server")): (3, 8_488),
    ("three tasks", ("file", "file")): (3, 42_528),
    ("three tasks", ("server", "server")): (2, 5_385),
    ("two lists", ("file", "file")): (2, 5_230),
    ("two lists", ("server", "server")): (2, 16_452),
    ("two tasks", ("file", "file")): (3, 6_230),
    ("two tasks", ("server", "server")): (3, 48_675),
    ("two tasks and a user", ("file", "file")): (3, 41_081),
    ("two tasks and a user", ("server", "server")): (2, 5_475),
    ("two updates", ("file", "file")): (3, 9_803),
    ("two updates", ("server", "server")): (2, 4_347),
    ("two users", ("file", "file")): (3, 29_093),
    ("two users", ("server", "server")): (2, 19_769),
}
