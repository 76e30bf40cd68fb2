# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The ledger in PostgreSQL, for several controllers. Its locks are session-level advisory locks.

Behind a pooler (PgBouncer) the session is not ours: then there are no locks, and settings are made
for each transaction. psycopg is imported only where such a URL is used, and only its public names
are used.
"""

from __future__ import annotations

import logging
import os
import re
import socket
import threading
import time
from contextlib import contextmanager, nullcontext, suppress
from itertools import chain
from types import ModuleType
from typing import TYPE_CHECKING, Dict, Iterable, Iterator, Sequence

from ...module_utils._errors import MissingLibrary
from ...module_utils._secrets import is_credential_name
from .database import Row, Statement, Value
from .entries import Kind, LedgerError, LedgerLost, Unanswered, Use, Waiting, first_line
from .tables import ENTRY_TABLE, HISTORY_TABLE, TABLES_IN_POSTGRESQL

if TYPE_CHECKING:
    import psycopg

POSTGRESQL = ("postgresql://", "postgres://")
Parameters = Dict[str, str]
# Characters in these parts of a URL that come from an unescaped `/ @ # ?` in the password. A host
# may be a directory, or a comma-separated list.
_WRONG = {
    "host": re.compile(r"[@#?%\s]"),
    "port": re.compile(r"[^\d,]"),
    "dbname": re.compile(r"[@#?%:/\s]"),
}
_NOT_A_URL = (
    "it is not a valid postgresql:// URL. Percent-encode special characters of the password (/ is"
    " %2F, @ is %40, # is %23, ? is %3F, % is %25), and give only parameters of libpq after a ?"
)
_SCHEMA = re.compile(r"-c ?search_path=(\S+)")  # in libpq's options
# libpq settings that detect a dead server; the URL may override them.
_DEFAULTS = {
    "connect_timeout": "10",
    "keepalives_idle": "30",
    "keepalives_interval": "10",
    "keepalives_count": "3",
    "tcp_user_timeout": "60000",  # milliseconds
}
# A server that has not canceled a statement by then hangs.
_STATEMENT_SECONDS = 15.0
_ROW_SECONDS = 0.01  # added for each statement of a transaction
# These override the server's defaults: an intent is on disk before its request, no statement waits
# for long, a dead controller loses its locks, and a session survives a long request.
_SESSION = {
    "synchronous_commit": "on",
    "lock_timeout": "8s",
    "statement_timeout": "10s",
    "tcp_keepalives_idle": "30",
    "tcp_keepalives_interval": "10",
    "idle_session_timeout": "0",  # PostgreSQL 14
}
_SET = "SELECT set_config(name, ?, false) FROM pg_settings WHERE name = ?"
_SET_IN_TRANSACTION = ("SET LOCAL synchronous_commit = on", "SET LOCAL lock_timeout = '8s'")
# The server may have another default.
_BEGIN = "BEGIN ISOLATION LEVEL READ COMMITTED"
_TRY_LOCK = "SELECT pg_try_advisory_lock(?)"
# The number of the lock of the process that creates tables; no key has it.
_CREATING = 0
_LONGEST_PAUSE = 0.1  # seconds between two attempts to take a lock
# SQLSTATEs, or how they begin: no connection, too many, shut down, a standby.
_AWAY = ("08", "53", "57P", "25006")
# SQL_ASCII stores the bytes of UTF-8 as they are.
_ENCODINGS = ("UTF8", "SQL_ASCII")
_NEEDED = (
    (ENTRY_TABLE, "SELECT"),
    (ENTRY_TABLE, "INSERT"),
    (ENTRY_TABLE, "UPDATE"),
    (ENTRY_TABLE, "DELETE"),
    (HISTORY_TABLE, "SELECT"),
    (HISTORY_TABLE, "INSERT"),
)


class PostgresDatabase:
    """Implements Database. Connects again when its connection is lost."""

    file = ""
    number = "BIGINT GENERATED ALWAYS AS IDENTITY"
    lock_entries = f"LOCK TABLE {ENTRY_TABLE} IN SHARE ROW EXCLUSIVE MODE"

    def __init__(self, url: str) -> None:
        """Connect to a postgresql:// URL; raise LedgerError or MissingLibrary."""
        self._psycopg = psycopg_library()
        self._errors = (self._psycopg.Error, UnicodeError)
        self._asked = parsed_url(url)
        self.where = described(self._asked)
        self.shown = "" if has_secret(self._asked) else url
        self.waiting = Waiting()
        self._locked: set[int] = set()  # the locks of this session, by number
        try:
            self._connect()
        except self._psycopg.Error as error:
            problem = f"{self.where} cannot be reached: {first_line(error)}"
            raise LedgerError(f"ledger: {problem}") from None

    def tables(self) -> set[str]:
        found = {name for (name,) in self.execute(TABLES_IN_POSTGRESQL)}
        if not found:
            self._require_schema()
        return found

    def _require_schema(self) -> None:
        """Raise LedgerError if this role could not see the tables."""
        statement = "SELECT current_schema(), current_setting('search_path')"
        ((schema, path),) = self.execute(statement)
        if not schema:
            problem = f"permission denied for schema {path}, if there is one"
            raise LedgerError(f"ledger: {self.where}: {problem}")

    def place(self) -> str:
        ((schema,),) = self.execute("SELECT current_schema()")
        return f"{self.where.partition(', schema ')[0]}, schema {schema}"

    def use(self) -> Use:
        return Use()

    def is_older(self) -> bool:
        return False

    def lacks_note(self) -> bool:
        return False

    def check(self) -> None:
        """Do nothing: the server looks after its files."""

    def create(self, statements: Iterable[Statement]) -> bool:
        turn: Statement = ("SELECT pg_advisory_xact_lock(?)", (_CREATING,))
        return 0 not in self.write([turn, *statements], Kind.EDIT)

    def require_privileges(self) -> None:
        asked = [*chain.from_iterable(_NEEDED)]
        row = ", ".join(["has_table_privilege(?, ?)"] * len(_NEEDED))
        (found,) = self.execute(f"SELECT {row}", asked)
        lacking = [f"{right} on {table}" for (table, right), has in zip(_NEEDED, found) if not has]
        if lacking:
            problem = f"the role of the URL lacks {', '.join(lacking)}"
            raise LedgerError(f"ledger: {self.where}: {problem}")

    def close(self) -> None:
        self._connection.close()

    def lock(self, number: int, wait: bool) -> bool:
        pause = 0.005
        while not self._try_lock(number):
            if not wait:
                return False
            with self.waiting.interruptible():
                time.sleep(pause)
            pause = min(2 * pause, _LONGEST_PAUSE)
        return True

    def _try_lock(self, number: int) -> bool:
        # PostgreSQL counts how often a session takes a lock.
        if self._pooled or number in self._locked:
            return True
        ((is_taken,),) = self.execute(_TRY_LOCK, (number,))
        if is_taken:
            self._locked.add(number)
        return bool(is_taken)

    def unlock(self, number: int) -> None:
        if number in self._locked:
            self._locked.discard(number)
            with suppress(LedgerError):  # the lock has ended with the session
                self.execute("SELECT pg_advisory_unlock(?)", (number,))

    def execute(self, statement: str, values: Sequence[Value] = ()) -> list[Row]:
        with self._translated():
            try:
                return self._run(statement, values)
            except self._psycopg.OperationalError:
                if not self._connection.closed:
                    raise
            self._connect()
            return self._run(statement, values)

    def write(self, statements: Iterable[Statement], kind: Kind) -> list[int]:
        """Write as Database does; every commit is durable, because that costs no extra round trip."""
        # Made first: they may be read from another ledger.
        statements = list(statements)
        with self._translated():
            if self._connection.closed:
                self._connect()
            try:
                return self._transact(statements, kind)
            except self._errors:
                self._roll_back()
                raise

    def _transact(self, statements: list[Statement], kind: Kind) -> list[int]:
        connection = self._connection
        can_pipeline = not self._pooled and self._psycopg.Pipeline.is_supported()
        pipeline = connection.pipeline() if can_pipeline else nullcontext()
        with self._bounded(len(statements)), pipeline:
            connection.execute(_BEGIN)
            for setting in _SET_IN_TRANSACTION if self._pooled else ():
                connection.execute(setting)
            cursors = [self._send(*statement) for statement in statements]
            if kind is not Kind.EDIT:
                connection.execute("COMMIT")
        counts = [cursor.rowcount for cursor in cursors]
        if kind is Kind.EDIT:
            with self._bounded():
                connection.execute("ROLLBACK" if 0 in counts else "COMMIT")
        return counts

    def _roll_back(self) -> None:
        """End a failed transaction but keep the session and its locks, if it still answers."""
        try:
            with self._bounded():
                self._connection.rollback()
        except self._errors:
            self._connection.close()

    def _connect(self) -> None:
        """Connect, detect a pooler, and take the locks of an earlier session again.

        Another process may have taken a lock meanwhile: then the revision of the entry decides.
        Raises LedgerError for an encoding, otherwise an error of psycopg.
        """
        settings = {**_DEFAULTS, **self._asked, "client_encoding": "utf8"}
        self._connection: psycopg.Connection[Row] = self._psycopg.connect(
            **settings, autocommit=True, prepare_threshold=None
        )
        ((pid, encoding),) = self._run(
            "SELECT pg_backend_pid(), current_setting('server_encoding')"
        )
        self._require_encoding(encoding)
        self._pooled = pid != self._connection.info.backend_pid
        if self._pooled:
            return
        for name, value in _SESSION.items():
            self._run(_SET, (value, name))
        for number in list(self._locked):
            ((is_taken,),) = self._run(_TRY_LOCK, (number,))
            if not is_taken:
                self._locked.discard(number)

    def _require_encoding(self, encoding: str) -> None:
        if encoding not in _ENCODINGS:
            self._connection.close()
            raise LedgerError(
                f"ledger: {self.where}: the database has ENCODING '{encoding}', which cannot store"
                " every name. Create another one with ENCODING 'UTF8' TEMPLATE template0"
            )

    def _run(self, statement: str, values: Sequence[Value] = ()) -> list[Row]:
        with self._bounded():
            cursor = self._send(statement, values)
            return cursor.fetchall() if cursor.description else []

    def _send(self, statement: str, values: Sequence[Value]) -> psycopg.Cursor[Row]:
        return self._connection.execute(statement.replace("?", "%s"), values)

    @contextmanager
    def _bounded(self, statements: int = 1) -> Iterator[None]:
        """Shut the connection down if the server does not answer in time; libpq never does."""
        seconds = _STATEMENT_SECONDS + statements * _ROW_SECONDS
        timer = threading.Timer(seconds, self._shut_down, [self._connection])
        timer.daemon = True
        # No thread can be started: the server's own limits are left.
        with suppress(RuntimeError):
            timer.start()
        try:
            yield
        finally:
            timer.cancel()

    def _shut_down(self, connection: psycopg.Connection[Row]) -> None:
        """End a connection, so that a thread that waits for the server sees the end of the stream."""
        with suppress(OSError, self._psycopg.Error):
            connected = socket.socket(fileno=os.dup(connection.fileno()))
            connected.shutdown(socket.SHUT_RDWR)
            connected.close()

    @contextmanager
    def _translated(self) -> Iterator[None]:
        """Turn errors of psycopg into LedgerError."""
        try:
            yield
        except self._errors as error:
            raise self._failure(error) from None

    def _failure(self, error: Exception) -> LedgerError:
        problem = f"ledger: {self.where}: {first_line(error)}"
        # From the server or a pooler; libpq gives none.
        sqlstate = getattr(error, "sqlstate", None) or ""
        if sqlstate.startswith(_AWAY):
            return LedgerLost(problem)
        if not isinstance(error, self._psycopg.OperationalError):
            return LedgerError(problem)
        return Unanswered(problem) if sqlstate else LedgerLost(problem)


def psycopg_library() -> ModuleType:
    """Return the library; raise MissingLibrary."""
    try:
        import psycopg  # noqa: PLC0415 (others should not pay for the import)
    except ImportError:
        raise MissingLibrary(
            "ledger: the Python library psycopg (3) is needed on the controller for a"
            " postgresql:// ledger: pip install 'psycopg[binary]'"
        ) from None
    # Its warnings, from whichever thread, would wait for stderr, whose lock Ansible's main thread
    # may hold for ever.
    logging.getLogger("psycopg").setLevel(logging.CRITICAL + 1)
    return psycopg


def parsed_url(url: str) -> Parameters:
    """Return the URL as libpq parses it; raise LedgerError, which quotes no password."""
    psycopg = psycopg_library()
    try:
        parsed = psycopg.conninfo.conninfo_to_dict(url)
    except psycopg.Error:
        raise LedgerError("ledger", _NOT_A_URL) from None
    asked = {name: str(value) for name, value in parsed.items() if value is not None}
    if any(wrong.search(asked.get(part, "")) for part, wrong in _WRONG.items()):
        raise LedgerError("ledger", _NOT_A_URL)
    return asked


def described(asked: Parameters) -> str:
    """Return host, port, database and schema of a ledger, without user and password."""
    port = f":{asked['port']}" if "port" in asked else ""
    database = f"postgresql://{asked.get('host', '')}{port}/{asked.get('dbname', '')}"
    schema = _SCHEMA.search(asked.get("options") or "")
    return f"{database}, schema {schema[1]}" if schema else database


def has_secret(asked: Parameters) -> bool:
    """Return whether a URL contains anything that must not be shown."""
    return any(value and is_credential_name(name) for name, value in asked.items())
