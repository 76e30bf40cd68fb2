# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Calls an operation: returns its success, or raises an error that says what is known of it."""

from __future__ import annotations

import time
from functools import partial
from typing import Any, Callable, TypeVar

from .._errors import (
    NOT_SENT,
    UNKNOWN,
    AttemptFailed,
    RequestFailed,
    ServicesError,
    TokenError,
    gravest,
)
from .._fields import Asset
from .._http.exchange import Answer, Request, Sender
from .._http.tls_context import ConnectionSettings
from .operation import Operation, failure_message, read_answer
from .policy import AttemptResult, Event, event_of, retry
from .settings import Settings
from .tokens import (
    Credentials,
    FetchedToken,
    GivenToken,
    Token,
    build_token_request,
    missing_scopes,
    read_token,
)

Value = TypeVar("Value")


class Client:
    """Calls one operation with the settings of a task.

    No transport is created, and no token fetched, before the first request.
    """

    _transport: Sender  # from the first call on
    _token: str  # of the last attempt

    def __init__(
        self,
        settings: Settings,
        connect: Callable[[ConnectionSettings], Sender],
        token_source: Callable[[Credentials, Callable[[], Token]], FetchedToken] = FetchedToken,
        guard: Callable[[], None] = lambda: None,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        """`connect`: returns a transport; called once.

        `token_source`: takes the credentials and a function that fetches a token; `guard`: called
        before each request, token requests included, raises a ServicesError if nothing may be sent
        any more; `sleep`: waits for this many seconds before a further attempt.
        """
        self.settings = settings
        self.tokens: set[str] = set()  # all that were used; each is a secret
        self.warnings: list[str] = []
        self._effects: list[str] = []  # what is known of each attempt that has ended
        self._in_flight = False  # whether there is one that has not
        self._connect, self._guard, self._sleep = connect, guard, sleep
        self._source: FetchedToken | GivenToken = GivenToken(settings.access_token or "")
        if settings.credentials:
            fetch = partial(self._fetch_token, settings.credentials)
            self._source = token_source(settings.credentials, fetch)

    def build_request(self, operation: Operation, segment: str, body: bytes) -> Request:
        """Return the request of an operation; `segment`: the percent-encoded id, '' for none."""
        headers = {
            "Content-Type": "application/json",
            "Accept": "application/json",
            "Accept-Encoding": "identity",
            "User-Agent": self.settings.http_agent,
            **dict(self.settings.headers),
        }
        url = self.settings.base_url + operation.path.format(id=segment)
        return Request(operation.method, url, headers, body, "from base_url")

    def call(
        self, operation: Operation, request: Request, key: str = ""
    ) -> tuple[Asset, dict[str, Any]]:
        """Send the request as the policy allows; return the envelope and details of the success.

        `key`: the name or id of the asset, for messages. Raises RequestFailed with what is known of
        the effect, and before anything is sent MissingLibrary or InvalidInput (a TLS file).
        """
        self._transport = self._connect(self.settings.connection)
        attempt = partial(self._attempt_with_token, operation, request)
        last = retry(attempt, request.method, self.settings, self._renew_token, self._sleep)
        details = {"status": last.status, **self.counts()}
        if last.value is not None:
            return last.value, {**details, "outcome": last.event.effect}
        attempts = len(self._effects)
        msg = failure_message(operation, request, last, self.outcome, attempts, key)
        raise RequestFailed(msg, self.outcome, **last.details, **details)

    def counts(self) -> dict[str, Any]:
        """Return what a result says of the attempts: how many there were, and the trace id."""
        counts: dict[str, Any] = {"request_attempts": len(self._effects)}
        if self.settings.trace:
            counts["trace_id"] = self.settings.trace.trace_id
        return counts

    @property
    def outcome(self) -> str:
        """What is known of the request if the task ends now, between two attempts or within one."""
        is_sent = self._in_flight and self._transport.has_sent
        return gravest(*self._effects, UNKNOWN if is_sent else NOT_SENT)

    def _attempt_with_token(self, operation: Operation, request: Request) -> AttemptResult[Asset]:
        try:
            self._token = self._source.token()
            self.tokens.add(self._token)
            headers = {**request.headers, "Authorization": f"Bearer {self._token}"}
            if self.settings.trace:
                headers["traceparent"] = self.settings.trace.traceparent()
            self._in_flight = True
            read = partial(read_answer, operation)
            result = self._attempt(request._replace(headers=headers), read)
            self._effects.append(result.event.effect)
            if result.event == Event.UNAUTHORIZED:
                result = result.because(f"{result.reason} (the token {self._source.origin})")
        except ServicesError as error:  # there is no token, or the guard forbids sending
            result = AttemptResult(Event.TOKEN_UNAVAILABLE, error.msg)
        self._in_flight = False
        return result

    def _renew_token(self) -> bool:
        """Discard the token of the last attempt; return False if there can be no other."""
        return self._source.renew(self._token)

    def _fetch_token(self, credentials: Credentials) -> Token:
        """Return a new token; raise TokenError.

        The policy is that for a PUT: the request may be repeated, since a second token does no
        harm.
        """
        attempt = partial(self._attempt, build_token_request(credentials), read_token)
        last = retry(attempt, "PUT", self.settings, sleep=self._sleep)
        if last.value is None:
            raise TokenError(
                f"no access token from {credentials.auth_url} (auth_url): {last.reason}"
            )
        missing = missing_scopes(credentials, last.value)
        if missing:
            self.warnings.append(
                "The token endpoint granted less than was asked for (scopes):"
                f" {', '.join(missing)} is missing, so the service may refuse the operation."
                " Allow it for the client, or ask for less."
            )
        return last.value

    def _attempt(
        self, request: Request, read: Callable[[Answer], AttemptResult[Value]]
    ) -> AttemptResult[Value]:
        """Make one attempt; raise what the guard raises."""
        self._guard()
        try:
            return read(self._transport.send_once(request, self.settings.timeout))
        except AttemptFailed as error:
            return AttemptResult(event_of(error), error.msg)
