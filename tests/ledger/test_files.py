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
from ledger.tasks import key, list_task, open_at, task
from support.ledgers import entry_of
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
def run(as_anybody, service) -> Callable[..., dict]:
    """Return a function that returns the result of a task in a separate process."""

    def run(location: Path, mode: str = "run", when: str = "") -> dict:
        with as_anybody("limited", str(location), service.url, mode, when) as process:
            return process.result()

    return run


def written(path: Path, statement: str = "") -> Path:
    """Make a ledger with many entries, then run a statement on it as another program would."""
    ledger = open_at(str(path))
    put_all(ledger, {key(f"n{number}"): ENTRY for number in range(200)})
    ledger.close()
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


def in_closed_directory(path: Path, make=lambda path: path) -> Path:
    path.mkdir()
    ledger = make(path / "ledger.db")
    path.chmod(0o500)
    return ledger


NO_LEDGER = "it is no ledger, and is left as it is"
FOREIGN = "is a database with something else in it (theirs)"
STATEMENTS = {
    "a table of its own": "CREATE TABLE theirs (text TEXT)",
    "a view": "CREATE VIEW theirs AS SELECT 1",
    "a trigger": (
        "CREATE TRIGGER theirs AFTER INSERT ON infrastructure_services_entry BEGIN"
        " DELETE FROM infrastructure_services_entry; END"
    ),
}
# What is at the path, what the task reports about it, and whether check mode, which only reads,
# reports it too.
PLACES = {
    "a directory": (lambda path: made(path, Path.mkdir), "is not a regular file", True),
    "no directory": (lambda path: path / "ledger.db", "No such file or directory", False),
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
    "a new file in a read-only directory": (in_closed_directory, "Permission denied", False),
    "a file in a read-only directory": (
        lambda path: in_closed_directory(path, written),
        "readonly database",
        False,
    ),
    "of another version": (
        lambda path: written(path, "UPDATE infrastructure_services_ledger SET schema_number = 4"),
        "was written by another version of this collection, or by something else (schema 4, not 5)",
        True,
    ),
    "without its row": (
        lambda path: written(path, "DELETE FROM infrastructure_services_ledger"),
        "or by something else (schema None, not 5)",
        True,
    ),
    "with another column": (
        lambda path: written(
            path, "ALTER TABLE infrastructure_services_entry RENAME COLUMN sent TO told"
        ),
        "no such column: sent",
        True,
    ),
    **{
        what: (lambda path, statement=statement: written(path, statement), FOREIGN, True)
        for what, statement in STATEMENTS.items()
    },
    "another database": (
        lambda path: made(path, lambda path: execute(str(path), STATEMENTS["a table of its own"])),
        FOREIGN,
        True,
    ),
}


@pytest.mark.parametrize("place", PLACES)
def test_what_cannot_be_used_fails_the_task_before_its_request(tmp_path, run, service, place):
    make, says, also_in_check_mode = PLACES[place]
    path = make(tmp_path / "here")
    before = content(path)
    for mode in ("run", "check"):
        result = run(path, mode)
        if mode == "run" or also_in_check_mode:
            assert (result["failed"], result["changed"]) == (True, False)
            assert result["outcome"] == "not_sent"
            assert result["msg"].startswith(f"ledger: {path}")
            assert says in result["msg"]
        else:
            assert (result.get("failed", False), result["changed"]) == (False, True)
    assert service.api.conversation == []
    assert content(path) == before
    if says in (NO_LEDGER, FOREIGN):
        assert [each.name for each in tmp_path.iterdir()] == ["here"]


# What another program has written into a ledger, on both databases.
ODD = {
    "a state": ("state = 'begun'", "is begun"),
    "no JSON": ("sent = '{'", "is unreadable"),
    "very deep": (f"asset = '{'[' * 99_000}{']' * 99_000}'", "is unreadable"),
}


@pytest.mark.parametrize("what", ODD)
def test_an_entry_that_something_else_wrote_is_an_error_with_its_name(
    location, opened, service, what
):
    assignment, says = ODD[what]
    put_all(opened(location), {key("web01"): ENTRY, key("web02"): ENTRY})
    execute(location, f"UPDATE infrastructure_services_entry SET {assignment} WHERE name = 'web02'")
    result = task(location, base_url=service.url, name="web02")
    assert (result["failed"], result["outcome"]) == (True, "not_sent")
    assert f"the entry of web02 {says}, so something else wrote it" in result["msg"]
    assert task(location, base_url=service.url, name="web01")["outcome"] == "not_sent"
    with pytest.raises(LedgerError, match="the entry of web02"):
        states(opened(location))
    assert service.api.conversation == []


def test_a_full_disk_is_noticed_before_the_request(tmp_path, run, service):
    for path in (tmp_path / "new.db", written(tmp_path / "old.db")):
        result = run(path, when="before")
        assert (result["failed"], result["changed"], result["outcome"]) == (True, False, "not_sent")
        assert result["msg"].startswith(f"ledger: {path}")
    assert service.api.conversation == []


def test_a_disk_that_fills_up_during_the_request_loses_nothing(tmp_path, run, opened, service):
    path = tmp_path / "ledger.db"
    failed = run(path, when="after")
    (machine,) = service.api.store.snapshot()["virtual_machines"]
    assert (failed["failed"], failed["changed"], failed["outcome"]) == (True, True, "accepted")
    assert failed["asset"]["id"] == machine["id"]
    assert f"could not be recorded: {path}: " in failed["msg"]
    assert entry_of(opened(str(path)), key()).state == INTENT


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
    assert "If the ledger lists web01 in doubt, it may be settled as absent" in result["msg"]
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


@pytest.mark.parametrize("mode", [None, 0o660])
def test_a_new_file_is_private_and_one_that_a_group_shares_stays_shared(tmp_path, service, mode):
    path = tmp_path / "ledger.db"
    before = os.umask(0)
    try:
        if mode:
            path.touch()
            path.chmod(mode)
        assert task(str(path), base_url=service.url)["outcome"] == "accepted"
    finally:
        os.umask(before)
    assert stat.S_IMODE(path.stat().st_mode) == (mode or 0o600)


@pytest.mark.parametrize(
    "text", ["O'Brien; DROP TABLE x", "ä€😀", "?", "%s", "a\nb", "\\u0000", "{{ 1 }}", "x" * 5000]
)
def test_any_text_comes_back_as_it_was(location, opened, text):
    asset = {"id": text, "deep": [{"null": None, "number": 1.5, "nul": "\x00"}]}
    written = put(opened(location), key(text), Entry(DONE, {text: text}, asset, by=text))
    assert entry_of(opened(location), key(text)) == written
    assert (written.sent, written.asset, written.by) == ({text: text}, asset, text)


def test_reading_a_missing_ledger_finds_and_creates_nothing(location, opened):
    for _time in range(2):
        ledger = opened(location, read_only=True)
        assert (ledger.is_new, entry_of(ledger, key()), states(ledger)) == (True, None, {})
        assert ledger.history([key()]) == {key(): []}


def test_a_file_that_another_task_creates_meanwhile_is_used(tmp_path, opened, monkeypatch):
    place, connect = tmp_path / "ledger.db", sqlite3.connect

    def after_another_task(*arguments, **options):
        place.touch()
        return connect(*arguments, **options)

    monkeypatch.setattr(sqlite3, "connect", after_another_task)
    assert states(opened(str(place))) == {}
