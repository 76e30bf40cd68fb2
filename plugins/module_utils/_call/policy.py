# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Operations as data, what an answer to one means (RFC 9110), and when a request is sent again.

No other code decides either. Each status is one event of the policy. The text explains the status,
because the error bodies of the service are empty (docs/openapi.yaml); `{missing}` and `{exists}`
come from the operation.
"""

from __future__ import annotations

import random
import re
from dataclasses import dataclass, field
from datetime import datetime, timezone
from email.utils import parsedate_to_datetime
from enum import Enum
from typing import Any, Callable, Generic, Mapping, Sequence, TypeVar

from .._errors import ACCEPTED, NOT_SENT, REJECTED, UNKNOWN, AttemptFailed
from .._http import REQUIRES_CREDENTIALS, Answer, strict_json
from .._secrets import for_message, printable
from .._values import DICT, TEXT, Option, Spec, fields

NEVER, AGAIN, NEW_TOKEN = "never", "again", "once, with a new token"
FIRST_DELAY = 1.0  # seconds
# Whether a request of a method may be processed twice without harm (RFC 9110 section 9.2.2).
SAFE_TO_REPEAT = {
    "POST": False,
    "PATCH": False,
    "PUT": True,
    "GET": True,
    "HEAD": True,
    "DELETE": True,
}
READS = ("GET", "HEAD")  # the methods that change nothing

_EFFECTS = {
    NOT_SENT: "The request was not sent, so no {noun} was {done}.",
    REJECTED: "No {noun} was {done}.",
    UNKNOWN: "It is unknown whether the {noun} was {done}. {repeat}",
    ACCEPTED: "The service accepted the request, so the {noun} was {done}: do not repeat it.",
}
# The headers that identify a request.
_IDS = ("x-request-id", "x-correlation-id")


@dataclass(frozen=True)
class Resource:
    """One kind of asset."""

    name: str  # in the ledger, in reports, and of the fact
    noun: str
    key: str  # the field that identifies an asset: `name` or `id`
    attributes: Spec  # the suboptions of `attributes`

    @property
    def envelope(self) -> Option:
        """The specification of an asset."""
        attributes = {"type": DICT, "options": self.attributes}
        return {"type": DICT, "options": {**fields(TEXT, "id", "name"), "attributes": attributes}}

    def label(self, key: str) -> str:
        """Return an asset for messages, such as `virtual machine web01`; `key`: its name or id."""
        return f"{self.noun} {printable(key)}"


@dataclass(frozen=True)
class Operation:
    """One operation on a resource (docs/openapi.yaml)."""

    resource: Resource
    method: str
    path: str  # below base_url; `{id}` is one percent-encoded segment
    creates: bool  # whether each success makes a further asset
    word: str  # a verb for the plan of check mode
    done: str  # the participle of that verb
    missing: str  # the meaning of a 404
    exists: str  # the meaning of a 409
    # Advice about running the task again when the outcome is unknown.
    repeat: str
    removes: bool = False  # whether the ledger forgets the asset after a success
    # Returns the value of a success; raises InvalidJSON.
    decode: Callable[[Answer], Any] = lambda answer: strict_json.decode_object(answer.body)


class Event(Enum):
    """The events of an attempt, each with its policy.

    The columns: its name; whether a POST or PATCH may be sent again; whether a PUT, GET, HEAD or
    DELETE may; the known effect.
    """

    SUCCESS = "success", NEVER, NEVER, ACCEPTED
    UNSENT = "unsent", AGAIN, AGAIN, NOT_SENT
    UNSENT_HOPELESS = "unsent and no use in repeating", NEVER, NEVER, NOT_SENT
    UNANSWERED = "unanswered", NEVER, AGAIN, UNKNOWN
    THROTTLED = "throttled", AGAIN, AGAIN, REJECTED
    UNAVAILABLE = "unavailable", NEVER, AGAIN, UNKNOWN
    UNCLEAR = "unclear", NEVER, NEVER, UNKNOWN
    UNAUTHORIZED = "unauthorized", NEW_TOKEN, NEW_TOKEN, REJECTED
    REFUSED = "refused", NEVER, NEVER, REJECTED
    ANSWER_CUT = "accepted, answer cut", NEVER, AGAIN, ACCEPTED
    ANSWER_UNUSABLE = "accepted, answer unusable", NEVER, NEVER, ACCEPTED

    # The name only tells the members apart: enum takes members of one value for the same member.
    def __init__(self, _name: str, unsafe: str, safe: str, effect: str) -> None:
        self._unsafe = unsafe
        self._safe = safe
        self.effect = effect

    def again(self, method: str) -> str:
        """Return whether a request of a method is sent again after this event."""
        return self._safe if SAFE_TO_REPEAT[method] else self._unsafe


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
        "the access token was not accepted; check access_token, else auth_url and its client",
    ),
    403: (
        Event.REFUSED,
        "the token lacks the permission for this operation; ask for it or use another client",
    ),
    404: (Event.REFUSED, "{missing}"),
    407: (Event.REFUSED, f"the proxy {REQUIRES_CREDENTIALS}"),
    408: (Event.UNAVAILABLE, "the service or a gateway timed out waiting for the request"),
    409: (Event.REFUSED, "{exists}"),
    422: (
        Event.REFUSED,
        "the service rejected the values of the request; check their names and types",
    ),
    429: (
        Event.THROTTLED,
        "too many requests; run fewer at once, or raise retries and retry_max_delay",
    ),
    500: (
        Event.UNCLEAR,
        "the service failed internally; ask its owner to look up the request",
    ),
    502: (Event.UNAVAILABLE, "a gateway got no valid response from the service"),
    503: (Event.UNAVAILABLE, "the service or a gateway is overloaded or down for maintenance"),
    504: (Event.UNAVAILABLE, "a gateway timed out waiting for the service"),
}
_CLASSES = {
    2: (Event.SUCCESS, "the service accepted the request"),
    3: (
        Event.UNCLEAR,
        f"{_REDIRECT}, and the service may have processed the request before it redirected",
    ),
    4: (Event.REFUSED, "the service refused the request"),
    5: (Event.UNCLEAR, "the service failed"),
}
_IRREGULAR = (
    Event.UNCLEAR,
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
    details: Mapping[str, str | None] = field(default_factory=dict)


def read_answer(operation: Operation, answer: Answer) -> AttemptResult[Any]:
    """Return the result of an answered attempt: a 2xx that can be decoded is a success."""
    event, text = meaning(answer.status)
    reason = text.format(**vars(operation))
    if event == Event.SUCCESS:
        try:
            value = operation.decode(answer)
        except strict_json.InvalidJSON as error:
            event = Event.ANSWER_CUT if answer.cut else Event.ANSWER_UNUSABLE
            reason = f"{reason}, but its answer cannot be used: {answer.problem or error}"
        else:
            return AttemptResult(event, reason, answer.status, answer.headers, value)
    body = printable(answer.body.decode("utf-8", "replace")).strip()
    # An unusable 2xx may have the id in it.
    location = answer.headers.get("Location", "") if event.effect == ACCEPTED else ""
    details = {"error_body": body or None, "location": for_message(location) or None}
    return AttemptResult(event, reason, answer.status, answer.headers, details=details)


def failure_text(
    operation: Operation, url: str, last: AttemptResult[Any], outcome: str, attempts: int
) -> str:
    """Return the text of the message: the failure, the known effect, and the next step."""
    times = f" (attempt {attempts})" if attempts > 1 else ""
    status = f"status {last.status}: " if last.status else ""
    reason = f"{status}{last.reason}".rstrip(".")
    text = f"{operation.method} {url}{times}: {reason}. {effect_of(operation, outcome)}"
    ids = [f"{name}: {for_message(last.headers[name])}" for name in _IDS if name in last.headers]
    return f"{text} [{', '.join(ids)}]" if ids else text


def effect_of(operation: Operation, outcome: str) -> str:
    """Return the known effect as a sentence, and the next step."""
    return _EFFECTS[outcome].format(noun=operation.resource.noun, **vars(operation))


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
    now = now or datetime.now(timezone.utc)
    return max(0.0, (moment.replace(tzinfo=timezone.utc) - now).total_seconds())


def next_wait(
    method: str,
    attempts: Sequence[AttemptResult[Any]],
    retries: int,
    longest: float,
    can_renew: bool,
    fraction: Callable[[], float] = random.random,
) -> tuple[float | None, str]:
    """Return the seconds before a further attempt, or None and why not, if that is to be said.

    A wait is a random part (`fraction`, from 0 to 1) of a time that doubles, at most `longest`
    seconds. `can_renew`: whether there can be another token.
    """
    *before, last = attempts
    again = last.event.again(method)
    if again == NEW_TOKEN:
        is_first = all(each.event.again(method) != NEW_TOKEN for each in before)
        return (0.0 if can_renew and is_first else None), ""
    repeated = sum(each.event.again(method) == AGAIN for each in before)
    if again != AGAIN or repeated >= retries:
        return None, ""
    wait = retry_after(last.headers.get("Retry-After"))
    if wait is None:
        wait = fraction() * min(FIRST_DELAY * 2**repeated, longest)
    if wait > longest:
        return None, (
            f"it asks for a wait of {wait:.15g} seconds, longer than retry_max_delay ({longest:g})"
        )
    return wait, ""
