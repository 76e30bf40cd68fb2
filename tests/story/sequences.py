# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How many sequences of commands the story draws, and how soon it finds each break."""

from __future__ import annotations

from typing import NamedTuple


class Sequences(NamedTuple):
    """Sequences of commands, and how many commands each one has at most."""

    count: int
    commands: int


QUICK, LONG = Sequences(30, 25), Sequences(2000, 40)
# Seconds until the story of `make test` is red, by `tests/tools/breaks.py 'story - ' --jobs 1`.
FOUND = {
    "an edit applies to an entry that has changed since": 2,
    "a doubt is settled without an id": 2,
    "an entry that is done loses its id": 3,
    "a target is never put in use": 1,
    "a file that was filled in is overwritten": 2,
    "a plan is good for two creations of a machine": 3,
    "a plan for another ledger is taken": 2,
}
