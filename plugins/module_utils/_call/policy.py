# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The meaning of each status (RFC 9110), and when a request is sent again.

No other code decides either. Each status is one event of the policy. The text explains the status,
because the error bodies of the service are empty (docs/openapi.yaml); `{missing}` and `{exists}`
come from the operation.
"""

from __future__ import annotations

import random
import re
import time
from dataclasses import dataclass, field, replace
from datetime import datetime, timezone
from email.utils import parsedate_to_datetime
from enum import Enum
from typing import Callable, Generic, Mapping, TypeVar

from .._errors import ACCEPTED, NOT_SENT, REJECTED, UNKNOWN, AttemptFailed
from .._http.failures import REQUIRES_CREDENTIALS

NEVER, AGAIN, NEW_TOKEN = "never", "again", "once, with a new token"
FIRST_DELAY = 1.0  # seconds; doubles with each further attempt


class Event(Enum):
    """The events of an attempt, each with its policy.

    The columns: its name; whether a POST may be sent again; whether a PUT may, which is idempotent
    (RFC 9110 section 9.2.2); the known effect.
    """

    SUCCESS = "success", NEVER, NEVER, ACCEPTED
    TOKEN_UNAVAILABLE = "token unavailable", NEVER, NEVER, NOT_SENT
    UNSENT = "unsent", AGAIN, AGAIN, NOT_SENT
    UNSENT_HOPELESS = "unsent and no use in repeating", NEVER, NEVER, NOT_SENT
    UNANSWERED = "unanswered", NEVER, AGAIN, UNKNOWN
    THROTTLED = "throttled", AGAIN, AGAIN, REJECTED
    UNAVAILABLE = "unavailable", NEVER, AGAIN, UNKNOWN
    SERVER_ERROR = "server error", NEVER, NEVER, UNKNOWN
    IRREGULAR = "irregular status", NEVER, NEVER, UNKNOWN
    UNAUTHORIZED = "unauthorized", NEW_TOKEN, NEW_TOKEN, REJECTED
    REDIRECTED = "redirected", NEVER, NEVER, UNKNOWN
    REFUSED = "refused", NEVER, NEVER, REJECTED
    ANSWER_CUT = "accepted, answer cut", NEVER, AGAIN, ACCEPTED
    ANSWER_UNUSABLE = "accepted, answer unusable", NEVER, NEVER, ACCEPTED

    # The name only tells the members apart: enum takes members of one value for the same member.
    def __init__(self, _name: str, post: str, put: str, effect: str) -> None:
        self.again = {"POST": post, "PUT": put}
        self.effect = effect


_REDIRECT = "a redirect, which is never followed: body and token would go elsewhere"

_BY_STATUS = {
    307: (Event.REFUSED, f"{_REDIRECT}; set base_url to the address that serves the requests"),
    308: (Event.REFUSED, f"{_REDIRECT}; set base_url to the new address of the service"),
    400: (
        Event.REFUSED,
        (
            "it is malformed, or a gateway requires a client certificate: set client_cert and"
            " client_key"
        ),
    ),
    401: (
        Event.UNAUTHORIZED,
        "the access token was not accepted; check access_token, or auth_url and its client",
    ),
    403: (
        Event.REFUSED,
        "the token lacks the permission for this operation; ask for it or use another client",
    ),
    404: (Event.REFUSED, "{missing}"),
    405: (
        Event.REFUSED,
        "this address does not support the method; base_url probably points to something else",
    ),
    407: (Event.REFUSED, f"the proxy {REQUIRES_CREDENTIALS}"),
    408: (Event.UNAVAILABLE, "the service or a gateway timed out waiting for the request"),
    409: (Event.REFUSED, "{exists}"),
    413: (Event.REFUSED, "the body is too large for the service or a gateway; send fewer fields"),
    422: (
        Event.REFUSED,
        "the service rejected the values of the request; check names and types in attributes",
    ),
    429: (
        Event.THROTTLED,
        "too many requests; run fewer at once, or raise retries and retry_max_delay",
    ),
    500: (
        Event.SERVER_ERROR,
        "the service failed internally; ask its owner to look up the request",
    ),
    502: (Event.UNAVAILABLE, "a gateway got no valid response from the service"),
    503: (Event.UNAVAILABLE, "the service or a gateway is overloaded or down for maintenance"),
    504: (Event.UNAVAILABLE, "a gateway timed out waiting for the service"),
}
_CLASSES = {
    2: (Event.SUCCESS, "the service accepted the request"),
    3: (
        Event.REDIRECTED,
        f"{_REDIRECT}, and the service may have processed the request before it redirected",
    ),
    4: (Event.REFUSED, "the service refused the request"),
    5: (Event.SERVER_ERROR, "the service failed"),
}
_IRREGULAR = (
    Event.IRREGULAR,
    "not a final HTTP status; something other than the service answers at base_url",
)


def meaning(status: int) -> tuple[Event, str]:
    """Return the event for an answer with this status, and the text that explains it."""
    return _BY_STATUS.get(status) or _CLASSES.get(status // 100, _IRREGULAR)


def event_of(error: AttemptFailed) -> Event:
    """Return the event for an attempt that got no answer."""
    if error.sent:
        return Event.UNANSWERED
    return Event.UNSENT_HOPELESS if error.hopeless else Event.UNSENT


Value = TypeVar("Value")


@dataclass(frozen=True)
class AttemptResult(Generic[Value]):
    """The result of one attempt."""

    event: Event
    reason: str = ""  # for messages, without a secret
    status: int | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    value: Value | None = None  # of a success
    # For the result of a failure.
    details: Mapping[str, str] = field(default_factory=dict)

    def because(self, reason: str) -> AttemptResult[Value]:
        """Return the result with another reason."""
        return replace(self, reason=reason)


def retry_after(value: str | None, now: datetime | None = None) -> float | None:
    """Return the seconds that a Retry-After header asks for (RFC 9110 section 10.2.3).

    None if it is missing or malformed.
    """
    value = (value or "").strip()
    if re.fullmatch("[0-9]+", value):
        return float(value)
    try:
        moment: datetime = parsedate_to_datetime(value)
    except (TypeError, ValueError, OverflowError):
        return None
    # HTTP has only UTC; one of its formats names no zone.
    if moment.utcoffset():
        return None
    now = now or datetime.now(timezone.utc)
    return max(0.0, (moment.replace(tzinfo=timezone.utc) - now).total_seconds())


def delay(attempt: int, longest: float, fraction: float, asked: float | None) -> float:
    """Return the seconds before the next attempt: those asked for, or exponential with full jitter.

    `attempt`: the number of attempts so far; `longest`: retry_max_delay in seconds; `fraction`: a
    random number from 0 to 1; `asked`: the seconds of the Retry-After header.
    """
    if asked is not None:
        return asked
    return fraction * min(longest, FIRST_DELAY * 2.0 ** min(attempt - 1, 60))


def retry(
    attempt: Callable[[], AttemptResult[Value]],
    method: str,
    retries: int,
    longest: float,
    sleep: Callable[[float], None] = time.sleep,
    renew: Callable[[], bool] = lambda: False,
    fraction: Callable[[], float] = random.random,
) -> AttemptResult[Value]:
    """Make attempts until the policy allows no further one; return the result of the last.

    `longest`: retry_max_delay in seconds; `renew`: discards the token, returns False if there can
    be no other.
    """
    repeated = 0
    is_renewed = False
    while True:
        result = attempt()
        again = result.event.again[method]
        if again == NEW_TOKEN and not is_renewed and renew():
            is_renewed = True
            wait = 0.0
        elif again == AGAIN and repeated < retries:
            repeated += 1
            asked = retry_after(result.headers.get("Retry-After"))
            wait = delay(repeated, longest, fraction(), asked)
        else:
            return result
        if wait > longest:
            why = f"it asks for a wait of {wait:.15g} seconds"
            reason = f"{why}, longer than retry_max_delay ({longest:g})"
            return result.because(f"{result.reason}; {reason}" if result.reason else reason)
        sleep(wait)
