# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What stands in for psycopg: sessions of a server in memory, which may be lost, and answers, too."""

from __future__ import annotations

import sqlite3
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from types import SimpleNamespace

from ansible_collections.infrastructure.services.plugins.plugin_utils._ledger import (
    postgresql,
    tables,
)

from .places import PLACES, Place
from .scheduler import Killed

_NUMBER = postgresql.PostgresDatabase.number, "INTEGER PRIMARY KEY AUTOINCREMENT"
_CONNECTING = "SELECT set_config", "SELECT pg_backend_pid"  # parts of making a connection
_SAME = {
    tables.TABLES_IN_POSTGRESQL: tables.TABLES_IN_SQLITE,
    "SELECT current_schema(), current_setting('search_path')": "SELECT 'public', 'public'",
    "SELECT current_schema()": "SELECT 'public'",
}


class Error(Exception):
    """As psycopg.Error."""

    sqlstate: str | None = None


class OperationalError(Error):
    """As psycopg.OperationalError."""


_FATES = {  # of what a server was sent: whether it was done, and whether the session is still there
    "lost before it was done": (False, False),
    "its answer lost with the session": (True, False),
    "done, but reported as cancelled": (True, True),
}


class Session:
    """A connection of psycopg, with its session at the server."""

    Pipeline = SimpleNamespace(is_supported=lambda: True)

    def __init__(self, place: Place) -> None:
        self._place, self._world = place, place.world
        self._process = place.world.running.process
        self.closed = self.is_lost = False
        self.name = f"{self._process.name} {len(self._process.at_death)}"
        self.info = SimpleNamespace(backend_pid=zlib.crc32(self.name.encode()), user="me")
        self._sent: list | None = None  # in a pipeline
        self._process.at_death.append(self._end)
        self._process.sessions[place] = self

    @staticmethod
    def connect(**asked) -> Session:
        return Session(PLACES[asked["host"]])

    def _end(self) -> None:
        self.is_lost = True
        self._place.drop(self)

    def lose(self) -> None:
        self._world.losses_left -= 1
        self._world.see("the session is lost")
        self._end()

    def close(self) -> None:
        self.closed = True
        self._end()

    def rollback(self) -> None:
        self._require()
        self._place.end(self)

    @contextmanager
    def pipeline(self) -> Iterator[None]:
        self._sent = []
        try:
            yield
            sent, self._sent = self._sent, None
            self._at_once(sent)
        finally:
            self._sent = None

    def execute(self, statement: str, values: Iterable = ()) -> Cursor:
        cursor = Cursor(statement, values)
        if self._sent is not None:
            self._sent.append(cursor)
        elif statement.startswith(_CONNECTING):
            pid = self.info.backend_pid + (self._place.kind == "pooler")
            cursor.rows = [(pid, "UTF8")]
        else:
            self._at_once([cursor])
        return cursor

    def _at_once(self, cursors: list[Cursor]) -> None:
        """Send statements; a transaction may end in more ways than one that reads."""
        writes = len(cursors) > 1 or cursors[0].statement == "COMMIT"
        fate = self._world.point(
            "a transaction" if writes else "a statement",
            _FATES if writes and self._world.losses_left > 0 else (),
        )
        self._require()
        place, (is_done, is_there) = self._place, _FATES.get(fate, (True, True))
        try:
            for cursor in cursors if is_done else ():
                cursor.run(place, self)
        except sqlite3.Error as error:
            raise Error(str(error)) from None
        finally:
            if cursors[-1].statement in ("COMMIT", "ROLLBACK") or not is_there:
                place.end(self)
        if fate:
            error = OperationalError(fate)
            if is_there:
                error.sqlstate = "57014"
            else:
                self.lose()
                self.closed = True
            raise error

    def _require(self) -> None:
        if self._process.is_dead:
            raise Killed
        if self.is_lost:
            self.closed = True
            raise OperationalError("the connection is closed")


class Cursor:
    """What a statement returns."""

    description, rowcount = True, 0

    def __init__(self, statement: str, values: Iterable) -> None:
        self.statement, self._values, self.rows = statement, values, []

    def run(self, place: Place, session: Session) -> None:
        """Run the statement, where SQLite has no such function as PostgreSQL does."""
        if self.statement.startswith("SELECT pg_"):
            self.rows, self.rowcount = [(self._locked(place, session, *self._values),)], 1
            return
        if self.statement.startswith("SET LOCAL"):
            return
        if self.statement == postgresql._BEGIN:
            place.begin(session)
            return
        statement = _SAME.get(self.statement) or self.statement.replace("%s", "?").replace(*_NUMBER)
        self.rows, self.rowcount = place.execute(statement, self._values)

    def fetchall(self) -> list[tuple]:
        return self.rows

    def _locked(self, place: Place, session: Session, number: int) -> bool:
        if "unlock" in self.statement:
            place.release(number, session)
        if "try" not in self.statement:
            return True
        return place.take(number, session)
