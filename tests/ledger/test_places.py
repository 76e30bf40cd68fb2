# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A ledger file that cannot be used: the task reports it, before the request if possible."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from ansible_collections.infrastructure.services.plugins.plugin_utils._ledger.entries import (
    DONE,
    INTENT,
    Change,
    Entry,
    Key,
    Kind,
)
from ansible_collections.infrastructure.services.plugins.plugin_utils._ledger.location import (
    open_ledger,
)
from ledger.forked import Process, forking
from ledger.tasks import key

# Takes from the task root's ability to ignore permissions, so that they apply to it.
AS_ANYBODY = (
    ["setpriv", "--bounding-set=-dac_override,-dac_read_search"] if os.geteuid() == 0 else []
)


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
    ledger = open_ledger(str(path))
    entry = Entry(DONE, {"text": "x" * 200}, {})
    ledger.write(
        [Change(Key("https://s", "r", f"n{number}"), None, entry) for number in range(200)],
        Kind.BEGIN,
    )
    if statement:
        ledger.database.execute(statement)
    ledger.close()
    return path


def content(path: Path) -> bytes | None:
    """Return the content of a file, minus the database header, which counts mode changes."""
    return path.read_bytes()[100:] if path.is_file() else None


def directory(path: Path) -> Path:
    path.mkdir()
    return path


def file(path: Path, content: bytes) -> Path:
    path.write_bytes(content)
    return path


def truncated(path: Path) -> Path:
    os.truncate(written(path), 6000)
    return path


def closed_to_writing(path: Path, mode: int) -> Path:
    path.chmod(mode)
    return path


def in_closed_directory(path: Path, make=lambda path: path) -> Path:
    path.mkdir()
    ledger = make(path / "ledger.db")
    path.chmod(0o500)
    return ledger


NO_LEDGER = "is left as it is. Give the path of a ledger, or of a new one; if this was one, restore it from a backup"
# What is at the path, what the task reports about it, and whether check mode, which only reads,
# reports it too.
PLACES = {
    "a directory": (directory, "is a directory", True),
    "a file without a directory": (
        lambda path: path / "ledger.db",
        "its directory does not exist",
        True,
    ),
    "below a file": (
        lambda path: file(path, b"") / "ledger.db",
        "its directory does not exist",
        True,
    ),
    "text": (lambda path: file(path, b"not a ledger\n" * 500), NO_LEDGER, True),
    "a letter": (lambda path: file(path, b"x"), NO_LEDGER, True),
    "truncated": (truncated, "is not a database", True),
    "all but its header lost": (
        lambda path: file(path, written(path).read_bytes()[:200]),
        "is not a database",
        True,
    ),
    "unreadable": (
        lambda path: closed_to_writing(written(path), 0o000),
        "unable to open database file",
        True,
    ),
    "a read-only file": (
        lambda path: closed_to_writing(written(path), 0o400),
        "readonly database",
        False,
    ),
    "a new file in a read-only directory": (in_closed_directory, "Permission denied", False),
    "a file in a read-only directory": (
        lambda path: in_closed_directory(path, written),
        "readonly database",
        False,
    ),
    "of a newer collection": (
        lambda path: written(
            path, "UPDATE infrastructure_services_schema SET version = version + 1"
        ),
        "was written by another version of this collection",
        True,
    ),
    "with another column": (
        lambda path: written(
            path, "ALTER TABLE infrastructure_services_entry RENAME COLUMN sent TO told"
        ),
        "no such column: sent",
        True,
    ),
    "without its version": (
        lambda path: written(path, "DROP TABLE infrastructure_services_schema"),
        "or by something else (schema None, not 4)",
        True,
    ),
}


@pytest.mark.parametrize("place", PLACES)
def test_a_ledger_that_cannot_be_used_fails_the_task_before_its_request(
    tmp_path, run, service, place
):
    make, says, also_in_check_mode = PLACES[place]
    path = make(tmp_path / "here")
    before = content(path)
    for mode in ("run", "check"):
        result = run(path, mode)
        if mode == "run" or also_in_check_mode:
            assert (result["failed"], result["changed"], result["outcome"]) == (
                True,
                False,
                "not_sent",
            )
            assert result["msg"].startswith(f"ledger: {path}")
            assert says in result["msg"]
        else:
            assert (result.get("failed", False), result["changed"]) == (False, True)
    assert service.api.conversation == []
    assert content(path) == before


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
    assert f"could not be recorded: ledger: {path}: " in failed["msg"]
    assert opened(str(path)).get(key(service)).state == INTENT
    again = run(path)
    assert (again["failed"], again["outcome"], len(service.api.conversation)) == (
        True,
        "unknown",
        1,
    )


def test_an_empty_file_or_another_database_becomes_a_ledger(tmp_path, run, service):
    other = tmp_path / "other.db"
    connection = sqlite3.connect(other)
    connection.execute("CREATE TABLE theirs (text TEXT)")
    connection.close()
    for number, path in enumerate((file(tmp_path / "empty.db", b""), other), 1):
        assert run(path)["outcome"] == "accepted"
        assert run(path)["outcome"] == "not_sent"
        assert len(service.api.conversation) == number


def test_both_paths_report_what_is_wrong_with_the_ledger(ansible, emulator):
    (ansible.directory / "here").mkdir()
    done = ansible.adhoc(
        "infrastructure.services.compute_virtual_machine", "name=web01 ledger=here"
    )
    assert done.rc != 0
    assert f"ledger: {ansible.directory}/here is a directory" in done.output
    assert '"outcome": "not_sent"' in done.output
    assert emulator.conversation() == []
