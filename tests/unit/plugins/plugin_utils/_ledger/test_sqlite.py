# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What an error of SQLite means; tests/ledger has the ledger in use."""

from __future__ import annotations

import os
from contextlib import closing

import pytest
from ansible_collections.infrastructure.services.plugins.plugin_utils._ledger import sqlite
from ansible_collections.infrastructure.services.plugins.plugin_utils._ledger.location import (
    open_ledger,
)


@pytest.mark.parametrize(
    ("reason", "has_journal", "is_undone"),
    [
        ("attempt to write a readonly database", True, True),
        ("unable to open database file", True, True),
        ("disk I/O error", True, True),
        ("disk I/O error", False, False),
        ("database disk image is malformed", True, False),
    ],
)
def test_who_may_not_undo_a_write_that_was_cut_off_is_told_so(
    tmp_path, monkeypatch, reason, has_journal, is_undone
):
    database = sqlite.SqliteDatabase(str(tmp_path / "ledger.db"), read_only=True)
    monkeypatch.setattr(sqlite, "has_journal", lambda _file: has_journal)
    said = str(database._failure(reason))
    assert said.startswith(f"ledger: {tmp_path}/ledger.db: {reason}")
    assert ("what it began has to be undone" in said) is is_undone


def test_a_ledger_that_stays_locked_is_lost(tmp_path):
    database = sqlite.SqliteDatabase(str(tmp_path / "ledger.db"), read_only=True)
    assert isinstance(database._failure("database is locked"), sqlite.LedgerLost)
    assert not isinstance(database._failure("disk I/O error"), sqlite.LedgerLost)


def test_the_use_of_a_file_names_it_so_that_a_copy_is_told_apart(tmp_path):
    file = tmp_path / "ledger.db"
    assert sqlite.SqliteDatabase(str(file), read_only=True).use()[:2] == (str(file), 0)
    file.touch()
    used = sqlite.SqliteDatabase(str(file), read_only=True).use()
    assert used[:2] == (str(file), file.stat().st_ino)


def test_a_lock_file_that_is_none_is_refused(tmp_path):
    (tmp_path / "ledger.db").touch()
    os.mkfifo(tmp_path / "ledger.db.lock")
    with pytest.raises(OSError, match=r"ledger\.db\.lock is not a regular file\. Remove it"):
        sqlite.open_lock_file(str(tmp_path / "ledger.db"))


@pytest.mark.parametrize("read_only", [False, True])
def test_a_file_that_is_no_ledger_but_has_a_journal_is_left_as_it_is(tmp_path, read_only):
    for name in ("ledger.db", "ledger.db-journal"):
        (tmp_path / name).write_bytes(b"x" * 600)
    with pytest.raises(sqlite.LedgerError, match=r"file is not a database, and is left as it is"):
        open_ledger(str(tmp_path / "ledger.db"), read_only)
    assert (tmp_path / "ledger.db").read_bytes() == b"x" * 600


def test_a_lock_file_that_somebody_puts_in_the_place_of_an_open_one_is_not_asked(tmp_path):
    """Where locks belong to the process, closing another descriptor of the file would end them."""
    with closing(open_ledger(str(tmp_path / "ledger.db"))) as ledger:
        assert not ledger.database.is_older()
        (tmp_path / "ledger.db.lock").unlink()
        (tmp_path / "ledger.db.lock").write_bytes(b"%020d\n" % 99)
        assert not ledger.database.is_older()
    with closing(open_ledger(str(tmp_path / "ledger.db"), read_only=True)) as ledger:
        assert ledger.database.is_older()
