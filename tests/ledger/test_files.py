"""What may be at the place of a ledger: what cannot be used is refused before a request and left as
it is.
"""

from __future__ import annotations

import os
import shutil
import sqlite3
import stat
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest
from ansible_collections.infrastructure.services.plugins.module_utils._errors import LedgerError
from ansible_collections.infrastructure.services.plugins.plugin_utils._ledger.entries import (
    DONE,
    INTENT,
    Entry,
)
from ledger.entries import execute, put, put_all, states
from ledger.forked import Process, forking
from ledger.tasks import key, list_task, task
from support.ledgers import SERVICE, create, entry_of, opened
from support.wire import answer, running

# Takes from the task root's ability to ignore permissions, so that they apply to it.
AS_ANYBODY = (
    ["setpriv", "--bounding-set=-dac_override,-dac_read_search"] if os.geteuid() == 0 else []
)
ENTRY = Entry(DONE, {"text": "x" * 200}, {})


@pytest.fixture(scope="module")
def as_anybody() -> Iterator[Callable[..., Process]]:
    """Start a process to which permissions apply."""
    with forking(*AS_ANYBODY) as fork:
        yield fork


@pytest.fixture
def run(as_anybody) -> Callable[..., dict]:
    """Return a function that returns the result of a task in a separate process."""

    def run(location: Path, mode: str = "run", when: str = "", url: str = SERVICE) -> dict:
        with as_anybody("limited", str(location), url, mode, when) as process:
            return process.result()

    return run


def written(path: Path, statement: str = "", url: str = SERVICE) -> Path:
    """Make a ledger with many entries, then run a statement on it as another program would."""
    with opened(str(path), url) as ledger:
        put_all(ledger, {key(f"n{number}"): ENTRY for number in range(200)})
    if statement:
        execute(str(path), statement)
    return path


def content(path: Path) -> bytes | None:
    """Return the content of a file, minus the database header, which counts mode changes."""
    return path.read_bytes()[100:] if path.is_file() else None


def made(path: Path, make: Callable[[Path], object]) -> Path:
    make(path)
    return path


def file(path: Path, content: bytes) -> Path:
    return made(path, lambda path: path.write_bytes(content))


def mode_of(path: Path, mode: int) -> Path:
    return made(written(path), lambda path: path.chmod(mode))


def in_closed_directory(path: Path) -> Path:
    path.mkdir()
    ledger = written(path / "ledger.db")
    path.chmod(0o500)
    return ledger


NO_LEDGER = "it is no ledger, and is left as it is"
MISSING = "there is no ledger at "
FOREIGN = "it is a database of another version of this collection, or of something else"
ROW = "infrastructure_services_ledger"
HISTORY = "infrastructure_services_history"
# Another program's statements on a ledger, and what the message names.
CHANGES = {
    "a table of its own": ("CREATE TABLE theirs (text TEXT)", "CREATE TABLE theirs"),
    "a view": ("CREATE VIEW theirs AS SELECT 1", "CREATE VIEW theirs"),
    "a trigger with one of our names": (
        f"CREATE TRIGGER {HISTORY} AFTER INSERT ON {HISTORY} BEGIN DELETE FROM {HISTORY}; END",
        f"CREATE TRIGGER {HISTORY}",
    ),
    "another column": (f"ALTER TABLE {HISTORY} ADD COLUMN more TEXT", f"CREATE TABLE {HISTORY}"),
    "another index": (f"CREATE INDEX more ON {HISTORY} (run)", "CREATE INDEX more"),
    "a table without its index": (f"DROP INDEX {HISTORY}_of", MISSING),
    "another version": (f"UPDATE {ROW} SET schema_number = 4", "(schema 4, not 6)"),
    "no row": (f"DELETE FROM {ROW}", "(schema None, not 6)"),
    "two rows": (
        f"INSERT INTO {ROW} VALUES (2, 6, '', '', '', '', 0, '')",
        "(schema None, not 6)",
    ),
}
# What is at the path, what the task reports about it, and whether check mode, which only reads,
# reports it too.
PLACES = {
    "nothing": (lambda path: path, MISSING, True),
    "an empty file": (lambda path: file(path, b""), MISSING, True),
    "no directory": (lambda path: path / "ledger.db", MISSING, True),
    "a directory": (lambda path: made(path, Path.mkdir), "is not a regular file", True),
    "a link to itself": (
        lambda path: made(path, lambda path: path.symlink_to(path)) / "ledger.db",
        "Too many levels of symbolic links",
        True,
    ),
    "text": (lambda path: file(path, b"not a ledger\n" * 500), NO_LEDGER, True),
    "zeros": (lambda path: file(path, bytes(8192)), NO_LEDGER, True),
    "letters": (lambda path: file(path, b"xy"), NO_LEDGER, True),
    "a FIFO": (lambda path: made(path, os.mkfifo), "is not a regular file", True),
    "truncated": (
        lambda path: made(written(path), lambda path: os.truncate(path, 6000)),
        "malformed",
        True,
    ),
    "unreadable": (lambda path: mode_of(path, 0o000), "unable to open database file", True),
    "a read-only file": (lambda path: mode_of(path, 0o400), "readonly database", False),
    "a file in a read-only directory": (in_closed_directory, "readonly database", False),
    "another database": (
        lambda path: made(path, lambda path: execute(str(path), CHANGES["a view"][0])),
        FOREIGN,
        True,
    ),
    **{
        what: (lambda path, change=change: written(path, change), says, True)
        for what, (change, says) in CHANGES.items()
    },
}


@pytest.mark.parametrize("place", PLACES)
def test_what_cannot_be_used_fails_the_task_before_its_request(tmp_path, run, place):
    make, says, also_in_check_mode = PLACES[place]
    path = make(tmp_path / "here")
    before = content(path)
    for mode in ("run", "check"):
        result = run(path, mode)
        if mode == "run" or also_in_check_mode:
            assert (result["failed"], result["changed"]) == (True, False)
            assert result["outcome"] == "not_sent"
            assert "ledger: " in result["msg"]
            assert str(path) in result["msg"]
            assert says in result["msg"]
        else:
            assert (result.get("failed", False), result["changed"]) == (False, True)
    assert content(path) == before
    if says in (NO_LEDGER, MISSING):
        assert [each.name for each in tmp_path.iterdir()] in ([], ["here"])


# What another program has written into a ledger, on both databases.
ODD = {
    "a state": ("state = 'begun'", "state"),
    "no JSON": ("sent = '{'", "its JSON"),
    "very deep": (f"asset = '{'[' * 99_000}{']' * 99_000}'", "its JSON"),
}


@pytest.mark.parametrize("what", ODD)
def test_an_entry_that_something_else_wrote_is_an_error_with_its_name(
    location, opened, service, what
):
    assignment, column = ODD[what]
    put_all(opened(location), {key("web01"): ENTRY, key("web02"): ENTRY})
    execute(location, f"UPDATE infrastructure_services_entry SET {assignment} WHERE name = 'web02'")
    result = task(location, base_url=service.url, name="web02")
    assert (result["failed"], result["outcome"]) == (True, "not_sent")
    says = "the entry of web02 has a value that this collection does not write"
    assert f"{says} ({column}), so something else wrote it" in result["msg"]
    assert task(location, base_url=service.url, name="web01")["outcome"] == "not_sent"
    with pytest.raises(LedgerError, match="the entry of web02"):
        states(opened(location))
    assert service.api.conversation == []


def test_a_full_disk_is_noticed_before_the_request(tmp_path, run, service):
    path = written(tmp_path / "ledger.db", url=service.url)
    result = run(path, when="before", url=service.url)
    assert (result["failed"], result["changed"], result["outcome"]) == (True, False, "not_sent")
    assert f"ledger: {path}" in result["msg"]
    assert service.api.conversation == []


def test_a_disk_that_fills_up_during_the_request_loses_nothing(tmp_path, run, opened, service):
    path = create(str(tmp_path / "ledger.db"), service.url)
    failed = run(path, when="after", url=service.url)
    (machine,) = service.api.store.snapshot()["virtual_machines"]
    assert (failed["failed"], failed["changed"], failed["outcome"]) == (True, True, "accepted")
    assert failed["asset"]["id"] == machine["id"]
    assert f"could not be recorded: {path}: " in failed["msg"]
    assert entry_of(opened(path), key()).state == INTENT


def test_a_commit_that_fails_may_have_left_an_intent(tmp_path, opened, service, monkeypatch):
    """As when the directory cannot be synchronized once the journal is gone."""

    class Failing(sqlite3.Connection):
        def execute(self, text, *values):
            cursor = super().execute(text, *values)
            if text == "COMMIT":
                raise sqlite3.OperationalError("disk I/O error")
            return cursor

    ledger = opened(str(tmp_path / "ledger.db"), base_url=service.url)
    monkeypatch.setattr(sqlite3, "connect", partial(sqlite3.connect, factory=Failing))
    result = task(ledger.where, base_url=service.url)
    assert "If the ledger lists it in doubt, it may be settled as absent" in result["msg"]
    assert (entry_of(ledger, key()).state, [*service.api.conversation]) == (INTENT, [])


@pytest.mark.parametrize("what", ["removed", "replaced"])
def test_a_ledger_that_disappears_during_a_loop_is_noticed_before_the_next_request(
    tmp_path, fork, service, opened, what
):
    """Once the file is back, the next run creates what is missing and nothing else."""
    path, count = str(tmp_path / "ledger.db"), 12
    with fork("loop", path, service.url, 2) as loop:
        assert len(loop.results()) == 2
    shutil.copy(path, f"{path}.backup")
    with fork("loop", path, service.url, count) as loop:
        loop.wait(4)
        os.rename(path, f"{path}.gone")
        if what == "replaced":
            shutil.copy(f"{path}.backup", path)
        results = loop.results()
    assert results[-1]["outcome"] == "not_sent"
    assert "was removed or replaced while it was in use" in results[-1]["msg"]
    assert len(service.api.conversation) < count
    os.replace(f"{path}.gone", path)
    execute(path, "UPDATE infrastructure_services_entry SET lease_seconds = 0")
    with fork("loop", path, service.url, count) as loop:
        outcomes = [result["outcome"] for result in loop.results()]
    # That of an intent or a request that was in flight when the file disappeared.
    in_doubt = outcomes.count("unknown")
    assert in_doubt <= 1
    assert count - in_doubt <= len(service.api.conversation) <= count


@pytest.mark.parametrize("how", ["a task", "a list"])
def test_a_ledger_that_is_gone_when_the_answer_comes_takes_nothing_from_the_result(tmp_path, how):
    path = tmp_path / "ledger.db"

    def choose(_request):
        path.rename(tmp_path / "gone.db")
        return answer(201, {"id": "vm-1", "name": "web01"})

    with running(choose) as service:
        if how == "a task":
            result = item = task(str(path), base_url=service.url)
        else:
            result = list_task(str(path), ["web01"], base_url=service.url)
            (item,) = result["results"]
    assert (item["outcome"], item["asset"]["id"], result["failed"]) == ("accepted", "vm-1", True)
    assert "could not be recorded" in item["msg"]
    assert "was removed or replaced" in item["msg"]


def test_a_new_file_is_private_and_one_that_a_group_shares_stays_shared(tmp_path, service):
    before = os.umask(0)
    try:
        path = Path(create(str(tmp_path / "ledger.db"), service.url))
        modes = [path.stat().st_mode]
        path.chmod(0o660)
        assert task(str(path), base_url=service.url)["outcome"] == "accepted"
    finally:
        os.umask(before)
    assert [*map(stat.S_IMODE, [*modes, path.stat().st_mode])] == [0o600, 0o660]


@pytest.mark.parametrize(
    "text", ["O'Brien; DROP TABLE x", "ä€😀", "?", "%s", "\\u0000", "{{ 1 }}", "x" * 255]
)
def test_any_text_comes_back_as_it_was(location, opened, text):
    asset = {"id": text, "deep": [{"null": None, "number": 1.5, "nul": "\x00"}]}
    written = put(opened(location), key(text), Entry(DONE, {text: text}, asset, by=text))
    assert entry_of(opened(location), key(text)) == written
    assert (written.sent, written.asset, written.by) == ({text: text}, asset, text)
