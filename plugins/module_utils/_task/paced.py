# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Ties attempts to turns: what a thread sends waits for its turn, and what comes back tells the pace of the service."""

from __future__ import annotations

import threading
from datetime import datetime, timezone
from typing import Any

from .._call.events import Event
from .._call.retry import retry_after
from .._call.statuses import event_of
from .._errors import AttemptFailed, ServicesError
from .._http.messages import Answer, Request
from .crew import Turn
from .pace import NO_ROOM, NOTHING, TOO_FAST, WELL

# What an answer says of the room that the service has: one that is a refusal for good shows that there is some.
_FATES = {
    Event.SUCCESS: WELL,
    Event.UNAUTHORIZED: WELL,
    Event.REFUSED: WELL,
    Event.THROTTLED: TOO_FAST,
    Event.UNAVAILABLE: NO_ROOM,
}


class Turns(threading.local):
    """The turn that each thread has."""

    turn: Turn | None = None

    def pause(self, seconds: float) -> None:
        """Wait before a further attempt."""
        self.turn.pause(seconds)


class PacedTransport:
    """A transport of one thread that sends to the service when it is the thread's turn, and for a token at any time."""

    def __init__(self, transport: Any, turns: Turns) -> None:
        self._transport, self._turns = transport, turns

    def send(self, request: Request, timeout: float) -> Answer:
        """Make one attempt, within `timeout` seconds.

        Raise AttemptFailed, or ServicesError when nothing further is to be sent.
        """
        if not request.headers.get("Authorization", "").startswith("Bearer "):
            return self._transport.send(request, timeout)
        turn = self._turns.turn
        if not turn.leave():
            raise ServicesError("no further attempt was made, because the task was to end")
        fate, asked = NOTHING, None
        try:
            answer = self._transport.send(request, timeout)
            fate = _FATES.get(event_of(answer.status), NOTHING)
            asked = retry_after(answer.headers.get("Retry-After"), datetime.now(timezone.utc))
        except AttemptFailed:
            fate = NO_ROOM
            raise
        finally:
            turn.back(fate, asked)
        return answer
