# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Imports psycopg only where a ledger in PostgreSQL is used, and then once for all later workers.

Only its worker knows the options of a task, unless they come from the environment. So a worker that opens such a ledger
sets a flag in memory shared with its parent, which then imports the library before it forks the next worker.
"""

from __future__ import annotations

import mmap
import os
from contextlib import suppress

from ...module_utils._errors import MissingLibrary
from ...module_utils._task.options import LEDGER_VARIABLE

POSTGRESQL = ("postgresql://", "postgres://")
_is_used = mmap.mmap(-1, 1)
_is_used[0] = os.environ.get(LEDGER_VARIABLE, "").startswith(POSTGRESQL)


def psycopg_library():
    """Return the library; raise MissingLibrary."""
    try:
        import psycopg  # noqa: PLC0415 (a process without such a ledger should not pay for the import)
    except ImportError:
        raise MissingLibrary(
            "ledger: the Python library psycopg (3) is needed on the controller for a postgresql:// ledger:"
            " pip install 'psycopg[binary]'"
        ) from None
    _is_used[0] = True
    return psycopg


def _preload() -> None:
    if _is_used[0]:
        with suppress(MissingLibrary):
            psycopg_library()


os.register_at_fork(before=_preload)
