# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""After each commit the one file is the whole ledger: killed at, moved, copied, mounted, or locked
by others.
"""

from __future__ import annotations

import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from pathlib import Path

import pytest
from ansible_collections.infrastructure.services.plugins.module_utils._errors import ServicesError
from ansible_collections.infrastructure.services.plugins.module_utils._task.signals import (
    Interrupted,
    deferred,
)
from ansible_collections.infrastructure.services.plugins.plugin_utils._ledger import sqlite
from ansible_collections.infrastructure.services.plugins.plugin_utils._ledger.entries import (
    DONE,
    INTENT,
    Change,
    Entry,
    Key,
    Kind,
    LedgerError,
    Waiting,
)
from ansible_collections.infrastructure.services.plugins.plugin_utils._ledger.location import (
    open_ledger,
)
from ansible_collections.infrastructure.services.plugins.plugin_utils._ledger.queue import Queue
from ledger.entries import put
from ledger.loops import created, run
from ledger.tasks import key, task
from ledger.test_places import AS_ANYBODY, as_anybody
from support.waiting import until, waiting

__all__ = ["as_anybody"]

KEY = Key("https://s", "compute_virtual_machine", "web01")
ENTRY = Entry(DONE, {"name": "web01"}, {"id": "1"})
MACHINES, BEFORE_KILL = 20, 7
MOUNTED = ["unshare", "--mount", *([] if os.geteuid() == 0 else ["--map-root-user"])]
MAY_MOUNT = subprocess.run([*MOUNTED, "true"], capture_output=True, check=False).returncode == 0
OPEN = """if True:
    import sys, conftest
    from ansible_collections.infrastructure.services.plugins.plugin_utils._ledger.location import open_ledger
    open_ledger(sys.argv[1], sys.argv[2] == "read")"""


@pytest.fixture
def path(tmp_path) -> str:
    return str(tmp_path / "ledger.db")


def names(path: str) -> set[str]:
    return {file.name for file in Path(path).parent.iterdir()}


@pytest.mark.parametrize("take", [os.rename, shutil.copy])
def test_the_file_of_a_killed_run_is_the_whole_ledger(path, opened, fork, service, take):
    """Killed in the middle of a loop, then moved or copied by itself, and run again: nothing is
    created twice.
    """
    with fork("loop", path, service.url, MACHINES) as loop:
        loop.wait(BEFORE_KILL)
    take(path, f"{path}.moved")
    results = run(fork, f"{path}.moved", service, MACHINES)
    outcomes = Counter(result["outcome"] for result in results)
    assert outcomes["not_sent"] >= BEFORE_KILL
    assert outcomes["unknown"] <= 1
    assert Counter(created(service)).most_common(1)[0][1] == 1


def test_nothing_is_left_beside_the_file(path, opened):
    ledger = opened(path)
    put(ledger, KEY, ENTRY)
    assert names(path) == {"ledger.db", "ledger.db.lock"}
    shutil.copy(path, f"{path}.copy")
    assert opened(f"{path}.copy").get(KEY).asset == ENTRY.asset
    assert opened(f"{path}.copy", read_only=True).get(KEY).asset == ENTRY.asset


def test_a_ledger_that_another_program_gave_a_log_is_one_file_again(path, opened):
    opened(path).close()
    with closing(sqlite3.connect(path)) as other:
        assert other.execute("PRAGMA journal_mode = WAL").fetchone() == ("wal",)
    put(opened(path), KEY, ENTRY)
    assert names(path) == {"ledger.db", "ledger.db.lock"}


@pytest.fixture
def torn(path, opened, fork) -> str:
    """The path of a ledger whose last writer was killed within a commit."""
    ledger = opened(path)
    ledger.write(
        [Change(KEY._replace(name=f"web{number:03}"), None, ENTRY) for number in range(300)],
        Kind.BEGIN,
    )
    ledger.close()
    with fork("write_half", path) as process:
        process.wait()
    assert "ledger.db-journal" in names(path)
    return path


def entries(ledger) -> int:
    return len(ledger.entries({"state = ?": (DONE,)}, lambda name: True))


@pytest.mark.parametrize("read_only", [True, False])
def test_a_kill_within_a_commit_is_undone(torn, opened, read_only):
    assert entries(opened(torn, read_only)) == 300
    assert names(torn) == {"ledger.db", "ledger.db.lock"}


def test_a_kill_within_a_commit_is_undone_once_by_many(torn, fork):
    with ExitStack() as stack:
        holders = [stack.enter_context(fork("hold", torn, f"web{number}")) for number in range(8)]
        for process in holders:
            process.wait()
    assert entries(open_ledger(torn, read_only=True)) == 300


def move(path: str, to: str) -> None:
    """Move a ledger together with its journal."""
    for suffix in ("", "-journal"):
        os.rename(f"{path}{suffix}", f"{to}{suffix}")


@pytest.mark.parametrize("read_only", [True, False])
def test_a_torn_file_and_its_journal_that_were_moved_together_have_to_be_moved_back(
    torn, opened, read_only
):
    move(torn, f"{torn}.moved")
    with pytest.raises(
        ServicesError, match=r"was last used under another path .* let SQLite finish"
    ):
        opened(f"{torn}.moved", read_only)
    move(f"{torn}.moved", torn)
    assert entries(opened(torn, read_only)) == 300


@pytest.mark.parametrize("read_only", [True, False])
@pytest.mark.parametrize("take", [os.rename, shutil.copy])
def test_a_journal_that_was_left_behind_is_not_played_onto_a_newer_file(
    torn, opened, read_only, take
):
    """SQLite itself would, and so forget what was recorded while the file was elsewhere."""
    journal = Path(f"{torn}-journal")
    with tempfile.TemporaryDirectory() as elsewhere:
        shutil.copy(torn, f"{elsewhere}/l.db")
        shutil.copy(journal, f"{elsewhere}/l.db-journal")
        opened(torn).close()  # whole again
        journal.write_bytes(Path(f"{elsewhere}/l.db-journal").read_bytes())
    os.rename(torn, f"{torn}.moved")
    put(opened(f"{torn}.moved"), KEY._replace(name="newer"), ENTRY)
    take(f"{torn}.moved", torn)
    with pytest.raises(ServicesError, match=r"If another file left it, .* remove it"):
        opened(torn, read_only)
    journal.unlink()
    assert opened(torn, read_only).get(KEY._replace(name="newer")).asset == ENTRY.asset


@pytest.mark.parametrize("read_only", [True, False])
def test_a_backup_that_is_restored_beside_a_journal_of_a_later_write_is_refused(
    path, opened, fork, read_only
):
    """`cp` keeps the inode, and so the mark, of the file; SQLite plays the journal onto the older
    file and tears it.
    """
    ledger = opened(path)
    some = [Change(KEY._replace(name=f"web{number:03}"), None, ENTRY) for number in range(600)]
    ledger.write(some[:100], Kind.BEGIN)
    backup = Path(path).read_bytes()
    ledger.write(some[100:], Kind.BEGIN)
    ledger.close()
    with fork("write_half", path) as process:
        process.wait()
    Path(path).write_bytes(backup)
    with pytest.raises(LedgerError, match=r"incomplete or damaged|malformed"):
        opened(path, read_only)


@pytest.mark.parametrize("read_only", [True, False])
@pytest.mark.parametrize("take", [os.rename, shutil.copy])
def test_a_torn_file_without_its_journal_is_refused(torn, opened, read_only, take, service):
    take(torn, f"{torn}.moved")
    for _time in range(2):
        with pytest.raises(
            ServicesError, match=r"moved is incomplete or damaged .*ends in -journal"
        ):
            opened(f"{torn}.moved", read_only)
    if take is os.rename:
        os.rename(f"{torn}.moved", torn)
    assert entries(opened(torn)) == 300


@pytest.mark.skipif(
    not AS_ANYBODY, reason="root is needed to make a file that others may not write to"
)
@pytest.mark.parametrize("closed", ["the file", "the journal", "the directory"])
def test_who_may_not_undo_a_kill_is_told_what_to_do(torn, as_anybody, service, closed):
    directory = os.path.dirname(torn)
    what, mode = {
        "the file": (torn, 0o400),
        "the journal": (f"{torn}-journal", 0o400),
        "the directory": (directory, 0o500),
    }[closed]
    os.chmod(what, mode)
    for how in ("check", "run"):
        with as_anybody("limited", torn, service.url, how) as process:
            result = process.result()
        assert (result["failed"], result["outcome"]) == (True, "not_sent")
        assert "A run was killed while it wrote" in result["msg"]
    os.chmod(what, 0o700)
    with as_anybody("limited", torn, service.url, "run") as process:
        assert process.result()["outcome"] == "accepted"


@pytest.mark.parametrize("change", ["copied", "moved", "not moved"])
def test_only_a_file_that_was_moved_is_checked(path, opened, monkeypatch, change):
    checks = []
    real = sqlite.SqliteDatabase.execute
    monkeypatch.setattr(
        sqlite.SqliteDatabase,
        "execute",
        lambda ledger, statement, values=(): (
            checks.append(statement) if "integrity" in statement else None,
            real(ledger, statement, values),
        )[1],
    )
    opened(path).close()
    checks.clear()
    other = path if change == "not moved" else f"{path}.other"
    if change != "not moved":
        (shutil.copy if change == "copied" else os.rename)(path, other)
    for _time in range(2):
        opened(other).close()
    assert len(checks) == (change != "not moved")


@pytest.mark.skipif(not MAY_MOUNT, reason="this user may not mount")
@pytest.mark.parametrize("how", ["read", "write"])
@pytest.mark.parametrize("name", ["x.db", "with a \\ and a ä.db"])
def test_a_file_that_is_mounted_by_itself_is_refused(path, opened, tmp_path, how, name):
    """Two containers would each keep a journal of their own; a directory that is mounted keeps it
    beside the file.
    """
    put(opened(path), KEY, ENTRY)
    (tmp_path / "container").mkdir()
    mounted = tmp_path / "container" / name
    mounted.touch()

    def within(mount: list, path: Path) -> subprocess.CompletedProcess:
        script = 'mount --bind "$1" "$2" && shift 2 && exec "$@"'
        line = [*MOUNTED, "sh", "-c", script, "sh", *mount, sys.executable, "-c", OPEN, path, how]
        return subprocess.run(
            line, capture_output=True, text=True, check=False, cwd=Path(__file__).parents[1]
        )

    done = within([path, mounted], mounted)
    assert (
        "is mounted by itself, without the journal that belongs beside it. Mount its directory"
        in done.stderr
    )
    done = within([tmp_path, tmp_path / "container"], tmp_path / "container/ledger.db")
    assert (done.returncode, done.stderr) == (0, "")


def test_a_ledger_that_others_write_to_for_too_long_says_run_it_again(
    path, opened, service, monkeypatch
):
    monkeypatch.setattr(sqlite, "_BUSY_TIMEOUT", 0.1)
    ledger = opened(path)
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        result = task(ledger, base_url=service.url)
    assert (result["failed"], result["outcome"]) == (True, "not_sent")
    assert (
        "database is locked: others have been writing to it, or reading it in one transaction"
        in result["msg"]
    )
    assert result["msg"].endswith(
        "When you run it again, use fewer forks, or end what reads it. Nothing was sent."
    )
    assert created(service) == []


def test_the_keyword_timeout_ends_a_wait_for_a_reader(path, opened):
    """A program that reads in one transaction stops every write; SQLite waits where no signal
    reaches Python.
    """
    ledger = opened(path)
    put(ledger, KEY, ENTRY)

    def expire(*_arguments) -> None:
        raise TimeoutError("the keyword timeout")

    with closing(sqlite3.connect(path, isolation_level=None, check_same_thread=False)) as other:
        other.execute("BEGIN")
        other.execute("SELECT * FROM infrastructure_services_entry").fetchall()
        at_last = threading.Timer(20, other.execute, ("COMMIT",))
        at_last.start()
        before = signal.signal(signal.SIGALRM, expire)
        try:
            signal.alarm(1)
            with pytest.raises(TimeoutError):
                put(ledger, KEY._replace(name="new"), ENTRY)
            assert other.in_transaction
        finally:
            signal.alarm(0)
            signal.signal(signal.SIGALRM, before)
            at_last.cancel()


@pytest.mark.parametrize("held", ["turn", "file"])
def test_a_signal_ends_a_wait_for_those_who_write(path, opened, held):
    """The ledger was opened before that, as for the second item of a loop; a stopped process holds
    what it holds.
    """
    ledger, stopped = opened(path), opened(path)
    with deferred() as signals, closing(sqlite3.connect(path, isolation_level=None)) as other:
        ledger.wait_like(Waiting(signals.raised))
        if held == "turn":
            stopped.database.lock(0, wait=True)
        else:
            other.execute("BEGIN IMMEDIATE")
        threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT)).start()
        at_last = threading.Timer(20, stopped.close)
        at_last.start()
        with pytest.raises(Interrupted):
            ledger.begin(Change(KEY, None, ENTRY._replace(state=INTENT)))
        at_last.cancel()
    assert stopped.get(KEY) is None


def test_a_list_whose_file_others_hold_waits_once(path, opened, monkeypatch):
    monkeypatch.setattr(sqlite, "_BUSY_TIMEOUT", 0.1)
    ledger, attempts = opened(path), []
    write = ledger.database.write
    monkeypatch.setattr(
        ledger.database, "write", lambda *asked: (attempts.append(asked), write(*asked))[1]
    )
    queue = Queue(ledger)
    with (
        closing(sqlite3.connect(path, isolation_level=None)) as other,
        ThreadPoolExecutor(5) as pool,
    ):
        other.execute("BEGIN IMMEDIATE")
        changes = [
            Change(KEY._replace(name=f"web{number}"), None, ENTRY._replace(state=INTENT))
            for number in range(5)
        ]
        begun = [pool.submit(queue.begin, change) for change in changes]
        assert all(isinstance(done.exception(), LedgerError) for done in begun)
    assert len(attempts) == 1


def test_writers_take_turns(path, opened, fork, service):
    """SQLite's own lock goes to whoever tries at the right moment, so that one of many tries in
    vain for too long.
    """
    ledger = opened(path)
    with fork("loop", path, service.url, MACHINES) as loop:
        loop.wait()
        ledger.database.lock(0, wait=True)
        until(lambda: waiting(path) == 1)
        ledger.database.unlock(0)
        assert {result["outcome"] for result in loop.results()} == {"accepted"}


def test_what_is_created_while_others_write_for_too_long_is_not_to_be_created_again(
    path, opened, service, monkeypatch
):
    monkeypatch.setattr(sqlite, "_BUSY_TIMEOUT", 0.1)
    ledger = opened(path)
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        real = ledger.begin
        monkeypatch.setattr(
            ledger,
            "begin",
            lambda *arguments: (real(*arguments), other.execute("BEGIN IMMEDIATE"))[0],
        )
        result = task(ledger, base_url=service.url)
    assert (result["failed"], result["outcome"]) == (True, "accepted")
    assert (
        "use fewer forks, or end what reads it. It exists: do not create it again." in result["msg"]
    )
    assert ledger.get(key(service)).state == INTENT
