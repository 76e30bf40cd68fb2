# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Reads URLs of PostgreSQL, and imports psycopg only where they are used, then once for all later workers.

Only its worker knows the options of a task, unless they come from the environment. So a worker that opens such a ledger
sets a flag in memory shared with its parent, which then imports the library before it forks the next worker.
"""

from __future__ import annotations

import logging
import math
import mmap
import os
import re
import socket
import time
from contextlib import closing, suppress
from functools import cache

from ...module_utils._errors import MissingLibrary
from ...module_utils._task.options import LEDGER_VARIABLE
from .entries import LedgerError

POSTGRESQL = ("postgresql://", "postgres://")
# What these parts of a URL contain when a password has an unescaped `/ @ # ?`. A host may be a directory, or a
# comma-separated list.
_WRONG = {"host": re.compile(r"[@#?%\s]"), "port": re.compile(r"[^\d,]"), "dbname": re.compile(r"[@#?%:/\s]")}
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


def parsed_url(url: str) -> dict:
    """Return the URL as libpq parses it; raise LedgerError, which quotes no part: it may be half a password."""
    psycopg = psycopg_library()
    try:
        asked = psycopg.conninfo.conninfo_to_dict(url)
    except psycopg.Error:  # its text quotes the URL
        asked = {"host": "@"}
    if any(found.search(str(asked.get(part) or "")) for part, found in _WRONG.items()):
        raise LedgerError(
            "ledger: it is not a valid postgresql:// URL. Percent-encode special characters of the password"
            " (/ is %2F, @ is %40, # is %23, ? is %3F, % is %25)"
        )
    return asked


def described(asked: dict) -> str:
    """Return host, port and database of a ledger, without user and password."""
    port = f":{asked['port']}" if "port" in asked else ""
    return f"postgresql://{asked.get('host', '')}{port}/{asked.get('dbname', '')}"


def _preload() -> None:
    if _is_used[0]:
        with suppress(MissingLibrary):
            psycopg_library()


os.register_at_fork(before=_preload)
