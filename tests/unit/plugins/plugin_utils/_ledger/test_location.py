# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""From the option `ledger` to an open ledger. What a ledger does once it is open is tested in tests/ledger."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from ansible_collections.infrastructure.services.plugins.module_utils._errors import MissingLibrary
from ansible_collections.infrastructure.services.plugins.plugin_utils._ledger import postgresql
from ansible_collections.infrastructure.services.plugins.plugin_utils._ledger.location import located, open_ledger
from ansible_collections.infrastructure.services.plugins.plugin_utils._ledger.store import LedgerError


@pytest.mark.parametrize(("location", "path"), [
    ("ledger.db", "/play/ledger.db"),
    ("../a/./ledger.db", "/a/ledger.db"),
    ("/var/ledger.db", "/var/ledger.db"),
    ("~/ledger.db", "/houses/mine/ledger.db"),
    ("postgresql://host/db", "postgresql://host/db"),
])
def test_a_relative_path_is_below_the_directory(monkeypatch, location, path):
    monkeypatch.setenv("HOME", "/houses/mine")
    assert located(location, "/play") == path


@pytest.mark.parametrize("location", ["http://host/db", "sqlite:///ledger.db", "://"])
def test_no_other_scheme_is_a_ledger(location):
    with pytest.raises(LedgerError, match=r"must be a path or a postgresql:// URL"):
        open_ledger(location)


@pytest.mark.parametrize("url", ["postgresql://host/db", "postgres://host/db"])
def test_a_missing_library_is_named(monkeypatch, url):
    monkeypatch.setattr(postgresql, "psycopg", None)
    with pytest.raises(MissingLibrary, match="psycopg"):
        open_ledger(url)


def test_the_files_are_for_their_owner_only(tmp_path: Path):
    before = os.umask(0)
    try:
        ledger = open_ledger(str(tmp_path / "ledger.db"))
    finally:
        os.umask(before)
    modes = {path.name: path.stat().st_mode & 0o777 for path in tmp_path.iterdir()}
    ledger.close()
    assert modes == dict.fromkeys(("ledger.db", "ledger.db-wal", "ledger.db-shm", "ledger.db.lock"), 0o600)


def test_a_ledger_that_a_group_shares_stays_shared(tmp_path: Path):
    path = tmp_path / "ledger.db"
    path.touch()
    path.chmod(0o660)
    before = os.umask(0o007)
    try:
        open_ledger(str(path)).close()
    finally:
        os.umask(before)
    assert {entry.stat().st_mode & 0o777 for entry in tmp_path.iterdir()} == {0o660}
