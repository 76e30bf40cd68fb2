# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The files of an SQLite ledger: its paths, its copies, its locks, and what happens to it during a
run.
"""

from __future__ import annotations

import os
import shutil
import signal
import sqlite3
import threading
from contextlib import closing
from pathlib import Path

import pytest
from ansible_collections.infrastructure.services.plugins.module_utils._errors import ServicesError
from ansible_collections.infrastructure.services.plugins.plugin_utils._ledger.entries import (
    DONE,
    INTENT,
    Entry,
    Key,
)
from ledger.entries import begin, put
from ledger.loops import race
from ledger.tasks import task
from ledger.test_places import AS_ANYBODY, as_anybody
from support.locks import hold
from support.waiting import until, waiting

__all__ = ["as_anybody"]

KEY = Key("https://s", "compute_virtual_machine", "web01")
OTHER = KEY._replace(name="web02")
ENTRY = Entry(DONE, {"name": "web01"}, {"id": "1"})


@pytest.fixture
def path(tmp_path) -> str:
    return str(tmp_path / "ledger.db")


def names(path: str) -> set[str]:
    return {file.name for file in Path(path).parent.iterdir()}


def test_two_names_of_one_ledger_create_nothing_twice(tmp_path, path, fork, service):
    (tmp_path / "other").mkdir()
    (tmp_path / "other/link.db").symlink_to(path)
    assert set(race(fork, service, [path, str(tmp_path / "other/link.db")], 10).values()) == {1}
    assert not list((tmp_path / "other").glob("*-*"))


class Ended(BaseException):
    """What ends a task at any point, like the keyword `timeout`."""


def test_a_task_that_is_ended_while_it_begins_to_write_leaves_no_transaction_open(path, opened):
    """The handler of a signal runs when BEGIN returns, which is after another writer has finished."""

    def end(*_signal) -> None:
        raise Ended

    ledger = opened(path)
    before = signal.signal(signal.SIGALRM, end)
    with closing(sqlite3.connect(path, isolation_level=None, check_same_thread=False)) as writer:
        writer.execute("BEGIN IMMEDIATE")
        threading.Timer(0.5, writer.execute, ["ROLLBACK"]).start()
        signal.setitimer(signal.ITIMER_REAL, 0.1)
        try:
            with pytest.raises(Ended):
                begin(ledger, KEY, ENTRY, None)
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, before)
        writer.execute("BEGIN IMMEDIATE")
        writer.execute("ROLLBACK")
    assert begin(ledger, KEY, ENTRY, None)


def test_without_locks_nothing_is_created_twice(path, service, opened, monkeypatch):
    """As when the lock file was removed between two starts: the second task finds the intent and
    sends nothing.
    """
    first = opened(path)
    os.unlink(f"{path}.lock")
    second = opened(path)
    with hold(first, KEY), hold(second, KEY):
        before = first.get(KEY), second.get(KEY)
        assert begin(first, KEY, ENTRY._replace(state=INTENT), before[0])
        assert begin(second, KEY, ENTRY._replace(state=INTENT), before[1]) is None


def test_a_file_with_two_names_is_refused(path, opened, service):
    put(opened(path), KEY, ENTRY)
    os.link(path, f"{path}.other")
    for name in (path, f"{path}.other"):
        for read_only in (False, True):
            with pytest.raises(ServicesError, match=r"has 2 names \(hard links\)"):
                opened(name, read_only)
    assert task(path, base_url=service.url)["outcome"] == "not_sent"


@pytest.mark.parametrize("what", ["removed", "replaced"])
def test_a_ledger_that_disappears_during_a_run_is_noticed_before_the_next_request(
    path, opened, service, what
):
    ledger = opened(path)
    assert task(ledger, base_url=service.url)["outcome"] == "accepted"
    if what == "replaced":
        shutil.copy(path, f"{path}.copy")
        os.replace(f"{path}.copy", path)
    else:
        os.unlink(path)
    for name in ("web01", "web02", "web03"):
        result = task(ledger, base_url=service.url, name=name)
        assert (result["failed"], result["outcome"]) == (True, "not_sent")
        assert "was removed or replaced while it was in use" in result["msg"]
    assert len(service.api.conversation) == 1


def test_an_answer_for_a_ledger_that_is_gone_is_in_the_result(path, opened, service, monkeypatch):
    ledger = opened(path)
    real = ledger.begin
    monkeypatch.setattr(ledger, "begin", lambda *arguments: (real(*arguments), os.unlink(path))[0])
    result = task(ledger, base_url=service.url)
    assert (result["failed"], result["changed"], result["outcome"]) == (True, True, "accepted")
    assert result["asset"]["id"]


def test_closing_one_of_two_ledgers_of_a_process_leaves_the_locks_of_the_other(path, opened, fork):
    """A list has a ledger of its own, and closing a file drops all locks that the process has on
    it.
    """
    first, second = opened(path), opened(path)
    assert second.lock(OTHER, wait=False)
    with hold(first, KEY):
        second.close()
        with fork("hold", path, OTHER.name) as other:
            assert other.wait()
        with fork("hold", path, KEY.name) as other:
            until(lambda: waiting(path) == 1)


def test_the_locks_follow_the_mode_of_the_ledger(path, opened):
    opened(path).close()
    assert Path(f"{path}.lock").stat().st_mode & 0o777 == 0o600
    Path(path).chmod(0o660)
    opened(path)
    assert Path(f"{path}.lock").stat().st_mode & 0o777 == 0o660


@pytest.mark.skipif(not AS_ANYBODY, reason="root is needed to make a file that others may not open")
def test_a_ledger_works_without_a_lock_file_it_may_not_open(path, opened, service, as_anybody):
    opened(path).close()
    Path(f"{path}.lock").chmod(0o000)
    os.chown(f"{path}.lock", 12345, 12345)
    with as_anybody("limited", path, service.url, "run") as process:
        assert process.result()["outcome"] == "accepted"
