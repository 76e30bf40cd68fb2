# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The process in which tasks run: what a task uses of it, and what ends it."""

from __future__ import annotations

import time
from contextlib import nullcontext
from typing import TYPE_CHECKING, Callable, ContextManager, NamedTuple

from .._call.tokens import Credentials, FetchedToken, Memory, Token
from .._http.exchange import Sender
from .._http.tls_context import ConnectionSettings
from .._result import Result

if TYPE_CHECKING:
    from .._http.transport import Transport


class ListStatus(NamedTuple):
    """How far a list is."""

    total: int  # items
    settled: int  # items with nothing to send
    ended: list[Result]  # of other items, so far
    in_flight: int  # requests
    is_ending: bool  # whether only the requests in flight are waited for


class Place:
    """A process that runs one task or list; each kind of process overrides what differs in it."""

    def __init__(self) -> None:
        self._memory = Memory()

    def open_transport(self, settings: ConnectionSettings) -> Transport:
        """Return a new transport; raise MissingLibrary or InvalidInput."""
        # It imports requests, which a task that sends nothing does not need.
        from .._http.transport import Transport  # noqa: PLC0415

        return Transport(settings)

    def connect(self, settings: ConnectionSettings) -> Sender:
        """Return a transport, new or not; raise MissingLibrary or InvalidInput."""
        return self.open_transport(settings)

    def token_source(self, credentials: Credentials, fetch: Callable[[], Token]) -> FetchedToken:
        """Return the source of a token, the same for all threads."""
        return FetchedToken(credentials, fetch, self._memory)

    def require_reader(self) -> None:
        """Raise ServicesError if nobody reads the result any more, so that nothing may be sent."""

    def interruptible(self) -> ContextManager[object]:
        """Return a context within which a signal interrupts the task."""
        return nullcontext()

    def wait(self, seconds: float) -> None:
        """Wait before a further attempt."""
        time.sleep(seconds)

    def why_to_stop(self) -> str:
        """Return why a list has to end now, empty to go on."""
        return ""

    def show_progress(self, status: ListStatus) -> None:
        """Show how far a list is."""


class ItemPlace(Place):
    """The place of a list, for one of its items: the list decides when it sends and waits."""

    def __init__(self, place: Place, transport: Sender, wait: Callable[[float], None]) -> None:
        self._place, self._transport, self._wait = place, transport, wait

    def connect(self, settings: ConnectionSettings) -> Sender:
        return self._transport

    def token_source(self, credentials: Credentials, fetch: Callable[[], Token]) -> FetchedToken:
        return self._place.token_source(credentials, fetch)

    def require_reader(self) -> None:
        self._place.require_reader()

    def wait(self, seconds: float) -> None:
        self._wait(seconds)
