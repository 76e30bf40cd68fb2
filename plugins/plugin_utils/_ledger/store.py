# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Reads and writes the entries and the history of the ledger, in the same way on SQLite and on
PostgreSQL.

A single statement decides who may send: an insert, or an update of the revision that was read,
reports whether it changed a row. Locks only make others wait. No transaction is open while a
request is in flight.
"""

from __future__ import annotations

import hashlib
import json
import os
import time
from contextlib import contextmanager
from itertools import chain
from typing import Callable, Iterable, Iterator

from ...module_utils._http import strict_json
from ...module_utils._secrets import printable
from . import tables as sql
from .entries import (
    INTENT,
    Change,
    Ended,
    Entry,
    Key,
    Kind,
    LedgerError,
    LedgerLost,
    Mark,
    Unanswered,
    Use,
    stamped,
)

_LOSS_GRACE = 10.0  # seconds for which a lost ledger is tried again, to write how an attempt ended
_PAUSE = 0.2  # seconds between two such attempts
SILENT, _LOCK_PAUSE = (
    1.0,
    0.05,
)  # seconds: of a wait for another task that nobody is told of; between two looks
_TOO_DEEP = f"is nested deeper than {strict_json.MAX_DEPTH} levels"
_AT_ONCE = 500  # names in one statement; SQLite took 999 values at most before 3.32
_MOVE_AGAIN = (
    " If that was cut off, run the same move again, which completes it:"
    " ansible-playbook infrastructure.services.move_ledger"
)
_NOT_IN_USE = {
    sql.MOVING: f"is being moved to {{}}.{_MOVE_AGAIN}",
    sql.MOVED: "was moved to {}, which is the ledger now. Use that one",
    sql.FILLING: f"is being filled from {{}}.{_MOVE_AGAIN}",
}


class Ledger:
    """The operations on a ledger. What differs between SQLite and PostgreSQL is in its `database`."""

    def __init__(self, database, read_only: bool = False, moving: bool = False) -> None:
        """Check the tables, and unless `read_only` create them if there are none; raise
        LedgerError.

        `database`: an SqliteDatabase or a PostgresDatabase, which have the same methods and raise
        LedgerError. `moving`: accept a ledger in any state, and create no tables.
        """
        self.database = database
        self.where = database.where  # the ledger's name in messages, without a password
        self.file = database.file  # the real path of the SQLite file, empty on PostgreSQL
        # Says that assets are waited for, given their keys and the entry of the first, if it has
        # one.
        self.say_waiting: Callable[[list[Key], Entry | None], None] = lambda keys, entry: None
        self.ledger_id = ""  # empty if there are no tables
        self.used_elsewhere = (
            ""  # a warning: the file was last used under another path, as a copy or elsewhere
        )
        self.version = (
            0  # of its tables; 0: there are none, and it was opened for reading or to be filled
        )
        try:
            mark, last_use = self._state()
            self.is_new = not self.version
            if self.version and not moving:
                self._require_in_use(mark)
            if self.is_new and not (read_only or moving):
                self.create(sql.INSERT_FIRST_MARK, Mark(os.urandom(16).hex(), sql.IN_USE))
                mark = self.mark()  # perhaps of another process, which was first
            elif self.version or not read_only:
                database.prepare([])
            if self.version and not (self.is_new or moving):
                self._compare_use(last_use, read_only)
                if not read_only:
                    database.require_privileges()
            self.ledger_id = mark.ledger_id
        except LedgerError:
            self.close()
            raise

    def _compare_use(self, last: Use, read_only: bool) -> None:
        """Compare where the file is used with where it was used last, and record that unless
        `read_only`.
        """
        now = self.database.use()
        if last == now:
            return
        self.used_elsewhere = (
            f"{self.where} was last used as {last.path} on {last.host}; if that one is still used, machines will be"
            " created twice"
        )
        if not read_only:
            self.database.write([(sql.SET_USE, now)], Kind.END)

    def create(
        self, insert: str, mark: Mark, before: Iterable[tuple] = (), after: Iterable[tuple] = ()
    ) -> bool:
        """Create the tables with this mark in one transaction; return whether it had an effect;
        raise LedgerError.

        `insert`: the statement that inserts the mark. `before`, `after`: further statements of the
        transaction, with their values. It has no effect if one of the statements changes no row.
        """
        tables = [(statement.format(number=self.database.number), ()) for statement in sql.CREATE]
        row = (insert, (sql.SCHEMA_VERSION, *mark, *self.database.use()))
        is_done = self.database.prepare(chain(before, tables, [row], after))
        self.version = sql.SCHEMA_VERSION
        return is_done

    def get(self, key: Key) -> Entry | None:
        """Return the entry of the key, None if there is none; raise LedgerError."""
        return self.get_many(key.base_url, key.resource, [key.name]).get(key.name)

    def get_many(self, base_url: str, resource: str, names: Iterable[str]) -> dict[str, Entry]:
        """Return the entries of several assets, by name; raise LedgerError."""
        rows = self._read_some(sql.GET, base_url, resource, names)
        return {name: self.entry_of(name, row) for name, *row in rows}

    def begin(self, change: Change) -> tuple[bool, Entry | None]:
        """Lock the key and write the intent; return whether it was written, and the entry as it is
        now.

        Others block until the key is released. Raise LedgerError.
        """
        self.lock(change.key, wait=True)
        (written,) = self.write([change], Kind.BEGIN)
        return (True, written.after) if written else (False, self.get(change.key))

    def finish(self, change: Change) -> bool:
        """Write how an attempt ended; return False if another task changed the entry; raise
        LedgerError.
        """
        return bool(self.write([change], Kind.END)[0])

    def write(self, changes: list[Change], kind: Kind) -> list[Change | None]:
        """Write changes in one transaction; raise LedgerError, with none of them written.

        Return each change as it was written, None where the entry was not as it was read. Its
        history is written all the same, except for Kind.EDIT, which then writes nothing.
        """
        changes = [stamped(change) for change in changes]
        statements = [_entry_written(change) for change in changes]
        statements += [_history_row(change) for change in changes if change.ended]
        with self._told_of_its_move():
            try:
                ours = [count == 1 for count in self.database.write(statements, kind)]
            except Unanswered:
                if self.file:  # SQLite has rolled it back
                    raise
                ours = self._write_again(changes, statements, kind)
        if kind is not Kind.END and not all(ours[: len(changes)]):
            self.require_in_use()
        return [change if is_ours else None for change, is_ours in zip(changes, ours)]

    def _write_again(
        self, changes: list[Change], statements: list[tuple], kind: Kind
    ) -> list[bool]:
        """Write what may have been committed already; how an attempt ended is tried for a while, an
        intent once.
        """
        until = time.monotonic() + (_LOSS_GRACE if kind is Kind.END else 0)
        while True:
            try:
                is_committed = any(self._is_committed(change) for change in changes)
                counts = (
                    [0] * len(changes) if is_committed else self.database.write(statements, kind)
                )
                # Asked only now: the server may have been committing the first write when the
                # second one began.
                return [
                    count == 1 or self._is_in_force(change)
                    for count, change in zip(counts, changes)
                ]
            except LedgerLost:
                if time.monotonic() > until:
                    raise
                time.sleep(_PAUSE)

    def other_services(
        self, base_url: str, resource: str, names: Iterable[str]
    ) -> dict[str, list[str]]:
        """Return the other base_urls at which names are recorded, if nothing at all is recorded at
        this one.
        """
        if self._read(sql.SEEN, (base_url,)):
            return {}
        found: dict[str, list[str]] = {}
        for name, other in self._read_some(sql.ELSEWHERE, base_url, resource, names):
            found.setdefault(name, []).append(other)
        return found

    def entries(
        self, where: dict[str, tuple], named: Callable[[str], bool]
    ) -> list[tuple[Key, Entry]]:
        """Return the entries that meet all conditions (SQL: its values) and whose name `named`
        accepts.
        """
        conditions = " AND ".join(where) or "1 = 1"
        rows = self._read(
            sql.ENTRIES.format(conditions), [value for values in where.values() for value in values]
        )
        return [
            (Key(*row[:3]), self.entry_of(row[2], row[3:])) for row in sorted(rows) if named(row[2])
        ]

    def count_states(self) -> dict[str, int]:
        """Return how many entries are in each state; raise LedgerError."""
        return dict(self._read(sql.COUNT_STATES, ()))

    def count_in_doubt(self) -> int:
        """Return how many entries are in doubt; raise LedgerError."""
        rows = self._read(sql.COUNT_IN_DOUBT, ())
        return rows[0][0] if rows else 0

    def count_history(self) -> int:
        """Return how many rows the history has; a move keeps their order; raise LedgerError."""
        rows = self._read(sql.COUNT.format("history"), ())
        return rows[0][0] if rows else 0

    def created_since(
        self, base_url: str, resource: str, names: Iterable[str], count: int
    ) -> set[str]:
        """Return which assets were created or adopted after the first `count` rows of the history."""
        rows = self._read(sql.NUMBER_OF_ROW, (count - 1,)) if count else []
        number = rows[0][0] if rows else -1
        found = self._read_some(sql.CREATED_SINCE, base_url, resource, names, number)
        return {name for (name,) in found}

    def history(self, base_url: str, resource: str, names: Iterable[str]) -> dict[str, list[Ended]]:
        """Return how the attempts of several assets ended, oldest first, by name; raise
        LedgerError.
        """
        found: dict[str, list[Ended]] = {}
        for name, *row in self._read_some(sql.HISTORY, base_url, resource, names):
            found.setdefault(name, []).append(Ended(*row))
        return found

    def lock(self, key: Key, wait: bool) -> bool:
        """Lock the key, if need be after a wait; without `wait` return False instead; raise
        LedgerError.
        """
        number, until = lock_number(key), time.monotonic() + (SILENT if wait else 0)
        while not self.database.lock(number, None):
            if time.monotonic() >= until:
                if wait:
                    self.say_waiting([key], self.get(key))
                    self.database.lock(number, self.database.interruptible)
                return wait
            with self.database.interruptible():
                time.sleep(_LOCK_PAUSE)
        return True

    def release(self, key: Key) -> None:
        """Release the lock of the key, if it is held."""
        self.database.unlock(lock_number(key))

    def close(self) -> None:
        """Close the connection and release all locks."""
        self.database.close()

    def _state(self) -> tuple[Mark, Use]:
        """Return the mark and where the ledger was last used; raise LedgerError for another schema
        than ours.
        """
        tables = self.database.tables()
        if not tables:
            return Mark(), Use()
        rows = (
            self.database.execute(sql.SCHEMA) if "infrastructure_services_schema" in tables else []
        )
        found = rows[0][0] if rows else None
        if found != sql.SCHEMA_VERSION:
            raise LedgerError(
                f"ledger: {self.where} was written by another version of this collection, or by something else"
                f" (schema {found}, not {sql.SCHEMA_VERSION}). Use the version that wrote it, or another ledger"
            )
        self.version = found
        _version, *values = rows[0]
        return Mark(*values[:4]), Use(*values[4:])

    def _is_committed(self, change: Change) -> bool:
        """Whether the transaction of a change was committed, even if it found that the entry was
        another one.
        """
        written = (*change.key, change.revision)
        return (
            bool(self._read(sql.IS_RECORDED, written))
            if change.ended
            else self._is_in_force(change)
        )

    def _is_in_force(self, change: Change) -> bool:
        """Whether the entry is as the change leaves it."""
        found = self.get(change.key)
        return found.revision == change.revision if found else change.after is None

    def _read_some(
        self, statement: str, base_url: str, resource: str, names: Iterable[str], *values: int
    ) -> Iterator[tuple]:
        """Yield the rows of a statement about some names; `values`: those that follow the names."""
        names = list(names)
        for start in range(0, len(names), _AT_ONCE):
            some = names[start : start + _AT_ONCE]
            yield from self._read(
                statement.format(", ".join("?" * len(some))), (base_url, resource, *some, *values)
            )

    def _read(self, statement: str, values: Iterable) -> list[tuple]:
        """Return the rows of a statement; none when there are no tables."""
        if not self.version:
            return []
        with self._told_of_its_move():
            return self.database.execute(statement, tuple(values))

    def mark(self) -> Mark:
        """Return the state of the ledger and its last move; raise LedgerError."""
        return self._state()[0]

    def require_in_use(self) -> None:
        """Raise LedgerLost if the ledger was moved, or is being moved or filled."""
        self._require_in_use(self.mark())

    def _require_in_use(self, mark: Mark) -> None:
        if mark.state in _NOT_IN_USE:
            raise LedgerLost(f"ledger: {self.where} {_NOT_IN_USE[mark.state].format(mark.place)}")

    @contextmanager
    def _told_of_its_move(self) -> Iterator[None]:
        """Say why a statement fails: the table of entries has another name once the ledger was
        moved.
        """
        try:
            yield
        except Unanswered:
            raise
        except LedgerError:
            self.require_in_use()
            raise

    def entry_of(self, name: str, row: Iterable) -> Entry:
        """Return the entry of an asset from the columns after its name; raise LedgerError."""
        state, sent, asset, *others = row
        try:
            return Entry(state, _parsed(sent), _parsed(asset), *others)
        except ValueError as error:
            problem = f"the entry of {printable(name)} {error}, so something else wrote it"
            raise LedgerError(f"ledger: {self.where}: {problem}") from None


def _parsed(text: str) -> object:
    """Return JSON as a value; raise ValueError for what is not JSON, or deeper than what is ever
    recorded.
    """
    try:
        value = json.loads(text)
    except RecursionError:
        raise ValueError(_TOO_DEEP) from None
    except ValueError:
        raise ValueError("is not JSON") from None
    if (
        text.count("[") + text.count("{") > strict_json.MAX_DEPTH
        and strict_json.depth(value) > strict_json.MAX_DEPTH
    ):
        raise ValueError(_TOO_DEEP)
    return value


def lock_number(key: Key) -> int:
    """Return the key as a number from 1 to 2**62."""
    return 1 + (
        int.from_bytes(hashlib.sha256(json.dumps(key).encode("utf-8")).digest()[:8], "big") >> 2
    )


def _entry_written(change: Change) -> tuple[str, tuple]:
    """Return the statement that writes an entry if it is still as it was read, and its values."""
    key, before, after = change.key, change.before, change.after
    if after is None:
        return sql.DELETE, (*key, before.revision)
    row = after._replace(sent=json.dumps(after.sent), asset=json.dumps(after.asset))
    update = sql.BEGIN if after.state == INTENT else sql.UPDATE
    return (update, (*row, *key, before.revision)) if before else (sql.INSERT, (*key, *row))


def _history_row(change: Change) -> tuple[str, tuple]:
    message = change.ended.message.replace("\0", " ")  # which PostgreSQL cannot store
    return sql.RECORD, (*change.key, *change.ended._replace(message=message), change.revision)
