# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""One attempt of an operation on an asset, with what it was given, in a thread of its own."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, field
from functools import cached_property, partial
from operator import sub
from typing import Any, Callable, Sequence
from urllib.parse import quote

from .._errors import NOT_SENT, UNKNOWN, ServicesError
from .._http import Request
from .._result import Json
from .._values import encode
from .policy import AttemptResult, Event, Operation, read_answer
from .sending import HEADERS, Settings, send

Clocks = Sequence[float]

# Seconds of a lease that no attempt uses: clocks differ, and a process may be stopped.
MARGIN = 60.0
# Of these, the seconds before its end that its owner leaves to the clock of the database.
_EARLY = 5.0


def read_clocks() -> Clocks:
    """Return what the clocks of this machine show, in seconds: the time of day, and the time since
    its start; macOS counts its suspension in CLOCK_MONOTONIC.
    """
    return (
        time.time(),
        time.clock_gettime(getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)),
    )


class Lease:
    """The right to send, while the ledger keeps all others from it; without a ledger it has no end."""

    def __init__(
        self,
        seconds: float = math.inf,
        since: Clocks = (),
        clocks: Callable[[], Clocks] = read_clocks,
    ) -> None:
        """`seconds`: from `since`, measured by the fastest of the clocks."""
        self._seconds = seconds
        self._since = since
        self._clocks = clocks

    def require(self, seconds: float) -> None:
        """Raise ServicesError if a request that takes up to `seconds` could outlast it."""
        elapsed = max(map(sub, self._clocks(), self._since), default=0.0)
        if elapsed + seconds > self._seconds - _EARLY:
            raise ServicesError(
                "the request was not sent, because the task was stopped or delayed for so long that"
                " another one may work on the asset by now"
            )


NO_END = Lease()


class Cell:
    """What the thread of an attempt and the loop share: each sets its own value, then reads the
    other's, so that a thread that outlives its task sends nothing.
    """

    def __init__(self) -> None:
        self._is_sent = False  # set by the thread, before the first byte
        self._may_send = True  # set by the loop

    def require(self) -> None:
        """Note in the thread that the first byte goes out; raise ServicesError if it may not."""
        self._is_sent = True
        if not self._may_send:
            raise ServicesError("the request was not sent, because the task has ended")

    def abandon(self) -> str:
        """Let nothing be sent from now on, in the loop; return the outcome that is known."""
        self._may_send = False
        return self.outcome

    @property
    def outcome(self) -> str:
        """The outcome if the attempt ended now without an answer."""
        return UNKNOWN if self._is_sent else NOT_SENT


@dataclass(frozen=True)
class Call:
    """One operation on one asset, with the settings of its task."""

    operation: Operation
    asset: str  # as messages name it
    settings: Settings
    identifier: str = ""  # the id for the path, if that has one
    body: Any = None  # JSON; None for none
    query: str = ""
    # Raises ServicesError if nobody reads the result any more, so that nothing is sent.
    require_reader: Callable[[], None] = field(default=lambda: None, compare=False)

    @cached_property
    def request(self) -> Request:
        """The request without its token; raises InvalidInput for a body that JSON cannot have."""
        encoded = b"" if self.body is None else encode(self.body, "the body")
        headers = {**HEADERS, "Content-Type": "application/json", **self.settings.headers}
        return Request(self.operation.method, self.url, headers, encoded)

    @property
    def url(self) -> str:
        """Where the request goes."""
        path = self.operation.path.format(id=quote(self.identifier, safe=""))
        return f"{self.settings.base_url}{path}{self.query}"

    @property
    def info(self) -> Json:
        """The request as results have it."""
        return {"method": self.operation.method, "url": self.url, "body": self.body}

    def attempt(self, token: str, lease: Lease, cell: Cell) -> AttemptResult[Any]:
        """Make one attempt."""
        deadline = time.monotonic() + self.settings.timeout

        def may_send() -> None:
            lease.require(deadline - time.monotonic())
            cell.require()

        headers = {**self.request.headers, "Authorization": f"Bearer {token}"}
        request = self.request._replace(headers=headers, may_send=may_send)
        try:
            self.require_reader()
            lease.require(self.settings.timeout)
            read = partial(read_answer, self.operation)
            return send(self.settings.connection, request, self.settings.timeout, read)
        except ServicesError as error:  # nothing may be sent any more
            return AttemptResult(Event.UNSENT_HOPELESS, error.msg)
