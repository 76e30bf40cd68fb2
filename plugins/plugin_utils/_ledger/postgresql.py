# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The ledger in PostgreSQL, for several controllers. Its locks are session-level advisory locks.

Behind a pooler (PgBouncer) the session is not ours: then there are no locks, and settings are made per transaction.
"""

from __future__ import annotations

import math
import time
from contextlib import contextmanager, nullcontext, suppress
from typing import Iterator

from . import schema
from .entries import Key, LedgerError, LedgerLost, first_line
from .postgresql_library import connection_class, psycopg_library
from .postgresql_urls import described, parsed
from .store import Ledger

# libpq settings that detect a dead server; the URL may override them.
_DEFAULTS = {
    "connect_timeout": "10",
    "keepalives_idle": "30",
    "keepalives_interval": "10",
    "keepalives_count": "3",
    "tcp_user_timeout": "60000",  # milliseconds
}
_STATEMENT_SECONDS = 15.0  # after which the connection is cut if the server has not cancelled the statement itself
_ROW_SECONDS = 0.01  # added for each row of a transaction
# Whatever the server's defaults are: an intent is on disk before its request, no statement waits for long, a dead
# controller loses its locks, and a session survives a request that takes long.
_SESSION = {
    "synchronous_commit": "on",
    "lock_timeout": "8s",
    "statement_timeout": "10s",
    "tcp_keepalives_idle": "30",
    "tcp_keepalives_interval": "10",
    "idle_session_timeout": "0",  # PostgreSQL 14
}
_BEGIN = "BEGIN ISOLATION LEVEL READ COMMITTED"  # whatever the server's default is
_TOO_LONG = "54000"  # the SQLSTATE of a value that is too long for an index, among other limits
_SET = "SELECT set_config(name, ?, false) FROM pg_settings WHERE name = ?"
_SET_IN_TRANSACTION = ("SET LOCAL synchronous_commit = on", "SET LOCAL lock_timeout = '8s'")
_LONGEST_PAUSE = 0.1  # seconds between two attempts to take a lock


class PostgresLedger(Ledger):
    """Reconnects when its connection is lost; the revision then tells whether the last write was committed."""

    tables = (  # from pg_class: to_regclass may have cached, before a lock was granted, that there are none
        "SELECT relname FROM pg_class WHERE pg_table_is_visible(oid)"
        " AND relname IN ('infrastructure_services_entry', 'infrastructure_services_schema')"
    )

    def __init__(self, url: str, read_only: bool = False) -> None:
        """Open the ledger at a postgresql:// URL; raise LedgerError or MissingLibrary."""
        self._psycopg = psycopg_library()
        self.error = (self._psycopg.Error, UnicodeError)
        self._asked = parsed(url, self._psycopg)
        super().__init__(described(self._asked))
        self._in_transaction = False
        self._held: set[int] = set()  # the numbers of the locks that are held
        try:
            self._connect()
        except self._psycopg.Error as error:
            raise LedgerError(f"ledger: {self.where} cannot be reached: {first_line(error)}") from None
        try:
            schema.prepare(self, read_only)
        except LedgerError:
            self.close()
            raise

    def close(self) -> None:
        self._connection.close()

    def lock(self, number: int, wait: bool) -> bool:
        pause = 0.005
        while not (self._pooled or self.execute("SELECT pg_try_advisory_lock(?)", (number,))[0][0]):
            if not wait:
                return False
            with self.interruptible():
                time.sleep(pause)
            pause = min(2 * pause, _LONGEST_PAUSE)
        self._held.add(number)
        return True

    def unlock(self, number: int) -> None:
        is_held = number in self._held
        self._held.discard(number)
        if is_held and not (self._pooled or self._connection.closed):
            with suppress(*self.error):  # a lost session has released the lock already
                self._run("SELECT pg_advisory_unlock(?)", (number,))

    def run(self, statement: str, values: tuple = ()) -> list[tuple]:
        try:
            return self._run(statement, values)
        except self._psycopg.OperationalError:
            if self._in_transaction or not self._connection.closed:
                raise
        self._connect()
        return self._run(statement, values)

    def write(self, statements: list[tuple[str, tuple]], durable: bool) -> list[int]:
        """Execute statements as Ledger.write does, durably in any case: that costs no extra round trip."""
        if self._connection.closed:
            self._connect()
        try:
            with self._bounded(len(statements)), self._pipeline():
                self._connection.execute(_BEGIN)
                for setting in _SET_IN_TRANSACTION if self._pooled else ():
                    self._connection.execute(setting)
                cursors = [self._connection.execute(_format(statement), values) for statement, values in statements]
                self._connection.execute("COMMIT")
        except self.error:
            self._roll_back()
            raise
        return [cursor.rowcount for cursor in cursors]

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Admit one process at a time, so that tables are created once."""
        self._in_transaction = True
        try:
            self.execute(_BEGIN)
            self.execute("SELECT pg_advisory_xact_lock(?)", (Key("", "", "").number(),))
            yield
            self.execute("COMMIT")
        except LedgerError:
            self._roll_back()
            raise
        finally:
            self._in_transaction = False

    def _roll_back(self) -> None:
        """End a failed transaction without losing the session and its locks, if it still answers."""
        try:
            with self._bounded():
                self._connection.rollback()
        except self.error:
            self._connection.close()

    def has_lost(self, error: Exception) -> bool:
        return isinstance(error, self._psycopg.OperationalError)

    def failure(self, error: Exception, before_request: bool = True) -> LedgerError:
        failure = super().failure(error, before_request)
        sqlstate = getattr(error, "sqlstate", None)  # set by the server, never by libpq
        if sqlstate == _TOO_LONG:
            return LedgerError(
                f"{failure.msg}. Its name or id, together with base_url, is longer than the index of PostgreSQL takes"
            )
        return failure if sqlstate or not self.has_lost(error) else LedgerLost(failure.msg)

    def _connect(self) -> None:
        """Connect, detect a pooler, and take the locks again that an earlier session held; raise an `error`.

        A lock that another process has taken meanwhile is lost; the revision of the entry then decides.
        """
        asked = {**_DEFAULTS, **self._asked, "client_encoding": "utf8"}
        self._connection = connection_class().connect(**asked, autocommit=True, prepare_threshold=None)
        ((pid, encoding),) = self._run("SELECT pg_backend_pid(), current_setting('server_encoding')")
        self._pooled = pid != self._connection.info.backend_pid
        self.escaped = encoding not in ("UTF8", "SQL_ASCII")
        for name, value in {} if self._pooled else _SESSION.items():
            self._run(_SET, (value, name))
        for number in () if self._pooled else tuple(self._held):
            if not self._run("SELECT pg_try_advisory_lock(?)", (number,))[0][0]:
                self._held.discard(number)

    def _run(self, statement: str, values: tuple = ()) -> list[tuple]:
        with self._bounded():
            cursor = self._connection.execute(_format(statement), values)
            return cursor.fetchall() if cursor.description else []

    @contextmanager
    def _bounded(self, rows: int = 0) -> Iterator[None]:
        """Cut the connection if the server does not answer in time."""
        self._connection.deadline = time.monotonic() + _STATEMENT_SECONDS + rows * _ROW_SECONDS
        try:
            yield
        finally:
            self._connection.deadline = math.inf

    def _pipeline(self):
        """Return a context that pipelines its statements, where the library supports it."""
        can = not self._pooled and self._psycopg.Pipeline.is_supported()
        return self._connection.pipeline() if can else nullcontext()


def _format(statement: str) -> str:
    return statement.replace("?", "%s")
