# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Calls an operation of the service: returns its success, or raises an error that says what is
known of the effect.
"""

from __future__ import annotations

import time
from functools import partial
from typing import Any, Callable

from .._errors import (
    NOT_SENT,
    UNKNOWN,
    AttemptFailed,
    RequestFailed,
    ServicesError,
    TokenError,
    gravest,
)
from .._http.connecting import ConnectionSettings
from .._http.exchange import Answer, Request
from .._secrets import printable
from .operation import Operation, message, read_answer
from .policy import AttemptResult, Event, retry
from .settings import Settings
from .tokens import FetchedToken, Token, missing_scopes, read_token, token_request


class Client:
    """Calls one operation with the settings of a task.

    No transport is created, and no token fetched, before the first request.
    """

    def __init__(
        self,
        settings: Settings,
        connect: Callable[[ConnectionSettings], Any],
        token_source=FetchedToken,
        guard: Callable[[], None] = lambda: None,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        """`connect`: returns a transport, whose `send` makes one attempt; called once.

        `token_source`: takes the credentials and a function that fetches a token, returns the
        source of tokens; `guard`: called before each request, token requests included, raises a
        ServicesError when nothing may be sent any more; `sleep`: waits for this many seconds before
        a further attempt.
        """
        self.settings = settings
        self.tokens: set[str] = set()  # all that were used; each is a secret
        self.warnings: list[str] = []
        self._effects: list[str] = []  # what is known of each attempt that has ended
        self._in_flight = False  # whether there is one that has not
        self.not_sent = self._counted()  # what a result says when there was no attempt
        self._connect, self._guard, self._sleep = connect, guard, sleep
        # None: the token of the user, which cannot be renewed
        self._source = (
            None if settings.access_token else token_source(settings.credentials, self._fetch_token)
        )

    def request(self, operation: Operation, segment: str, body: bytes) -> Request:
        """Return the request of an operation; `segment`: the percent-encoded id, empty where the
        path has none.
        """
        headers = {
            "Content-Type": "application/json",
            "Accept": "application/json",
            "Accept-Encoding": "identity",
            "User-Agent": self.settings.http_agent,
            **dict(self.settings.headers),
        }
        url = self.settings.base_url + operation.path.format(id=segment)
        return Request(operation.method, url, headers, body)

    def call(
        self, operation: Operation, request: Request, key: str = ""
    ) -> tuple[dict, dict[str, Any]]:
        """Send the request as the policy allows; return the envelope, and what else a result says
        of the success.

        `key`: the name or id of the asset, for the message of a failure. Raises RequestFailed with
        what is known of the effect, and before anything is sent MissingLibrary or InvalidInput (a
        TLS file).
        """
        self._transport = self._connect(self.settings.connection)
        attempt = partial(self._attempt, operation, request)
        last = retry(attempt, request.method, self.settings, self._renew, self._sleep)
        told = dict(status=last.status, **self._counted())
        if last.event == Event.SUCCESS:
            return last.value, dict(told, outcome=last.event.effect)
        msg = message(operation, request, last, self.outcome, len(self._effects), key)
        raise RequestFailed(msg, self.outcome, **last.details, **told)

    def _counted(self) -> dict[str, Any]:
        """Return what a result says of the attempts: how many there were, and the trace id."""
        counted = {"request_attempts": len(self._effects)}  # `attempts` is a word of `until`
        return (
            {**counted, "trace_id": self.settings.trace.trace_id}
            if self.settings.trace
            else counted
        )

    @property
    def outcome(self) -> str:
        """What is known of the request if the task ends now, between two attempts or within one."""
        is_sent = self._in_flight and self._transport.has_sent
        return gravest(*self._effects, UNKNOWN if is_sent else NOT_SENT)

    def _attempt(self, operation: Operation, request: Request) -> AttemptResult:
        try:
            self._token = self._source.token() if self._source else self.settings.access_token
            self.tokens.add(self._token)
            authorized = {**request.headers, "Authorization": f"Bearer {self._token}"}
            if self.settings.trace:
                authorized["traceparent"] = self.settings.trace.traceparent()
            self._in_flight = True
            result = self._send(
                request._replace(headers=authorized), partial(read_answer, operation)
            )
            self._effects.append(result.event.effect)
            if result.event == Event.UNAUTHORIZED:
                result = result._replace(reason=f"{result.reason} (the token {self._origin})")
        except ServicesError as error:  # there is no token, or the guard forbids sending
            result = AttemptResult(Event.TOKEN_UNAVAILABLE, error.msg)
        self._in_flight = False
        return result

    @property
    def _origin(self) -> str:
        if not self._source:
            return "is that of access_token"
        credentials = self.settings.credentials
        client = (
            f" for the client {printable(credentials.client_id)}" if credentials.client_id else ""
        )
        return f"comes from {credentials.auth_url}{client}"

    def _renew(self) -> bool:
        """Discard the token of the last attempt; return False when there can be no other."""
        return self._source is not None and self._source.renew(self._token)

    def _fetch_token(self) -> Token:
        """Return a new token; raise TokenError.

        The policy is that for a PUT: the request may be repeated, since a second token does no
        harm.
        """
        credentials = self.settings.credentials
        attempt = partial(self._send, token_request(credentials), read_token)
        last = retry(attempt, "PUT", self.settings, sleep=self._sleep)
        if last.event != Event.SUCCESS:
            raise TokenError(
                f"no access token from {credentials.auth_url} (auth_url): {last.reason}"
            )
        missing = missing_scopes(credentials, last.value)
        if missing:
            self.warnings.append(
                f"The token endpoint granted less than was asked for (scopes): {', '.join(missing)} is missing,"
                " so the service may refuse the operation. Allow it for the client, or ask for less."
            )
        return last.value

    def _send(self, request: Request, read: Callable[[Answer], AttemptResult]) -> AttemptResult:
        """Make one attempt; raise what the guard raises."""
        self._guard()
        try:
            return read(self._transport.send(request, self.settings.timeout))
        except AttemptFailed as error:
            event = (
                Event.UNANSWERED
                if error.sent
                else Event.UNSENT_HOPELESS
                if error.hopeless
                else Event.UNSENT
            )
            return AttemptResult(event, error.msg)
