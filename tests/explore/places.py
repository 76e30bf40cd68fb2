"""Ledgers in memory, which all actors share and a scheduler controls."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterable
from datetime import datetime, timezone
from functools import cache
from typing import NamedTuple

from ansible_collections.infrastructure.services.plugins.module_utils._errors import (
    LedgerAway,
    LedgerError,
)
from ansible_collections.infrastructure.services.plugins.plugin_utils._ledger import sql
from ansible_collections.infrastructure.services.plugins.plugin_utils._ledger.entries import Write
from ansible_collections.infrastructure.services.plugins.plugin_utils._ledger.sql import (
    Row,
    Statement,
)
from support.turns import World

LOST, WRITTEN_AND_LOST, FULL = "lost", "written, the answer lost", "full"
# Changes a statement of a write, or of a read (None): it makes a defect.
Changed = Callable[[str, "Write | None"], str]


class Found(NamedTuple):
    """An entry as the test sees it."""

    state: str
    asset_id: str | None
    is_running: bool


class Place:
    """Where a ledger may be: an empty database at first."""

    def __init__(self, world: World, name: str) -> None:
        self.name = name
        self.connection = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
        self.connection.create_function("virtual_now", 0, lambda: world.now)
        self.exists = False

    def state(self) -> str:
        """Return the state of the ledger, '' if there is none."""
        if not self.exists:
            return ""
        return self.rows(f"SELECT state FROM {sql.LEDGER}")[0][0]

    def rows(self, statement: str, *values: str) -> list[Row]:
        """Return what is there now; for the test, not for an actor."""
        return self.connection.execute(_sqlite(statement), values).fetchall()

    def entry(self, name: str) -> Found | None:
        """Return an entry, None if there is none."""
        if not self.exists:
            return None
        for _key, _name, state, _sent, asset, *_more, until in self.rows(
            sql.ENTRIES.format("name = ?"), name
        ):
            return Found(state, json.loads(asset).get("id"), until > 0)
        return None


class Connection:
    """The database of a ledger for one actor, by statements that it may change.

    Others go on before each call; whoever goes on after its answer does so before the next call.
    """

    continue_numbers = ""

    def __init__(
        self, world: World, place: Place, tried_for: float, changed: Changed | None = None
    ) -> None:
        """`tried_for`: 0 as of SQLite, where no answer is lost, else as of PostgreSQL."""
        self.where = self.shown = place.name
        self.tried_for = tried_for
        self.world = world
        self._place = place
        self._changed = changed

    def has_tables(self) -> bool:
        return self._place.exists

    def create(self, statements: Iterable[Statement]) -> None:
        self.write(statements, Write.OUTCOME)
        self._place.exists = True

    def read(self, statements: Iterable[Statement]) -> list[list[Row]]:
        self.world.point("a read")
        execute = self._place.connection.execute
        return [
            execute(self._statement(statement, None), values).fetchall()
            for statement, values in statements
        ]

    def write(self, statements: Iterable[Statement], kind: Write) -> list[int]:
        fates = [FULL, LOST, WRITTEN_AND_LOST] if self.tried_for else [FULL]
        fate = self.world.point(f"a write ({kind.name.lower()})", fates)
        if fate and self.world.running:
            self.world.running.has_lost_a_write = True
        if fate == FULL:
            raise LedgerError(f"{self.where}: no space left")
        if fate == LOST:
            raise LedgerAway(f"{self.where}: away")
        counts = self._written(list(statements), kind)
        if fate == WRITTEN_AND_LOST:
            raise LedgerAway(f"{self.where}: away")
        return counts

    def _written(self, statements: list[Statement], kind: Write) -> list[int]:
        """Write what no other actor can come between; each write takes a second."""
        connection = self._place.connection
        self.world.now += 1
        connection.execute("BEGIN")
        try:
            counts = [
                connection.execute(self._statement(statement, kind), values).rowcount
                for statement, values in statements
            ]
            if kind is Write.EDIT and 0 in counts:
                return counts
            if self._place.exists:  # in virtual time
                now = datetime.fromtimestamp(self.world.now, timezone.utc)
                connection.execute(_OF_NOW, (now.strftime("%Y-%m-%dT%H:%M:%SZ"),))
            connection.execute("COMMIT")
        finally:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
        return counts

    def _statement(self, statement: str, kind: Write | None) -> str:
        return _sqlite(self._changed(statement, kind) if self._changed else statement)

    def close(self) -> None:
        """Do nothing: the database is shared."""


_OF_NOW = f"UPDATE {sql.ENTRY} SET changed_at = ? WHERE changed_at > '2000'"


@cache
def _sqlite(statement: str) -> str:
    number = "INTEGER PRIMARY KEY AUTOINCREMENT"
    return statement.replace(":now", "virtual_now()").replace(":number", number)
