# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Reads a ledger, in the same way on SQLite and on PostgreSQL."""

from __future__ import annotations

from contextlib import contextmanager
from itertools import chain
from typing import Callable, Iterable, Iterator, Mapping, Sequence

from ...module_utils._secrets import printable
from . import tables as sql
from .database import Database, Row, Value
from .entries import (
    DONE,
    Ended,
    Entry,
    Key,
    LedgerError,
    LedgerLost,
    Mark,
    NewUrl,
    Unanswered,
    Use,
    recorded_json,
)

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


class LedgerReader:
    """The entries, the history and the mark of a ledger; one without tables is empty.

    Every method raises LedgerError.
    """

    def __init__(self, database: Database) -> None:
        self.database = database
        self.where = database.where
        self.shown = database.shown
        self.file = database.file
        self.version = 0  # of the tables, 0 if there are none

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
                f" ({new.by}, {new.at}). Set base_url to {new.base_url}"
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

    def history_end(self) -> tuple[int, str]:
        """Return how many rows the history has, and what identifies the last; a move keeps both."""
        rows = self._read(sql.HISTORY_END)
        return (int(rows[0][0]), str(rows[0][1])) if rows else (0, "")

    def has_history(self, count: int, last: str) -> bool:
        """Return whether the history goes on from an end that it had; `last`: '' if not known."""
        if not last:
            return count <= self.count_history()
        rows = self._read(sql.ROWS_UP_TO, (last,))
        return bool(rows) and rows[0][0] >= max(count, 1)

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
