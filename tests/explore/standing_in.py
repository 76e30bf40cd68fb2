# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the code of the ledger uses of threading, time and psycopg, while a scheduler runs it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from datetime import datetime, timedelta
from types import SimpleNamespace
from unittest import mock

from ansible_collections.infrastructure.services.plugins.plugin_utils._ledger import (
    editing,
    entries,
    moving,
    postgresql,
    queue,
    recording,
    store,
)

from .actors import written
from .scheduler import LOOKING, World
from .sessions import Error, OperationalError, Session

_USERS = (
    (store, "time", "os"),
    (recording, "time"),
    (queue, "time", "threading"),
    (postgresql, "time", "threading"),
    (entries, "datetime", "os"),
    (moving, "os"),
)


class StandingIn:
    """Takes the place of the modules `threading`, `time`, `datetime`, `os` and psycopg for the code
    of the ledger.
    """

    world: World
    getuid = staticmethod(os.getuid)

    def monotonic(self) -> float:
        return self.world.see(self.world.now)

    def now(self, zone) -> datetime:
        """Return the moment of all stamps, as if everything happened within one second."""
        return datetime(2026, 1, 2, 3, 4, 5, tzinfo=zone)

    def strptime(self, _text: str, _format: str) -> datetime:
        """Return a moment a second before, since a stamp may be a second after the last one."""
        return self.now(None) - timedelta(seconds=1)

    def urandom(self, size: int) -> bytes:
        return self.world.running.process.urandom(size)

    def sleep(self, seconds: float) -> None:
        """Let time pass; who looks again and again for a lock goes on once one was released."""
        world = self.world
        before = world.see(world.releases)
        world.wait(lambda: seconds < LOOKING and world.releases != before, seconds)

    def Timer(self, seconds, act, arguments):  # noqa: N802 - as threading has it
        """Return a timer that never ends: each answer comes at once, or is lost."""
        return SimpleNamespace(start=lambda: None, cancel=lambda: None)

    def Condition(self) -> Condition:  # noqa: N802 - as threading has it
        return Condition(self.world)

    @contextmanager
    def used(self) -> Iterator[None]:
        """Let the code use this."""
        with ExitStack() as patched:
            for module, *names in _USERS:
                for name in names:
                    patched.enter_context(mock.patch.object(module, name, self))
            patched.enter_context(mock.patch.object(editing.Editor, "_write", written))
            library = SimpleNamespace(
                Error=Error,
                OperationalError=OperationalError,
                Pipeline=Session.Pipeline,
                connect=Session.connect,
            )
            for name, value in {
                "psycopg_library": lambda: library,
                "parsed_url": lambda url: {"host": url},
            }.items():
                patched.enter_context(mock.patch.object(postgresql, name, value))
            yield


class Condition:
    """As that of threading; nobody is overtaken within it."""

    def __init__(self, world: World) -> None:
        self._world = world

    def __enter__(self) -> None:
        pass

    def __exit__(self, *_error) -> None:
        pass

    def wait_for(self, ready) -> None:
        self._world.wait(ready)

    def notify_all(self) -> None:
        pass


STANDING_IN = StandingIn()
