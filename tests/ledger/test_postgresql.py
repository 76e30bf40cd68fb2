# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How PostgreSQL servers and poolers treat sessions and texts, and URLs that contain a password."""

from __future__ import annotations

import logging
import os
import re
import shutil
import signal
import subprocess
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit
from uuid import uuid4

import psycopg
import pytest
from ansible_collections.infrastructure.services.plugins.plugin_utils._ledger import postgresql
from ansible_collections.infrastructure.services.plugins.plugin_utils._ledger.entries import (
    ABSENT,
    DONE,
    INTENT,
    Change,
    Ended,
    Entry,
    Key,
    Kind,
    LedgerError,
    LedgerLost,
)
from ansible_collections.infrastructure.services.plugins.plugin_utils._ledger.location import (
    open_ledger,
)
from emulator import faults
from ledger.entries import begin, finish, history, put
from ledger.loops import created, crowd, race
from ledger.tasks import key, task
from support.waiting import until, waiting

KEY = Key("https://s", "compute_virtual_machine", "web01")
BEGUN = Entry(INTENT, {}, {})
ENDED = Ended(ABSENT, DONE)
ADVISORY_LOCKS = (
    "SELECT count(*) FROM pg_locks JOIN pg_database ON pg_database.oid = database"
    " WHERE locktype = 'advisory' AND datname = current_database()"
)


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


def backend(ledger) -> int:
    """Return the pid of the backend that serves a ledger."""
    return ledger.database.execute("SELECT pg_backend_pid()")[0][0]


def end_session(url: str, pid: int) -> None:
    """End a session as an administrator, a restart or a failover does, and wait until its locks are
    free.
    """
    with psycopg.connect(url, autocommit=True) as administrator:
        administrator.execute("SELECT pg_terminate_backend(%s, 60000)", (pid,))


def test_a_new_session_takes_the_locks_of_the_ended_one(postgres, opened):
    """Else another run would not wait for a creation in flight, and its user would be told to look
    for the machine.
    """
    mine, other = opened(postgres), opened(postgres)
    assert mine.lock(KEY, wait=False)
    end_session(postgres, backend(mine))
    assert mine.get(KEY) is None  # any statement, over the new session
    assert not other.lock(KEY, wait=False)
    mine.release(KEY)
    assert other.lock(KEY, wait=False)


def test_an_outcome_waits_for_a_server_that_is_a_standby_for_a_while(postgres, opened, monkeypatch):
    ledger = opened(postgres)
    begun = begin(ledger, KEY, BEGUN, None)
    execute, write, tried = ledger.database.execute, ledger.database.write, []

    def write_to_standby(statements: list, kind: Kind) -> list[int]:
        """Write; after a second refusal the server is promoted."""
        tried.append(kind)
        try:
            return write(statements, kind)
        finally:
            if len(tried) == 2:
                execute("SET default_transaction_read_only = off")

    execute("SET default_transaction_read_only = on")
    monkeypatch.setattr(ledger.database, "write", write_to_standby)
    assert finish(ledger, KEY, begun, begun._replace(state=DONE), ENDED)
    assert len(tried) == 3
    assert ledger.get(KEY).state == DONE


def test_a_task_that_waits_for_one_whose_session_ends_sends_nothing(postgres, fork, service):
    """The lock ends with the session, so it says that the asset is in doubt."""
    service.api.add_fault(faults.parse({"kind": "delay", "seconds": 3, "count": 1}))
    with fork("loop", postgres, service.url, 1) as first:
        until(lambda: len(service.api.conversation) == 1)
        with psycopg.connect(postgres, autocommit=True) as administrator:
            holder = administrator.execute(
                "SELECT pid FROM pg_locks WHERE locktype = 'advisory' AND granted AND database ="
                " (SELECT oid FROM pg_database WHERE datname = current_database())"
            ).fetchone()[0]
            with fork("loop", postgres, service.url, 1) as second:
                until(lambda: waiting(postgres))
                administrator.execute("SELECT pg_terminate_backend(%s, 60000)", (holder,))
                (mine,), (other,) = first.results(), second.results()
    assert (mine["outcome"], other["outcome"]) == ("accepted", "unknown")
    assert len(service.api.conversation) == 1


def test_an_outcome_is_recorded_once_the_server_answers_again(postgres, opened, monkeypatch):
    """A pooler that restarts refuses connections for a second or two."""
    ledger, refused = opened(postgres), iter(range(3))
    begun = begin(ledger, KEY, BEGUN, None)
    end_session(postgres, backend(ledger))
    connect = postgresql.PostgresDatabase._connect

    def restarting(self) -> None:
        if next(refused, None) is not None:
            raise psycopg.OperationalError("connection refused")
        connect(self)

    monkeypatch.setattr(postgresql.PostgresDatabase, "_connect", restarting)
    assert finish(ledger, KEY, begun, begun._replace(state=DONE), ENDED)
    assert (ledger.get(KEY).state, next(refused, None)) == (DONE, None)


def test_a_lock_that_another_one_took_meanwhile_is_not_held(postgres, opened):
    mine, other = opened(postgres), opened(postgres)
    assert mine.lock(KEY, wait=False)
    end_session(postgres, backend(mine))
    assert other.lock(KEY, wait=False)
    assert mine.get(KEY) is None
    assert not mine.lock(KEY, wait=False)
    mine.release(KEY)
    assert not mine.lock(KEY, wait=False)


def test_a_lock_that_was_taken_twice_is_released_at_once(postgres, opened):
    """As by a task that was overtaken once, and then began after all; PostgreSQL counts how often a
    lock is taken.
    """
    ledger = opened(postgres)
    first = begin(ledger, KEY, BEGUN, None)
    assert ledger.begin(Change(KEY, None, BEGUN)) == (False, first)
    assert ledger.begin(Change(KEY, first, BEGUN))[0]
    ledger.release(KEY)
    assert ledger.database.execute(ADVISORY_LOCKS) == [(0,)]


def test_an_error_in_a_transaction_keeps_the_session_and_its_locks(postgres, opened):
    """One asset that cannot be recorded drops the locks of no other one in flight."""
    mine, other = opened(postgres), opened(postgres)
    assert mine.lock(KEY, wait=False)
    session = backend(mine)
    with pytest.raises(LedgerError):
        begin(mine, KEY._replace(name="nul"), BEGUN._replace(trace_id="a\0b"), None)
    with pytest.raises(LedgerError):
        begin(mine, KEY._replace(name="constraint"), BEGUN._replace(state=None), None)
    assert backend(mine) == session
    assert not other.lock(KEY, wait=False)
    assert begin(mine, KEY, BEGUN, None)


def test_a_name_too_long_for_the_index_is_refused_before_the_request(postgres, opened):
    """These 3,200 bytes cannot be compressed; 5,000 times the same letter can."""
    name = "".join(uuid4().hex for _number in range(100))
    with pytest.raises(LedgerError, match=r"index row size .* exceeds"):
        begin(opened(postgres), KEY._replace(name=name), BEGUN, None)


def test_the_isolation_that_the_server_has_by_default_does_not_matter(postgres, opened):
    with psycopg.connect(postgres, autocommit=True) as administrator:
        name = administrator.execute("SELECT current_database()").fetchone()[0]
        administrator.execute(
            f"ALTER DATABASE {name} SET default_transaction_isolation = serializable"
        )
        try:
            ledger = opened(postgres)
            isolation = "SELECT 1 WHERE current_setting('transaction_isolation') = ?"
            assert ledger.database.write([(isolation, ("read committed",))], Kind.BEGIN) == [1]
        finally:
            administrator.execute(f"ALTER DATABASE {name} RESET default_transaction_isolation")


def test_no_statement_needs_another_thread(postgres, opened, monkeypatch):
    """Under a limit on threads the ledger must go on: without it, what was accepted could not be
    recorded.
    """
    ledger = opened(postgres)

    def start(thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", start)
    begun = begin(ledger, KEY, BEGUN, None)
    assert finish(ledger, KEY, begun, begun._replace(state=DONE), ENDED)


def test_the_library_writes_no_log(postgres, opened):
    """Its warnings would come from a thread while Ansible's main thread may hold the lock of
    stderr.
    """
    opened(postgres)
    assert not logging.getLogger("psycopg").isEnabledFor(logging.CRITICAL)


def test_a_database_that_is_not_utf_8_is_refused_before_a_request(database, service):
    result = task(database("LATIN1"), base_url=service.url)
    assert (result["failed"], result["outcome"]) == (True, "not_sent")
    assert "the database has ENCODING 'LATIN1'" in result["msg"]
    assert "Create another one with ENCODING 'UTF8'" in result["msg"]
    assert service.api.conversation == []


@pytest.mark.parametrize("encoding", ["SQL_ASCII", "UTF8"])
def test_names_are_preserved_whatever_the_encoding_of_the_database(
    database, opened, service, encoding
):
    url = database(encoding)
    names = ["café", "名前", "a\\u00e9", 'quo"te', "😀"]
    for _time in range(2):
        outcomes = [task(url, base_url=service.url, name=name)["outcome"] for name in names]
    assert outcomes == ["not_sent"] * len(names)
    assert created(service) == names
    ledger = opened(url)
    found = ledger.get_many(*key(service)[:2], names)
    assert [found[name].asset["name"] for name in names] == names
    assert [key.name for key, _ended in history(ledger)] == names


@pytest.mark.parametrize("when", ["before the intent", "while the service works"])
def test_a_session_that_was_ended_is_replaced(postgres, opened, service, monkeypatch, when):
    ledger, killer = opened(postgres), opened(postgres)
    step = "begin" if when == "before the intent" else "finish"
    real = getattr(ledger, step)

    def after_the_end(*arguments):
        killer.database.execute("SELECT pg_terminate_backend(?)", (backend(ledger),))
        return real(*arguments)

    monkeypatch.setattr(ledger, step, after_the_end)
    assert task(ledger, base_url=service.url)["outcome"] == "accepted"
    assert opened(postgres).get(key(service)).state == DONE
    assert len(history(ledger)) == 1


def test_an_insert_whose_answer_was_lost_is_recognised(postgres, opened, monkeypatch):
    """The transaction was committed, then the connection lost: the insert was ours, and its history
    is written once.
    """
    ledger, real = opened(postgres), postgresql.PostgresDatabase.write

    def lost(self, statements, kind):
        real(self, statements, kind)
        monkeypatch.setattr(postgresql.PostgresDatabase, "write", real)
        self._connection.close()
        raise LedgerLost("the connection is lost")

    monkeypatch.setattr(postgresql.PostgresDatabase, "write", lost)
    begun = begin(ledger, KEY, BEGUN, None)
    assert begun == ledger.get(KEY)
    monkeypatch.setattr(postgresql.PostgresDatabase, "write", lost)
    assert finish(ledger, KEY, begun, None, ENDED) is True
    assert (ledger.get(KEY), len(history(ledger))) == (None, 1)


@pytest.mark.parametrize("step", ["begin", "update", "finish"])
def test_a_transaction_that_the_server_commits_late_is_ours(postgres, opened, monkeypatch, step):
    """The answer was lost while the server was still committing: the second write then changes no
    row.
    """
    ledger, real, writes = opened(postgres), postgresql.PostgresDatabase.write, []
    before = None if step == "begin" else begin(ledger, KEY, BEGUN, None)

    def late(self, statements, kind):
        writes.append(statements)
        if len(writes) == 1:
            self._connection.close()
            raise LedgerLost("the connection is lost")
        real(self, writes[0], kind)
        return real(self, statements, kind)

    monkeypatch.setattr(postgresql.PostgresDatabase, "write", late)
    if step == "finish":
        assert finish(ledger, KEY, before, None, ENDED) is True
        assert ledger.get(KEY) is None
    else:
        assert begin(ledger, KEY, BEGUN, before) == ledger.get(KEY)


@pytest.mark.parametrize("after", [BEGUN, None])
def test_an_overtaken_end_whose_answer_was_lost_is_not_ours(postgres, opened, monkeypatch, after):
    ledger, real = opened(postgres), postgresql.PostgresDatabase.write
    begun = begin(ledger, KEY, BEGUN, None)
    other = begin(opened(postgres), KEY, BEGUN, begun)

    def lost(self, statements, kind):
        real(self, statements, kind)
        monkeypatch.setattr(postgresql.PostgresDatabase, "write", real)
        self._connection.close()
        raise LedgerLost("the connection is lost")

    monkeypatch.setattr(postgresql.PostgresDatabase, "write", lost)
    assert finish(ledger, KEY, begun, after, ENDED) is False
    assert (ledger.get(KEY), len(history(ledger))) == (other, 1)


def test_a_session_that_is_idle_for_long_stays_open(postgres, service):
    url = postgres.replace("options=", "options=-cidle_session_timeout%3D300%20")
    service.api.add_fault(faults.parse({"kind": "delay", "seconds": 1}))
    assert task(url, base_url=service.url)["outcome"] == "accepted"
    assert task(url, base_url=service.url)["outcome"] == "not_sent"


def test_a_backend_that_hangs_is_given_up(postgres, opened, monkeypatch):
    monkeypatch.setattr(postgresql, "_STATEMENT_SECONDS", 1.0)
    ledger = opened(postgres)
    stopped = backend(ledger)
    os.kill(stopped, signal.SIGSTOP)
    try:
        started = time.monotonic()
        assert begin(ledger, KEY, BEGUN, None).state == INTENT
        assert time.monotonic() - started < 15
        assert backend(ledger) != stopped
    finally:
        os.kill(stopped, signal.SIGCONT)


def test_a_statement_that_waits_for_another_transaction_is_bounded(postgres, opened, monkeypatch):
    monkeypatch.setitem(postgresql._SESSION, "lock_timeout", "300ms")
    ledger = opened(postgres)
    with psycopg.connect(postgres) as other:
        other.execute("LOCK TABLE infrastructure_services_entry")
        with pytest.raises(LedgerError, match="lock timeout"):
            begin(ledger, KEY, BEGUN, None)
    assert begin(ledger, KEY, BEGUN, None)


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://me:hun/ter2@127.0.0.1:1/db",
        "postgresql://me:hunter2@x@127.0.0.1:1/db",
        "postgresql://me:%zz@h/db",
        "postgresql://me@hunter2@h/db",
        "postgresql://h:hunter2/db",
        "postgresql://h/db/hunter2@",
        "postgresql://h/a#hunter2",
        "postgresql://[::1/hunter2",
        "postgresql://h/db?hunter2=hunter2",
    ],
)
def test_a_url_that_looks_wrong_is_refused_and_not_quoted(url):
    with pytest.raises(
        LedgerError, match=r"Percent-encode special characters of the password"
    ) as error:
        open_ledger(url)
    assert "hun" not in error.value.msg


@pytest.fixture(params=["transaction", "session"])
def pooled(request, database) -> Iterator[str]:
    """The URL of a ledger behind PgBouncer, whose transactions share one connection to the server."""
    program = shutil.which("pgbouncer", path=f"{os.environ['PATH']}:/usr/sbin")
    if not program:
        pytest.fail("PgBouncer is missing: apt-get install pgbouncer")
    url = urlsplit(database())
    name, host = url.path[1:], url.query.partition("host=")[2]
    with tempfile.TemporaryDirectory(prefix="pgbouncer-") as directory:
        os.chmod(directory, 0o777)  # it refuses to run as root
        Path(directory, "users.txt").write_text('"postgres" ""\n')
        Path(directory, "pgbouncer.ini").write_text(
            f"[databases]\n{name} = host={host} user=postgres\n[pgbouncer]\nlisten_addr =\nlisten_port = 6432\n"
            f"unix_socket_dir = {directory}\nauth_type = trust\nauth_file = {directory}/users.txt\n"
            f"pool_mode = {request.param}\ndefault_pool_size = {1 if request.param == 'transaction' else 20}\n"
        )
        line = [
            program,
            f"{directory}/pgbouncer.ini",
            *(["-u", Path(host).owner()] if os.geteuid() == 0 else []),
        ]
        with subprocess.Popen(
            line, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        ) as process:
            deadline = time.monotonic() + 10
            while not Path(directory, ".s.PGSQL.6432").exists() and time.monotonic() < deadline:
                time.sleep(0.05)
            yield f"postgresql://postgres@/{name}?host={directory}&port=6432"
            process.kill()


@pytest.mark.stress
@pytest.mark.parametrize("again", range(10))
def test_behind_a_pooler_nothing_is_created_twice_and_no_lock_is_left(
    pooled, fork, service, opened, again
):
    assert opened(pooled).database._pooled is True
    service.api.add_fault(faults.parse({"kind": "delay", "seconds": 0.01, "count": 0}))
    assert set(race(fork, service, [pooled, pooled], 15).values()) == {1}
    assert opened(pooled).database.execute(ADVISORY_LOCKS) == [(0,)]
    said = Counter(result["outcome"] for result in crowd(fork, pooled, service, 20, "many"))
    assert said["accepted"] == 1
    assert set(said) <= {"accepted", "not_sent", "unknown"}
    put(opened(pooled), KEY, Entry(DONE, {}, {}))


GUIDE = Path(__file__).resolve().parents[2] / "docs/docsite/rst/postgresql.rst"


@pytest.fixture
def team(database):
    """Return a function that runs statements as an administrator, one that opens a role's URL, and
    a new role's name.

    In the statements `web` stands for that name: roles are shared by all databases of the server.
    """
    url, name = database(), f"web{uuid4().hex}"

    def administrate(statements: str) -> None:
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute(re.sub(r"\bweb(?![0-9a-f])", name, statements))

    def as_role(role: str, schema: str) -> str:
        found = urlsplit(url)
        host = found.netloc.rpartition("@")[2]
        query = f"{found.query}&options=-csearch_path%3D{schema}"
        return found._replace(netloc=f"{role}@{host}", query=query).geturl()

    yield administrate, as_role, name
    for role in ("web_ci", "web"):
        administrate(f"DROP OWNED BY {role} CASCADE; DROP ROLE {role}")


def test_the_statements_of_the_guide_give_each_team_a_schema(team, opened):
    administrate, as_role, name = team
    (statements,) = re.findall(
        r":caption: administrator\.sql\n\n((?:    .+\n)+)", GUIDE.read_text(encoding="utf-8")
    )
    administrate(statements)
    for role in (name, f"{name}_ci"):
        put(opened(as_role(role, name)), KEY._replace(name=role), BEGUN)
    assert (
        len(opened(as_role(f"{name}_ci", name), read_only=True).entries({}, lambda name: True)) == 2
    )
    with pytest.raises(LedgerError, match="permission denied for schema public"):
        opened(as_role(name, "public"))


@pytest.mark.parametrize("read_only", [True, False])
def test_a_role_without_rights_is_told_which_are_missing(team, opened, read_only):
    administrate, as_role, name = team
    administrate(
        "CREATE ROLE web LOGIN; CREATE ROLE web_ci LOGIN; CREATE SCHEMA team AUTHORIZATION web"
    )
    opened(as_role(name, "team"))
    tables = ", ".join(
        f"team.infrastructure_services_{table}" for table in ("entry", "history", "schema")
    )
    for missing, rights in (
        ("schema team", "USAGE, CREATE ON SCHEMA team"),
        ("table infrastructure_services_schema", f"SELECT, INSERT, UPDATE, DELETE ON {tables}"),
    ):
        with pytest.raises(LedgerError, match=f": permission denied for {missing}"):
            opened(as_role(f"{name}_ci", "team"), read_only)
        administrate(f"GRANT {rights} TO {name}_ci")
    assert opened(as_role(f"{name}_ci", "team"), read_only).get(KEY) is None


@pytest.mark.parametrize(
    ("table", "right"),
    [("entry", "INSERT"), ("entry", "UPDATE"), ("entry", "DELETE"), ("history", "INSERT")],
)
def test_a_role_that_could_not_record_an_outcome_is_refused_before_a_request(
    team, opened, table, right
):
    administrate, as_role, name = team
    administrate(
        "CREATE ROLE web LOGIN; CREATE ROLE web_ci LOGIN; CREATE SCHEMA team AUTHORIZATION web"
    )
    opened(as_role(name, "team"))
    ours = f"{name}_ci"
    administrate(
        f"GRANT USAGE ON SCHEMA team TO {ours}; GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN"
        f" SCHEMA team TO {ours}; REVOKE {right} ON team.infrastructure_services_{table} FROM {ours}"
    )
    told = rf"the role of the URL lacks {right} on infrastructure_services_{table}$"
    with pytest.raises(LedgerError, match=told):
        opened(as_role(ours, "team"))
    assert opened(as_role(ours, "team"), True).get(KEY) is None


def test_a_role_that_cannot_create_tables_is_told_so(team, opened):
    administrate, as_role, name = team
    administrate(
        "CREATE ROLE web LOGIN; CREATE ROLE web_ci; CREATE SCHEMA team; GRANT USAGE ON SCHEMA team TO web"
    )
    with pytest.raises(LedgerError, match=r": permission denied for schema team$"):
        opened(as_role(name, "team"))
