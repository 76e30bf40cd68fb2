# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The request of one task: an attempt at it, and the result of its attempts as users see it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Callable, NamedTuple, Sequence

from .._call.attempt import Call, Cell, Lease
from .._call.policy import (
    AGAIN,
    READS,
    AttemptResult,
    Event,
    effect_of,
    failure_text,
    next_wait,
    retry_after,
)
from .._errors import (
    ACCEPTED,
    NOT_SENT,
    REJECTED,
    UNKNOWN,
    Message,
    ServicesError,
    outcome_of,
)
from .._resources.planning import Task, keep
from .._result import Result
from .._secrets import Secrets
from .width import NEUTRAL, OK, OVERLOADED

_UNCHECKED = (
    "validate_certs is false: anyone between here and the service can"
    " read the token and change what is sent."
)


class Answered(NamedTuple):
    """What the thread of an attempt brings back."""

    attempt: AttemptResult[Any]
    wait: float | None  # seconds before a further attempt; None: there is none
    result: Result  # of the task, if this was its last attempt
    token: str  # that it carried


@dataclass
class Work:
    """What a job sends, and what its result is made of."""

    call: Call
    task: Task
    # Returns the result of a success, given its decoded answer.
    succeed: Callable[[Any], Result]
    secrets: Secrets

    def attempt(
        self, token: str, lease: Lease, cell: Cell, earlier: Sequence[AttemptResult[Any]]
    ) -> Answered:
        """Make one attempt after earlier ones; all that its answer needs is done here."""
        settings = self.call.settings
        try:
            last = self.call.attempt(token, lease, cell)
            wait, why = next_wait(
                self.call.operation.method,
                [*earlier, last],
                settings.retries,
                settings.retry_max_delay,
                settings.credentials is not None,
            )
            if why:
                last = replace(last, reason=f"{last.reason}; {why}")
            return Answered(last, wait, self.result([*earlier, last]), token)
        except BaseException as error:  # noqa: BLE001 (the loop waits for an answer)
            event = Event.UNCLEAR if cell.outcome == UNKNOWN else Event.UNSENT_HOPELESS
            last = AttemptResult(event, unexpected(error))
            result = self.interrupted([*earlier, last], NOT_SENT, unexpected(error))
            return Answered(last, None, result, token)

    def adopted(self) -> Result:
        """Return the result of an asset that is recorded without a request."""
        return self.secrets.scrub(keep(self.task, check_mode=False))

    def result(self, attempts: Sequence[AttemptResult[Any]]) -> Result:
        """Return the result of attempts of which no further one is made."""
        last = attempts[-1]
        outcome = outcome_of(*(each.event.effect for each in attempts))
        try:
            if last.event is Event.SUCCESS:
                done = self.succeed(last.value).but(status=last.status, outcome=ACCEPTED)
            else:
                text = failure_text(
                    self.call.operation, self.call.url, last, outcome, len(attempts)
                )
                changed = outcome == ACCEPTED and self.call.operation.method not in READS
                details = {"status": last.status, "changed": changed, **last.details}
                error = ServicesError(Message(text, self.call.asset), outcome, **details)
                done = Result.of_error(error)
            return self._shown(done, len(attempts))
        except Exception as error:  # noqa: BLE001 (an answer must not end a task without its outcome)
            return self.interrupted(attempts, NOT_SENT, unexpected(error))

    def interrupted(self, attempts: Sequence[AttemptResult[Any]], outcome: str, why: str) -> Result:
        """Return the result of a task that ends without a further answer.

        `outcome`: of the attempt in flight, if there is one.
        """
        known = outcome_of(outcome, *(each.event.effect for each in attempts))
        if not attempts and known == NOT_SENT:
            return Result(skipped=True, msg=Message(why))
        text = f"{why}. {effect_of(self.call.operation, known)}"
        error = ServicesError(Message(text, self.call.asset), known)
        return self._shown(Result.of_error(error), len(attempts) + (outcome != NOT_SENT))

    def not_again(self, result: Result, why: str) -> Result:
        """Return the result of a task that makes no further attempt after those that it has made."""
        if result.skipped:
            return result
        msg = result.msg.then(f"It was not sent again: {why}.")
        return self.secrets.scrub(result.but(msg=msg))

    def _shown(self, result: Result, attempts: int) -> Result:
        """Return the result with its request, and without secrets."""
        call = self.call
        unchecked = [] if call.settings.connection.validate_certs else [Message(_UNCHECKED)]
        body = call.body if result.outcome == REJECTED else None
        return self.secrets.scrub(
            result.but(
                request=call.info,
                request_attempts=attempts,
                body=result.body if body is None else body,
                warnings=(*unchecked, *result.warnings),
            )
        )


def unexpected(error: BaseException) -> str:
    """Return what users read of an error of our own."""
    return f"an unexpected {type(error).__name__} in this collection"


def feedback_of(attempt: AttemptResult[Any]) -> tuple[str, float | None]:
    """Return what an attempt shows about the capacity of the service, and its Retry-After.

    What can be tried again shows that it lacks some; a definite answer, even a refusal, that it has
    some.
    """
    event = attempt.event
    feedback = OK if event.effect in (ACCEPTED, REJECTED) else NEUTRAL
    if event.again("PUT") == AGAIN:
        feedback = OVERLOADED
    return feedback, retry_after(attempt.headers.get("Retry-After"))
