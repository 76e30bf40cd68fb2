# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The memory that all workers of a run share: tokens, files of ledgers, warnings already shown.

Only these processes can read it, so a killed run leaves nothing on disk. The process that starts
the workers creates it before it forks them. A worker that has to create it shares nothing, and
fetches a token of its own.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import mmap
import os
import tempfile
import threading
from contextlib import contextmanager
from functools import cache
from typing import Any, ContextManager, Iterator

from ...module_utils._call.tokens import Credentials, Memory

_SIZE = 1 << 20  # bytes, enough for some hundred tokens
_HEAD = 4  # bytes, which hold the length of the content
_CONTENT = 0  # the number of the lock on the memory; each identity has its own


class RunMemory:
    """A JSON object that this process shares with those that it forks from now on, and its locks.

    A lock ends with its process. It is a byte range of an empty, unlinked file.
    """

    def __init__(self) -> None:
        # A file lock excludes other processes, not other threads.
        self._threads = threading.RLock()
        self._file, path = tempfile.mkstemp()
        os.unlink(path)
        self._bytes = mmap.mmap(-1, _SIZE)
        self._asked: set[str] = set()  # by tasks of this process

    @contextmanager
    def alone(self, number: int = _CONTENT) -> Iterator[None]:
        """Hold the lock of this number exclusively."""
        with self._threads:
            fcntl.lockf(self._file, fcntl.LOCK_EX, 1, number)
            try:
                yield
            finally:
                fcntl.lockf(self._file, fcntl.LOCK_UN, 1, number)

    def read(self, name: str) -> Any:
        """Return the value that was written last under this name, None if there is none."""
        with self.alone():
            return self._all().get(name)

    def write(self, name: str, value: Any) -> Any:
        """Write a value and return the one before, None if there was none.

        The oldest values go if there is no room. A process killed meanwhile leaves nothing.
        """
        with self.alone():
            before = self._all()
            content = {**before, name: value}
            text = json.dumps(content).encode()
            while len(text) > _SIZE - _HEAD:
                content.pop(next(iter(content)))
                text = json.dumps(content).encode()
            self._bytes[:_HEAD] = bytes(_HEAD)
            self._bytes[_HEAD : _HEAD + len(text)] = text
            self._bytes[:_HEAD] = len(text).to_bytes(_HEAD, "big")
            return before.get(name)

    def _all(self) -> dict[str, Any]:
        length = int.from_bytes(self._bytes[:_HEAD], "big")
        text = bytes(self._bytes[_HEAD : _HEAD + length])
        return json.loads(text) if text else {}

    def is_first(self, name: str) -> bool:
        """Return whether no task of this run has asked this before."""
        if name in self._asked:  # as for each further item of a loop
            return False
        self._asked.add(name)
        return not self.write(name, True)


class TokenMemory(Memory):
    """The state of one token, for all workers; its name is the digest of the whole token request."""

    def __init__(self, run: RunMemory, credentials: Credentials) -> None:
        digest = hashlib.sha256(repr(credentials).encode("utf-8"))
        self._run = run
        self._name = digest.hexdigest()
        self._number = _CONTENT + 1 + int.from_bytes(digest.digest()[:7], "big")

    def alone(self) -> ContextManager[None]:
        return self._run.alone(self._number)

    def read(self) -> dict[str, Any]:
        return self._run.read(self._name) or {}

    def write(self, content: dict[str, Any]) -> None:
        self._run.write(self._name, content)


@cache
def run_memory() -> RunMemory:
    """Return the memory of this run."""
    return RunMemory()
