# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Places in memory where a ledger is, and what stands in for SqliteDatabase; a scheduler chooses
the faults.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable

from ansible_collections.infrastructure.services.plugins.plugin_utils._ledger import (
    postgresql,
    tables,
)
from ansible_collections.infrastructure.services.plugins.plugin_utils._ledger.entries import (
    Kind,
    LedgerError,
    Use,
    Waiting,
)

from .scheduler import World

PLACES: dict[str, Place] = {}  # by name, in the run that goes on


class Place:
    """Where a ledger is: a file, or a database of a server, perhaps behind a pooler, which gives no
    session.
    """

    def __init__(self, world: World, name: str, kind: str) -> None:
        self.world, self.name, self.kind = world, name, kind
        self.data = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
        self.data.create_function("has_table_privilege", 2, lambda table, right: True)
        self.locks: dict[int, object] = {}  # by number, who holds it
        self._content: int | None = None  # a digest; None once it may be another one
        world.places.append(self)

    def opened(self) -> File | postgresql.PostgresDatabase:
        """Return a database for the process that is running."""
        return File(self) if self.kind == "file" else postgresql.PostgresDatabase(self.name)

    def execute(self, statement: str, values: Iterable = ()) -> tuple[list[tuple], int]:
        """Run a statement for the process that is running; return the rows, and how many there are
        or were changed.
        """
        if not statement.startswith("SELECT"):
            self._content = None
        cursor = self.data.execute(statement, tuple(values))
        rows = cursor.fetchall()
        self.world.see(repr((rows, cursor.rowcount)))
        return rows, cursor.rowcount

    def state(self) -> tuple:
        """Return what a digest has of it: the rows of each table, and who holds the locks."""
        if self._content is None:
            tables = [
                name
                for (name,) in self.data.execute(
                    "SELECT name FROM sqlite_master WHERE type = 'table'"
                )
            ]
            self._content = hash(
                tuple((name, *self.data.execute(f"SELECT * FROM {name}")) for name in tables)
            )
        return self._content, tuple(
            sorted((number, holder.name) for number, holder in self.locks.items())
        )

    def mark(self) -> str | None:
        """Return the state of the ledger, None if there is none."""
        if self.data.execute(tables.TABLES_IN_SQLITE).fetchall() == []:
            return None
        return self.data.execute(tables.SCHEMA).fetchone()[2]

    def take(self, number: int, holder: object) -> bool:
        return self.world.see(self.locks.setdefault(number, holder) is holder)

    def drop(self, holder: object) -> None:
        """Release what was held by somebody who is gone, and undo the transaction."""
        for number in [number for number, holds in self.locks.items() if holds is holder]:
            self.release(number, holder)
        self.end(holder)

    def release(self, number: int, holder: object) -> None:
        if self.locks.get(number) is holder:
            del self.locks[number]
            self.world.releases += 1

    def begin(self, holder: object) -> None:
        """Begin a transaction; nobody else goes on within it."""
        self.data.execute("BEGIN")
        self.world.writers[self] = holder

    def end(self, holder: object) -> None:
        """Undo the transaction, if it was not committed."""
        if self.world.writers.get(self) is holder:
            del self.world.writers[self]
            if self.data.in_transaction:
                self.data.execute("ROLLBACK")
                self._content = None
            self.world.on_commit()


class File:
    """Stands in for SqliteDatabase."""

    number = "INTEGER PRIMARY KEY AUTOINCREMENT"
    waiting = Waiting()

    def __init__(self, place: Place) -> None:
        self._place, self._world = place, place.world
        self.where = self.shown = self.file = place.name
        process = place.world.running.process
        self.name = f"{process.name} {len(process.at_death)}"
        process.at_death.append(self.close)

    def tables(self) -> set[str]:
        return {name for (name,) in self.execute(tables.TABLES_IN_SQLITE)}

    def place(self) -> str:
        return self.file

    def use(self) -> Use:
        return Use()

    def is_older(self) -> bool:
        return False

    def lacks_note(self) -> bool:
        return False

    def require_privileges(self) -> None:
        pass

    def check(self) -> None:
        pass

    def create(self, statements: Iterable[tuple[str, tuple]]) -> bool:
        return 0 not in self.write(statements, Kind.EDIT)

    def lock(self, number: int, wait: bool) -> bool:
        self._world.point("a lock")
        if wait:
            self._world.wait(lambda: self._place.locks.get(number, self) is self)
        return self._place.take(number, self)

    def unlock(self, number: int) -> None:
        self._world.point("an unlock")
        self._place.release(number, self)

    def execute(self, statement: str, values: Iterable = ()) -> list[tuple]:
        self._world.point("a statement")
        try:
            return self._place.execute(statement, values)[0]
        except sqlite3.Error as error:
            raise LedgerError(f"ledger: {self.where}: {error}") from None

    def write(self, statements: Iterable[tuple[str, tuple]], kind: Kind) -> list[int]:
        failed = self._world.point("a write", ("the write fails",))
        place = self._place
        place.begin(self)
        try:
            counts = [place.execute(statement, values)[1] for statement, values in statements]
            if failed:
                raise sqlite3.OperationalError("disk I/O error")
            place.execute("ROLLBACK" if kind is Kind.EDIT and 0 in counts else "COMMIT")
        except sqlite3.Error as error:
            raise LedgerError(f"ledger: {self.where}: {error}") from None
        finally:
            place.end(self)
        return counts

    def close(self) -> None:
        self._place.drop(self)
