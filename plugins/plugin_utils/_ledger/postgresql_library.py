# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Imports psycopg only where a ledger in PostgreSQL is used, and then once for all later workers.

Only its worker knows the options of a task, unless they come from the environment. So a worker that opens such a ledger
sets a flag in memory shared with its parent, which then imports the library before it forks the next worker.
"""

from __future__ import annotations

import logging
import math
import mmap
import os
import socket
import time
from contextlib import closing, suppress
from functools import cache

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
    # Its warnings, from whichever thread, would wait for stderr, whose lock Ansible's main thread may hold for ever.
    logging.getLogger("psycopg").setLevel(logging.CRITICAL + 1)
    return psycopg


@cache
def connection_class():
    """Return a psycopg.Connection whose statements end at its `deadline` (time.monotonic), without a thread for each.

    libpq has no limit on how long a server may take to answer; psycopg wakes up several times a second to wait again.
    """

    class Connection(psycopg_library().Connection):
        deadline = math.inf

        def wait(self, generator, *args, **kwargs):
            return super().wait(self._cut_at_deadline(generator), *args, **kwargs)

        def _cut_at_deadline(self, generator):
            """Yield what a generator of psycopg waits for; once it is late, shut the socket down, which ends it."""
            try:
                awaited = next(generator)
                while True:
                    ready = yield awaited
                    if time.monotonic() > self.deadline:
                        self._cut()
                    awaited = generator.send(ready)
            except StopIteration as ended:
                return ended.value

        def _cut(self) -> None:
            with suppress(OSError), closing(socket.socket(fileno=os.dup(self.fileno()))) as connected:
                connected.shutdown(socket.SHUT_RDWR)

    return Connection


def _preload() -> None:
    if _is_used[0]:
        with suppress(MissingLibrary):
            psycopg_library()


os.register_at_fork(before=_preload)
