# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What workers share with the process that starts them: a memory, and its life; the screen.

The memory holds tokens. Only these processes can read it, so a killed run leaves nothing on disk. The
process that starts the workers creates it before it forks them. A worker that has to create it
shares nothing, and fetches a token of its own.
"""

from __future__ import annotations

import fcntl
import json
import mmap
import os
import tempfile
from contextlib import contextmanager
from functools import cache
from typing import Any, Iterator

from ansible.utils.display import Display

from ...module_utils._call.tokens import Memory
from ...module_utils._errors import ServicesError

_SIZE = 1 << 20  # bytes, enough for some hundred tokens


@cache
def prepare_workers() -> None:
    """Prepare this process for the workers that it will fork."""
    parents = _parents()
    os.register_at_fork(before=lambda: parents.append(os.getpid()), after_in_parent=parents.pop)
    run_memory()


@cache
def _parents() -> list[int]:
    """Return the processes that forked one another, the last one being the parent of this one.

    It is known before each fork: the parent may die right after it.
    """
    return [os.getppid()]


def is_orphan() -> bool:
    """Return whether ansible-playbook has died, so that nobody reads the result of this worker."""
    return os.getppid() != _parents()[-1]


def require_parent() -> None:
    """Raise ServicesError in an orphan."""
    if is_orphan():
        raise ServicesError(
            "Nothing was sent: the run of Ansible that this task belongs to has ended."
        )


def show(*lines: str, stderr: bool) -> None:
    """Display lines together, whatever other workers display."""
    Display().display("\n".join(lines), stderr=stderr)


class RunMemory(Memory):
    """A JSON object that this process shares with those that it forks from now on, and its locks.

    A lock ends with its process. It is a byte range of an empty, unlinked file.
    """

    def __init__(self) -> None:
        self._file, path = tempfile.mkstemp()
        os.unlink(path)
        self._bytes = mmap.mmap(-1, _SIZE)

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Hold the lock of the memory itself."""
        fcntl.lockf(self._file, fcntl.LOCK_EX, 1, 0)
        try:
            yield
        finally:
            fcntl.lockf(self._file, fcntl.LOCK_UN, 1, 0)

    def try_lock(self, name: str) -> bool:
        """Take the lock of a name, a digest, unless another process has it."""
        try:
            fcntl.lockf(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, int(name[:14], 16))
        except OSError:
            return False
        return True

    def unlock(self, name: str) -> None:
        """Give a lock back."""
        fcntl.lockf(self._file, fcntl.LOCK_UN, 1, int(name[:14], 16))

    def read(self, name: str) -> Any:
        """Return the value that was written last under this name, None if there is none."""
        with self.alone():
            return self._all().get(name)

    def write(self, name: str, value: Any) -> None:
        """Write a value, unless there is no room. A process killed meanwhile leaves nothing."""
        with self.alone():
            text = json.dumps({**self._all(), name: value}).encode() + b"\0"
            if len(text) <= _SIZE:
                self._bytes[0] = 0
                self._bytes[1 : len(text)] = text[1:]
                self._bytes[0] = text[0]

    def _all(self) -> dict[str, Any]:
        text = self._bytes[: self._bytes.find(b"\0")]
        return json.loads(text) if text else {}


@cache
def run_memory() -> RunMemory:
    """Return the memory of this run."""
    return RunMemory()
