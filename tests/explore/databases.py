# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Databases in memory with the faults that a scheduler chooses: one like SqliteDatabase, and one under PostgresDatabase.

The code of PostgresDatabase and of its locks is the real one; only psycopg, threading and time are stood in for.
"""

from __future__ import annotations

import math
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager, nullcontext
from types import SimpleNamespace
from unittest import mock

from ansible_collections.infrastructure.services.plugins.plugin_utils._ledger import (
    postgresql,
    postgresql_library,
    queue,
    recording,
    store,
    tables,
)
from ansible_collections.infrastructure.services.plugins.plugin_utils._ledger.entries import LedgerError

from .scheduler import LOOKING, Killed, World

_NUMBER = postgresql.PostgresDatabase.number, "INTEGER PRIMARY KEY AUTOINCREMENT"


class Place:
    """Where a ledger is: a file, or a database of a server."""

    def __init__(self, world: World, name: str, kind: str) -> None:
        self.world, self.name, self.kind = world, name, kind
        self.data = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
        self.locks: dict[int, object] = {}  # by number, who holds it

    def opened(self) -> File | postgresql.PostgresDatabase:
        """Return a database for the process that is running."""
        return File(self) if self.kind == "file" else postgresql.PostgresDatabase(self.name)

    def take(self, number: int, holder: object) -> bool:
        return self.locks.setdefault(number, holder) is holder

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
            self.world.on_commit()


class File:
    """Stands in for SqliteDatabase."""

    number = "INTEGER PRIMARY KEY AUTOINCREMENT"
    interruptible = nullcontext

    def __init__(self, place: Place) -> None:
        self._place, self._world = place, place.world
        self.where = self.shown = self.file = place.name
        place.world.running.process.at_death.append(self.close)

    def tables(self) -> set[str]:
        return {name for (name,) in self.execute(tables.TABLES_IN_SQLITE)}

    def prepare(self, create: list[str]) -> None:
        if create:
            self.write([(statement, ()) for statement in create], durable=True)

    def lock(self, number: int, waiting) -> bool:
        self._world.point("a lock")
        if waiting:
            self._world.wait(lambda: self._place.locks.get(number, self) is self)
        return self._place.take(number, self)

    def unlock(self, number: int) -> None:
        self._world.point("an unlock")
        self._place.release(number, self)

    def execute(self, statement: str, values: Iterable = ()) -> list[tuple]:
        self._world.point("a statement")
        try:
            return self._place.data.execute(statement, values).fetchall()
        except sqlite3.Error as error:
            raise LedgerError(f"ledger: {self.where}: {error}") from None

    def write(self, statements: Iterable[tuple[str, tuple]], durable: bool, whole: bool = False) -> list[int]:
        failed = self._world.point("a write", ("the write fails",))
        place = self._place
        place.begin(self)
        try:
            counts = [place.data.execute(statement, values).rowcount for statement, values in statements]
            if failed:
                raise sqlite3.OperationalError("disk I/O error")
            place.data.execute("ROLLBACK" if whole and 0 in counts else "COMMIT")
        except sqlite3.Error as error:
            raise LedgerError(f"ledger: {self.where}: {error}") from None
        finally:
            place.end(self)
        return counts

    def close(self) -> None:
        self._place.drop(self)


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
        self.deadline = math.inf
        self.info = SimpleNamespace(backend_pid=id(self), user="me")
        self._sent: list | None = None  # in a pipeline
        self._process.at_death.append(self._end)
        self._process.sessions[place] = self

    @staticmethod
    def connect(**asked) -> Session:
        return Session(STANDING_IN.world.places[asked["host"]])

    def _end(self) -> None:
        self.is_lost = True
        self._place.drop(self)

    def lose(self) -> None:
        self._world.losses_left -= 1
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
            cursor.rows = [(id(self), "UTF8")]
        else:
            self._at_once([cursor])
        return cursor

    def _at_once(self, cursors: list[Cursor]) -> None:
        """Send statements; a transaction may end in more ways than one that reads."""
        writes = len(cursors) > 1 or cursors[0].statement == "COMMIT"
        fate = self._world.point(
            "a transaction" if writes else "a statement", _FATES if writes and self._world.losses_left > 0 else ()
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
            self.rows = [(self._locked(place, session, *self._values),)]
            return
        if self.statement == postgresql._BEGIN:
            place.begin(session)
            return
        statement = _SAME.get(self.statement) or self.statement.replace("%s", "?").replace(*_NUMBER)
        found = place.data.execute(statement, tuple(self._values))
        self.rows, self.rowcount = found.fetchall(), found.rowcount

    def fetchall(self) -> list[tuple]:
        return self.rows

    def _locked(self, place: Place, session: Session, number: int) -> bool:
        if "unlock" in self.statement:
            place.release(number, session)
        return "try" not in self.statement or place.take(number, session)


_CONNECTING = "SELECT set_config", "SELECT pg_backend_pid"  # parts of making a connection
_SAME = {
    tables.TABLES_IN_POSTGRESQL: tables.TABLES_IN_SQLITE,
    "SELECT current_schema(), current_setting('search_path')": "SELECT 'public', 'public'",
    "SELECT current_schema()": "SELECT 'public'",
}


class StandingIn:
    """Takes the place of the modules `threading`, `time` and psycopg for the code of the ledger."""

    world: World

    def monotonic(self) -> float:
        return self.world.now

    def sleep(self, seconds: float) -> None:
        """Let time pass; who looks again and again for a lock goes on once one was released."""
        world = self.world
        before = world.releases
        world.wait(lambda: seconds < LOOKING and world.releases != before, seconds)

    def Thread(self, target, daemon):  # noqa: N802 - as threading has it
        process = self.world.running.process
        return SimpleNamespace(start=lambda: self.world.add(process, target, is_background=True))

    def Event(self) -> Event:  # noqa: N802
        return Event(self.world)

    def RLock(self) -> RLock:  # noqa: N802
        return RLock(self.world)

    def Condition(self) -> Condition:  # noqa: N802
        return Condition(self.world)

    @contextmanager
    def used(self) -> Iterator[None]:
        """Let the code use this."""
        with ExitStack() as patched:
            for module, *names in _USERS:
                for name in names:
                    patched.enter_context(mock.patch.object(module, name, self))
            library = SimpleNamespace(Error=Error, OperationalError=OperationalError, Pipeline=Session.Pipeline)
            for name, value in {
                "psycopg_library": lambda: library, "connection_class": lambda: Session,
                "parsed_url": lambda url: {"host": url},
            }.items():
                patched.enter_context(mock.patch.object(postgresql, name, value))
            yield


_USERS = (
    (store, "time"), (recording, "time"), (queue, "time", "threading"), (postgresql, "time", "threading"),
    (postgresql_library, "threading"),
)
STANDING_IN = StandingIn()


class Event:
    """What the thread waits on that looks after a session: it wakes soon after the session has ended."""

    def __init__(self, world: World) -> None:
        self._world, self._is_set = world, False

    def set(self) -> None:
        self._is_set = True

    def is_set(self) -> bool:
        return self._is_set

    def wait(self, _seconds: float) -> bool:
        process = self._world.running.process
        self._world.wait(lambda: self._is_set or any(session.is_lost for session in process.sessions.values()))
        return self._is_set


class RLock:
    """As that of threading."""

    def __init__(self, world: World) -> None:
        self._world, self._owner, self._count = world, None, 0

    def __enter__(self) -> None:
        me = self._world.running
        if self._owner is not me:
            if self._owner:
                self._world.wait(lambda: self._owner is None)
            self._owner = me
        self._count += 1

    def __exit__(self, *_error) -> None:
        self._count -= 1
        if not self._count:
            self._owner = None


class Condition:
    """As that of threading; nobody is overtaken within it."""

    def __init__(self, world: World) -> None:
        self._world = world

    def __enter__(self) -> None:
        pass

    def __exit__(self, *_error) -> None:
        pass

    def wait_for(self, ready) -> None:
        self._world.wait(ready)

    def notify_all(self) -> None:
        pass
