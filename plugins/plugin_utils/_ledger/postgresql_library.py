# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What the ledger in PostgreSQL is made of: its library, its URL, its connection, its locks.

psycopg is imported only where such a URL is used.
"""

from __future__ import annotations

import logging
import math
import os
import re
import signal
import socket
import threading
import time
from contextlib import closing, suppress
from functools import cache
from typing import Callable, ContextManager

from ...module_utils._errors import EndOfThread, MissingLibrary
from ...module_utils._secrets import is_credential_name
from .entries import LedgerError

POSTGRESQL = ("postgresql://", "postgres://")
# What these parts of a URL contain when a password has an unescaped `/ @ # ?`. A host may be a
# directory, or a comma-separated list.
_WRONG = {
    "host": re.compile(r"[@#?%\s]"),
    "port": re.compile(r"[^\d,]"),
    "dbname": re.compile(r"[@#?%:/\s]"),
}
_INTERVAL = 1.0  # seconds between two looks at whether a session is still there


def psycopg_library():
    """Return the library; raise MissingLibrary."""
    try:
        import psycopg  # noqa: PLC0415 (a process without such a ledger should not pay for the import)
    except ImportError:
        raise MissingLibrary(
            "ledger: the Python library psycopg (3) is needed on the controller for a postgresql:// ledger:"
            " pip install 'psycopg[binary]'"
        ) from None
    # Its warnings, from whichever thread, would wait for stderr, whose lock Ansible's main thread
    # may hold for ever.
    logging.getLogger("psycopg").setLevel(logging.CRITICAL + 1)
    return psycopg


@cache
def connection_class():
    """Return a psycopg.Connection whose statements end at its `deadline` (time.monotonic), without
    a thread for each.

    libpq has no limit on how long a server may take to answer; psycopg wakes up several times a
    second to wait again.
    """

    class Connection(psycopg_library().Connection):
        deadline = math.inf

        def wait(self, generator, *args, **kwargs):
            return super().wait(self._cut_at_deadline(generator), *args, **kwargs)

        def _cut_at_deadline(self, generator):
            """Yield what a generator of psycopg waits for; once it is late, shut the socket down,
            which ends it.
            """
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
            with (
                suppress(OSError),
                closing(socket.socket(fileno=os.dup(self.fileno()))) as connected,
            ):
                connected.shutdown(socket.SHUT_RDWR)

    return Connection


def parsed_url(url: str) -> dict:
    """Return the URL as libpq parses it; raise LedgerError, which quotes no part: it may be half a
    password.
    """
    psycopg = psycopg_library()
    try:
        asked = psycopg.conninfo.conninfo_to_dict(url)
    except psycopg.Error:  # its text quotes the URL
        asked = {"host": "@"}
    if any(found.search(str(asked.get(part) or "")) for part, found in _WRONG.items()):
        raise LedgerError(
            "ledger: it is not a valid postgresql:// URL. Percent-encode special characters of the password"
            " (/ is %2F, @ is %40, # is %23, ? is %3F, % is %25), and give only parameters of libpq after a ?"
        )
    return asked


def described(asked: dict) -> str:
    """Return host, port and database of a ledger, without user and password."""
    port = f":{asked['port']}" if "port" in asked else ""
    return f"postgresql://{asked.get('host', '')}{port}/{asked.get('dbname', '')}"


def has_password(asked: dict) -> bool:
    """Whether a URL contains anything that must not be shown."""
    return any(asked[name] and is_credential_name(name) for name in asked)


class SessionLocks:
    """Advisory locks of a session of PostgreSQL, which a new session takes again when the server
    ends the first one.

    While a request is in flight no statement would notice that, so a thread looks.
    """

    def __init__(self, execute: Callable[[str, tuple], list[tuple]], turn: ContextManager) -> None:
        """`execute`: runs a statement, over a new session if need be; raises LedgerError. `turn`:
        of one thread.
        """
        self._execute, self._turn = execute, turn
        self._wanted: set[int] = set()
        self._held: set[int] = set()  # by the session as it is now
        self._closed = threading.Event()
        self._thread: threading.Thread | None = None

    def take(self, number: int) -> bool:
        """Take a lock; return False if another session holds it; raise LedgerError."""
        with self._turn:
            if number not in self._held:  # PostgreSQL counts how often a session takes a lock
                self._try(number, self._execute)
            if number in self._held:
                self._wanted.add(number)
        if not self._thread:
            self._thread = threading.Thread(target=self._look, daemon=True)
            before = signal.pthread_sigmask(
                signal.SIG_BLOCK, signal.valid_signals()
            )  # they are for the main thread
            with suppress(
                RuntimeError
            ):  # there cannot be another thread: the next statement notices
                self._thread.start()
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
        return number in self._held

    def release(self, number: int) -> None:
        with self._turn:
            self._wanted.discard(number)
            if number in self._held:
                self._held.discard(number)
                with suppress(LedgerError):  # the lock has ended with the session
                    self._execute("SELECT pg_advisory_unlock(?)", (number,))

    def session_ended(self) -> None:
        self._held.clear()

    def take_again(self, execute: Callable[[str, tuple], list[tuple]]) -> None:
        """Take what an earlier session held, as far as others have not taken it; raise what
        `execute` raises.
        """
        for number in self._wanted - self._held:
            self._try(number, execute)

    def close(self) -> None:
        self._closed.set()

    def _try(self, number: int, execute: Callable[[str, tuple], list[tuple]]) -> None:
        if execute("SELECT pg_try_advisory_lock(?)", (number,))[0][0]:
            self._held.add(number)

    def _look(self) -> None:
        with EndOfThread(str):  # whatever happens, the next statement notices
            while not self._closed.wait(_INTERVAL):
                with suppress(LedgerError), self._turn:
                    if (
                        self._wanted and not self._closed.is_set()
                    ):  # it would open what was closed meanwhile
                        self._execute("SELECT 1", ())
                        self.take_again(self._execute)
