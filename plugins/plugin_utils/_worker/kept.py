# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What outlives one task: connections over the items of a loop, a token over all forks of a run."""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import tempfile
import time
from contextlib import contextmanager
from typing import Any, Callable, Iterator

from ansible import constants

from ...module_utils._call.settings import Settings
from ...module_utils._call.tokens import Credentials, Token
from ...module_utils._errors import TokenError
from ...module_utils._http.transport import Transport
from .._ledger.location import Ledger, open_ledger

_MOST = 8  # of each kind; a loop that names more services or ledgers than this opens some anew
_kept: dict[tuple, Any] = {}


def kept_transport(settings: Settings) -> Transport:
    """Return this process's transport for the settings."""
    return _keep(Transport, settings)


def kept_ledger(location: str, read_only: bool) -> Ledger:
    """Return this process's open ledger, opened anew when its server went away; raise LedgerError or MissingLibrary."""
    ledger = _keep(open_ledger, location, read_only)
    if ledger.closed:
        _close_all()
    return _keep(open_ledger, location, read_only)


def _keep(make: Callable, *arguments) -> Any:
    """Return what `make` made of the arguments in this process; what came over a fork is never used."""
    key = (os.getpid(), make, *arguments)
    if key not in _kept:
        if len(_kept) >= _MOST:
            _close_all()
        _kept[key] = make(*arguments)
    return _kept[key]


def _close_all() -> None:
    """Close what this process opened; what came over a fork is still its parent's."""
    for key in [key for key in _kept if key[0] == os.getpid()]:
        _kept.pop(key).close()


class SharedToken:
    """A token that all workers of a run share: a file in the run's own directory, which Ansible removes at its end.

    Who finds no usable token fetches one under a file lock, which dies with its process, while the others wait for it.
    A failure is shared with those who waited meanwhile, so that a hundred hosts do not ask a dead endpoint one by one.
    """

    def __init__(self, credentials: Credentials, fetch: Callable[[], Token], directory: str) -> None:
        digest = hashlib.sha256(repr(credentials).encode("utf-8")).hexdigest()
        self._path = os.path.join(directory, f"infrastructure.services-{digest}")
        self._fetch = fetch
        self._refused = ""

    def token(self) -> str:
        """Return a token that is good for now; raise TokenError."""
        asked_at = time.time()
        return self._usable() or self._wait_or_fetch(asked_at)

    def renew(self) -> bool:
        """Take the present token for refused; return True, since there can be another one."""
        self._refused = self._read().get("token", "")
        return True

    def _wait_or_fetch(self, asked_at: float) -> str:
        with _locked(f"{self._path}.lock"):
            token, last = self._usable(), self._read()
            if token:
                return token
            if last.get("failed_at", 0) >= asked_at:
                raise TokenError(last["error"])
            try:
                fetched = self._fetch()
            except TokenError as error:
                self._write({"error": error.msg, "failed_at": time.time()})
                raise
            self._write({"token": fetched.value, "use_until": min(fetched.use_until, time.time() + 10**9)})
            return fetched.value

    def _usable(self) -> str:
        kept = self._read()
        token = kept.get("token", "")
        return token if token != self._refused and time.time() < kept.get("use_until", 0) else ""

    def _read(self) -> dict:
        """Return what was written last; a file that was damaged since counts as none."""
        try:
            with open(self._path, encoding="utf-8") as file:
                return dict(json.load(file))
        except (FileNotFoundError, ValueError, TypeError):
            return {}

    def _write(self, content: dict) -> None:
        """Write as a whole or not at all; mkstemp makes the file readable for its owner only."""
        descriptor, path = tempfile.mkstemp(dir=os.path.dirname(self._path))
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            json.dump(content, file)
        os.replace(path, self._path)


def keep_token(credentials: Credentials, fetch: Callable[[], Token]) -> SharedToken:
    """Share the token over this run of Ansible."""
    return SharedToken(credentials, fetch, constants.DEFAULT_LOCAL_TMP)


@contextmanager
def _locked(path: str) -> Iterator[None]:
    descriptor = os.open(path, os.O_CREAT | os.O_RDWR, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)
