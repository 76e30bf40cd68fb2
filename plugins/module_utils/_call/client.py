# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Calls an operation: returns its success, or raises an error with the known effect."""

from __future__ import annotations

import math
import time
from contextlib import nullcontext
from dataclasses import dataclass, field
from functools import partial
from operator import sub
from typing import Any, Callable, ContextManager, Sequence
from urllib.parse import quote

from .._errors import (
    NOT_SENT,
    UNKNOWN,
    AttemptFailed,
    Message,
    ServicesError,
    outcome_of,
)
from .._http import Answer, Request, transport
from .._result import Json
from .._secrets import Secrets
from .._values import encode
from .policy import (
    AttemptResult,
    Event,
    Operation,
    Value,
    event_of,
    failure_text,
    read_answer,
    retry,
)
from .tokens import (
    HEADERS,
    Credentials,
    Memory,
    Token,
    build_token_request,
    discard_token,
    read_token,
    shared_token,
)

Clocks = Sequence[float]

# Seconds of a lease that no attempt uses: clocks differ, and a process may be stopped.
MARGIN = 60.0
# Of these, the seconds before its end that its owner leaves to the clock of the database.
_EARLY = 5.0


@dataclass(frozen=True)
class Settings:
    """The shared options, checked."""

    base_url: str  # in its canonical form, as ledgers and reports record it
    access_token: str | None
    credentials: Credentials | None
    connection: transport.ConnectionSettings
    headers: dict[str, str]  # those that the user adds
    timeout: float  # seconds, one attempt
    retries: int
    retry_max_delay: float  # seconds


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
        self.seconds = seconds
        self.since = since
        self._clocks = clocks

    def renew(self, wait: float) -> None:
        """Extend it before a further attempt, after a wait in seconds; raise ServicesError."""

    def require(self, seconds: float) -> None:
        """Raise ServicesError if a request that takes up to `seconds` could outlast it."""
        elapsed = max(map(sub, self._clocks(), self.since), default=0.0)
        if elapsed + seconds > self.seconds - _EARLY:
            raise ServicesError(
                "the request was not sent, because the task was stopped or delayed for so long that"
                " another one may work on the asset by now"
            )


NO_END = Lease()


@dataclass(frozen=True)
class Context:
    """How a task runs, and what differs between a worker, a target and a thread of a list."""

    check_mode: bool
    secrets: Secrets  # including the fetched tokens
    no_log: bool = False
    memory: Memory = field(default_factory=Memory)  # of tokens
    # Raises ServicesError if nobody reads the result any more, so that nothing is sent.
    require_reader: Callable[[], None] = lambda: None
    wait: Callable[[float], None] = time.sleep  # before a further attempt, in seconds
    # Makes a context within which a signal interrupts the task.
    interruptible: Callable[[], ContextManager[object]] = nullcontext
    # Before each attempt, raises ServicesError if none may be made; after it, gets its result.
    enter: Callable[[], None] = lambda: None
    leave: Callable[[AttemptResult[Any]], None] = lambda _result: None
    # Of a list: shows its progress, and returns why it has to end now, '' to continue.
    watch: Callable[..., str] = lambda *_progress: ""


class Client:
    """Calls one operation on one asset with the settings of a task."""

    _token: str  # of the last attempt

    def __init__(
        self, operation: Operation, asset: str, settings: Settings, context: Context
    ) -> None:
        """`asset`: as messages name it."""
        self.operation = operation
        self.asset = asset
        self.settings = settings
        self.context = context
        self.warnings: list[str] = []
        self.shown: Json = {}  # the request as results have it, once it is built
        self.attempts = 0  # those that ended
        self.outcome = NOT_SENT  # the known effect of the request if the task ended now
        self._obstacle: ServicesError | None = None  # why no attempt may be made

    def build_request(self, identifier: str, body: Any, query: str = "") -> Request:
        """Return the request; `identifier`: the id for its path, if that has one; `body`: JSON, None
        for none.
        """
        own = {"Content-Type": "application/json", **self.settings.headers}
        path = self.operation.path.format(id=quote(identifier, safe=""))
        url = f"{self.settings.base_url}{path}{query}"
        self.shown = {"method": self.operation.method, "url": url, "body": body}
        encoded = b"" if body is None else encode(body, "the body")
        return Request(self.operation.method, url, {**HEADERS, **own}, encoded)

    def ready(self) -> bool:
        """Fetch the token before an intent is written; return False if there is none.

        The failure is that of the call. Raises ServicesError without requests, or InvalidInput for a
        TLS file.
        """
        transport.require_usable(self.settings.connection, self.settings.base_url)
        try:
            self._current_token()
        except ServicesError as error:
            self._obstacle = error
        return self._obstacle is None

    def call(self, request: Request, lease: Lease = NO_END) -> tuple[Any, dict[str, Any]]:
        """Send the request as the policy allows; return the JSON and details of the success.

        The caller asks `ready` first. `lease`: until when it may be sent. Raises ServicesError with
        the known effect.
        """

        def wait(seconds: float) -> None:
            try:
                lease.renew(seconds)
                self.context.wait(seconds)
            except ServicesError as error:
                self._obstacle = error

        attempt = partial(self._attempt_with_token, request, lease)
        retries, longest = self.settings.retries, self.settings.retry_max_delay
        last = retry(attempt, request.method, retries, longest, wait, self._renew_token)
        if last.event == Event.SUCCESS:
            return last.value, {"status": last.status, "outcome": last.event.effect}
        text = failure_text(self.operation, request, last, self.outcome, self.attempts)
        msg = Message(text, self.asset)
        raise ServicesError(msg, self.outcome, status=last.status, **last.details)

    def _attempt_with_token(self, request: Request, lease: Lease) -> AttemptResult[Any]:
        known = self.outcome

        def may_send() -> None:
            lease.require(deadline - time.monotonic())
            self.outcome = outcome_of(known, UNKNOWN)

        try:
            self._token = self._current_token()
            self.context.enter()
            deadline = time.monotonic() + self.settings.timeout
            lease.require(self.settings.timeout)
            headers = {**request.headers, "Authorization": f"Bearer {self._token}"}
            request = request._replace(headers=headers, may_send=may_send)
            result = self._attempt(request, partial(read_answer, self.operation))
            self.attempts += 1
            self.outcome = outcome_of(known, result.event.effect)
        except ServicesError as error:
            # There is no token, or nothing may be sent any more.
            result = AttemptResult(Event.UNSENT_HOPELESS, error.msg)
        self.context.leave(result)
        return result

    def _current_token(self) -> str:
        """Return the token for the next attempt; raise ServicesError if there is none."""
        if self._obstacle:
            raise self._obstacle
        credentials = self.settings.credentials
        if not credentials:
            return self.settings.access_token or ""
        fetch = partial(self._fetch_token, credentials)
        token = shared_token(credentials, fetch, self.context.memory)
        self.context.secrets.mask(token)
        return token

    def _renew_token(self) -> bool:
        """Discard the token of the last attempt; return False if there can be no other."""
        credentials = self.settings.credentials
        if credentials:
            discard_token(credentials, self._token, self.context.memory)
        return credentials is not None

    def _fetch_token(self, credentials: Credentials) -> Token:
        """Return a new token; raise ServicesError.

        A token request follows the policy of a PUT, because a second token does no harm.
        """
        attempt = partial(self._attempt, build_token_request(credentials), read_token)
        retries, longest = self.settings.retries, self.settings.retry_max_delay
        last = retry(attempt, "PUT", retries, longest, self.context.wait)
        if last.value is None:
            endpoint = credentials.auth_url.partition("?")[0]  # the rest may be a credential
            raise ServicesError(f"no access token from {endpoint} (auth_url): {last.reason}")
        scope = last.value.scope
        asked = {*" ".join(credentials.scopes).split()}
        missing = set() if scope is None else asked.difference(scope.split())
        if missing:
            self.warnings.append(
                "The token endpoint granted less than was asked for (scopes):"
                f" {', '.join(sorted(missing))} is missing, so the service may refuse the"
                " operation. Allow it for the client, or ask for less."
            )
        return last.value

    def _attempt(
        self, request: Request, read: Callable[[Answer], AttemptResult[Value]]
    ) -> AttemptResult[Value]:
        """Make one attempt; raise ServicesError if nothing may be sent any more."""
        self.context.require_reader()
        try:
            settings = self.settings
            return read(transport.send_once(settings.connection, request, settings.timeout))
        except AttemptFailed as error:
            return AttemptResult(event_of(error), error.msg)
