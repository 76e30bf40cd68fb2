# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Reads and replaces files, atomically and by one task at a time.

Others may write to the directories of the files. Each path is as `real_path` returns it.
"""

from __future__ import annotations

import fcntl
import os
import stat
import uuid
from contextlib import contextmanager, suppress
from typing import IO, Iterator

from .._ledger.paths import is_trusted, open_directory


def text_of(file: str) -> str:
    """Return the text of a file, empty when there is none; raise OSError."""
    try:
        with opened(file, os.O_RDONLY) as found:
            return found.read()
    except FileNotFoundError:
        return ""


@contextmanager
def opened(file: str, flags: int) -> Iterator[IO[str]]:
    """Open a real path; follow no link that has taken its place since, and wait for no FIFO."""
    flags |= os.O_NONBLOCK | os.O_NOFOLLOW
    with open_directory(os.path.dirname(file)) as directory:
        descriptor = os.open(os.path.basename(file), flags, dir_fd=directory)
        with open(descriptor, encoding="utf-8", errors="replace") as found:
            yield found


@contextmanager
def alone_in(directory: str) -> Iterator[None]:
    """Exclude all other tasks, also of other runs, where the file system has locks."""
    with open_directory(directory) as found:
        descriptor = os.open(os.curdir, os.O_RDONLY, dir_fd=found)
    try:
        with suppress(OSError):
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


@contextmanager
def replacement(file: str) -> Iterator[tuple[int, str, IO[str]]]:
    """Yield the descriptor of the file's directory, and a new file there by its name and open.

    Remove the new file if it is still there at the end. Not by tempfile, which knows a directory by
    its path only: somebody may have put a symbolic link there.
    """
    with open_directory(os.path.dirname(file)) as directory:
        new = f"{os.path.basename(file)}.{uuid.uuid4().hex}.new"
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
        descriptor = os.open(new, flags, 0o600, dir_fd=directory)
        try:
            with open(descriptor, "w", encoding="utf-8") as to:
                yield directory, new, to
        finally:
            with suppress(OSError):
                os.unlink(new, dir_fd=directory)


def replace(file: str, text: str) -> None:
    """Replace a file atomically, keeping its mode unless it is another user's; raise OSError."""
    name = os.path.basename(file)
    with replacement(file) as (directory, new, to):
        to.write(text)
        with suppress(FileNotFoundError):
            before = os.stat(name, dir_fd=directory, follow_symlinks=False)
            if is_trusted(before.st_uid):
                os.fchmod(to.fileno(), stat.S_IMODE(before.st_mode))
        to.close()
        os.replace(new, name, src_dir_fd=directory, dst_dir_fd=directory)
