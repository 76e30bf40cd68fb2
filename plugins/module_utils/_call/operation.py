# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""An operation of the service as data, and the messages about its answers."""

from __future__ import annotations

from typing import NamedTuple

from .._errors import ACCEPTED, NOT_SENT, REJECTED, UNKNOWN, Message
from .._fields import Asset
from .._http import strict_json
from .._http.exchange import Answer, Request
from .._secrets import for_message, printable
from .policy import AttemptResult, Event, meaning


class Operation(NamedTuple):
    """One operation (docs/openapi.yaml), as data."""

    resource: str  # the name of the module and of its fact
    method: str
    path: str  # below base_url; `{id}` is one percent-encoded segment
    noun: str
    word: str  # a verb for the plan of check mode
    done: str  # the participle of that verb
    missing: str  # the meaning of a 404
    exists: str  # the meaning of a 409
    # Advice about running the task again when the outcome is unknown.
    repeat: str

    def label(self, key: str) -> str:
        """Return an asset for messages, such as `virtual machine web01`; `key`: its name or id."""
        return f"{self.noun} {printable(key)}"


_EFFECTS = {
    NOT_SENT: "The request was not sent, so no {noun} was {done}.",
    REJECTED: "No {noun} was {done}.",
    UNKNOWN: "It is unknown whether the {noun} was {done}. {repeat}",
    ACCEPTED: "The service accepted the request, so the {noun} was {done}: do not repeat it.",
}
# Bytes; a longer body is not scrubbed, and so not shown.
_LONGEST_ERROR = 20_000
# The headers that identify a request.
_IDS = ("x-request-id", "x-correlation-id", "traceparent")


def read_answer(operation: Operation, answer: Answer) -> AttemptResult[Asset]:
    """Return the result of an answered attempt: a 2xx with a JSON object is a success."""
    event, text = meaning(answer.status)
    reason = text.format(**operation._asdict())
    value = None
    if event == Event.SUCCESS:
        try:
            value = strict_json.decode_object(answer.body)
        except strict_json.InvalidJSON as error:
            event = Event.ANSWER_CUT if answer.cut else Event.ANSWER_UNUSABLE
            reason = f"{reason}, but its answer cannot be used: {answer.problem or error}"
    details = {} if value is not None else _failure_details(answer)
    return AttemptResult(event, reason, answer.status, answer.headers, value, details)


def _failure_details(answer: Answer) -> dict[str, str]:
    """Return the body of a failure, and the Location of an unusable 2xx, which may contain the id.

    Nothing is truncated, because scrubbing cannot match half a secret: a body that is too long to
    be scrubbed is omitted.
    """
    details = {}
    body = printable(answer.body[:_LONGEST_ERROR].decode("utf-8", "replace")).strip()
    if len(answer.body) > _LONGEST_ERROR:
        body = "(too long to be shown)"
    if body:
        details["error_body"] = body
    location = answer.headers.get("Location", "")
    if location and 200 <= answer.status < 300:
        details["location"] = for_message(location)
    return details


def failure_message(
    operation: Operation,
    request: Request,
    last: AttemptResult[Asset],
    outcome: str,
    attempts: int,
    key: str,
) -> Message:
    """Return the message: the asset, the failure, the known effect, and the next step.

    `key`: the name or id of the asset.
    """
    times = f" (attempt {attempts})" if attempts > 1 else ""
    status = f"status {last.status}: " if last.status else ""
    why = f"{status}{last.reason}".rstrip(".")
    text = f"{request.method} {request.url}{times}: {why}. {effect_of(operation, outcome)}"
    ids = [f"{name}: {for_message(last.headers[name])}" for name in _IDS if name in last.headers]
    if ids:
        text = f"{text} [{', '.join(ids)}]"
    return Message(text, operation.label(key))


def effect_of(operation: Operation, outcome: str) -> str:
    """Return the known effect as a sentence, and the next step."""
    return _EFFECTS[outcome].format(**operation._asdict())
