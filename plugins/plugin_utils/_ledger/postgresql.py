# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The ledger in PostgreSQL, for several controllers.

Nothing depends on a session, so that a pooler (PgBouncer) makes no difference: each transaction has
its own settings. psycopg is imported only where such a URL is used, and only its public names are
used. Tables have the name of their schema; functions are those of pg_catalog.
"""

from __future__ import annotations

import logging
import os
import re
import socket
import threading
from contextlib import contextmanager, suppress
from functools import lru_cache
from types import ModuleType
from typing import TYPE_CHECKING, Iterator, Sequence

from ...module_utils._errors import ServicesError
from ...module_utils._secrets import is_credential_name, printable
from . import sql
from .entries import LedgerAway, LedgerError, Write
from .sql import Row, Statement, Value

if TYPE_CHECKING:
    import psycopg

POSTGRESQL = ("postgresql://", "postgres://")
# What comes into host, port or database from an unescaped `/ @ # ?` in the password.
_WRONG = re.compile(r"[@#?%\s]")
_NOT_A_URL = (
    "it is not a valid postgresql:// URL. Percent-encode special characters of the password (/ is"
    " %2F, @ is %40, # is %23, ? is %3F, % is %25), and give only parameters of libpq after a ?"
)
_TABLE = re.compile(rf"\b({'|'.join(sql.TABLES)})\b")
# Hosts that are this machine: a loopback address, or the directory of a socket.
_HERE = re.compile(r"|localhost|127(\.\d+){3}|::1|[/@].*")
# Each transaction overrides the server's defaults: an intent is on disk before its request, no
# statement waits for long, and no task that was stopped keeps others waiting.
_SETTINGS = (
    "; SET LOCAL synchronous_commit = on; SET LOCAL lock_timeout = '8s';"
    " SET LOCAL statement_timeout = '10s'; SET LOCAL idle_in_transaction_session_timeout = '5s'"
)
_BEGIN = f"BEGIN ISOLATION LEVEL READ COMMITTED, READ WRITE{_SETTINGS}"
_BEGIN_READING = f"BEGIN ISOLATION LEVEL REPEATABLE READ, READ ONLY{_SETTINGS}"
# Before an edit: waits for all writers, and lets none begin until the edit is committed.
_LOCK = f"LOCK TABLE {sql.LEDGER}, {sql.ENTRY} IN SHARE ROW EXCLUSIVE MODE"
_HANGS = 15.0  # seconds after which a server that has not canceled a statement hangs
_ROW_SECONDS = 0.01  # added for each statement of a transaction
# SQLSTATEs, or how they begin: no connection, too many, shut down, no writing on a standby, a
# deadlock, a lock that an edit of thousands of entries holds, a task that was stopped.
_AWAY = ("08", "53", "57P", "0A000", "40P01", "55P03", "25P03")


class PostgresDatabase:
    """One connection to the database of a ledger, opened again when it is lost.

    `where`: the ledger in messages, and in the mark of the other end of a move, without a password;
    `shown`: the ledger in commands, '' if its URL has a password.
    """

    # The SQL of the clock, in seconds since 1970.
    now = "CAST(EXTRACT(EPOCH FROM pg_catalog.clock_timestamp()) AS BIGINT)"
    # Lets the next row of the history follow rows that were copied; '' if it does so anyway.
    continue_numbers = (
        f"SELECT pg_catalog.setval(pg_catalog.pg_get_serial_sequence('{sql.HISTORY}', 'number'),"
        f" pg_catalog.max(number)) FROM {sql.HISTORY}"
    )
    # Only a file has one.
    identity = None
    _has_tables = False
    _is_hanging = False
    tried_for = 10.0  # seconds for which a write is tried again while the database is away

    def __init__(self, url: str) -> None:
        """Connect to a postgresql:// URL; raise LedgerError, or ServicesError without psycopg."""
        self._psycopg = psycopg_library()
        self._errors = (self._psycopg.Error, UnicodeError)
        self._asked = parsed_url(url)
        self.where = described(self._asked)
        has_secret = any(value and is_credential_name(name) for name, value in self._asked.items())
        self.shown = "" if has_secret else url
        with self._translated():
            self._connect()
        self.where += f", schema {self._schema}"

    def has_tables(self) -> bool:
        """Return whether there is a ledger in the schema."""
        if not self._has_tables:
            (((found,),),) = self.read([(f"SELECT pg_catalog.to_regclass('{sql.LEDGER}')", ())])
            self._has_tables = bool(found)
        return self._has_tables

    def create(self, statements: list[Statement]) -> None:
        """Create the tables in one transaction; no effect if another process was first."""
        try:
            self.write(statements, Write.BEGIN)
        except LedgerError:
            if not self.has_tables():
                raise

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()

    def read(self, statements: list[Statement]) -> list[list[Row]]:
        """Return the rows of statements, which read one snapshot."""
        return [cursor.fetchall() for cursor in self._executed(_BEGIN_READING, statements)]

    def write(self, statements: list[Statement], kind: Write) -> list[int]:
        """Execute statements in one transaction; return how many rows each of them changed.

        Write.EDIT has no effect if one of them changes no row. Raises LedgerAway if the transaction
        may have been committed all the same.
        """
        cursors = self._executed(_BEGIN, statements, kind is Write.EDIT)
        return [cursor.rowcount for cursor in cursors]

    def _executed(
        self, begin: str, statements: list[Statement], is_edit: bool = False
    ) -> list[psycopg.Cursor[Row]]:
        """Execute statements in one transaction; connect again if the connection was lost.

        `is_edit`: after all other writers, and without effect if a statement changes no row.
        """
        with self._translated():
            if self._connection.closed:
                self._connect()
            with self._bounded(_HANGS + len(statements) * _ROW_SECONDS):
                try:
                    self._connection.execute(begin)
                    if is_edit:
                        self._execute(_LOCK, ())
                    cursors = [self._execute(*statement) for statement in statements]
                    is_void = is_edit and 0 in [cursor.rowcount for cursor in cursors]
                    self._connection.execute("ROLLBACK" if is_void else "COMMIT")
                except self._errors:
                    try:
                        self._connection.rollback()
                    except self._psycopg.Error:
                        self._connection.close()
                    raise
        return cursors

    def _execute(self, statement: str, values: Sequence[Value]) -> psycopg.Cursor[Row]:
        return self._connection.execute(_postgresql(statement, self._schema, self.now), values)

    def _connect(self) -> None:
        """Connect, and find the schema; raise LedgerError or an error of psycopg."""
        settings = {"connect_timeout": "10", **self._asked, "client_encoding": "utf8"}
        if not all(map(_HERE.fullmatch, self._asked.get("host", "").split(","))):
            settings.setdefault("sslmode", "require")
        self._connection: psycopg.Connection[Row] = self._psycopg.connect(
            **settings, autocommit=True, prepare_threshold=None
        )
        with self._bounded(_HANGS):
            ((schema, path),) = self._connection.execute(
                "SELECT pg_catalog.current_schema(), pg_catalog.current_setting('search_path')"
            ).fetchall()
        if not schema:
            self.close()
            raise LedgerError(
                f"{self.where}: there is no schema {path}, or no permission to use it"
            )
        self._schema = str(schema)

    @contextmanager
    def _bounded(self, seconds: float) -> Iterator[None]:
        """Shut the connection down if the server does not answer in time; libpq never does."""
        self._is_hanging = False
        timer = threading.Timer(seconds, self._shut_down, [self._connection])
        timer.daemon = True
        with suppress(RuntimeError):  # the system may start no more threads
            timer.start()
        try:
            yield
        finally:
            timer.cancel()

    def _shut_down(self, connection: psycopg.Connection[Row]) -> None:
        """End a connection, so that a thread that waits for the server sees the end of the stream."""
        self._is_hanging = True
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
        if self._is_hanging:  # statement_timeout does not bound a COMMIT
            return LedgerAway(
                f"{self.where}: the server did not answer in time. It hangs, or its synchronous"
                " standby does not confirm what is written: bring the standby back, or change"
                " synchronous_standby_names"
            )
        lines = str(error).strip().splitlines() or [type(error).__name__]
        problem = f"{self.where}: {printable(lines[0])}"
        # From the server or a pooler; libpq gives none.
        sqlstate = getattr(error, "sqlstate", None) or ""
        is_away = not sqlstate and isinstance(error, self._psycopg.OperationalError)
        if is_away or sqlstate.startswith(_AWAY):
            return LedgerAway(problem)
        return LedgerError(problem)


@lru_cache
def _postgresql(statement: str, schema: str, now: str) -> str:
    number = "BIGINT GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY"
    quoted = '"' + schema.replace('"', '""') + '"'
    statement = _TABLE.sub(lambda table: f"{quoted}.{table[0]}", statement)
    return statement.replace(":now", now).replace(":number", number).replace("?", "%s")


def psycopg_library() -> ModuleType:
    """Return the library; raise ServicesError if it is missing."""
    try:
        import psycopg  # noqa: PLC0415 (others should not pay for the import)
    except ImportError:
        raise ServicesError(
            "ledger: the Python library psycopg (3) is needed on the controller for a"
            " postgresql:// ledger: pip install 'psycopg[binary]'"
        ) from None
    # Its warnings, from whichever thread, would wait for stderr, whose lock Ansible's main thread
    # may hold for ever.
    logging.getLogger("psycopg").setLevel(logging.CRITICAL + 1)
    return psycopg


def parsed_url(url: str) -> dict[str, str]:
    """Return the URL as libpq parses it; raise LedgerError, which quotes no password."""
    psycopg = psycopg_library()
    try:
        parsed = psycopg.conninfo.conninfo_to_dict(url)
    except psycopg.Error:
        raise LedgerError(_NOT_A_URL) from None
    asked = {name: str(value) for name, value in parsed.items() if value is not None}
    is_odd_port = re.search(r"[^\d,]", asked.get("port", ""))
    if is_odd_port or _WRONG.search(described(asked)):
        raise LedgerError(_NOT_A_URL)
    return asked


def described(asked: dict[str, str]) -> str:
    """Return host, port and database of a ledger, without user and password."""
    port = f":{asked['port']}" if "port" in asked else ""
    return f"postgresql://{asked.get('host', '')}{port}/{asked.get('dbname', '')}"
