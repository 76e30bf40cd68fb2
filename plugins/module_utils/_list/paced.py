# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Ties attempts to slots: a request waits for the slot of its thread, and its result is feedback for the pace."""

from __future__ import annotations

from datetime import datetime, timezone
from typing import Any

from .._call.retry import retry_after
from .._call.statuses import Event, event_of
from .._errors import AttemptFailed, ServicesError
from .._http.values import Answer, Request
from .pace import NEUTRAL, OK, OVERLOADED, RATE_LIMITED
from .scheduler import Slot

# What an answer says about the capacity of the service: a definite refusal shows that it has some.
_FEEDBACK = {
    Event.SUCCESS: OK,
    Event.UNAUTHORIZED: OK,
    Event.REFUSED: OK,
    Event.THROTTLED: RATE_LIMITED,
    Event.UNAVAILABLE: OVERLOADED,
}


class PacedTransport:
    """The transport of one item: a request to the service waits for the slot of the item, a token request does not."""

    def __init__(self, transport: Any, slot: Slot) -> None:
        self._transport, self._slot = transport, slot

    @property
    def has_sent(self) -> bool:
        """Whether a byte of the last attempt was handed to the socket."""
        return self._transport.has_sent

    def send(self, request: Request, timeout: float) -> Answer:
        """Make one attempt, within `timeout` seconds.

        Raise AttemptFailed, or ServicesError once nothing more is to be sent.
        """
        if not request.headers.get("Authorization", "").startswith("Bearer "):
            return self._transport.send(request, timeout)
        if not self._slot.acquire():
            raise ServicesError("no further attempt was made, because the task was stopping")
        feedback, retry_after_seconds = NEUTRAL, None
        try:
            answer = self._transport.send(request, timeout)
            feedback = _FEEDBACK.get(event_of(answer.status), NEUTRAL)
            retry_after_seconds = retry_after(answer.headers.get("Retry-After"), datetime.now(timezone.utc))
        except AttemptFailed:
            feedback = OVERLOADED
            raise
        finally:
            self._slot.release(feedback, retry_after_seconds)
        return answer
