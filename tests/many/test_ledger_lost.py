"""A ledger that stays away ends a list promptly, one that comes back does not."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import psycopg
import pytest
from ansible_collections.infrastructure.services.plugins.plugin_utils._ledger import postgresql
from ansible_collections.infrastructure.services.plugins.plugin_utils._ledger.entries import (
    LedgerAway,
)
from many.conftest import run_here
from support.databases import schema_in
from support.ledgers import states
from support.waiting import until

COUNT = 400
FEW_FILES = """if True:
    import collections, os, resource, sys
    sys.path.insert(0, sys.argv[1])
    import conftest
    from many.conftest import run_here
    limit = len(os.listdir("/dev/fd")) + 30
    resource.setrlimit(resource.RLIMIT_NOFILE, (limit, limit))
    names = [f"m-{number}" for number in range(100)]
    results = run_here(sys.argv[2], sys.argv[3], names, at_once=64)["results"]
    print(dict(collections.Counter(result["outcome"] for result in results)))"""
LONGEST = 40.0  # seconds, for a busy machine; a limit of 2 s for each of 40 items would take twice as long


@pytest.fixture
def database(postgres_server) -> str:
    """The URL of a ledger in a schema of its own."""
    return schema_in(postgres_server)


def names(result: dict, outcome: str, **more) -> set[str]:
    return {
        each["item"]
        for each in result["results"]
        if each["outcome"] == outcome and more.items() <= each.items()
    }


def test_a_database_that_stays_away_ends_the_list(database, service, monkeypatch):
    """Once, and not for each item, which would take twice as long as is allowed here."""
    real = postgresql.PostgresDatabase.write

    def write(self, statements, kind):
        if len(service.created) > 20:
            raise LedgerAway(f"{self.where}: away")
        return real(self, statements, kind)

    monkeypatch.setattr(postgresql.PostgresDatabase, "write", write)
    monkeypatch.setattr(postgresql.PostgresDatabase, "tried_for", 2.0)
    service.seconds = 0.3
    every, started = [f"vm{number}" for number in range(COUNT)], time.monotonic()
    result = run_here(database, service.url, every, at_once=40)
    assert time.monotonic() - started < LONGEST
    assert "not started: the ledger cannot be used" in result["msg"]
    assert result["counts"]["not_begun"] > 0
    sent, recorded = set(service.created), states(database)
    assert set(service.created.values()) == {1}
    assert names(result, "accepted") == sent <= recorded.keys()
    done = {name for name, state in recorded.items() if state == "done"}
    assert names(result, "accepted", failed=False) == done


def test_a_list_goes_on_once_the_database_is_back(database, service, monkeypatch):
    """The session is ended and the next one refused for a while, as while a pooler restarts."""
    every, refused = [f"vm{number}" for number in range(50)], threading.Event()
    service.held = set(every)
    connect = postgresql.PostgresDatabase._connect

    def connected(self) -> None:
        try:
            connect(self)
        except psycopg.OperationalError:
            refused.set()
            raise

    monkeypatch.setattr(postgresql.PostgresDatabase, "_connect", connected)
    name = parse_qs(urlsplit(database).query)["options"][0].partition("=")[2]
    with psycopg.connect(database, autocommit=True) as admin:
        role = f"role_{name}"
        admin.execute(f"CREATE ROLE {role} LOGIN")
        admin.execute(f"GRANT ALL ON SCHEMA {name} TO {role}")

        def away() -> None:
            until(lambda: len(service.created) >= 4)
            admin.execute(f"ALTER ROLE {role} NOLOGIN")
            admin.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = %s", (role,)
            )
            service.release("vm2")
            refused.wait(10)
            admin.execute(f"ALTER ROLE {role} LOGIN")
            service.release(*every)

        thread = threading.Thread(target=away, daemon=True)
        thread.start()
        result = run_here(database.replace("postgres:@", f"{role}@"), service.url, every)
        thread.join(10)
    assert refused.is_set()
    assert names(result, "accepted", failed=False) == set(service.created) == set(every)


def test_a_list_leaves_descriptors_for_the_ledger(service, tmp_path):
    """SQLite opens a file for each write: without one, what was created could not be recorded."""
    service.seconds = 0.02
    arguments = (str(Path(__file__).parents[1]), str(tmp_path / "l.db"), service.url)
    line = [sys.executable, "-c", FEW_FILES, *arguments]
    done = subprocess.run(line, capture_output=True, text=True, timeout=120, check=False)
    assert (done.stdout, done.stderr) == ("{'accepted': 100}\n", "")
    assert len(service.created) == 100
