# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What tasks of a run reuse: connections and open ledgers, for the next items of a loop, and a
token for all workers.

Which file a ledger is, they all know, too: another one in its place is refused.

The token is in memory that only they can read, so a killed run leaves nothing on disk. Ansible
loads an action plugin before it forks the workers that run it, so they inherit the memory created
here; a worker that is the first to import this file shares nothing, and fetches a token of its own.
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
from typing import Any, Callable, ContextManager, Hashable, Iterator

from ...module_utils._call.tokens import Credentials, FetchedToken, Memory, Token
from ...module_utils._http.connecting import ConnectionSettings
from .._ledger.location import Ledger, open_ledger
from .._ledger.sqlite import identity, require_same_file

_SIZE = 1 << 20  # bytes, enough for some hundred tokens
_HEAD = 4  # bytes, the length of what follows
_CONTENT = 0  # the number of the lock on the memory; each identity has its own


class Cache(threading.local):
    """A cache of things that can be closed, by key.

    Each thread has its own, so that none closes what another one is using. Objects inherited
    through fork() are neither used nor closed: their connections still belong to the parent.
    """

    def __init__(self) -> None:
        self._things: dict[tuple[int, Hashable], Any] = {}  # by process and key

    def get(self, key: Hashable, make: Callable[[], Any]) -> Any:
        """Return what is cached for the key, or else what `make` returns; raise what `make` raises."""
        own = os.getpid(), key
        if own not in self._things:
            self._things[own] = make()
        return self._things[own]

    def forget(self, key: Hashable) -> None:
        """Close what is cached for the key."""
        thing = self._things.pop((os.getpid(), key), None)
        if thing is not None:
            thing.close()


_ledgers, _transports = Cache(), Cache()


def cached_ledger(location: str, read_only: bool, required_by: str = "") -> Ledger:
    """Return this thread's open ledger; raise LedgerError or MissingLibrary.

    A reader that found no ledger is not cached: others may create it.
    """
    ledger = _ledgers.get(
        (location, read_only), lambda: ledger_of_run(location, read_only, required_by)
    )
    if not ledger.version:
        _ledgers.forget((location, read_only))
    return ledger


def cached_transport(settings: ConnectionSettings):
    """Return this thread's Transport for the settings; raise MissingLibrary or InvalidInput."""
    from ...module_utils._http.transport import Transport  # noqa: PLC0415 (requests, which not every task needs)

    return _transports.get(settings, lambda: Transport(settings))


class RunMemory:
    """A JSON object in memory that this process shares with those that it forks from now on, and
    its locks.

    A lock ends with its process. It is a byte range of an empty, unlinked file; where no such file
    can be created or locked, each process has its own copy of the memory.
    """

    def __init__(self) -> None:
        self._threads = threading.RLock()  # a file lock excludes other processes, not other threads
        try:
            self._file, path = tempfile.mkstemp()
            os.unlink(path)
            fcntl.lockf(self._file, fcntl.LOCK_UN)
            self._bytes: mmap.mmap | bytearray = mmap.mmap(-1, _SIZE)
        except OSError:
            self._file, self._bytes = None, bytearray(_SIZE)

    @contextmanager
    def alone(self, number: int = _CONTENT) -> Iterator[None]:
        """Hold the lock of this number exclusively."""
        with self._threads:
            if self._file is not None:
                fcntl.lockf(self._file, fcntl.LOCK_EX, 1, number)
            try:
                yield
            finally:
                if self._file is not None:
                    fcntl.lockf(self._file, fcntl.LOCK_UN, 1, number)

    def read(self, name: str) -> Any:
        """Return what was written last under this name, None for nothing."""
        with self.alone():
            return self._all().get(name)

    def write(self, name: str, value: Any) -> Any:
        """Write, and return what was written before, None for nothing; a process killed meanwhile
        leaves nothing.

        The oldest entries go if there is no room.
        """
        with self.alone():
            before = self._all()
            content = {**before, name: value}
            while len(text := json.dumps(content).encode()) > _SIZE - _HEAD:
                content.pop(next(iter(content)))
            self._bytes[:_HEAD] = bytes(_HEAD)
            self._bytes[_HEAD : _HEAD + len(text)] = text
            self._bytes[:_HEAD] = len(text).to_bytes(_HEAD, "big")
            return before.get(name)

    def _all(self) -> dict[str, Any]:
        text = bytes(self._bytes[_HEAD : _HEAD + int.from_bytes(self._bytes[:_HEAD], "big")])
        return json.loads(text) if text else {}


class SharedMemory(Memory):
    """What the workers of a run know of one token; its identity is the digest of the whole token
    request.
    """

    def __init__(self, run: RunMemory, credentials: Credentials) -> None:
        digest = hashlib.sha256(repr(credentials).encode("utf-8"))
        self._run, self._identity = run, digest.hexdigest()
        self._number = _CONTENT + 1 + int.from_bytes(digest.digest()[:7], "big")

    def alone(self) -> ContextManager[None]:
        return self._run.alone(self._number)

    def read(self) -> dict[str, Any]:
        return self._run.read(self._identity) or {}

    def write(self, content: dict[str, Any]) -> None:
        self._run.write(self._identity, content)


_run_memory = RunMemory()
_asked: set[str] = set()  # by tasks of this process


def ledger_of_run(location: str, read_only: bool, required_by: str) -> Ledger:
    """Open a ledger, unless this run has used another file there; raise LedgerError or
    MissingLibrary.
    """
    if before := _run_memory.read(location):
        require_same_file(location, tuple(before))
    ledger = open_ledger(location, read_only, required_by)
    if now := identity(location):
        _run_memory.write(location, now)
    return ledger


def is_first(what: str) -> bool:
    """Whether no task of this run has asked for this before."""
    if what in _asked:  # as for each further item of a loop
        return False
    _asked.add(what)
    return not _run_memory.write(what, True)


def shared_token(credentials: Credentials, fetch: Callable[[], Token]) -> FetchedToken:
    """Return the token that this run shares."""
    return FetchedToken(credentials, fetch, SharedMemory(_run_memory, credentials))
