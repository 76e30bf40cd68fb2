# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""When a request is sent again: a pure backoff, and the loop that applies it and the policy of each event."""

from __future__ import annotations

import random
import re
import time
from datetime import datetime, timezone
from email.utils import parsedate_to_datetime
from itertools import count
from typing import Any, Callable, Mapping, NamedTuple

from .statuses import AGAIN, NEW_TOKEN, Event

FIRST_DELAY = 1.0  # seconds; doubles with each further attempt


class AttemptResult(NamedTuple):
    """The result of one attempt: what happened, and what else is known of it."""

    event: Event
    reason: str = ""  # for the user, without a secret
    status: int | None = None
    headers: Mapping[str, str] = {}
    value: Any = None  # of a success
    details: Mapping[str, str] = {}  # what else the service said, for the result of a failure


def retry_after(value: str | None, now: datetime) -> float | None:
    """Return the seconds that a Retry-After header asks for (RFC 9110 10.2.3), None when it is missing or malformed."""
    value = (value or "").strip()
    if re.fullmatch("[0-9]+", value):
        return float(value)
    try:
        moment = parsedate_to_datetime(value)
    except (TypeError, ValueError, OverflowError):
        return None
    is_utc = not moment.utcoffset()  # HTTP has no other zone; one of its formats names none
    return max(0.0, (moment.replace(tzinfo=timezone.utc) - now).total_seconds()) if is_utc else None


def delay(attempt: int, longest: float, fraction: float, asked: float | None) -> float:
    """Return the seconds before the next attempt: what the service asked for, or exponential backoff with full jitter.

    `attempt`: how many have been made; `longest`: retry_max_delay in seconds; `fraction`: random, from 0 to 1.
    """
    if asked is not None:
        return asked
    return fraction * min(longest, FIRST_DELAY * 2 ** min(attempt - 1, 60))


def retry(
    attempt: Callable[[], AttemptResult],
    method: str,
    limits,
    renew: Callable[[], bool] = lambda: False,
    sleep: Callable[[float], None] = time.sleep,
    fraction: Callable[[], float] = random.random,
) -> AttemptResult:
    """Make attempts until the policy allows no further one; return the last, with the reason why there is no other.

    `limits`: has `retries` and `retry_max_delay` (seconds); `renew`: discards the token, returns False when there
    can be no other.
    """
    renewed, longest = 0, limits.retry_max_delay
    for tried in count(1):
        result = attempt()
        again = result.event.again[method]
        if again == NEW_TOKEN and not renewed and renew():
            wait, renewed = 0.0, 1
        elif again == AGAIN and tried - renewed <= limits.retries:
            asked = retry_after(result.headers.get("Retry-After"), datetime.now(timezone.utc))
            wait = delay(tried - renewed, longest, fraction(), asked)
        else:
            return result
        if wait > longest:
            why = f"it asks for a wait of {wait:.15g} seconds, longer than retry_max_delay ({longest:g})"
            return result._replace(reason="; ".join(filter(None, (result.reason, why))))
        sleep(wait)
