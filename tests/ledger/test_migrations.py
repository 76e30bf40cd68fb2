# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A ledger written by 1.0.0: readable as it is, migrated by the first writer, refused if anything else is in it."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import psycopg
import pytest
from ansible_collections.infrastructure.services.plugins.plugin_utils._ledger import migrations
from ansible_collections.infrastructure.services.plugins.plugin_utils._ledger.entries import (
    ABSENT,
    DONE,
    INTENT,
    UNKNOWN,
    Entry,
    Key,
    LedgerError,
)
from ledger.tasks import task
from support import CREATE, UPDATE

SQL = Path(__file__).with_name("written_by_1.0.0.sql").read_text(encoding="utf-8")
KEPT = {
    Key("https://s", CREATE, "web01"): (DONE, "id-1"),
    Key("https://s", CREATE, "web02"): (UNKNOWN, None),
    Key("https://[::1]/~us%2Fer", CREATE, "web03"): (DONE, "id-3"),
    Key("https://t.example", CREATE, "web04"): (DONE, "id-4"),
    Key("https://t.example", UPDATE, "role-1"): (DONE, "newer"),
}


def execute(location: str, script: str) -> None:
    """Write into a ledger as another program would."""
    if location.startswith("postgres"):
        with psycopg.connect(location) as connection:
            connection.execute(script)
    else:
        with closing(sqlite3.connect(location)) as connection:
            connection.executescript(script)


@pytest.fixture
def old(location) -> str:
    """The location of a ledger written by 1.0.0."""
    execute(location, SQL)
    return location


def entries(ledger) -> dict:
    return {key: (entry.state, entry.asset.get("id")) for key, entry in ledger.entries({}, lambda name: True)}


def test_a_ledger_of_1_0_0_is_migrated_and_used(old, opened, service):
    ledger = opened(old)
    assert entries(ledger) == KEPT
    found = ledger.get(Key("https://s", CREATE, "web01"))
    assert (found.sent, found.began_at) == ({"name": "web01", "attributes": {"cpu": 4}}, "2026-01-02T03:04:05Z")
    assert (found.changed_at, found.by, found.run, found.trace_id) == (found.began_at, "", "", "")
    assert task(old, base_url="https://s/", attributes={"cpu": 4})["changed"] is False
    assert task(old, base_url="https://s", name="web02")["outcome"] == "unknown"
    assert task(old, base_url=service.url)["outcome"] == "accepted"
    assert entries(opened(old)) == {**KEPT, Key(service.url, CREATE, "web01"): (DONE, entries(opened(old))[
        Key(service.url, CREATE, "web01")][1])}


def test_of_two_entries_for_one_asset_one_moves_to_the_history(old, opened):
    rows = {key.name: ended for key, ended in opened(old).history({})}
    assert set(rows) == {"web04", "role-1"}
    lost = rows["web04"]
    assert (lost.from_state, lost.to_state, lost.at) == (INTENT, ABSENT, "2026-01-02T03:04:09Z")
    assert '"id": "older"' in rows["role-1"].message
    assert "https://t.example. had an entry too" in rows["role-1"].message


def test_reading_does_not_migrate(old, opened):
    assert entries(opened(old, read_only=True)) == KEPT
    assert opened(old, read_only=True).get(Key("https://[::1]/~us%2Fer", CREATE, "web03")).asset == {"id": "id-3"}
    with pytest.raises((sqlite3.Error, psycopg.Error), match="revision"):
        execute(old, "SELECT revision FROM infrastructure_services_entry")
    assert task(old, base_url="https://s", attributes={"cpu": 4}, check_mode=True)["changed"] is False


def test_a_failed_migration_leaves_the_old_ledger(old, opened, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(migrations, "_STAMP", "INSERT INTO no_such_table VALUES (?)")
        with pytest.raises(LedgerError, match="no_such_table"):
            opened(old)
    assert entries(opened(old)) == KEPT


def test_a_new_state_needs_no_migration(old, opened):
    ledger = opened(old)
    assert ledger.begin(Key("https://s", CREATE, "new"), Entry("another", {}, {}), None)


@pytest.fixture
def shared(postgres) -> tuple[str, str]:
    """The URLs of a 1.0.0 ledger for its owner, and for a role with the grants it needed then."""
    schema = postgres.rpartition("%3D")[2]
    execute(postgres, SQL)
    execute(postgres, f"CREATE ROLE {schema}_colleague LOGIN; GRANT USAGE ON SCHEMA {schema} TO {schema}_colleague")
    execute(postgres, f"GRANT INSERT, UPDATE, DELETE ON infrastructure_services_entry TO {schema}_colleague")
    execute(postgres, "GRANT SELECT ON infrastructure_services_entry, infrastructure_services_schema TO PUBLIC")
    return postgres, postgres.replace("postgres:@", f"{schema}_colleague:@")


def test_a_role_that_could_use_the_ledger_of_1_0_0_can_use_the_migrated_one(shared, opened, service):
    owner, colleague = shared
    with pytest.raises(LedgerError, match=r"An older version .* as the database role that owns the tables"):
        opened(colleague)
    assert task(colleague, base_url="https://s", attributes={"cpu": 4}, check_mode=True)["changed"] is False
    opened(owner)
    assert task(colleague, base_url=service.url)["outcome"] == "accepted"
    assert task(colleague, base_url=service.url)["outcome"] == "not_sent"
    assert service.url in {key.base_url for key, _ended in opened(colleague, read_only=True).history({})}
