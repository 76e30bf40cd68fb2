# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Opens, reads and writes a ledger, in the same way on SQLite and on PostgreSQL.

A single statement decides which task may send: an insert, or an update of the revision that was
read, reports whether it changed a row. Locks only make others wait. No transaction is open while a
request is in flight.
"""

from __future__ import annotations

import hashlib
import json
import os
import time
from contextlib import contextmanager
from itertools import chain
from typing import Callable, Iterable, Iterator, Mapping, Sequence

from ...module_utils._secrets import printable
from . import tables as sql
from .database import Database, Row, Statement, Value
from .entries import (
    DONE,
    INTENT,
    Change,
    Ended,
    Entry,
    Key,
    Kind,
    LedgerError,
    LedgerLost,
    Mark,
    NewUrl,
    Unanswered,
    Use,
    Waiting,
    recorded_json,
    stamped,
)

# Seconds of a wait for another task before a line on the screen says so.
SILENT = 1.0
_LOOK = 0.05  # seconds between two looks at a lock
# Seconds for which an outcome is tried again while the ledger is lost.
_LOSS_GRACE = 10.0
_PAUSE = 0.2  # seconds between two such attempts
# Names in one statement; SQLite took 999 values at most before 3.32.
_AT_ONCE = 500
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
    """The ledger of one task or list; one without tables is empty. Every method raises LedgerError."""

    def __init__(self, database: Database, read_only: bool = False, moving: bool = False) -> None:
        """Check the tables; create them if there are none, unless `read_only` or `moving`.

        `moving`: accept a ledger in any state.
        """
        self.database = database
        self.where = database.where
        self.shown = database.shown
        self.file = database.file
        self.version = 0  # of the tables, 0 if there are none
        # The file was last used elsewhere, or is older than it was here.
        self.place_warning = ""
        try:
            mark = self._open(read_only, moving)
        except LedgerError:
            self.close()
            raise
        self.ledger_id = mark.ledger_id  # '' if there are no tables

    def _open(self, read_only: bool, moving: bool) -> Mark:
        self.version, mark, last_use = self._state()
        self.is_new = not self.version
        if self.is_new and read_only:
            return mark
        if not moving:
            self._require_in_use(mark)
        self.database.check()
        if not self.is_new:
            self._compare_use(last_use, read_only or moving)
        if moving:
            return mark
        if self.is_new:
            mark = Mark(os.urandom(16).hex(), sql.IN_USE)
            is_first = self.create(sql.INSERT_FIRST_MARK, mark)
            return mark if is_first else self.mark()
        if not read_only:
            self.database.require_privileges()
        return mark

    def _compare_use(self, last: Use, read_only: bool) -> None:
        """Warn if the file was last used somewhere else, and record this use unless `read_only`."""
        now = self.database.use()
        if last != now:
            self.place_warning = (
                f"{self.where} was last used as {last.path} on {last.host}; if that one is still"
                " used, machines will be created twice"
            )
        elif self.database.is_older():
            self.place_warning = (
                f"{self.where} is older than when it was last used here, as a restored backup is;"
                " machines that were created since then will be created twice"
            )
        else:
            return
        if not read_only:
            self.database.write([(sql.SET_USE, now)], Kind.END)

    def get(self, key: Key) -> Entry | None:
        """Return the entry of the key, None if there is none."""
        return self.get_many(key.base_url, key.resource, [key.name]).get(key.name)

    def get_many(self, base_url: str, resource: str, names: Iterable[str]) -> dict[str, Entry]:
        """Return the entries of several assets, by name."""
        rows = self._read_some(sql.GET, base_url, resource, names)
        return {row[0]: self._entry(row[0], row[1:]) for row in rows}

    def entries(
        self, where: Mapping[str, Sequence[Value]], named: Callable[[str], object] = bool
    ) -> list[tuple[Key, Entry]]:
        """Return the entries that meet all conditions (SQL: values) and whose name is `named`."""
        conditions = " AND ".join(where) or "1 = 1"
        values = [*chain.from_iterable(where.values())]
        rows = self._read(sql.ENTRIES.format(conditions), values)
        found = [row for row in sorted(rows) if named(row[2])]
        return [(Key(*row[:3]), self._entry(row[2], row[3:])) for row in found]

    def other_services(
        self, base_url: str, resource: str, names: Iterable[str]
    ) -> dict[str, list[str]]:
        """Return the other base_urls of names, if this base_url has no entry at all.

        Raises LedgerLost if its entries were moved.
        """
        self.require_same_url(base_url)
        found: dict[str, list[str]] = {}
        if self._read(sql.SEEN, (base_url,)):
            return found
        for name, other in self._read_some(sql.ELSEWHERE, base_url, resource, names):
            found.setdefault(name, []).append(other)
        return found

    def new_url(self, base_url: str) -> NewUrl | None:
        """Return the new base_url of the entries of a base_url, None if they were not moved."""
        found = None
        url = base_url
        passed: set[str] = set()
        while url not in passed:
            passed.add(url)
            rows = self._read(sql.SERVICE_MOVED, (url,))
            if not rows or rows[0][0] != sql.MOVED:
                break
            found = NewUrl(*rows[0][1:])
            url = found.base_url
        return found

    def require_same_url(self, base_url: str) -> None:
        """Raise LedgerLost if the entries of a base_url were moved to another one."""
        new = self.new_url(base_url)
        if new:
            raise LedgerLost(
                f"ledger: in {self.where} the entries of {base_url} were moved to {new.base_url}"
                f" ({new.by}, {new.at}), so nothing was sent or changed. Set base_url to"
                f" {new.base_url}"
            )

    def history(self, base_url: str, resource: str, names: Iterable[str]) -> dict[str, list[Ended]]:
        """Return how the attempts of several assets ended, oldest first, by name."""
        found: dict[str, list[Ended]] = {}
        for row in self._read_some(sql.HISTORY, base_url, resource, names):
            found.setdefault(row[0], []).append(Ended(*row[1:]))
        return found

    def created_since(
        self, base_url: str, resource: str, names: Iterable[str], count: int
    ) -> set[str]:
        """Return which assets were created or adopted after the first `count` history rows."""
        rows = self._read(sql.NUMBER_OF_ROW, (count - 1,)) if count else []
        last = rows[0][0] if rows else -1
        found = self._read_some(sql.CREATED_SINCE, base_url, resource, names, last)
        return {name for (name,) in found}

    def count_states(self) -> dict[str, int]:
        """Return how many entries are in each state."""
        return dict(self._read(sql.COUNT_STATES))

    def count_in_doubt(self) -> int:
        """Return how many entries are in doubt."""
        counts = self.count_states()
        return sum(counts.values()) - counts.get(DONE, 0)

    def count_history(self) -> int:
        """Return how many rows the history has; a move keeps their order."""
        rows = self._read(sql.COUNT.format("history"))
        return int(rows[0][0]) if rows else 0

    def mark(self) -> Mark:
        """Return the state of the ledger and its last move."""
        return self._state()[1]

    def require_in_use(self) -> None:
        """Raise LedgerLost if the ledger was moved, or is being moved or filled."""
        self._require_in_use(self.mark())

    def _require_in_use(self, mark: Mark) -> None:
        if mark.state in _NOT_IN_USE:
            raise LedgerLost(f"ledger: {self.where} {_NOT_IN_USE[mark.state].format(mark.place)}")

    def _state(self) -> tuple[int, Mark, Use]:
        """Return version, mark and last use of the ledger; raise LedgerError for another schema."""
        tables = self.database.tables()
        if not tables:
            return 0, Mark(), Use()
        rows = self.database.execute(sql.SCHEMA) if sql.SCHEMA_TABLE in tables else []
        version = rows[0][0] if rows else None
        if version != sql.SCHEMA_VERSION:
            raise LedgerError(
                f"ledger: {self.where} was written by another version of this collection, or by"
                f" something else (schema {version}, not {sql.SCHEMA_VERSION})."
                " Use the version that wrote it, or another ledger"
            )
        return version, Mark(*rows[0][1:5]), Use(*rows[0][5:])

    def _read_some(
        self, statement: str, base_url: str, resource: str, names: Iterable[str], *values: int
    ) -> Iterator[Row]:
        """Yield the rows about some names; `values` follow the names in the statement."""
        names = list(names)
        for start in range(0, len(names), _AT_ONCE):
            some = names[start : start + _AT_ONCE]
            marks = ", ".join("?" * len(some))
            yield from self._read(statement.format(marks), (base_url, resource, *some, *values))

    def _read(self, statement: str, values: Sequence[Value] = ()) -> list[Row]:
        """Return the rows of a statement, none if there are no tables."""
        if not self.version:
            return []
        with self.noticing_move():
            return self.database.execute(statement, values)

    @contextmanager
    def noticing_move(self) -> Iterator[None]:
        """Raise LedgerLost for a statement that fails because a move renamed the table of entries."""
        try:
            yield
        except Unanswered:
            raise
        except LedgerError:
            self.require_in_use()
            raise

    def _entry(self, name: str, row: Row) -> Entry:
        """Return the entry of an asset from the columns after its name."""
        state, sent, asset, *others = row
        try:
            return Entry(state, recorded_json(sent), recorded_json(asset), *others)
        except ValueError as error:
            problem = f"the entry of {printable(name)} {error}, so something else wrote it"
            raise LedgerError(f"ledger: {self.where}: {problem}") from None

    def create(
        self,
        insert: str,
        mark: Mark,
        before: Iterable[Statement] = (),
        after: Iterable[Statement] = (),
    ) -> bool:
        """Create the tables with this mark in one transaction; return whether it took effect.

        `insert`: the statement that inserts the mark. `before`, `after`: further statements of the
        transaction. It takes no effect if one of the statements changes no row.
        """
        number = self.database.number
        tables: list[Statement] = [(table.format(number=number), ()) for table in sql.CREATE]
        row = (insert, (sql.SCHEMA_VERSION, *mark, *self.database.use()))
        is_done = self.database.create(chain(before, tables, [row], after))
        self.version = sql.SCHEMA_VERSION
        return is_done

    def begin(self, change: Change) -> tuple[bool, Entry | None]:
        """Lock the key and write the intent; return whether it was written, and the entry now.

        Other tasks wait until the key is released.
        """
        self.lock(change.key, wait=True)
        (written,) = self.write([change], Kind.BEGIN)
        return (True, written.after) if written else (False, self.get(change.key))

    def finish(self, change: Change) -> bool:
        """Write how an attempt ended; return False if another task changed the entry."""
        return self.write([change], Kind.END) != [None]

    def write(self, changes: list[Change], kind: Kind) -> list[Change | None]:
        """Write changes in one transaction; on an error none of them is written.

        Return each change as it was written, None where the entry was not as it was read. Its
        history is written all the same, except for Kind.EDIT, which then writes nothing.
        """
        changes = [stamped(change) for change in changes]
        statements = [_entry_statement(change) for change in changes]
        statements += [_history_statement(each, each.ended) for each in changes if each.ended]
        with self.noticing_move():
            try:
                counts = self.database.write(statements, kind)
                ours = [count == 1 for count in counts[: len(changes)]]
            except Unanswered:
                if self.file:  # SQLite has rolled it back
                    raise
                ours = self._write_again(changes, statements, kind)
        if kind is not Kind.END and not all(ours):
            self.require_in_use()
            for base_url in {change.key.base_url for change in changes}:
                self.require_same_url(base_url)
        return [change if is_ours else None for change, is_ours in zip(changes, ours)]

    def _write_again(
        self, changes: list[Change], statements: list[Statement], kind: Kind
    ) -> list[bool]:
        """Write changes that may be committed already: outcomes for a while, others once."""
        until = time.monotonic() + (_LOSS_GRACE if kind is Kind.END else 0)
        while True:
            try:
                counts = [0] * len(changes)
                if not any(self._is_committed(change) for change in changes):
                    counts = self.database.write(statements, kind)
                # Asked only now: the server may have been committing the first write when the
                # second one began.
                return [
                    count == 1 or self._is_in_force(change)
                    for change, count in zip(changes, counts)
                ]
            except LedgerLost:
                if time.monotonic() > until:
                    raise
                time.sleep(_PAUSE)

    def _is_committed(self, change: Change) -> bool:
        """Return whether the transaction of a change was committed."""
        if not change.ended:
            return self._is_in_force(change)
        return bool(self._read(sql.IS_RECORDED, (*change.key, change.revision)))

    def _is_in_force(self, change: Change) -> bool:
        """Return whether the entry is as the change leaves it."""
        found = self.get(change.key)
        return found.revision == change.revision if found else change.after is None

    def wait_like(self, waiting: Waiting) -> None:
        """Wait for other tasks in this way from now on."""
        self.database.waiting = waiting

    def lock(self, key: Key, wait: bool) -> bool:
        """Lock the key, after a wait if need be; without `wait` return False instead."""
        number = lock_number(key)
        until = time.monotonic() + SILENT
        while not self.database.lock(number, wait=False):
            if not wait:
                return False
            if time.monotonic() >= until:
                self.database.waiting.show([key], self.get(key))
                return self.database.lock(number, wait=True)
            with self.database.waiting.interruptible():
                time.sleep(_LOOK)
        return True

    def release(self, key: Key) -> None:
        """Release the lock of the key, if it is held."""
        self.database.unlock(lock_number(key))

    def close(self) -> None:
        """Close the connection and release all locks."""
        self.database.close()


def lock_number(key: Key) -> int:
    """Return the key as a number from 1 to 2**62."""
    digest = hashlib.sha256(json.dumps(key).encode("utf-8")).digest()
    return 1 + (int.from_bytes(digest[:8], "big") >> 2)


def _entry_statement(change: Change) -> Statement:
    """Return the statement that writes an entry if it is still as it was read."""
    key = change.key
    before = change.before
    after = change.after
    read = before.revision if before else 0
    if after is None:
        return sql.DELETE, (*key, read)
    row = (after.state, json.dumps(after.sent), json.dumps(after.asset), *after[3:])
    if before is None:
        return sql.INSERT, (*key, *row, key.base_url)
    update = sql.BEGIN if after.state == INTENT else sql.UPDATE
    return update, (*row, *key, read)


def _history_statement(change: Change, ended: Ended) -> Statement:
    """Return the statement that adds a history row."""
    message = ended.message.replace("\0", " ")  # which PostgreSQL cannot store
    return sql.RECORD, (*change.key, *ended._replace(message=message), change.revision)
