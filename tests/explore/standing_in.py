# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the code of the ledger uses of threading, time and psycopg, while a scheduler runs it."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from datetime import datetime
from types import SimpleNamespace
from unittest import mock

from ansible_collections.infrastructure.services.plugins.plugin_utils._ledger import (
    editing,
    entries,
    moving,
    postgresql,
    postgresql_library,
    queue,
    recording,
    store,
)

from .actors import written
from .scheduler import LOOKING, World
from .sessions import Error, OperationalError, Session

_USERS = (
    (store, "time"),
    (recording, "time"),
    (queue, "time", "threading"),
    (postgresql, "time", "threading"),
    (postgresql_library, "threading", "signal"),
    (entries, "datetime", "os"),
    (moving, "os"),
)


class StandingIn:
    """Takes the place of the modules `threading`, `time`, `datetime`, `os` and psycopg for the code
    of the ledger.
    """

    world: World
    getuid = staticmethod(os.getuid)
    SIG_BLOCK = SIG_SETMASK = 0

    def monotonic(self) -> float:
        return self.world.see(self.world.now)

    def now(self, zone) -> datetime:
        """Return the moment of all stamps, as if everything happened within one second."""
        return datetime(2026, 1, 2, 3, 4, 5, tzinfo=zone)

    def urandom(self, size: int) -> bytes:
        return self.world.running.process.urandom(size)

    def sleep(self, seconds: float) -> None:
        """Let time pass; who looks again and again for a lock goes on once one was released."""
        world = self.world
        before = world.see(world.releases)
        world.wait(lambda: seconds < LOOKING and world.releases != before, seconds)

    def valid_signals(self) -> set:
        return set()

    def pthread_sigmask(self, how: int, signals: set) -> set:
        return signals

    def Thread(self, target, daemon):  # noqa: N802 - as threading has it
        process = self.world.running.process
        return SimpleNamespace(start=lambda: self.world.add(process, target, is_background=True))

    def Event(self) -> Event:  # noqa: N802 - as threading has it
        return Event(self.world)

    def RLock(self) -> RLock:  # noqa: N802 - as threading has it
        return RLock(self.world)

    def Condition(self) -> Condition:  # noqa: N802 - as threading has it
        return Condition(self.world)

    @contextmanager
    def used(self) -> Iterator[None]:
        """Let the code use this."""
        with ExitStack() as patched:
            for module, *names in _USERS:
                for name in names:
                    patched.enter_context(mock.patch.object(module, name, self))
            patched.enter_context(mock.patch.object(editing, "_write", written))
            library = SimpleNamespace(
                Error=Error, OperationalError=OperationalError, Pipeline=Session.Pipeline
            )
            for name, value in {
                "psycopg_library": lambda: library,
                "connection_class": lambda: Session,
                "parsed_url": lambda url: {"host": url},
            }.items():
                patched.enter_context(mock.patch.object(postgresql, name, value))
            yield


class Event:
    """What the thread waits on that looks after a session: it wakes once one has ended.

    It wakes another time after that, and as long as it lacks a lock; in between it would find
    nothing.
    """

    def __init__(self, world: World) -> None:
        self._world, self._is_set, self._looks_again = world, False, False

    def set(self) -> None:
        self._is_set = True

    def is_set(self) -> bool:
        return self._is_set

    def wait(self, seconds: float) -> bool:
        sessions = self._world.running.process.sessions

        def is_needed() -> bool:
            return self._is_set or any(session.is_lost for session in sessions.values())

        looks_again = self._looks_again or any(session.lacks_lock for session in sessions.values())
        self._looks_again = self._world.wait(is_needed, seconds if looks_again else math.inf)
        return self._is_set


class RLock:
    """As that of threading."""

    def __init__(self, world: World) -> None:
        self._world, self._owner, self._count = world, None, 0

    def __enter__(self) -> None:
        me = self._world.running
        if self._owner is not me:
            if self._owner:
                self._world.wait(lambda: self._owner is None)
            self._owner = me
        self._count += 1

    def __exit__(self, *_error) -> None:
        self._count -= 1
        if not self._count:
            self._owner = None


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
