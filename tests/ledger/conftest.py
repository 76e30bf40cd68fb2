"""A fresh ledger on each of the two databases, including a real PostgreSQL, and the emulator as the
service.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import urlsplit
from uuid import uuid4

import psycopg
import pytest
from ansible_collections.infrastructure.services.plugins.module_utils._errors import LedgerAway
from ansible_collections.infrastructure.services.plugins.plugin_utils._ledger.entries import Write
from ansible_collections.infrastructure.services.plugins.plugin_utils._ledger.ledger import Ledger
from ansible_collections.infrastructure.services.plugins.plugin_utils._ledger.postgresql import (
    PostgresDatabase,
)
from emulator import server
from ledger.forked import Process, forking
from support.databases import schema_in
from support.ledgers import create, open_at

__all__ = ["SLOW_ON_POSTGRES"]

# For tests of many statements or entries, each of which takes longer on a server.
SLOW_ON_POSTGRES = pytest.mark.parametrize(
    "location",
    ["sqlite", pytest.param("postgres", marks=pytest.mark.matrix)],
    indirect=True,
)


@pytest.fixture
def postgres(request, postgres_server) -> str:
    """The URL of a ledger in a schema of its own, as `location`."""
    return for_service(request, schema_in(postgres_server))


def for_service(request, location: str) -> str:
    """Create a ledger for the emulator if the test uses that."""
    if "service" in request.fixturenames:
        create(location, request.getfixturevalue("service").url)
    return location


@pytest.fixture
def database(postgres_server):
    """Return a function that creates a database with the given encoding and returns its URL."""

    def database(encoding: str = "UTF8") -> str:
        name = f"database_{uuid4().hex}"
        with psycopg.connect(postgres_server, autocommit=True) as connection:
            connection.execute(
                f"CREATE DATABASE {name} ENCODING '{encoding}' LOCALE 'C' TEMPLATE template0"
            )
        return urlsplit(postgres_server)._replace(path=f"/{name}").geturl()

    return database


@pytest.fixture(params=["sqlite", "postgres"])
def location(request, tmp_path: Path) -> str:
    """A ledger: that of the emulator if the test uses it, else it does not exist yet."""
    if request.param == "postgres":
        return request.getfixturevalue("postgres")
    return for_service(request, str(tmp_path / "ledger.db"))


@pytest.fixture(scope="session")
def fork() -> Iterator[Callable[..., Process]]:
    """Start a function of processes.py, given its name and arguments, in a process of its own."""
    with forking() as fork:
        yield fork


@pytest.fixture
def opened() -> Iterator[Callable[..., Ledger]]:
    """Open ledgers, created if need be, which are closed at the end of the test."""
    ledgers = []

    def opened(location: str, base_url: str = "") -> Ledger:
        ledgers.append(open_at(location, base_url))
        return ledgers[-1]

    yield opened
    for ledger in ledgers:
        ledger.close()


@pytest.fixture
def lose_an_answer(monkeypatch) -> Callable[..., list[Write]]:
    """Let the answer to a write of a kind be lost once; the list that is returned then has the
    kind.
    """

    def lose(kind: Write, is_written: bool = True, before: Callable = bool) -> list[Write]:
        """`is_written`: or the write itself is lost; `before`: happens before it."""
        real, lost = PostgresDatabase.execute, []

        def losing(self, statements, given=None):
            if given is not kind or lost:
                return real(self, statements, given)
            lost.append(given)
            before()
            if is_written:
                real(self, statements, given)
            self._connection.close()
            raise LedgerAway("the connection is lost")

        monkeypatch.setattr(PostgresDatabase, "execute", losing)
        return lost

    return lose


@pytest.fixture(scope="module")
def started() -> Iterator[server.Running]:
    """The emulator in this process."""
    with server.start(roles=["role-0001"]) as running:
        yield running


@pytest.fixture
def service(started: server.Running) -> server.Running:
    """The emulator in this process, reset to its initial state."""
    started.api.reset()
    return started
