# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Ties attempts to slots: a request waits for the slot of its thread, and its result is feedback
for the pace.
"""

from __future__ import annotations

import os
import resource
from contextlib import contextmanager
from datetime import datetime, timezone
from typing import Any, Callable, Iterator

from .._call.policy import Event, meaning, retry_after
from .._errors import UNKNOWN, AttemptFailed, ServicesError
from .._http.exchange import Answer, Request
from .pace import NEUTRAL, OK, OVERLOADED, RATE_LIMITED
from .scheduler import Slot

_SPARE_FILES = 12  # descriptors: the files of a ledger, the files of a name look-up
# What an answer says about the capacity of the service; any other definite one, even a refusal,
# shows that it has some.
_FEEDBACK = {Event.THROTTLED: RATE_LIMITED, Event.UNAVAILABLE: OVERLOADED}


def most_connections(wanted: int) -> int:
    """Return how many of the wanted connections there are file descriptors for, beside the files of
    a ledger.
    """
    limit = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    free = limit - len(os.listdir("/dev/fd")) - _SPARE_FILES
    return wanted if limit == resource.RLIM_INFINITY else max(1, min(wanted, free))


class Connections:
    """The transports of a list, each used by one thread at a time: as many as requests were in
    flight at once.
    """

    def __init__(self, connect: Callable[[], Any]) -> None:
        """`connect`: makes a transport; called at once, so that an unusable TLS file is reported
        for all items.
        """
        self._connect, self._all = connect, [connect()]
        self._unused = [*self._all]

    @contextmanager
    def one(self) -> Iterator[Any]:
        """Yield a transport that no other thread uses meanwhile."""
        try:
            transport = self._unused.pop()
        except IndexError:
            transport = self._connect()
            self._all.append(transport)
        try:
            yield transport
        finally:
            self._unused.append(transport)

    def close(self) -> None:
        """Close all of them."""
        for transport in self._all:
            transport.close()


class PacedTransport:
    """The transport of one item: a request to the service waits for the slot of the item, a token
    request does not.
    """

    has_sent = False  # whether a byte of the last attempt was handed to the socket

    def __init__(self, connections: Connections, slot: Slot) -> None:
        self._connections, self._slot = connections, slot

    def send(self, request: Request, timeout: float) -> Answer:
        """Make one attempt, within `timeout` seconds.

        Raise AttemptFailed, or ServicesError once nothing more is to be sent.
        """
        if not request.headers.get("Authorization", "").startswith("Bearer "):
            return self._send(request, timeout)
        if not self._slot.acquire():
            raise ServicesError("no further attempt was made, because the task was stopping")
        feedback, retry_after_seconds = NEUTRAL, None
        try:
            answer = self._send(request, timeout)
            event, _reason = meaning(answer.status)
            feedback = _FEEDBACK.get(event, NEUTRAL if event.effect == UNKNOWN else OK)
            retry_after_seconds = retry_after(
                answer.headers.get("Retry-After"), datetime.now(timezone.utc)
            )
        except AttemptFailed:
            feedback = OVERLOADED
            raise
        finally:
            self._slot.release(feedback, retry_after_seconds)
        return answer

    def _send(self, request: Request, timeout: float) -> Answer:
        with self._connections.one() as transport:
            try:
                return transport.send(request, timeout)
            finally:
                self.has_sent = transport.has_sent
