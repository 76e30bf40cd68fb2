# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The process in which a task runs: its transports, its tokens, and the reasons to stop."""

from __future__ import annotations

import time
from contextlib import nullcontext
from typing import TYPE_CHECKING, Callable, ContextManager, NamedTuple

from .._http.exchange import Sender
from .._http.tls_context import ConnectionSettings
from .._result import Result
from .tokens import Credentials, Memory

if TYPE_CHECKING:
    from .._http.transport import Transport


class ListStatus(NamedTuple):
    """The progress of a list."""

    total: int  # items
    settled: int  # items with nothing to send
    ended: list[Result]  # of other items, so far
    in_flight: int  # requests
    is_ending: bool  # whether the list only waits for the requests in flight


class Place:
    """A process that runs one task or list; each subclass overrides what differs there."""

    # Makes a context within which a signal interrupts the task.
    interruptible: Callable[[], ContextManager[object]] = nullcontext

    def __init__(self) -> None:
        self._memory = Memory()

    def open_transport(self, settings: ConnectionSettings) -> Transport:
        """Return a new transport; raise MissingLibrary or InvalidInput."""
        from .._http.transport import Transport  # noqa: PLC0415 (imports requests, only to send)

        return Transport(settings)

    def connect(self, settings: ConnectionSettings) -> Sender:
        """Return a transport, perhaps a reused one; raise MissingLibrary or InvalidInput."""
        return self.open_transport(settings)

    def token_memory(self, credentials: Credentials) -> Memory:
        """Return the memory of a token, the same for all threads."""
        return self._memory

    def require_reader(self) -> None:
        """Raise ServicesError if nobody reads the result any more, so that nothing is sent."""

    def wait(self, seconds: float) -> None:
        """Wait before a further attempt."""
        time.sleep(seconds)

    def why_to_stop(self) -> str:
        """Return why a list has to end now, '' to continue."""
        return ""

    def show_progress(self, status: ListStatus) -> None:
        """Show the progress of a list."""
