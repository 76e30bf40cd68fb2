# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The place of one item of a list: each of its requests passes the gate."""

from __future__ import annotations

import os
import resource
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Iterator

from .._call.place import Place
from .._call.policy import Event, meaning, retry_after
from .._call.tokens import Credentials, Memory
from .._errors import UNKNOWN, AttemptFailed, ServicesError
from .._http.exchange import Answer, Request
from .._http.tls_context import ConnectionSettings
from .congestion import NEUTRAL, OK, OVERLOADED, RATE_LIMITED
from .gate import Gate, Item

if TYPE_CHECKING:
    from .._http.transport import Transport

_SPARE_FILES = 12  # descriptors: of a ledger, and of a name look-up


def most_connections(wanted: int) -> int:
    """Return how many of the wanted connections there are file descriptors for."""
    limit = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    if limit == resource.RLIM_INFINITY:
        return wanted
    free = limit - len(os.listdir("/dev/fd")) - _SPARE_FILES
    return max(1, min(wanted, free))


class Connections:
    """The transports of a list, each used by one thread at a time."""

    def __init__(self, place: Place, settings: ConnectionSettings) -> None:
        """Connect once, so that an unusable TLS file is reported for all items."""
        self._connect = partial(place.open_transport, settings)
        self._all = [self._connect()]
        self._unused = [*self._all]

    @contextmanager
    def one(self) -> Iterator[Transport]:
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


class ItemTransport:
    """The transport of one item: requests to the service pass the gate, token requests do not."""

    # Whether a byte of the last attempt was handed to the socket.
    has_sent = False

    def __init__(self, connections: Connections, gate: Gate, item: Item) -> None:
        self._connections = connections
        self._gate = gate
        self._item = item

    def send_once(self, request: Request, timeout: float) -> Answer:
        """Make one attempt, within `timeout` seconds.

        Raise AttemptFailed, or ServicesError once the gate is closed.
        """
        if not request.headers.get("Authorization", "").startswith("Bearer "):
            return self._send(request, timeout)
        if not self._gate.enter(self._item):
            raise ServicesError("no further attempt was made, because the task was stopping")
        feedback = NEUTRAL
        seconds = None
        try:
            answer = self._send(request, timeout)
            feedback = _feedback(answer.status)
            seconds = retry_after(answer.headers.get("Retry-After"))
        except AttemptFailed:
            feedback = OVERLOADED
            raise
        finally:
            self._gate.leave(self._item, feedback, seconds)
        return answer

    def _send(self, request: Request, timeout: float) -> Answer:
        with self._connections.one() as transport:
            try:
                return transport.send_once(request, timeout)
            finally:
                self.has_sent = transport.has_sent


class ItemPlace(Place):
    """The place of one item: its list decides when it sends and waits."""

    def __init__(self, place: Place, connections: Connections, gate: Gate, item: Item) -> None:
        self._place = place
        self._gate = gate
        self._transport = ItemTransport(connections, gate, item)

    def connect(self, settings: ConnectionSettings) -> ItemTransport:
        return self._transport

    def token_memory(self, credentials: Credentials) -> Memory:
        return self._place.token_memory(credentials)

    def require_reader(self) -> None:
        self._place.require_reader()

    def wait(self, seconds: float) -> None:
        self._gate.pause(seconds)


def _feedback(status: int) -> str:
    """Return what an answer shows about the capacity of the service.

    A definite one, even a refusal, shows that it has some.
    """
    event, _reason = meaning(status)
    if event == Event.THROTTLED:
        return RATE_LIMITED
    if event == Event.UNAVAILABLE:
        return OVERLOADED
    return NEUTRAL if event.effect == UNKNOWN else OK
