# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The file of a ledger is checked before SQLite opens it; tests/ledger has what others may do to it."""

from __future__ import annotations

import sqlite3
from contextlib import closing

import pytest
from ansible_collections.infrastructure.services.plugins.module_utils._errors import InvalidInput
from ansible_collections.infrastructure.services.plugins.plugin_utils._ledger.ledger_file import (
    check_file,
)


@pytest.mark.parametrize(
    ("path", "said"),
    [
        (".", "ledger: here is a directory; give a file in it"),
        ("none/ledger.db", "ledger: here cannot be opened: its directory does not exist"),
    ],
)
def test_a_path_that_cannot_be_a_file_is_refused(tmp_path, path, said):
    with pytest.raises(InvalidInput) as refused:
        check_file(str(tmp_path / path), "here")
    assert refused.value.msg.startswith(said)


def test_a_file_that_does_not_exist_yet_can_be_a_ledger(tmp_path):
    check_file(str(tmp_path / "ledger.db"), "here")


def test_the_smallest_file_of_sqlite_can_be_a_ledger(tmp_path):
    file = tmp_path / "ledger.db"
    with closing(sqlite3.connect(file)) as connection:
        connection.execute("PRAGMA page_size = 512")
        connection.execute("PRAGMA user_version = 1")
    assert file.stat().st_size == 512
    check_file(str(file), "here")
    file.write_bytes(b"x" * 511)
    with pytest.raises(InvalidInput, match=r"^ledger: here: file is not a database"):
        check_file(str(file), "here")


def test_a_file_that_another_task_has_just_made_a_ledger_is_one(tmp_path, monkeypatch):
    """Its first write may end between two looks."""
    file, whole = tmp_path / "ledger.db", tmp_path / "whole.db"
    with closing(sqlite3.connect(whole)) as connection:
        connection.execute("PRAGMA user_version = 1")
    file.write_bytes(b"x" * 600)
    monkeypatch.setattr("time.sleep", lambda _seconds: file.write_bytes(whole.read_bytes()))
    check_file(str(file), "here")


@pytest.mark.parametrize(("journal", "is_refused"), [(None, False), (b"", False), (b"x", True)])
def test_the_journal_of_another_path_is_refused_unless_it_is_empty(
    tmp_path, monkeypatch, journal, is_refused
):
    monkeypatch.setattr("time.sleep", lambda _seconds: None)
    file = tmp_path / "ledger.db"
    with closing(sqlite3.connect(file)) as connection:
        connection.execute("PRAGMA application_id = 7")  # of a file that was last used elsewhere
    if journal is not None:
        (tmp_path / "ledger.db-journal").write_bytes(journal)
    if is_refused:
        with pytest.raises(InvalidInput, match="was last used under another path"):
            check_file(str(file), "here")
    else:
        check_file(str(file), "here")
