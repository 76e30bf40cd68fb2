"""A ledger that stays away ends a list promptly, and files that are open leave room for it."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

from ansible_collections.infrastructure.services.plugins.module_utils._errors import LedgerAway
from ansible_collections.infrastructure.services.plugins.plugin_utils._ledger import postgresql
from many.conftest import run_here
from support.databases import schema_in
from support.ledgers import states

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


def names(result: dict, outcome: str, **more) -> set[str]:
    return {
        each["item"]
        for each in result["results"]
        if each["outcome"] == outcome and more.items() <= each.items()
    }


def test_a_database_that_stays_away_ends_the_list(postgres_server, service, monkeypatch):
    """Once, and not for each item, which would take twice as long as is allowed here."""
    database = schema_in(postgres_server)
    real = postgresql.PostgresDatabase.execute

    def execute(self, statements, kind=None):
        if kind and len(service.created) > 20:
            raise LedgerAway(f"{self.where}: away")
        return real(self, statements, kind)

    monkeypatch.setattr(postgresql.PostgresDatabase, "execute", execute)
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


def test_a_list_leaves_descriptors_for_the_ledger(service, tmp_path):
    """SQLite opens a file for each write: without one, what was created could not be recorded."""
    service.seconds = 0.02
    arguments = (str(Path(__file__).parents[1]), str(tmp_path / "l.db"), service.url)
    line = [sys.executable, "-c", FEW_FILES, *arguments]
    done = subprocess.run(line, capture_output=True, text=True, timeout=120, check=False)
    assert (done.stdout, done.stderr) == ("{'accepted': 100}\n", "")
    assert len(service.created) == 100
