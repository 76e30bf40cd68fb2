# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Opens, reads and writes a ledger, in the same way on SQLite and on PostgreSQL.

A single statement decides which task may send: an insert, or an update of the revision that was
read, reports whether it changed a row. Each write also names the service and a ledger in use. No
transaction is open while a request is in flight.
"""

from __future__ import annotations

import json
import os
import threading
import time
from collections import defaultdict
from functools import partial
from itertools import chain
from typing import Callable, Iterable, Iterator, NamedTuple, Sequence, TypeVar, Union

from ...module_utils._secrets import printable
from . import sql
from .entries import (
    STATES,
    Change,
    Entry,
    HistoryRow,
    Key,
    LedgerAway,
    LedgerError,
    Serial,
    Write,
)
from .postgresql import PostgresDatabase
from .sql import Row, Statement, Value
from .sqlite import SqliteDatabase

# The same methods, which raise LedgerError; `PostgresDatabase` documents them.
Database = Union[SqliteDatabase, PostgresDatabase]
_Answer = TypeVar("_Answer")
# Names in one statement; SQLite took 999 values at most before 3.32.
_AT_ONCE = 500
_PAUSE = 0.2  # seconds between two attempts while the database is away


class Header(NamedTuple):
    """The one row about a ledger."""

    ledger_id: str = ""  # random; moves and copies keep it
    base_url: str = ""  # canonical; '' until the first write
    state: str = ""  # '' if there is no ledger yet
    place: str = ""  # the other end of a move


class Snapshot(NamedTuple):
    """What a ledger had at one moment."""

    entries: dict[Key, Entry]
    last_rows: dict[Key, int]  # the number of the last row of each asset in the history
    serial: Serial


class Ledger:
    """The ledger of a task or a list. Every method raises LedgerError."""

    def __init__(
        self,
        database: Database,
        base_url: str = "",
        read_only: bool = False,
        is_moving: bool = False,
    ) -> None:
        """Read the header; create a ledger that does not exist, unless `read_only`.

        `base_url`: the canonical URL of the service that the task uses, '' for any; `is_moving`:
        accept a ledger in any state, and create none.
        """
        self.database = database
        self.where = database.where
        self.shown = database.shown
        self.sleep: Callable[[float], None] = time.sleep  # while the database is away
        self.header = Header()  # of the last snapshot
        self._serial = Serial()  # of the last one that read it
        # Whether a row that this process has read is gone: a failover, or a restored backup.
        self.went_back = False
        self._base_url = base_url
        self._is_moving = is_moving
        self._alone = threading.RLock()  # one connection, used by the threads of a list
        try:
            self.is_new = not database.has_tables()
            if self.is_new and not (read_only or is_moving):
                self.create(Header(os.urandom(16).hex(), base_url, sql.IN_USE))
            self.refresh()
        except LedgerError:
            self.close()
            raise

    def create(self, header: Header) -> None:
        """Create the tables with this header; no effect if another process was first."""
        tables: list[Statement] = [(table, ()) for table in sql.CREATE]
        self.database.create([*tables, (sql.INSERT_LEDGER, (sql.SCHEMA, *header))])

    def refresh(self) -> None:
        """Read the header again; raise LedgerError if the ledger can no longer be used."""
        self._snapshot([])

    def require_usable(self) -> None:
        """Raise LedgerError for a ledger that is not in use, or that belongs to another service."""
        header = self.header
        if header.state == sql.MOVED:
            raise LedgerError(
                f"{self.where} was moved to {header.place}, which is the ledger now. Use that one"
            )
        if header.state == sql.FILLING:
            raise LedgerError(
                f"{self.where} is reserved for the ledger {header.place}. Run the same"
                " infrastructure.services.move_ledger again, which completes the move"
            )
        if self._base_url and header.base_url and self._base_url != header.base_url:
            raise LedgerError(
                f"{self.where} belongs to the service {header.base_url}, and base_url is"
                f" {self._base_url}. Correct base_url, or use another ledger; if the service has a"
                " new URL, run infrastructure.services.ledger_move with to_base_url"
            )

    def find(self, keys: Iterable[Key], with_rows: bool = False) -> Snapshot:
        """Return the entries of several assets as of one moment.

        `with_rows`: also the last rows of the history, which a plan names.
        """
        chunks = _chunks(keys)
        statements = [(sql.ENTRIES.format(among), values) for among, values in chunks]
        if with_rows:
            statements += [(sql.LAST_ROWS.format(among), values) for among, values in chunks]
        serials, *found = self._snapshot([(sql.SERIAL, self._serial), *statements])
        number, revision, is_there = serials[0] if serials else (*Serial(), False)
        self.went_back |= self._serial != Serial() and not is_there
        self._serial = Serial(number, revision)
        entries = {Key(*row[:2]): self._entry(row) for row in chain(*found[: len(chunks)])}
        last_rows = {Key(*key): number for *key, number in chain(*found[len(chunks) :])}
        return Snapshot(entries, last_rows, self._serial)

    def entries(self, conditions: str, values: Sequence[Value]) -> Iterator[tuple[Key, Entry]]:
        """Yield the entries that meet conditions (SQL), sorted by key; some are read at a time."""
        key = Key("", "")
        statement = sql.SOME_ENTRIES.format(conditions or "1 = 1")
        while True:
            (rows,) = self._snapshot([(statement, (*values, *key))])
            for row in rows:
                key = Key(*row[:2])
                yield key, self._entry(row)
            if not rows:
                return

    def history(self, keys: Iterable[Key]) -> dict[Key, list[HistoryRow]]:
        """Return the history of several assets, oldest first."""
        found: dict[Key, list[HistoryRow]] = {key: [] for key in keys}
        statements = [(sql.HISTORY_ROWS.format(among), values) for among, values in _chunks(found)]
        for row in chain(*self._snapshot(statements)):
            found[Key(*row[:2])].append(HistoryRow(*row[2:]))
        return found

    def counts(self, conditions: str, values: Sequence[Value]) -> list[Row]:
        """Return each state of the entries that meet conditions (SQL), their number and the oldest.

        The oldest by began_at. Those whose lease runs do not count.
        """
        return self._snapshot([(sql.COUNTS.format(conditions or "1 = 1"), values)])[0]

    def serial(self) -> Serial:
        """Return the last row of the history."""
        return self.find([]).serial

    def has_row(self, serial: Serial) -> bool:
        """Return whether the history has a row that it once had."""
        if serial in (Serial(), self._serial):
            return True
        return bool(self._snapshot([(sql.HAS_ROW, serial)])[0])

    def write(self, changes: list[Change]) -> list[bool]:
        """Write changes in one transaction; return which found their entry as it was read.

        On an error none is written; with an edit among them, all take effect or none. Raises
        LedgerAway if it is not known whether they were written. `changes`: stamped, each of another
        key.
        """
        # In the order of their keys, so that two lists do not wait for each other.
        ordered = sorted(changes, key=lambda change: change.key)
        statements = [
            *(sql.written(change, self.header.base_url) for change in ordered),
            *(sql.recorded(change, change.row) for change in ordered if change.row),
        ]
        kind = max(change.kind for change in changes)
        with self._alone:
            counts = iter(self._tried(partial(self.database.write, statements, kind)))
            effects = {change.key: next(counts) > 0 for change in ordered}
            for change in ordered:
                # An attempt whose answer was lost had an effect if it has left its revision; a
                # deletion or an edit, of which all or none take effect, if it has left its row.
                is_written = bool(change.row) and next(counts) == 0
                if change.after and change.kind is not Write.EDIT and not effects[change.key]:
                    written = (sql.IS_WRITTEN, (*change.key, change.revision))
                    is_written = bool(self._tried(partial(self.database.read, [written]))[0])
                effects[change.key] |= is_written
        return [effects[change.key] for change in changes]

    def _tried(self, act: Callable[[], _Answer]) -> _Answer:
        """Return the answer of the database, which is asked again while it is away."""
        until = time.monotonic() + self.database.tried_for
        while True:
            try:
                return act()
            except LedgerAway:
                if time.monotonic() > until:
                    raise
            self.sleep(_PAUSE)

    def _snapshot(self, statements: list[Statement]) -> list[list[Row]]:
        """Return the rows of statements as of one moment, with the header; none without tables."""
        with self._alone:
            if not self.database.has_tables():
                return [[] for _statement in statements]
            read = partial(self.database.read, [(sql.READ_LEDGER, ()), *statements])
            headers, *found = self._tried(read)
        schema = headers[0][1] if headers else None
        if schema != sql.SCHEMA:
            raise LedgerError(
                f"{self.where} was written by another version of this collection, or by something"
                f" else (schema {schema}, not {sql.SCHEMA}). Use the version that wrote it, or"
                " another ledger"
            )
        self.header = Header(*headers[0][2:])
        if not self._is_moving:
            self.require_usable()
        return found

    def _entry(self, row: Row) -> Entry:
        """Return the entry in a row of sql.ENTRIES."""
        _resource, name, state, sent, asset, *others = row
        try:
            values = json.loads(sent), json.loads(asset)
        except (ValueError, RecursionError):
            state = "unreadable"
        if state not in STATES:
            raise LedgerError(
                f"{self.where}: the entry of {printable(name)} is {printable(state)}, so something"
                " else wrote it. Restore the ledger from a backup, or correct the entry"
            )
        return Entry(state, *values, *others)

    def close(self) -> None:
        """Close the connection."""
        self.database.close()


def _chunks(keys: Iterable[Key]) -> list[Statement]:
    """Return conditions on keys, some at a time, and their values."""
    names: dict[str, list[str]] = defaultdict(list)
    for resource, name in keys:
        names[resource].append(name)
    return [
        (f"resource = ? AND name IN ({', '.join('?' * len(some))})", (resource, *some))
        for resource, among in names.items()
        for some in (among[start : start + _AT_ONCE] for start in range(0, len(among), _AT_ONCE))
    ]
