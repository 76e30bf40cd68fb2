# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Opens, reads and writes a ledger, in the same way on SQLite and on PostgreSQL.

A single statement decides which task may send: an insert, or an update of the revision that was
read, reports whether it changed a row. Each write also names the service and a ledger in use. No
transaction is open while a request is in flight.
"""

from __future__ import annotations

import shlex
import time
from collections import defaultdict
from functools import partial
from itertools import chain
from typing import Callable, Iterable, Iterator, NamedTuple, Sequence, TypeVar, Union

from ...module_utils._errors import LedgerAway, LedgerError
from ...module_utils._secrets import printable
from ...module_utils._task.options import LEDGER_VARIABLE
from ...module_utils._task.specs import LEDGER_ID
from . import sql
from .entries import (
    Change,
    Entry,
    HistoryRow,
    Key,
    Serial,
    Write,
    entry_of,
    id_of,
)
from .postgresql import PostgresDatabase
from .seen import Seen
from .sql import Done, Row, Statement, Value
from .sqlite import SqliteDatabase

# The same methods, which raise LedgerError; `PostgresDatabase` documents them.
Database = Union[SqliteDatabase, PostgresDatabase]
_Answer = TypeVar("_Answer")
# Names in one statement; SQLite took 999 values at most before 3.32.
_AT_ONCE = 500
_PAUSE = 0.2  # seconds between two attempts while the database is away


class Header(NamedTuple):
    """The one row about a ledger."""

    ledger_id: str  # random; moves and copies keep it
    base_url: str  # canonical
    state: str
    place: str = ""  # the other end of a move
    reservation: int = 0  # the number of that move
    replaces: str = ""  # the ledger_id of a lost one


class Snapshot(NamedTuple):
    """What a ledger had at one moment."""

    entries: dict[Key, Entry]
    last_rows: dict[Key, int]  # the number of the last row of each asset in the history
    serial: Serial  # the last row of the history
    begun: Serial  # the last beginning or edit


class Ledger:
    """The ledger of a task or a list. Every method raises LedgerError."""

    header = Header("", "", "")  # of the last snapshot

    def __init__(
        self, database: Database, seen: Seen, base_url: str = "", is_moving: bool = False
    ) -> None:
        """Read the header of a ledger that exists.

        `seen`: the notes of this controller; `base_url`: the canonical URL of the service that the
        task uses, '' for any; `is_moving`: accept a ledger in any state.
        """
        self.database = database
        self.where = database.where
        self.shown = database.shown
        self.sleep: Callable[[float], None] = time.sleep  # while the database is away
        # Whether a row that this controller has seen is gone: a restored backup, or a failover.
        self.has_gone_back = False
        self._seen = seen
        self._base_url = base_url
        self._is_moving = is_moving
        try:
            self._require_tables()
            self.refresh()
            seen.note_place(self.where, self.header.ledger_id)
        except LedgerError:
            self.close()
            raise

    def _require_tables(self) -> None:
        if not self.tried(self.database.has_tables):
            raise LedgerError(
                f"there is no ledger at {self.where}. Correct the location, or restore the ledger if"
                " there was one. For a new one, run once:"
                f" {playbook_command(self.shown, 'create_ledger')}"
            )

    def refresh(self) -> None:
        """Read the header again; raise LedgerError if the ledger can no longer be used."""
        self._snapshot([])

    def require_usable(self) -> None:
        """Raise LedgerError for a ledger that is not in use, or that belongs to another service."""
        header = self.header
        if header.state in (sql.MOVED, sql.FILLED):
            raise LedgerError(
                f"{self.where} was moved to {printable(header.place)}, which is the ledger now. Use"
                " that one"
            )
        if header.state == sql.FILLING:
            raise LedgerError(
                f"{self.where} is reserved for the ledger {printable(header.place)}. Run the same"
                " infrastructure.services.move_ledger again, which completes the move"
            )
        if self._base_url and self._base_url != header.base_url:
            raise LedgerError(
                f"{self.where} belongs to the service {printable(header.base_url)}, and base_url is"
                f" {self._base_url}. Correct base_url, or use another ledger; if the service has a"
                " new URL, run infrastructure.services.ledger_move with to_base_url"
            )

    def gone_back(self) -> str:
        """Return how to go on with a ledger that has gone back in time, '' for any other.

        One that was moved stays as it was.
        """
        if not self.has_gone_back or self.header.state != sql.IN_USE:
            return ""
        return (
            f"{self.where} has gone back in time, as after a restored backup: it lacks rows that"
            " this controller has seen, and what was created since then would be created again."
            " Record it first, from the reports of those runs:"
            f" {playbook_command(self.shown, 'settle')} -e file=REPORT"
        )

    def find(self, keys: Iterable[Key], with_rows: bool = False) -> Snapshot:
        """Return the entries of several assets as of one moment, and look for the noted row.

        `with_rows`: also the last rows of the history, which a plan names.
        """
        chunks = _chunks(keys)
        statements = [(sql.ENTRIES.format(among), values) for among, values in chunks]
        if with_rows:
            statements += [(sql.LAST_ROWS.format(among), values) for among, values in chunks]
        looks = [(sql.LAST_ROW, ()), (sql.LAST_BEGUN, ())]
        last, last_begun, *found = self._snapshot([*looks, *statements])
        self._look_back()
        entries = {Key(*row[:2]): self._entry(row) for row in chain(*found[: len(chunks)])}
        last_rows = {Key(*key): number for *key, number in chain(*found[len(chunks) :])}
        serial, begun = (Serial(*rows[0]) if rows else Serial() for rows in (last, last_begun))
        self._note(begun)
        return Snapshot(entries, last_rows, serial, begun)

    def _look_back(self) -> None:
        """Find out whether the ledger lacks a row that this controller has noted."""
        noted = self._seen.rows(self.header.ledger_id)
        looks = [(sql.HAS_ROW, row) for row in noted]
        found = self.database.execute([(sql.READ_LEDGER, ()), *looks])[1:]
        lacking = [row for row, done in zip(noted, found) if not done.rows]
        self.has_gone_back = not all(map(self.had, lacking))

    def _note(self, row: Serial) -> None:
        """Note the last beginning or edit, unless the ledger has gone back in time."""
        if row.number and not self.has_gone_back:
            self._seen.note_row(self.header.ledger_id, row)

    def with_ids(self, resource: str, ids: Iterable[str]) -> dict[str, Key]:
        """Return the entries of a resource that have these ids, by id."""
        chunks = [
            (f"resource = ? AND id IN ({marks})", (resource, *some))
            for some, marks in _some(sorted(ids))
        ]
        found = self._snapshot([(sql.ENTRIES.format(among), values) for among, values in chunks])
        return {id_of(self._entry(row)): Key(*row[:2]) for row in chain(*found)}

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

    def rows_of(self, key: Key) -> list[HistoryRow]:
        """Return the history of an asset, oldest first, in one try."""
        condition, values = _chunks([key])[0]
        (done,) = self.database.execute([(sql.HISTORY_ROWS.format(condition), values)])
        return [HistoryRow(*row[2:]) for row in done.rows]

    def counts(self, conditions: str, values: Sequence[Value]) -> list[Row]:
        """Return each resource and state of the entries that meet conditions (SQL), their number and
        the oldest began_at. Those whose lease runs do not count.
        """
        return self._snapshot([(sql.COUNTS.format(conditions or "1 = 1"), values)])[0]

    def has_row(self, serial: Serial) -> bool:
        """Return whether the history has a row that it once had."""
        return serial == Serial() or bool(self._snapshot([(sql.HAS_ROW, serial)])[0])

    def had(self, row: Serial) -> bool:
        """Return whether the history has a beginning or an edit, also if it was given back.

        An outcome that was recorded anew shows nothing about the rows before it.
        """
        found = (sql.HAS_REVISION, (row.revision,))
        return row == Serial() or bool(self.database.execute([found])[0].rows)

    def start_leases(self) -> None:
        """Let the leases that begin in the future begin now: a clock was set back."""
        self.execute([(sql.START_LEASES, ())], Write.OUTCOME)

    def read(self, statement: str, values: Sequence[Value] = ()) -> list[Row]:
        """Return the rows of one statement."""
        return self._snapshot([(statement, values)])[0]

    def execute(self, statements: list[Statement], kind: Write | None) -> list[Done]:
        """Execute statements in one transaction, as Database.execute; again while it is away."""
        return self.tried(partial(self.database.execute, statements, kind))

    def write(self, changes: list[Change]) -> list[bool]:
        """Write changes in one transaction, once; return which found their entry as it was read.

        On an error none is written; with an edit among them, all take effect or none. Raises
        LedgerAway if it is not known whether they were written. `changes`: stamped, each of another
        key.
        """
        kind = max(change.kind for change in changes)
        # In the order of their keys, so that two lists do not wait for each other; an edit removes
        # first, since another entry may get its id.
        is_edit = kind is Write.EDIT
        ordered = sorted(changes, key=lambda change: (is_edit and bool(change.after), change.key))
        entries = [change for change in ordered if change.writes_entry]
        rows = [(change, change.row) for change in ordered if change.row]
        ledger_id = self.header.ledger_id
        statements = [
            *(sql.written(change, self._guard(change)) for change in entries),
            *(sql.recorded(change, row, ledger_id) for change, row in rows),
            (sql.LAST_BEGUN, ()),
        ]
        *done, last = self.database.execute(statements, kind)
        effects = {change.key for change, each in zip(entries, done) if each.changed}
        # A commit whose answer was lost is repeated, and finds its rows.
        found = zip(rows, done[len(entries) :])
        repeated = [change for (change, _row), each in found if not each.changed]
        if is_edit:
            is_written = not sql.is_void(kind, done) or len(repeated) == len(changes)
            self.find([])
            return [is_written] * len(changes)
        effects.update(change.key for change in repeated if self._is_written(change))
        if kind is Write.BEGIN and last.rows:
            # Before the requests; then a backup that was put back meanwhile lacks the noted row.
            self._note(Serial(*last.rows[0]))
            self._look_back()
        return [change.key in effects for change in changes]

    def _is_written(self, change: Change) -> bool:
        """Return whether a repeated change had its effect before."""
        written = (sql.IS_WRITTEN, (*change.key, change.revision))
        return not change.after or bool(self.database.execute([written])[0].rows)

    def _guard(self, change: Change) -> sql.Guard:
        """Return what has to be so for a change to take effect."""
        is_edit = change.kind in (Write.ADOPT, Write.EDIT)
        return sql.Guard(
            self.header.ledger_id,
            self.header.base_url,
            change.approved_row,
            id=id_of(change.after) if is_edit and change.after else "",
        )

    def tried(self, act: Callable[[], _Answer]) -> _Answer:
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
        """Return the rows of statements as of one moment, with the header."""
        headers, *found = self.execute([(sql.READ_LEDGER, ()), *statements], None)
        self.header = self._header(headers.rows)
        if not self._is_moving:
            self.require_usable()
        return [done.rows for done in found]

    def _header(self, rows: list[Row]) -> Header:
        """Return the header in the rows of sql.READ_LEDGER, which is that of the ledger so far."""
        _one, schema, *values = rows[0] if len(rows) == 1 else (1, None)
        if schema != sql.SCHEMA:
            raise LedgerError(
                f"{self.where} was written by another version of this collection, or by something"
                f" else (schema {printable(str(schema))}, not {sql.SCHEMA}). Use the version that"
                " wrote it, or another ledger"
            )
        try:
            header = Header(*values)
            LEDGER_ID(header.ledger_id)
            is_sound = all(isinstance(text, str) for text in (header.base_url, header.place))
        except TypeError:
            is_sound = False
        if not is_sound:
            raise LedgerError(
                f"{self.where} is no ledger: its ledger_id is not 32 hexadecimal digits, or another"
                " value about it is no text. Restore it from a backup"
            )
        if self.header.ledger_id not in ("", header.ledger_id):
            raise LedgerError(
                f"{self.where} is another ledger than the one that this task began with. Check which"
                " ledger is there, then run again"
            )
        return header

    def _entry(self, row: Row) -> Entry:
        """Return the entry in a row of sql.ENTRIES."""
        resource, name, *columns = row
        try:
            return entry_of(resource, name, columns)
        except ValueError as error:
            raise LedgerError(
                f"{self.where}: the entry of {printable(str(name))} has a value that this collection"
                f" does not write ({error}), so something else wrote it. Restore the ledger from a"
                " backup, or correct the entry"
            ) from None

    def close(self) -> None:
        """Close the connection."""
        self.database.close()


def _chunks(keys: Iterable[Key]) -> list[Statement]:
    """Return conditions on keys, some at a time, and their values."""
    names: dict[str, list[str]] = defaultdict(list)
    for resource, name in keys:
        names[resource].append(name)
    return [
        (f"resource = ? AND name IN ({marks})", (resource, *some))
        for resource, among in names.items()
        for some, marks in _some(among)
    ]


def _some(values: list[str]) -> Iterator[tuple[list[str], str]]:
    """Yield some values at a time, and as many `?`."""
    for start in range(0, len(values), _AT_ONCE):
        some = values[start : start + _AT_ONCE]
        yield some, ", ".join("?" * len(some))


def create_ledger(database: Database, header: Header) -> None:
    """Create a ledger where nothing is; raise LedgerError."""
    tables: list[Statement] = [(table, ()) for table in sql.CREATE]
    database.create([*tables, (sql.INSERT_LEDGER, header)])


def playbook_command(shown: str, playbook: str) -> str:
    """Return the command that runs a playbook of the collection with this ledger."""
    command = f"ansible-playbook infrastructure.services.{playbook}"
    if shlex.quote(shown) == shown:
        return f"{command} -e ledger={shown}"
    # Without double quotes, which a message would escape.
    return f"{LEDGER_VARIABLE}={shlex.quote(shown)} {command}" if shown else command
