# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A ledger file that somebody replaced by an older one, in the same place: a restored backup.

The number of writes is in the file, and in its lock file, which a backup does not bring back.
"""

from __future__ import annotations

import os
import shutil
import sqlite3
import subprocess
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from ansible_collections.infrastructure.services.plugins.plugin_utils._ledger import write_count
from ansible_collections.infrastructure.services.plugins.plugin_utils._ledger.entries import (
    DONE,
    Entry,
    Key,
)
from ledger.entries import put
from story.commands import Terminal
from story.world import Model
from support.wire import running

KEY = Key("https://s", "compute_virtual_machine", "web01")
ENTRY = Entry(DONE, {"name": "web01"}, {"id": "1"})
OLDER = "is older than when it was last used here"
LACKS = "was made with a history that this ledger lacks"


@pytest.fixture
def path(tmp_path) -> str:
    return str(tmp_path / "ledger.db")


def _copy(path: str, backup: str) -> None:
    shutil.copy2(path, backup)


def _vacuum(path: str, backup: str) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("VACUUM INTO ?", (backup,))


def _write_over(path: str, backup: str) -> None:
    Path(path).write_bytes(Path(backup).read_bytes())


def _write_over_and_keep_times(path: str, backup: str) -> None:
    subprocess.run(["cp", "-p", backup, path], check=True)


def _remove_and_copy(path: str, backup: str) -> None:
    """As the guide tells; most file systems give the new file the number of the old one."""
    os.unlink(path)
    shutil.copy2(backup, path)


def _restore_by_sqlite(path: str, backup: str) -> None:
    with closing(sqlite3.connect(backup)) as source, closing(sqlite3.connect(path)) as target:
        source.backup(target)


@pytest.mark.parametrize(
    "restore", [_write_over, _write_over_and_keep_times, _remove_and_copy, _restore_by_sqlite]
)
@pytest.mark.parametrize("back_up", [_copy, _vacuum])
def test_a_restored_backup_is_told_until_it_is_used(path, opened, back_up: Callable, restore):
    put(opened(path), KEY, ENTRY)
    back_up(path, f"{path}.backup")
    put(opened(path), KEY._replace(name="web02"), ENTRY)
    restore(path, f"{path}.backup")
    for _look in range(2):
        warning = opened(path, True).place_warning
        assert OLDER in warning
    assert opened(path).place_warning == warning
    assert opened(path).place_warning == ""


@pytest.mark.parametrize("removed", ["", ".lock"])
def test_a_backup_is_told_where_the_lock_file_is_gone(path, opened, removed):
    """As after `rm ledger.db*`, or if somebody takes it for a lock that was left behind."""
    for name in ("web01", "web02"):
        put(opened(path), KEY._replace(name=name), ENTRY)
    _copy(path, f"{path}.backup")
    put(opened(path), KEY._replace(name="web03"), ENTRY)
    for file in sorted({f"{path}{removed}", f"{path}.lock"}):
        os.unlink(file)
    _write_over(path, f"{path}.backup")
    for read_only in (True, True, False):
        warning = opened(path, read_only).place_warning
        assert "will be created twice" in warning
    assert opened(path).place_warning == ""


def test_nobody_is_warned_of_a_lock_file_that_he_cannot_read(path, opened, monkeypatch):
    for name in ("web01", "web02"):
        put(opened(path), KEY._replace(name=name), ENTRY)
    os.truncate(f"{path}.lock", 0)
    monkeypatch.setattr(os, "access", lambda *_file: False)
    assert opened(path, True).place_warning == ""


@pytest.mark.parametrize("check_mode", [True, False])
def test_a_move_of_a_restored_backup_says_so(tmp_path, path, opened, check_mode):
    """It is the last to see that: the new file has no trace of it."""
    put(opened(path), KEY, ENTRY)
    shutil.copy2(path, f"{path}.backup")
    put(opened(path), KEY._replace(name="web02"), ENTRY)
    _write_over(path, f"{path}.backup")
    terminal = Terminal(tmp_path, KEY.base_url)
    moved = terminal.move(path, f"{path}.new", check_mode)
    assert moved.result["changed"]
    assert moved.said.count(OLDER) == 1
    assert OLDER in moved.lines[0]
    if not check_mode:
        again = terminal.move(path, f"{path}.new")
        assert (again.result["changed"], again.lines) == (False, [])


def test_a_move_of_a_copy_says_where_the_other_one_is(tmp_path, path, opened):
    put(opened(path), KEY, ENTRY)
    shutil.copy2(path, f"{path}.copy")
    moved = Terminal(tmp_path, KEY.base_url).move(f"{path}.copy", f"{path}.new")
    assert f"{path}.copy was last used as {path} on " in moved.said


@pytest.mark.parametrize("later", [[], ["web04"]])
def test_a_used_plan_is_refused_in_a_ledger_that_was_restored_from_before_it(tmp_path, path, later):
    """An approval is good for one creation of each machine, also if the restored ledger has as many
    rows of history again.
    """
    model = Model()
    with running(model.choose) as service:
        terminal = Terminal(tmp_path, service.url)
        terminal.send_list(["web01"], path)
        shutil.copy2(path, f"{path}.backup")
        terminal.send_list(["web02"], path)
        terminal.send_list(["web03"], path, check_mode=True, report="fleet.json")
        terminal.send_list(["web03"], path, approved="fleet.plan.json")
        _write_over(path, f"{path}.backup")
        for name in later:
            terminal.send_list([name], path)
        ended = terminal.send_list(["web03"], path, approved="fleet.plan.json")
    assert LACKS in ended.said
    assert model.created_now == ["web01", "web02", "web03", *later]


def test_a_plan_outlives_the_move_of_its_ledger_and_what_others_create(tmp_path, path):
    model = Model()
    with running(model.choose) as service:
        terminal = Terminal(tmp_path, service.url)
        terminal.send_list(["web01"], path)
        terminal.send_list(["web02"], path, check_mode=True, report="fleet.json")
        terminal.send_list(["web03"], path)
        terminal.move(path, f"{path}.new")
        terminal.send_list(["web02"], f"{path}.new", approved="fleet.plan.json")
    assert model.created_now == ["web01", "web03", "web02"]


def test_a_backup_that_lacks_nothing_is_not_told(path, opened):
    put(opened(path), KEY, ENTRY)
    shutil.copy2(path, f"{path}.backup")
    for read_only in (False, True):
        _write_over(path, f"{path}.backup")
        assert opened(path, read_only).place_warning == ""


def test_an_intent_counts_though_the_task_was_killed(path, opened, fork, service):
    opened(path).close()
    shutil.copy2(path, f"{path}.backup")
    with fork("create", path, service.url, "web01", "after the intent") as process:
        assert process.result() == {}, "it was not killed"
    _write_over(path, f"{path}.backup")
    assert OLDER in opened(path, True).place_warning


def test_ledgers_that_are_open_at_once_and_other_programs_cause_no_warning(path, opened):
    first, second = opened(path), opened(path)
    for number in range(10):
        put(first, KEY._replace(name=f"a{number}"), ENTRY)
        put(second, KEY._replace(name=f"b{number}"), ENTRY)
    with closing(sqlite3.connect(path)) as other:
        other.execute("VACUUM")
    assert (opened(path).place_warning, opened(path, True).place_warning) == ("", "")


def test_a_new_ledger_in_the_place_of_a_removed_one_begins_to_count(path, opened):
    for number in range(5):
        put(opened(path), KEY._replace(name=f"web{number}"), ENTRY)
    os.unlink(path)
    assert opened(path).place_warning == ""
    assert opened(path).place_warning == ""


@pytest.mark.parametrize("content", [b"0" * 20, b"0" * 22 + b"\n", b"a secret"])
def test_the_file_of_somebody_else_is_not_written_to(path, opened, content):
    """A file that another user has put in the place of the lock file."""
    Path(f"{path}.lock").write_bytes(content)
    put(opened(path), KEY, ENTRY)
    assert opened(path).place_warning == ""
    assert Path(f"{path}.lock").read_bytes() == content


def test_another_name_of_an_empty_file_is_not_written_to(path, opened, tmp_path):
    (tmp_path / "flag").touch()
    os.link(tmp_path / "flag", f"{path}.lock")
    put(opened(path), KEY, ENTRY)
    assert (tmp_path / "flag").read_bytes() == b""


@pytest.mark.parametrize("count", [0, 1, 2**31 - 1])
def test_the_note_that_is_written_is_read(tmp_path, count):
    file = tmp_path / "ledger.db.lock"
    file.touch()
    with file.open("r+b") as opened_file:
        write_count.write_note(opened_file.fileno(), count)
        assert write_count.read_note(opened_file.fileno()) == count
    assert write_count.read_note(str(file)) == count
    assert write_count.read_note(str(tmp_path / "none")) == 0
