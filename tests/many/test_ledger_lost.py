"""A ledger that hangs ends a list promptly, one that comes back does not."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import psycopg
import pytest
from ansible_collections.infrastructure.services.plugins.plugin_utils._ledger import (
    postgresql,
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


@pytest.fixture
def relay(database):
    """A process between the tests and the database, and the URL of the ledger behind it."""
    asked, name = parse_qs(urlsplit(database).query), urlsplit(database).path
    line = [
        sys.executable,
        str(Path(__file__).with_name("relay.py")),
        f"{asked['host'][0]}/.s.PGSQL.5432",
    ]
    with subprocess.Popen(line, stdout=subprocess.PIPE, text=True) as process:
        address = f"postgresql://postgres@127.0.0.1:{process.stdout.readline().strip()}{name}"
        schema = database.partition("options=")[2]
        yield (
            process,
            f"{address}?sslmode=disable&gssencmode=disable&connect_timeout=2&options={schema}",
        )
        process.kill()


def in_the_middle(service, act) -> None:
    """Call `act` in a thread once part of the list has been sent."""

    def wait() -> None:
        until(lambda: len(service.created) > 20)
        act()

    threading.Thread(target=wait, daemon=True).start()


def names(result: dict, outcome: str, **more) -> set[str]:
    return {
        each["item"]
        for each in result["results"]
        if each["outcome"] == outcome and more.items() <= each.items()
    }


def test_a_database_that_hangs_ends_the_list(relay, database, service, monkeypatch):
    """With limits of 2 s for a connection, a statement and a loss, the list ends once and not per
    item.
    """
    monkeypatch.setattr(postgresql, "_HANGS", 2.0)
    monkeypatch.setattr(postgresql.PostgresDatabase, "tried_for", 2.0)
    process, url = relay
    service.seconds = 0.3
    stopped = []
    in_the_middle(
        service, lambda: (process.send_signal(signal.SIGSTOP), stopped.append(time.monotonic()))
    )
    result = run_here(url, service.url, [f"vm{number}" for number in range(COUNT)], at_once=40)
    assert time.monotonic() - stopped[0] < LONGEST
    process.send_signal(signal.SIGCONT)
    assert "not started: the ledger cannot be used" in result["msg"]
    assert result["counts"]["not_begun"] > 0
    sent, recorded = set(service.created), states(database)
    assert set(service.created.values()) == {1}
    assert names(result, "accepted") == sent
    done = {
        name for name, state in recorded.items() if state == "done"
    }  # some perhaps once the relay ran again
    assert names(result, "accepted", failed=False) <= done
    assert sent <= recorded.keys()


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
