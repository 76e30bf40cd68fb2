"""What servers, standbys, poolers and roles do to a ledger in PostgreSQL."""

from __future__ import annotations

import logging
import os
import signal
import threading
from collections.abc import Iterator
from contextlib import closing

import psycopg
import pytest
from ansible_collections.infrastructure.services.plugins.module_utils._errors import (
    LedgerAway,
    LedgerError,
)
from ansible_collections.infrastructure.services.plugins.module_utils._http import transport
from ansible_collections.infrastructure.services.plugins.plugin_utils._ledger import postgresql
from ansible_collections.infrastructure.services.plugins.plugin_utils._ledger.entries import (
    DONE,
    INTENT,
    Entry,
    Write,
)
from ansible_collections.infrastructure.services.plugins.plugin_utils._ledger.location import (
    open_ledger,
)
from ansible_collections.infrastructure.services.plugins.plugin_utils._ledger.seen import Seen
from emulator import faults
from ledger.entries import end_leases, execute, history, put
from ledger.tasks import key, task
from ledger.test_together import created
from support.databases import Server, private_server, schema_in, schema_of
from support.ledgers import HOME, create, entry_of

ENTRY = Entry(DONE, {"name": "web01"}, {"id": "1"})
SESSION = "SELECT pg_backend_pid()"


def backend(ledger) -> int:
    """Return the pid of the backend that serves a ledger."""
    ((session,),) = ledger.read(SESSION)
    return session


@pytest.mark.parametrize("is_written", [True, False], ids=["written", "lost"])
@pytest.mark.parametrize("write", [Write.BEGIN, Write.OUTCOME])
@pytest.mark.parametrize("fault", [None, {"kind": "status", "status": 403}])
def test_a_write_whose_answer_is_lost_is_neither_lost_nor_written_twice(
    postgres, opened, service, lose_an_answer, write, is_written, fault
):
    """The revision shows whether it was committed."""
    opened(postgres)
    if fault:
        service.api.add_fault(faults.parse(fault))
    times = lose_an_answer(write, is_written)
    result = task(postgres, base_url=service.url, retries=0)
    assert times == [write]
    assert result["outcome"] == ("rejected" if fault else "accepted")
    assert "could not be recorded" not in str(result.get("msg"))
    ledger = opened(postgres)
    entry = entry_of(ledger, key())
    assert (entry.state if entry else None) == (None if fault else DONE)
    assert [row.outcome for row in history(ledger, key())] == ["", result["outcome"]]
    assert len(service.api.conversation) == 1


def test_an_outcome_whose_answer_is_lost_is_recorded_where_its_entry_is_gone(
    postgres, opened, service, lose_an_answer
):
    """As after a failover that loses rows; its row in the history does not show an entry."""
    ledger = opened(postgres, base_url=service.url)
    lose_an_answer(Write.OUTCOME, before=lambda: put(ledger, key(), None))
    result = task(postgres, base_url=service.url)
    assert result["outcome"] == "accepted"
    assert "its entry was gone when the request ended" in result["warnings"][0]
    assert entry_of(ledger, key()).asset == result["asset"]
    assert [row.outcome for row in history(ledger, key())] == ["", "accepted"]


def test_a_beginning_that_may_be_committed_is_said_and_nothing_is_sent(
    postgres, opened, service, monkeypatch
):
    opened(postgres)
    task(postgres, base_url=service.url, name="first")
    real = postgresql.PostgresDatabase.execute

    def away(self, statements, kind=None):
        done = real(self, statements, kind)
        if kind is Write.BEGIN:
            raise LedgerAway("the connection is lost")
        return done

    monkeypatch.setattr(postgresql.PostgresDatabase, "execute", away)
    monkeypatch.setattr(postgresql.PostgresDatabase, "tried_for", 0.3)
    result = task(postgres, base_url=service.url)
    assert (result["failed"], result["outcome"], result["changed"]) == (True, "not_sent", False)
    assert "Nothing was sent" in result["msg"]
    assert "If the ledger lists it in doubt, it may be settled as absent" in result["msg"]
    assert entry_of(opened(postgres), key()).state == INTENT
    assert len(service.api.conversation) == 1


@pytest.fixture(scope="module")
def private() -> Iterator[Server]:
    with private_server() as server:
        yield server


@pytest.fixture
def server(private) -> Server:
    """The server, running."""
    private.start()
    return private


@pytest.mark.parametrize("when", ["before it opens", "before the intent", "after the answer"])
def test_a_server_that_is_away_for_some_seconds_stops_nothing(server, service, monkeypatch, when):
    """As when it restarts: whatever a task does with it is tried for as long as an outcome."""
    place, real = create(schema_in(server.url), service.url), transport.send_once

    def restart() -> None:
        server.kill()
        threading.Timer(2, server.start).start()

    def opens(location, base_url):
        if when == "before it opens":
            restart()
        ledger = open_ledger(location, Seen(HOME, "run-of-the-tests"), base_url, writes=True)
        if when == "before the intent":
            find = ledger.find

            def found(*given, **options):
                snapshot = find(*given, **options)
                restart()
                return snapshot

            ledger.find = found
        return ledger

    def send_once(*arguments, **options):
        try:
            return real(*arguments, **options)
        finally:
            restart()

    if when == "after the answer":
        monkeypatch.setattr(transport, "send_once", send_once)
    result = task(place, base_url=service.url, opens=opens)
    assert (result["outcome"], result.get("failed", False)) == ("accepted", False)
    assert len(service.api.conversation) == 1
    monkeypatch.undo()
    assert task(place, base_url=service.url)["outcome"] == "not_sent"


@pytest.mark.parametrize("ending", ["success", "refusal", "drop"])
def test_a_server_that_stays_away_is_said_with_what_the_service_answered(
    server, opened, service, monkeypatch, ending
):
    faulty = {
        "refusal": {"kind": "status", "status": 403},
        "drop": {"kind": "drop", "when": "after"},
    }
    if ending in faulty:
        service.api.add_fault(faults.parse(faulty[ending]))
    real = transport.send_once

    def send_once(*arguments, **options):
        try:
            return real(*arguments, **options)
        finally:
            server.kill()

    options = {"base_url": service.url, "retries": 0}
    place = create(schema_in(server.url), service.url)
    monkeypatch.setattr(postgresql.PostgresDatabase, "tried_for", 0.3)
    with monkeypatch.context() as patch:
        patch.setattr(transport, "send_once", send_once)
        failed = task(place, **options)
    outcome = {"success": "accepted", "refusal": "rejected", "drop": "unknown"}[ending]
    assert (failed["failed"], failed["outcome"]) == (True, outcome)
    assert failed["changed"] is (ending == "success")
    assert f"outcome is {outcome}, but it could not be recorded: postgresql://" in failed["msg"]
    for mode in (True, False):  # while it is down
        down = task(place, check_mode=mode, **options)
        assert (down["failed"], down["outcome"]) == (True, "not_sent")
        assert down["msg"].startswith("ledger: postgresql://")
    server.start()
    assert entry_of(opened(place), key()).state == INTENT
    end_leases(place)
    assert (task(place, **options)["outcome"], len(service.api.conversation)) == ("unknown", 1)


def test_a_standby_that_is_read_only_is_away(postgres, opened, service, monkeypatch):
    """As after a failover to a server that is not promoted yet, whose error this is."""
    monkeypatch.setattr(postgresql.PostgresDatabase, "tried_for", 0.3)
    said = "'cannot set transaction read-write mode during recovery' USING ERRCODE = '0A000'"
    standby = f"DO $$ BEGIN IF '{{}}' LIKE '%WRITE' THEN RAISE {said}; END IF; END $$"
    monkeypatch.setattr(postgresql, "_BEGIN", standby)
    result = task(postgres, base_url=service.url)
    assert (result["failed"], result["outcome"]) == (True, "not_sent")
    assert "read-write mode during recovery" in result["msg"]
    threading.Timer(0.1, monkeypatch.undo).start()
    assert task(postgres, base_url=service.url)["outcome"] == "accepted"


def test_a_session_that_ends_while_the_service_works_is_replaced(postgres, opened, service):
    url = f"{postgres}&options=-cidle_session_timeout%3D100"
    service.api.add_fault(faults.parse({"kind": "delay", "seconds": 0.5}))
    assert task(url, base_url=service.url)["outcome"] == "accepted"
    assert entry_of(opened(postgres), key()).state == DONE


def test_settings_of_a_role_or_a_database_do_not_matter(postgres, opened):
    given = "-cdefault_transaction_isolation%3Dserializable%20-csynchronous_commit%3Doff"
    ledger = opened(f"{postgres}&options={given}")
    asked = "SELECT pg_catalog.current_setting(?)"
    expected = {"transaction_isolation": "read committed", "synchronous_commit": "on"}
    done = ledger.execute([(asked, [name]) for name in expected], Write.BEGIN)
    assert [each.rows for each in done] == [[(value,)] for value in expected.values()]


def test_functions_and_operators_of_others_are_never_called(postgres, service):
    """Those of a role that may create them in a schema of the search path would run as ours."""
    task(postgres, base_url=service.url, name="first")
    schema = schema_of(postgres)[1]
    for function in ("clock_timestamp() RETURNS timestamptz", "max(bigint) RETURNS bigint"):
        returns = function.rpartition(" ")[2]
        execute(
            postgres,
            f"CREATE FUNCTION {schema}.{function} LANGUAGE plpgsql AS $$ BEGIN RAISE 'called';"
            f" RETURN NULL::{returns}; END $$",
        )
    result = task(postgres, base_url=service.url)
    assert (result["outcome"], result.get("failed", False)) == ("accepted", False)


def test_the_longest_name_fits_the_index(postgres, service):
    """In four bytes each, and such that it cannot be compressed."""
    name = "".join(chr(0x20000 + 7919 * number % 40_000) for number in range(255))
    result = task(postgres, base_url=service.url, name=name)
    assert result["outcome"] == "accepted", result


def test_a_statement_that_waits_for_another_transaction_is_bounded(postgres, opened, monkeypatch):
    ledger = opened(postgres)
    monkeypatch.setattr(postgresql, "_SECONDS", dict.fromkeys(Write, 0.3))
    monkeypatch.setattr(postgresql.PostgresDatabase, "tried_for", 0.1)
    url, schema = schema_of(postgres)
    with psycopg.connect(url) as other:
        other.execute(f"LOCK TABLE {schema}.infrastructure_services_entry")
        with pytest.raises(LedgerError, match="statement timeout"):
            put(ledger, key(), ENTRY)
    assert put(ledger, key(), ENTRY)


def test_a_task_that_is_stopped_in_a_transaction_gives_way(postgres, opened, monkeypatch):
    """As by the lid of a laptop: its locks would keep others from every edit."""
    begin = postgresql._BEGIN.replace("'5s'", "'300ms'").format(postgresql._WRITING, 9)
    ledger = opened(postgres)
    url, schema = schema_of(postgres)
    with closing(psycopg.connect(url, autocommit=True)) as stopped:
        stopped.execute(f"{begin}; LOCK TABLE {schema}.infrastructure_services_entry")
        assert put(ledger, key(), ENTRY)


def test_a_backend_that_hangs_is_given_up(postgres, opened, monkeypatch):
    monkeypatch.setattr(postgresql, "_OTHER_SECONDS", 1)
    ledger = opened(postgres)
    stopped = backend(ledger)
    os.kill(stopped, signal.SIGSTOP)
    try:
        assert entry_of(ledger, key()) is None
        assert backend(ledger) != stopped
    finally:
        os.kill(stopped, signal.SIGCONT)


def test_the_library_logs_nothing(postgres, opened):
    """Its warnings would wait for stderr, whose lock Ansible's main thread may hold."""
    opened(postgres)
    assert not logging.getLogger("psycopg").isEnabledFor(logging.CRITICAL)


@pytest.mark.parametrize("sqlstate", ["40P01", "55P03"])
def test_a_deadlock_or_a_lock_that_is_held_for_too_long_is_repeated(sqlstate, postgres, service):
    """One that a function of the test reports, once."""
    task(postgres, base_url=service.url, name="first")
    schema = schema_of(postgres)[1]
    execute(
        postgres,
        "CREATE SEQUENCE tries; CREATE FUNCTION deadlock() RETURNS trigger LANGUAGE plpgsql AS $$"
        f" BEGIN IF pg_catalog.nextval('{schema}.tries') = 1 THEN"
        f" RAISE EXCEPTION 'lock' USING ERRCODE = '{sqlstate}';"
        " END IF; RETURN NEW; END $$;"
        " CREATE TRIGGER deadlock BEFORE INSERT ON infrastructure_services_entry"
        " FOR EACH ROW EXECUTE FUNCTION deadlock()",
    )
    result = task(postgres, base_url=service.url)
    assert (result["outcome"], result.get("failed", False)) == ("accepted", False)
    ((tries,),) = execute(postgres, "SELECT last_value FROM tries")
    assert tries > 1
    assert created(service) == ["first", "web01"]


def test_a_timeout_of_synchronous_replication_is_named(server, service, monkeypatch):
    """The intent may be on the server, and nothing is sent."""
    place = create(schema_in(server.url), service.url)
    task(place, base_url=service.url, name="first")
    monkeypatch.setattr(postgresql.PostgresDatabase, "tried_for", 0.3)
    execute(server.url, "ALTER SYSTEM SET synchronous_standby_names = 'nobody'")
    execute(server.url, "SELECT pg_reload_conf()")
    try:
        result = task(place, base_url=service.url)
    finally:
        execute(server.url, "ALTER SYSTEM RESET synchronous_standby_names")
        execute(server.url, "SELECT pg_reload_conf()")
    assert (result["failed"], result["outcome"]) == (True, "not_sent")
    assert "its synchronous standby does not confirm what is written" in result["msg"]
    assert "If the ledger lists it in doubt" in result["msg"]
    assert created(service) == ["first"]


@pytest.mark.parametrize("encoding", ["SQL_ASCII", "LATIN1"])
def test_a_database_that_cannot_hold_all_names_is_refused(database, encoding):
    with pytest.raises(LedgerError, match=f"the encoding of the database is {encoding}"):
        create(schema_in(database(encoding)))
