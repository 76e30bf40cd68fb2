# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The ledger in PostgreSQL, for several controllers. Its locks are session-level advisory locks.

Behind a pooler (PgBouncer) the session is not ours: then there are no locks, and settings are made
per transaction.
"""

from __future__ import annotations

import json
import math
import threading
import time
from contextlib import contextmanager, nullcontext
from itertools import chain
from typing import Callable, ContextManager, Iterable, Iterator

from .entries import Kind, LedgerError, LedgerLost, Unanswered, Use, first_line
from .postgresql_library import (
    SessionLocks,
    connection_class,
    described,
    has_password,
    parsed_url,
    psycopg_library,
)
from .tables import TABLES_IN_POSTGRESQL

# libpq settings that detect a dead server; the URL may override them.
_DEFAULTS = {
    "connect_timeout": "10",
    "keepalives_idle": "30",
    "keepalives_interval": "10",
    "keepalives_count": "3",
    "tcp_user_timeout": "60000",  # milliseconds
}
_STATEMENT_SECONDS = (
    15.0  # after which the connection is cut if the server has not cancelled the statement itself
)
_ROW_SECONDS = 0.01  # added for each row of a transaction
# Whatever the server's defaults are: an intent is on disk before its request, no statement waits
# for long, a dead controller loses its locks, and a session survives a request that takes long.
_SESSION = {
    "synchronous_commit": "on",
    "lock_timeout": "8s",
    "statement_timeout": "10s",
    "tcp_keepalives_idle": "30",
    "tcp_keepalives_interval": "10",
    "idle_session_timeout": "0",  # PostgreSQL 14
}
_BEGIN = "BEGIN ISOLATION LEVEL READ COMMITTED"  # whatever the server's default is
_AWAY = (
    "08",
    "53",
    "57P",
    "25006",
)  # SQLSTATEs, or how they begin: no connection, too many, shut down, a standby
_SET = "SELECT set_config(name, ?, false) FROM pg_settings WHERE name = ?"
_SET_IN_TRANSACTION = ("SET LOCAL synchronous_commit = on", "SET LOCAL lock_timeout = '8s'")
_LONGEST_PAUSE = 0.1  # seconds between two attempts to take a lock
_NEEDED = (
    *(
        ("infrastructure_services_entry", right)
        for right in ("SELECT", "INSERT", "UPDATE", "DELETE")
    ),
    *(("infrastructure_services_history", right) for right in ("SELECT", "INSERT")),
)
_CREATING = 0  # the number of the lock of the process that creates tables; no key has it


class PostgresDatabase:
    """Has the methods of SqliteDatabase. Reconnects when its connection is lost.

    The revision of an entry then tells whether the last write was committed.
    """

    file = ""
    number = "BIGINT GENERATED ALWAYS AS IDENTITY"
    interruptible: Callable[[], ContextManager] = nullcontext  # around waits for locks
    _escaped = (
        False  # whether text is stored as JSON, which is ASCII, since the database is not in UTF-8
    )

    def __init__(self, url: str) -> None:
        """Connect to a postgresql:// URL; raise LedgerError or MissingLibrary."""
        self._psycopg = psycopg_library()
        self._errors = (self._psycopg.Error, UnicodeError)
        self._asked = parsed_url(url)
        self.where = described(self._asked)
        self.shown = "" if has_password(self._asked) else url  # in commands
        self._turn = threading.RLock()  # for the thread that looks after the locks
        self._locks = SessionLocks(self.execute, self._turn)
        try:
            self._connect()
        except self._psycopg.Error as error:
            raise LedgerError(
                f"ledger: {self.where} cannot be reached: {first_line(error)}"
            ) from None

    def tables(self) -> set[str]:
        found = {name for (name,) in self.execute(TABLES_IN_POSTGRESQL)}
        if not found:
            ((schema, path),) = self.execute(
                "SELECT current_schema(), current_setting('search_path')"
            )
            if not schema:  # its tables, if there are any, could not be seen
                raise LedgerError(
                    f"ledger: {self.where}: permission denied for schema {path}, if there is one"
                )
        return found

    def use(self) -> Use:
        """Return an empty Use: any controller may use it."""
        return Use()

    def prepare(self, create: Iterable[tuple[str, tuple]]) -> bool:
        """Create tables, one process at a time, or check what this role may do with them; raise
        LedgerError.

        `create`: the statements with their values, in one transaction. Return False if one of them
        changed no row, so that none had an effect.
        """
        if create:
            turn = "SELECT pg_advisory_xact_lock(?)", (_CREATING,)
            return 0 not in self.write(chain([turn], create), Kind.EDIT)
        return True

    def require_privileges(self) -> None:
        """Raise LedgerError if this role may not record a request, before the request is sent."""
        asked = [name for pair in _NEEDED for name in pair]
        row = ", ".join(["has_table_privilege(?, ?)"] * len(_NEEDED))
        (found,) = self.execute(f"SELECT {row}", asked)
        lacking = [f"{right} on {table}" for (table, right), has in zip(_NEEDED, found) if not has]
        if lacking:
            raise LedgerError(
                f"ledger: {self.where}: the role of the URL lacks {', '.join(lacking)}"
            )

    def close(self) -> None:
        self._locks.close()
        with self._turn:
            self._connection.close()

    def lock(self, number: int, waiting: Callable[[], ContextManager] | None) -> bool:
        pause = 0.005
        while not (self._pooled or self._locks.take(number)):
            if not waiting:
                return False
            with waiting():
                time.sleep(pause)
            pause = min(2 * pause, _LONGEST_PAUSE)
        return True

    def unlock(self, number: int) -> None:
        self._locks.release(number)

    def execute(self, statement: str, values: Iterable = ()) -> list[tuple]:
        with self._turn, self._translated():
            try:
                return self._run(statement, values)
            except self._psycopg.OperationalError:
                if not self._connection.closed:
                    raise
            self._connect()
            return self._run(statement, values)

    def write(self, statements: Iterable[tuple[str, tuple]], kind: Kind) -> list[int]:
        """Execute statements as in SQLite, durably in any case: that costs no extra round trip;
        raise LedgerError.

        Raises Unanswered if they may have been committed all the same.
        """
        whole = kind is Kind.EDIT
        with self._turn, self._translated():
            if self._connection.closed:
                self._connect()
            can_pipeline = not self._pooled and self._psycopg.Pipeline.is_supported()
            try:
                with (
                    self._bounded(),
                    self._connection.pipeline() if can_pipeline else nullcontext(),
                ):
                    self._connection.execute(_BEGIN)
                    for setting in _SET_IN_TRANSACTION if self._pooled else ():
                        self._connection.execute(setting)
                    cursors = []
                    for statement in statements:
                        cursors.append(self._sent(*statement))
                        self._set_deadline(len(cursors))
                    if not whole:
                        self._connection.execute("COMMIT")
                if whole:
                    with self._bounded():
                        self._connection.execute(
                            "COMMIT" if all(cursor.rowcount for cursor in cursors) else "ROLLBACK"
                        )
            except (*self._errors, LedgerError):  # or what yields the statements failed
                self._roll_back()
                raise
        return [cursor.rowcount for cursor in cursors]

    def _roll_back(self) -> None:
        """End a failed transaction without losing the session and its locks, if it still answers."""
        try:
            with self._bounded():
                self._connection.rollback()
        except self._errors:
            self._connection.close()

    @contextmanager
    def _translated(self) -> Iterator[None]:
        """Turn psycopg's errors into LedgerError."""
        try:
            yield
        except self._errors as error:
            raise self._failure(error) from None

    def _failure(self, error: Exception) -> LedgerError:
        msg, sqlstate = (
            f"ledger: {self.where}: {first_line(error)}",
            getattr(error, "sqlstate", None),
        )
        if (sqlstate or "").startswith(_AWAY):  # set by the server or a pooler, never by libpq
            return LedgerLost(msg)
        if not isinstance(error, self._psycopg.OperationalError):
            return LedgerError(msg)
        return Unanswered(msg) if sqlstate else LedgerLost(msg)

    def _connect(self) -> None:
        """Connect, detect a pooler, and take the locks again that an earlier session held; raise an
        error of psycopg.

        A lock that another process has taken meanwhile is lost until it is released; the revision
        of the entry decides.
        """
        self._locks.session_ended()
        asked = {**_DEFAULTS, **self._asked, "client_encoding": "utf8"}
        self._connection = connection_class().connect(
            **asked, autocommit=True, prepare_threshold=None
        )
        ((pid, encoding),) = self._run(
            "SELECT pg_backend_pid(), current_setting('server_encoding')"
        )
        self._pooled = pid != self._connection.info.backend_pid
        self._escaped = encoding not in ("UTF8", "SQL_ASCII")
        for name, value in {} if self._pooled else _SESSION.items():
            self._run(_SET, (value, name))
        if not self._pooled:
            self._locks.take_again(self._run)

    def _run(self, statement: str, values: tuple = ()) -> list[tuple]:
        with self._bounded():
            cursor = self._sent(statement, values)
            rows = cursor.fetchall() if cursor.description else []
        return [tuple(map(_plain, row)) for row in rows] if self._escaped else rows

    def _sent(self, statement: str, values: Iterable):
        """Send a statement and return its cursor."""
        stored = [
            json.dumps(value)[1:-1] if self._escaped and isinstance(value, str) else value
            for value in values
        ]
        return self._connection.execute(statement.replace("?", "%s"), stored)

    @contextmanager
    def _bounded(self) -> Iterator[None]:
        """Cut the connection if the server does not answer in time."""
        self._set_deadline()
        try:
            yield
        finally:
            self._connection.deadline = math.inf

    def _set_deadline(self, rows: int = 0) -> None:
        self._connection.deadline = time.monotonic() + _STATEMENT_SECONDS + rows * _ROW_SECONDS


def _plain(value: object) -> object:
    """Return what `_sent` stored as JSON, or what another program wrote as it is."""
    try:
        return json.loads(f'"{value}"') if isinstance(value, str) else value
    except ValueError:
        return value
