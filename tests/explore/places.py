"""Ledgers in memory, which all actors share and a scheduler controls, and the notes of controllers."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

from ansible_collections.infrastructure.services.plugins.module_utils._errors import (
    LedgerAway,
    LedgerError,
)
from ansible_collections.infrastructure.services.plugins.plugin_utils._ledger import sql
from ansible_collections.infrastructure.services.plugins.plugin_utils._ledger.entries import Write
from ansible_collections.infrastructure.services.plugins.plugin_utils._ledger.seen import Seen
from ansible_collections.infrastructure.services.plugins.plugin_utils._ledger.sql import (
    Done,
    Row,
    Statement,
)
from ansible_collections.infrastructure.services.plugins.plugin_utils._ledger.sqlite import (
    SqliteDatabase,
)
from support.turns import LEASE, World

LOST, WRITTEN_AND_LOST, FULL = "lost", "written, the answer lost", "full"


class Found(NamedTuple):
    """An entry as the test sees it."""

    name: str
    state: str
    asset_id: str
    is_running: bool


class Place:
    """Where a ledger may be: an empty database at first; `offset`: of its clock, in seconds."""

    offset = 0

    def __init__(self, world: World, name: str) -> None:
        self.name = name
        self.connection = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
        self.connection.create_function("virtual_now", 0, lambda: int(world.now) + self.offset)

    def rows(self, statement: str, *values: str) -> list[Row]:
        """Return what is there now; for the test, not for an actor."""
        return self.connection.execute(
            statement.replace(":now", "virtual_now()"), values
        ).fetchall()

    def exists(self) -> bool:
        """Return whether there is a ledger."""
        return bool(self.rows("SELECT 1 FROM sqlite_master WHERE name = ?", sql.LEDGER))

    def header(self, column: str) -> str:
        """Return a value about the ledger, '' if there is none."""
        return self.rows(f"SELECT {column} FROM {sql.LEDGER}")[0][0] if self.exists() else ""

    def entries(self) -> list[Found]:
        """Return all entries."""
        if not self.exists():
            return []
        columns = "name, state, id, state = 'intent' AND :now - lease_from < lease_seconds"
        return [Found(*row) for row in self.rows(f"SELECT {columns} FROM {sql.ENTRY}")]

    def entry(self, name: str) -> Found | None:
        """Return an entry, None if there is none."""
        return next((entry for entry in self.entries() if entry.name == name), None)

    def copy(self) -> sqlite3.Connection:
        """Return a backup."""
        backup = sqlite3.connect(":memory:", check_same_thread=False)
        self.connection.backup(backup)
        return backup

    def put_back(self, backup: sqlite3.Connection) -> None:
        """Replace everything by a backup."""
        backup.backup(self.connection)
        backup.close()

    def remove(self) -> None:
        """Remove the ledger."""
        for table in sql.TABLES:
            self.connection.execute(f"DROP TABLE {table}")


class Database(SqliteDatabase):
    """The database of a ledger for one actor; others go on before each call, and after a write."""

    now = "virtual_now()"

    def __init__(
        self, world: World, place: Place, tried_for: float, loses: Write | None = None
    ) -> None:
        """`tried_for`: seconds for which a call whose answer was lost is tried again; `loses`: the
        answer to the first write of this kind, and the time of a lease passes.
        """
        self.where = self.shown = place.name
        self.tried_for = tried_for
        self.world, self.place = world, place
        self._connection, self._identity = place.connection, None
        self._loses = loses

    def has_tables(self) -> bool:
        return self.place.exists()

    def create(self, statements: list[Statement]) -> None:
        self.execute(statements, Write.BEGIN)  # refused by a table that is there

    def execute(self, statements: list[Statement], kind: Write | None = None) -> list[Done]:
        if kind is None:
            if self.world.point("a read", [LOST]):
                raise LedgerAway(f"{self.where}: away")
            return super().execute(statements)
        fate = self.world.point(f"a write ({kind.name.lower()})", [LOST, WRITTEN_AND_LOST, FULL])
        self.world.process.has_lost_a_write |= bool(fate)
        if fate == FULL:
            raise LedgerError(f"{self.where}: no space left")
        if fate == LOST:
            raise LedgerAway(f"{self.where}: away")
        self.world.now += 1
        done = super().execute(statements, kind)
        if fate == WRITTEN_AND_LOST or kind is self._loses:
            if kind is self._loses:
                self._loses = None
                self.world.sleep(LEASE)
            raise LedgerAway(f"{self.where}: away")
        self.world.point("the answer to a write")
        return done

    def close(self) -> None:
        """Do nothing: the database is shared."""


class Notes(Seen):
    """The notes of a controller for one run, in memory; others go on before each is written."""

    def __init__(self, world: World, texts: dict[str, str], run: str) -> None:
        """`texts`: the notes of all runs of the controller."""
        self._world, self._texts, self._run = world, texts, run

    @contextmanager
    def _alone(self) -> Iterator[None]:
        self._world.point("a note")
        yield

    def _read(self, name: str) -> str:
        return self._texts.get(name, "")

    def _write(self, name: str, text: str) -> None:
        self._texts[name] = text
