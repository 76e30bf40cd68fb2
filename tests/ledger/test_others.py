# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A ledger in a directory that others may write to, and paths that are no ledger: no other file is
touched.
"""

from __future__ import annotations

import os
import socket
import sqlite3
import stat
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from ansible_collections.infrastructure.services.plugins.module_utils._errors import ServicesError
from ansible_collections.infrastructure.services.plugins.plugin_utils._ledger import (
    ledger_file,
    sqlite,
)
from ansible_collections.infrastructure.services.plugins.plugin_utils._ledger.location import (
    open_ledger,
)
from ledger.tasks import task
from support.others import (
    OTHER,
    directory_for_all,
    done_by_another,
    link_of_another,
    needs_root,
    repeated_by_another,
)

SECRET = b"a key of this user"


@pytest.fixture(params=[0o777, 0o1777], ids=["anybody may write", "sticky"])
def shared(request) -> Iterator[Path]:
    with directory_for_all(request.param) as directory:
        yield directory


@pytest.fixture
def secret(tmp_path) -> Path:
    """A file that only this user may read."""
    path = tmp_path / "id_ed25519"
    path.write_bytes(SECRET)
    path.chmod(0o600)
    return path


def mode(path: Path | str) -> int:
    return stat.S_IMODE(os.stat(path).st_mode)


def refusal(path: Path | str, read_only: bool = False) -> str:
    with pytest.raises(ServicesError) as refused:
        open_ledger(str(path), read_only).close()
    return refused.value.msg


def new_ledger(path: Path, mode: int = 0o600) -> Path:
    """Make a ledger with this mode, and no lock file."""
    open_ledger(str(path)).close()
    path.chmod(mode)
    os.unlink(f"{path}.lock")
    return path


@needs_root
@pytest.mark.parametrize("end", [".lock", "-journal", "-wal", "-shm"])
@pytest.mark.parametrize("is_new", [True, False])
def test_a_link_that_another_user_put_beside_a_ledger_changes_no_file(
    shared, secret, end, is_new, service
):
    ledger = shared / "fleet.db"
    if not is_new:
        new_ledger(ledger, 0o644)
    done_by_another(lambda: os.symlink(secret, f"{ledger}{end}"))
    for result in (
        task(str(ledger), base_url=service.url),
        task(str(ledger), base_url=service.url, check_mode=True),
    ):
        assert (result["failed"], result["outcome"]) == (True, "not_sent")
        assert f"{ledger}{end} is a symbolic link or no regular file" in result["msg"]
    assert (mode(secret), secret.read_bytes()) == (0o600, SECRET)
    assert sorted(file.name for file in shared.iterdir()) == sorted(
        [f"fleet.db{end}", *([] if is_new else ["fleet.db"])]
    )
    assert service.api.conversation == []


@needs_root
def test_a_link_that_another_user_puts_there_at_the_last_moment_changes_no_file(shared, secret):
    """Whatever the moment: the ledger opens, or is refused."""
    ledger = new_ledger(shared / "fleet.db", 0o644)
    lock = f"{ledger}.lock"

    def replace_lock() -> None:
        os.symlink(secret, f"{lock}.mine")
        os.replace(f"{lock}.mine", lock)

    with repeated_by_another(replace_lock):
        for _attempt in range(300):
            try:
                os.close(sqlite.open_lock_file(str(ledger)))
            except OSError:
                os.unlink(lock)
    assert (mode(secret), secret.read_bytes()) == (0o600, SECRET)


@pytest.mark.parametrize("content", [SECRET, b""])
def test_a_lock_file_is_never_opened_through_a_link(tmp_path, secret, content):
    secret.write_bytes(content)
    ledger = new_ledger(tmp_path / "fleet.db", 0o644)
    Path(f"{ledger}.lock").symlink_to(secret)
    with pytest.raises(OSError, match="symbolic link"):
        sqlite.open_lock_file(str(ledger))
    assert (mode(secret), secret.read_bytes()) == (0o600, content)


@needs_root
def test_another_name_of_a_file_does_not_get_the_mode_of_the_ledger(shared, secret):
    ledger = new_ledger(shared / "fleet.db", 0o644)
    os.link(secret, f"{ledger}.lock")
    open_ledger(str(ledger)).close()
    assert (mode(secret), secret.read_bytes()) == (0o600, SECRET)


def test_a_file_with_something_in_it_does_not_get_the_mode_of_the_ledger(tmp_path, secret):
    ledger = new_ledger(tmp_path / "fleet.db", 0o644)
    secret.rename(f"{ledger}.lock")
    open_ledger(str(ledger)).close()
    assert mode(f"{ledger}.lock") == 0o600


@needs_root
def test_a_lock_of_a_user_who_may_not_write_to_the_ledger_is_refused(shared):
    """Who owns it could lock it for ever; who shares the ledger may have made its lock file."""
    ledger = new_ledger(shared / "fleet.db")
    done_by_another(lambda: Path(f"{ledger}.lock").touch(0o666))
    assert f"{ledger}.lock belongs to a user who may not write to the ledger. Remove it" in refusal(
        ledger
    )
    ledger.chmod(0o660)
    open_ledger(str(ledger)).close()
    ledger.chmod(0o600)
    os.chown(ledger, OTHER, OTHER)
    open_ledger(str(ledger)).close()


def test_a_new_ledger_and_its_lock_are_for_their_owner_whatever_the_umask(tmp_path):
    before = os.umask(0)
    try:
        open_ledger(str(tmp_path / "fleet.db")).close()
    finally:
        os.umask(before)
    assert {file.name: mode(file) for file in tmp_path.iterdir()} == {
        "fleet.db": 0o600,
        "fleet.db.lock": 0o600,
    }


@pytest.mark.parametrize("of", ["the file", "its directory"])
@pytest.mark.parametrize("read_only", [True, False])
def test_a_ledger_behind_the_link_of_another_user_is_refused(tmp_path, of, read_only, monkeypatch):
    (tmp_path / "real").mkdir()
    target, path = {
        "the file": ("real/fleet.db", "link"),
        "its directory": ("real", "link/fleet.db"),
    }[of]
    link_of_another(tmp_path / "link", target, monkeypatch)
    problem = refusal(tmp_path / path, read_only)
    assert problem.startswith("ledger: ")
    assert f"leads through {tmp_path}/link, a symbolic link of " in problem
    assert list((tmp_path / "real").iterdir()) == []


def make_socket(path: Path) -> None:
    with closing(socket.socket(socket.AF_UNIX)) as it:
        it.bind(str(path))


NO_LEDGERS = {
    "text": lambda path: path.write_text("root:x:0:0:root:/root:/bin/bash\n" * 50),
    "a short text": lambda path: path.write_text("x"),
    "zeros": lambda path: path.write_bytes(bytes(8192)),
    "a FIFO": os.mkfifo,
    "a socket": make_socket,
    "a device": lambda path: path.symlink_to("/dev/null"),
}


def test_a_file_that_another_task_is_just_making_is_a_ledger(tmp_path, monkeypatch):
    """The first write is seen half done, and its journal is gone right after."""
    path = tmp_path / "ledger.db"
    open_ledger(str(path)).close()
    look, seen = ledger_file._application_id_in, []

    def half_written_at_first(file: str) -> int:
        seen.append(file)
        if len(seen) == 1:
            raise sqlite3.DatabaseError("file is not a database")
        return look(file)

    monkeypatch.setattr(ledger_file, "_application_id_in", half_written_at_first)
    open_ledger(str(path)).close()
    assert len(seen) == 2


@pytest.mark.parametrize("read_only", [True, False])
@pytest.mark.parametrize("kind", NO_LEDGERS)
def test_no_file_is_made_beside_what_is_no_ledger(tmp_path, kind, read_only):
    path, around = tmp_path / "here", set(os.listdir("/dev"))
    NO_LEDGERS[kind](path)
    before = path.read_bytes() if path.is_file() else b""
    says = "file is not a database" if before else "is not a regular file"
    assert refusal(path, read_only).startswith(f"ledger: {path}")
    assert says in refusal(path, read_only)
    assert [file.name for file in tmp_path.iterdir()] == ["here"]
    assert (path.read_bytes() if path.is_file() else b"") == before
    assert {name for name in os.listdir("/dev") if name.startswith("null")} <= around
