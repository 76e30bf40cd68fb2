# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Reads and writes the entries and the history of the ledger, in the same way on SQLite and on PostgreSQL.

A single statement decides who may send: an insert, or an update of the revision that was read, reports whether it
changed a row. Locks only make others wait. No transaction is open while a request is in flight.
"""

from __future__ import annotations

import json
import shlex
from contextlib import contextmanager, nullcontext
from itertools import groupby
from typing import Callable, ContextManager, Iterable, Iterator

from ...module_utils._task.options import LEDGER_VARIABLE
from . import statements as sql
from .entries import DONE, Change, Ended, Entry, Key, LedgerError, first_line

_IN_DOUBT = "ansible-playbook infrastructure.services.in_doubt"
_AT_ONCE = 500  # names in one statement; SQLite took 999 values at most before 3.32


class Ledger:
    """The operations on a ledger; the subclasses have what differs between the two databases."""

    error: tuple[type[Exception], ...] = ()
    tables: str  # a statement that returns the names of our tables
    escaped = False  # whether text is stored in ASCII, JSON-escaped
    file = ""  # the real path of the SQLite file

    def __init__(self, where: str) -> None:
        """`where`: the ledger's name in messages, without a password."""
        self.where = where
        self.interruptible: Callable[[], ContextManager] = nullcontext  # around waits for others
        self.version = 0  # of its tables; 0: there are none, which only happens when opened for reading
        self._seen: set[str] = set()

    @property
    def in_doubt_command(self) -> str:
        """Return the shell command that lists what is in doubt, with dots for a URL, which may contain a password.

        A path that has to be quoted goes into the environment: in a message, a double quote would be escaped.
        """
        quoted = shlex.quote(self.where) if self.file else "..."
        return f"{_IN_DOUBT} -e ledger={quoted}" if "'" not in quoted else f"{LEDGER_VARIABLE}={quoted} {_IN_DOUBT}"

    def get(self, key: Key) -> Entry | None:
        """Return the entry of the key, None if there is none; raise LedgerError."""
        rows = self.execute(sql.GET, self._stored(key)) if self.version else []
        return self._entry(rows[0]) if rows else None

    def get_many(self, base_url: str, resource: str, names: Iterable[str]) -> dict[str, Entry]:
        """Return the entries of several assets, by name; raise LedgerError."""
        names, found = [self._text(name) for name in names], {}
        for start in range(0, len(names) if self.version else 0, _AT_ONCE):
            some = names[start : start + _AT_ONCE]
            for name, *row in self.execute(
                f"{sql.GET_SOME}({', '.join('?' * len(some))})", (base_url, resource, *some)
            ):
                found[self._plain(name)] = self._entry(row)
        return found

    def begin(self, key: Key, intent: Entry, before: Entry | None) -> Entry | None:
        """Write an entry that survives a power failure; return it, None if the entry is no longer `before`."""
        return self.begin_many([Change(key, before, intent)])[0]

    def begin_many(self, changes: list[Change]) -> list[Entry | None]:
        """Begin several in one transaction; raise LedgerError, with none of them begun."""
        changes = [change.stamped() for change in changes]
        ours = self._apply(changes, durable=True)
        return [change.after if is_ours else None for change, is_ours in zip(changes, ours)]

    def finish(self, key: Key, begun: Entry, after: Entry | None, ended: Ended) -> bool:
        """Write how an attempt ended, to survive the death of this process; return whether the entry was still ours."""
        return self.finish_many([Change(key, begun, after, ended)])[0]

    def finish_many(self, changes: list[Change]) -> list[bool]:
        """Finish several in one transaction; raise LedgerError, with none of them finished."""
        return self._apply([change.stamped() for change in changes], durable=False)

    def edit(self, change: Change) -> bool:
        """Write one entry with its history row, as `begin` does; return False if the entry has changed."""
        return self._apply([change.stamped()], durable=True)[0]

    def assets(self, resource: str) -> list[tuple[str, str, dict]]:
        """Return base_url, name and envelope of every entry that is done, by name."""
        rows = self.execute(sql.ASSETS, (resource, DONE)) if self.version else []
        return [(base_url, self._plain(name), self.read(asset)) for base_url, name, asset in rows]

    def elsewhere(self, key: Key) -> list[str]:
        """Return the base_urls at which the name is recorded, if nothing at all is recorded at the key's own."""
        if not self.version or key.base_url in self._seen:
            return []
        if self.execute(sql.SEEN, (key.base_url,)):
            self._seen.add(key.base_url)
            return []
        return self.others(key)

    def others(self, key: Key) -> list[str]:
        """Return the other base_urls at which the name is recorded."""
        rows = self.execute(sql.ELSEWHERE, self._stored(key)) if self.version else []
        return [base_url for (base_url,) in rows]

    def entries(self, where: dict[str, tuple], named: Callable[[str], bool]) -> list[tuple[Key, Entry]]:
        """Return the entries that meet all conditions (SQL: its values) and whose name `named` accepts."""
        rows = self._select("base_url, resource, name", "entry", where, "base_url, resource, name")
        keys = [Key(*row[:2], name) for row in rows if named(name := self._plain(row[2]))]
        found = []
        for asset, group in groupby(keys, key=lambda key: key[:2]):
            entries = self.get_many(*asset, [key.name for key in group])
            found += [(Key(*asset, name), entries[name]) for name in sorted(entries)]
        return found

    def history(self, where: dict[str, tuple]) -> Iterator[tuple[Key, Ended]]:
        """Yield the rows of the history that meet all conditions, oldest first."""
        columns = f"base_url, resource, name, {sql.ENDED}"
        for base_url, resource, name, *row in self._select(columns, "history", where, "at"):
            ended = Ended(*row)
            plain = {"by": self._plain(ended.by), "message": self._plain(ended.message)}
            yield Key(base_url, resource, self._plain(name)), ended._replace(**plain)

    @contextmanager
    def hold(self, key: Key) -> Iterator[None]:
        """Hold this key exclusively; others block. The lock ends with the process."""
        try:
            self.lock(key.number(), wait=True)
            self.check_not_replaced()
            yield
        finally:
            self.unlock(key.number())

    def check_not_replaced(self) -> None:
        """Raise LedgerError if the ledger that was opened has been replaced, and always from then on."""

    def lock(self, number: int, wait: bool) -> bool:
        """Take the lock of this number; return False if another process holds it and `wait` is false."""
        raise NotImplementedError

    def unlock(self, number: int) -> None:
        """Release the lock of this number."""
        raise NotImplementedError

    def close(self) -> None:
        """Close the connection and release all locks."""
        raise NotImplementedError

    def run(self, statement: str, values: tuple) -> list[tuple]:
        """Execute a statement with its values in place of `?`; raise an `error`."""
        raise NotImplementedError

    def write(self, statements: list[tuple[str, tuple]], durable: bool) -> list[int]:
        """Execute statements in one transaction; return how many rows each has changed; raise an `error`."""
        raise NotImplementedError

    def transaction(self) -> ContextManager[None]:
        """Return a context whose statements are one transaction."""
        raise NotImplementedError

    def has_lost(self, error: Exception) -> bool:
        """Whether the connection was lost, so that only a new one can tell if the transaction was committed."""
        return False

    def execute(self, statement: str, values: Iterable = ()) -> list[tuple]:
        """Execute a statement; raise LedgerError."""
        try:
            return self.run(statement, tuple(values))
        except self.error as error:
            raise self.failure(error) from None

    def failure(self, error: Exception, before_request: bool = True) -> LedgerError:
        """Return the LedgerError for an error of the database; `before_request`: it stopped the task in time."""
        return LedgerError(f"ledger: {self.where}: {first_line(error)}")

    def read(self, text: str) -> dict:
        """Return stored JSON; raise LedgerError."""
        try:
            return json.loads(text)
        except ValueError:
            raise LedgerError(f"ledger: {self.where}: an entry is not JSON, so something else wrote it") from None

    def _apply(self, changes: list[Change], durable: bool) -> list[bool]:
        """Write changes in one transaction; return for each whether the entry was still as it was read."""
        statements = [self._statement(change) for change in changes]
        statements += [self._history_row(change) for change in changes if change.ended]
        try:
            try:
                return [count == 1 for count in self.write(statements, durable)[: len(changes)]]
            except self.error as error:
                if not self.has_lost(error):
                    raise
                is_committed = any(self._is_committed(change) for change in changes)
                counts = [0] * len(changes) if is_committed else self.write(statements, durable)
                # Asked only now: the server may have been committing the first write when the second one began.
                return [count == 1 or self._is_in_force(change) for count, change in zip(counts, changes)]
        except self.error as error:
            raise self.failure(error, before_request=durable) from None

    def _statement(self, change: Change) -> tuple[str, tuple]:
        key, before, after = change.key, change.before, change.after
        if before is None:
            return sql.INSERT, (*self._stored(key), *self._row(after))
        if after is None:
            return sql.DELETE, (*self._stored(key), before.revision)
        return sql.UPDATE, (*self._row(after), *self._stored(key), before.revision)

    def _history_row(self, change: Change) -> tuple[str, tuple]:
        ended = change.ended
        stored = {"by": self._text(ended.by), "message": self._text(ended.message.replace("\0", " "))}
        return sql.RECORD, (*self._stored(change.key), *ended._replace(**stored), change.revision)

    def _is_committed(self, change: Change) -> bool:
        """Whether the transaction of a change was committed, even if it found that the entry was another one."""
        written = (*self._stored(change.key), change.revision)
        return bool(self.run(sql.IS_RECORDED, written)) if change.ended else self._is_in_force(change)

    def _is_in_force(self, change: Change) -> bool:
        """Whether the entry is as the change leaves it."""
        found = self.get(change.key)
        return found.revision == change.revision if found else change.after is None

    def _select(self, columns: str, table: str, where: dict[str, tuple], order: str) -> list[tuple]:
        conditions = " AND ".join(where) or "1 = 1"
        values = [value for values in where.values() for value in values]
        statement = f"SELECT {columns} FROM infrastructure_services_{table} WHERE {conditions} ORDER BY {order}"
        return self.execute(statement, values) if self.version else []

    def _row(self, entry: Entry) -> tuple:
        return entry._replace(sent=json.dumps(entry.sent), asset=json.dumps(entry.asset), by=self._text(entry.by))

    def _entry(self, row: tuple) -> Entry:
        state, sent, asset, began_at, changed_at, by, *others = row
        return Entry(state, self.read(sent), self.read(asset), began_at, changed_at, self._plain(by), *others)

    def _stored(self, key: Key) -> Key:
        return key._replace(name=self._text(key.name))

    def _text(self, text: str) -> str:
        return json.dumps(text)[1:-1] if self.escaped else text

    def _plain(self, text: str) -> str:
        return json.loads(f'"{text}"') if self.escaped else text
