# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Where the ledger is kept: SQLite in one file, or PostgreSQL for several controllers; the same statements on both.

Every statement commits by itself, so that no transaction is open while a request is on its way. Who has a request
on its way holds a lock that dies with its process: a byte of a file beside the SQLite file, or an advisory lock of
the PostgreSQL session.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import sqlite3
from contextlib import contextmanager, suppress
from datetime import datetime, timezone
from typing import Iterator, NamedTuple
from urllib.parse import quote, urlsplit

try:
    import psycopg
except ImportError:  # said when a PostgreSQL ledger is opened
    psycopg = None

from ..module_utils._errors import MissingLibrary, ServicesError

SCHEMA_VERSION = 1
_SCHEMA = (
    "CREATE TABLE IF NOT EXISTS infrastructure_services_schema (version INTEGER PRIMARY KEY)",
    "CREATE TABLE IF NOT EXISTS infrastructure_services_entry (base_url TEXT NOT NULL, resource TEXT NOT NULL, name TEXT NOT NULL,"
    " state TEXT NOT NULL, sent TEXT NOT NULL, asset TEXT NOT NULL, changed_at TEXT NOT NULL, PRIMARY KEY (base_url, resource, name))",
    f"INSERT INTO infrastructure_services_schema VALUES ({SCHEMA_VERSION}) ON CONFLICT DO NOTHING",
)
_GET = "SELECT state, sent, asset, changed_at FROM infrastructure_services_entry WHERE base_url = ? AND resource = ? AND name = ?"
_PUT = (
    "INSERT INTO infrastructure_services_entry (base_url, resource, name, state, sent, asset, changed_at) VALUES (?, ?, ?, ?, ?, ?, ?)"
    " ON CONFLICT (base_url, resource, name) DO UPDATE SET"
    " state = excluded.state, sent = excluded.sent, asset = excluded.asset, changed_at = excluded.changed_at"
)
_DELETE = "DELETE FROM infrastructure_services_entry WHERE base_url = ? AND resource = ? AND name = ?"
_LIST = "SELECT base_url, name, asset FROM infrastructure_services_entry WHERE resource = ? AND state = 'done' ORDER BY name, base_url"
_BUSY_TIMEOUT = 60.0  # seconds to wait for another writer of the same SQLite file, each of which takes milliseconds


class LedgerError(ServicesError):
    """The ledger cannot be used."""


class Key(NamedTuple):
    """What an entry is about."""

    base_url: str
    resource: str
    name: str

    def number(self) -> int:
        """Return the key as a number from 0 to 2**62 - 1, for locks."""
        return int.from_bytes(hashlib.sha256(json.dumps(self).encode("utf-8")).digest()[:8], "big") >> 2


class Entry(NamedTuple):
    """What is remembered: the state (see `_book`), the body that was sent, the envelope that came back (empty for none)."""

    state: str
    sent: dict
    asset: dict
    changed_at: str = ""


class Ledger:
    """The statements; what differs between the two databases is in the subclasses."""

    error: tuple[type[Exception], ...] = ()
    table_exists: str  # a statement that has a row when the table of entries is there

    def __init__(self, where: str) -> None:
        """`where`: how the ledger is called in messages, without a password."""
        self.where = where
        self._exists = False

    def get(self, key: Key) -> Entry | None:
        rows = self._execute(_GET, key) if self._exists else []
        return Entry(rows[0][0], json.loads(rows[0][1]), json.loads(rows[0][2]), rows[0][3]) if rows else None

    def put(self, key: Key, entry: Entry, durable: bool = True) -> None:
        """Write an entry; `durable`: not before it outlives a power failure does this return (else: a killed process)."""
        now = datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
        self._set_durability(durable)
        self._execute(_PUT, (*key, entry.state, json.dumps(entry.sent), json.dumps(entry.asset), now))

    def delete(self, key: Key) -> None:
        self._execute(_DELETE, key)

    def assets(self, resource: str) -> list[tuple[str, str, dict]]:
        """Return base_url, name and envelope of every entry that is done."""
        rows = self._execute(_LIST, (resource,)) if self._exists else []
        return [(base_url, name, json.loads(asset)) for base_url, name, asset in rows]

    def hold(self, key: Key):
        """Return a context manager within which nobody else works on this key; waits for who does."""
        raise NotImplementedError

    def _run(self, statement: str, values: tuple) -> list[tuple]:
        raise NotImplementedError

    def _set_durability(self, durable: bool) -> None:
        """Where a database has a choice."""

    def _execute(self, statement: str, values: tuple = ()) -> list[tuple]:
        try:
            return self._run(statement, tuple(values))
        except self.error as error:
            raise LedgerError(f"ledger: {self.where}: {_first_line(error)}") from None

    def _prepare(self, read_only: bool) -> None:
        """Create the tables where there are none, except for reading; refuse those of a newer collection."""
        self._exists = bool(self._execute(self.table_exists))
        if not self._exists and not read_only:
            for statement in _SCHEMA:
                self._execute(statement)
            self._exists = True
        versions = self._execute("SELECT max(version) FROM infrastructure_services_schema") if self._exists else [(0,)]
        if (versions[0][0] or 0) > SCHEMA_VERSION:
            raise LedgerError(f"ledger: {self.where} was written by a newer version of this collection (schema {versions[0][0]})")


class SqliteLedger(Ledger):
    """One file, in WAL mode: a commit costs one sync at most, readers wait for nobody."""

    error = (sqlite3.Error,)
    table_exists = "SELECT 1 FROM sqlite_master WHERE name = 'infrastructure_services_entry'"

    def __init__(self, path: str, read_only: bool = False) -> None:
        super().__init__(path)
        try:
            if not read_only:
                os.close(os.open(path, os.O_CREAT | os.O_RDWR, 0o600))  # SQLite would make it readable for others
                self._locks = os.open(f"{path}.lock", os.O_CREAT | os.O_RDWR, 0o600)
            self._connection = sqlite3.connect(_uri(path, read_only), timeout=_BUSY_TIMEOUT, isolation_level=None, uri=True)
        except (OSError, sqlite3.Error) as error:
            raise LedgerError(f"ledger: {path} cannot be opened: {getattr(error, 'strerror', None) or error}") from None
        if not read_only:
            self._execute("PRAGMA journal_mode = WAL")
        self._prepare(read_only)

    @contextmanager
    def hold(self, key: Key) -> Iterator[None]:
        byte = (1, key.number())
        try:
            fcntl.lockf(self._locks, fcntl.LOCK_EX, *byte)
        except OSError as error:
            raise LedgerError(f"ledger: {self.where}.lock cannot be locked: {error.strerror}") from None
        try:
            yield
        finally:
            fcntl.lockf(self._locks, fcntl.LOCK_UN, *byte)

    def _set_durability(self, durable: bool) -> None:
        self._execute(f"PRAGMA synchronous = {'FULL' if durable else 'NORMAL'}")

    def _run(self, statement: str, values: tuple) -> list[tuple]:
        return self._connection.execute(statement, values).fetchall()


class PostgresLedger(Ledger):
    """A database that several controllers share."""

    table_exists = "SELECT 1 WHERE to_regclass('infrastructure_services_entry') IS NOT NULL"

    def __init__(self, url: str, read_only: bool = False) -> None:
        super().__init__(_without_password(url))
        if psycopg is None:
            raise MissingLibrary("ledger: the Python library psycopg (3) is needed on the controller for a postgresql:// ledger")
        self.error = (psycopg.Error,)
        try:
            self._connection = psycopg.connect(url, autocommit=True, connect_timeout=10)
        except psycopg.Error as error:
            raise LedgerError(f"ledger: {self.where} cannot be reached: {_first_line(error)}") from None
        with self._locked(SCHEMA_VERSION):
            self._prepare(read_only)

    def hold(self, key: Key):
        return self._locked(key.number())

    @contextmanager
    def _locked(self, number: int) -> Iterator[None]:
        self._execute("SELECT pg_advisory_lock(?)", (number,))
        try:
            yield
        finally:
            with suppress(LedgerError):  # with the session the lock is gone too
                self._execute("SELECT pg_advisory_unlock(?)", (number,))

    def _run(self, statement: str, values: tuple) -> list[tuple]:
        cursor = self._connection.execute(statement.replace("?", "%s"), values)
        return cursor.fetchall() if cursor.description else []


def open_ledger(location: str, read_only: bool = False) -> Ledger:
    """Return the ledger at a path or postgresql:// URL; raise LedgerError or MissingLibrary.

    Reading one that does not exist yet is reading an empty one.
    """
    if location.startswith(("postgresql://", "postgres://")):
        return PostgresLedger(location, read_only)
    if "://" in location:
        raise LedgerError("ledger: it must be a path or a postgresql:// URL")
    path = os.path.abspath(os.path.expanduser(location))
    return SqliteLedger(":memory:" if read_only and not os.path.exists(path) else path, read_only)


def password_of(location: str) -> str:
    """Return the password in a postgresql:// URL, empty when there is none."""
    try:
        return urlsplit(location).password or "" if "://" in location else ""
    except ValueError:
        return ""


def _without_password(url: str) -> str:
    parts = urlsplit(url)
    return f"postgresql://{parts.hostname or ''}{parts.path}"


def _uri(path: str, read_only: bool) -> str:
    """Return SQLite's URI (`:memory:` is an empty database); a file without a write-ahead log is read as it is, so that reading leaves nothing behind."""
    if path == ":memory:" or not read_only:
        return f"file:{quote(path)}" + ("" if path == ":memory:" else "?mode=rw")
    return f"file:{quote(path)}?mode=ro" + ("" if os.path.exists(f"{path}-wal") else "&immutable=1")


def _first_line(error: Exception) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0]
