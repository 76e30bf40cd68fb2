# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What the ledger holds and the statements that read and write it, the same on SQLite and on PostgreSQL.

Every statement commits by itself, so that no transaction is open while a request is on its way.
"""

from __future__ import annotations

import hashlib
import json
from datetime import datetime, timezone
from typing import ContextManager, Iterable, NamedTuple

from ...module_utils._errors import ServicesError

# The states of an entry; `_book` says what each of them means for a task.
INTENT, DONE, LOST, UNCLEAR = STATES = ("intent", "done", "accepted", "unknown")

SCHEMA_VERSION = 1
_ENTRIES = (
    "CREATE TABLE IF NOT EXISTS infrastructure_services_entry (base_url TEXT NOT NULL, resource TEXT NOT NULL,"
    f" name TEXT NOT NULL, state TEXT NOT NULL CHECK (state IN {STATES}), sent TEXT NOT NULL, asset TEXT NOT NULL,"
    " changed_at TEXT NOT NULL, PRIMARY KEY (base_url, resource, name))"
)
_VERSIONS = "CREATE TABLE IF NOT EXISTS infrastructure_services_schema (version INTEGER PRIMARY KEY)"
_STAMP = "INSERT INTO infrastructure_services_schema VALUES (?) ON CONFLICT DO NOTHING"
_VERSION = "SELECT max(version) FROM infrastructure_services_schema"
_GET = (
    "SELECT state, sent, asset, changed_at FROM infrastructure_services_entry"
    " WHERE base_url = ? AND resource = ? AND name = ?"
)
_PUT = (
    "INSERT INTO infrastructure_services_entry (base_url, resource, name, state, sent, asset, changed_at)"
    " VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT (base_url, resource, name) DO UPDATE SET"
    " state = excluded.state, sent = excluded.sent, asset = excluded.asset, changed_at = excluded.changed_at"
)
_DELETE = "DELETE FROM infrastructure_services_entry WHERE base_url = ? AND resource = ? AND name = ?"
_LIST = (
    "SELECT base_url, name, asset FROM infrastructure_services_entry"
    " WHERE resource = ? AND state = ? ORDER BY name, base_url"
)


class LedgerError(ServicesError):
    """The ledger cannot be used."""


class Key(NamedTuple):
    """What an entry is about."""

    base_url: str  # canonical
    resource: str
    name: str

    def number(self) -> int:
        """Return the key as a number from 1 to 2**62, for locks."""
        return 1 + (int.from_bytes(hashlib.sha256(json.dumps(self).encode("utf-8")).digest()[:8], "big") >> 2)


class Entry(NamedTuple):
    """What is remembered: the state, the body that was sent, the envelope that came back (empty for none)."""

    state: str
    sent: dict
    asset: dict
    changed_at: str = ""  # UTC, ISO 8601; empty: when it is written


class Ledger:
    """The statements; what differs between the two databases is in the subclasses."""

    error: tuple[type[Exception], ...] = ()
    table_exists: str  # a statement that has a row when the table of entries is there

    def __init__(self, where: str) -> None:
        """`where`: how the ledger is called in messages, without a password."""
        self.where = where
        self.exists = False  # whether there are tables; only a ledger that is opened for reading may have none

    @property
    def closed(self) -> bool:
        """Whether the connection is lost, so that the ledger must be opened anew."""
        return False

    def get(self, key: Key) -> Entry | None:
        """Return what is remembered of the key; raise LedgerError."""
        for state, sent, asset, changed_at in self._execute(_GET, key) if self.exists else []:
            return Entry(state, self._read(sent), self._read(asset), changed_at)

    def put(self, key: Key, entry: Entry, durable: bool = True) -> None:
        """Write an entry; `durable`: it outlives a power failure once this returns (else: a killed process)."""
        changed_at = entry.changed_at or datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
        self.set_durability(durable)
        self._execute(_PUT, (*key, entry.state, json.dumps(entry.sent), json.dumps(entry.asset), changed_at))

    def delete(self, key: Key, durable: bool = True) -> None:
        """Forget the key, if it is known at all."""
        self.set_durability(durable)
        self._execute(_DELETE, key)

    def assets(self, resource: str) -> list[tuple[str, str, dict]]:
        """Return base_url, name and envelope of every entry that is done, by name."""
        rows = self._execute(_LIST, (resource, DONE)) if self.exists else []
        return [(base_url, name, self._read(asset)) for base_url, name, asset in rows]

    def hold(self, key: Key) -> ContextManager[None]:
        """Return a context within which nobody else works on this key; who comes later waits for its end."""
        return self.alone(key.number())

    def alone(self, number: int) -> ContextManager[None]:
        """Return a context that only one process at a time is in, for each number; it dies with the process."""
        raise NotImplementedError

    def close(self) -> None:
        """End the connection and give up all locks."""
        raise NotImplementedError

    def run(self, statement: str, values: tuple) -> list[tuple]:
        """Execute a statement with its values in place of `?`; raise an `error`."""
        raise NotImplementedError

    def set_durability(self, durable: bool) -> None:
        """Choose, where a database has the choice, whether the next statement is safe from a power failure."""

    def prepare(self, read_only: bool) -> None:
        """Create the tables where there are none, except for reading; refuse those of a newer collection."""
        self.exists = bool(self._execute(self.table_exists))
        if not self.exists and not read_only:
            for statement, *values in (["BEGIN"], [_ENTRIES], [_VERSIONS], [_STAMP, SCHEMA_VERSION], ["COMMIT"]):
                self._execute(statement, values)
            self.exists = True
        version = self._execute(_VERSION)[0][0] if self.exists else SCHEMA_VERSION
        if version != SCHEMA_VERSION:
            what = "a newer version of this collection" if (version or 0) > SCHEMA_VERSION else "something else"
            raise LedgerError(f"ledger: {self.where} was written by {what} (schema {version}, not {SCHEMA_VERSION})")

    def _execute(self, statement: str, values: Iterable = ()) -> list[tuple]:
        try:
            return self.run(statement, tuple(values))
        except self.error as error:
            raise LedgerError(f"ledger: {self.where}: {first_line(error)}") from None

    def _read(self, text: str) -> dict:
        try:
            return json.loads(text)
        except ValueError:
            raise LedgerError(f"ledger: {self.where}: an entry is not JSON, so something else wrote it") from None


def first_line(error: Exception) -> str:
    """Return what a database says, without its hints on further lines."""
    return (str(error).strip().splitlines() or [type(error).__name__])[0]
