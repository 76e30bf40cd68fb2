# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The types of what a database of a ledger executes and returns, and the purposes of writes."""

from __future__ import annotations

from enum import IntEnum
from typing import Any, Sequence, Tuple, Union

Value = Union[str, int, float, None]
# SQL of the module `sql`, and the values in place of its `?`.
Statement = Tuple[str, Sequence[Value]]
Row = Tuple[Any, ...]  # one value for each column of the statement


class Write(IntEnum):
    """The purpose of a write, which decides how it is committed; each demands more than the last."""

    # An outcome: survives the death of this process.
    OUTCOME = 1
    # A further lease of an intent: on disk before the write returns.
    RENEWAL = 2
    # An intent, likewise.
    BEGIN = 3
    # All of it takes effect or nothing, after all other writers have committed.
    EDIT = 4
