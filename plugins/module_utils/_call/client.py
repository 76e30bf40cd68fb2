# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Calls an operation of the service: returns its success, or raises an error that says what is known of the effect."""

from __future__ import annotations

import threading
import time
from functools import partial
from typing import Any, Callable

from .._errors import NOT_SENT, UNKNOWN, AttemptFailed, RequestFailed, ServicesError, gravest
from .._http.values import Answer, ConnectionSettings, Request
from .operation import Operation, message, read_answer
from .retry import AttemptResult, Finished, retry
from .settings import Settings
from .statuses import Event
from .tokens import FetchedToken, Token, fetch_token, missing_scopes


class Client:
    """Calls operations with the settings of one task, if need be from several threads at once.

    No transport is created, and no token fetched, before the first request.
    """

    def __init__(
        self,
        settings: Settings,
        connect: Callable[[ConnectionSettings], Any],
        keep_token=FetchedToken,
        guard: Callable[[], None] = lambda: None,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        """`connect`: returns a transport, whose `send` makes one attempt; called once by each thread that sends.

        `keep_token`: takes the credentials and a function that fetches a token, returns the source of tokens; `guard`:
        called before each request, token requests included, raises a ServicesError when nothing may be sent any more;
        `sleep`: waits for this many seconds before a further attempt.
        """
        self.settings = settings
        self.trace: list[dict[str, Any]] = []  # each attempt: method, url, status, error, seconds, wait
        self.tokens: set[str] = set()  # all that were used; each is a secret
        self.warnings: list[str] = []
        self._effects = [NOT_SENT]  # what is known of each attempt that has ended
        self._in_flight = False  # whether there is one that has not
        self.not_sent = self._counted(0)  # what a result says when there was no attempt
        self._connect, self._guard, self._sleep = connect, guard, sleep
        self._own = threading.local()
        # None: the token of the user, which cannot be renewed
        self._source = None if settings.access_token else keep_token(settings.credentials, self._fetch_token)

    def request(self, operation: Operation, segment: str, body: bytes) -> Request:
        """Return the request of an operation; `segment`: the percent-encoded id, empty where the path has none."""
        headers = {
            "Content-Type": "application/json",
            "Accept": "application/json",
            "Accept-Encoding": "identity",
            "User-Agent": self.settings.http_agent,
            **dict(self.settings.headers),
        }
        url = self.settings.base_url + operation.path.format(id=segment)
        return Request(operation.method, url, headers, body)

    def call(self, operation: Operation, request: Request, key: str = "") -> tuple[dict, dict[str, Any]]:
        """Send the request as the policy allows; return the envelope, and what else a result says of the success.

        `key`: the name or id of the asset, for the message of a failure. Raises RequestFailed with what is known of the
        effect, and before anything is sent MissingLibrary or InvalidInput (a TLS file).
        """
        self._transport()
        attempt = partial(self._attempt, operation, request)
        finished = self._with_retries(request, attempt, request.method, self._renew)
        last = finished.last
        told = dict(status=last.status, **self._counted(finished.attempts))
        if last.event == Event.SUCCESS:
            return last.value, dict(told, outcome=finished.outcome)
        raise RequestFailed(message(operation, request, finished, key), finished.outcome, **last.details, **told)

    def _counted(self, attempts: int) -> dict[str, Any]:
        """Return what a result says of the attempts that were made: how many, and the trace id."""
        counted = {"attempts": attempts, "request_attempts": attempts}  # `until` overwrites the first
        return {**counted, "trace_id": self.settings.trace.trace_id} if self.settings.trace else counted

    @property
    def outcome(self) -> str:
        """What is known of the request if the task ends now, between two attempts or within one."""
        is_sent = self._in_flight and self._transport().has_sent
        return gravest(*self._effects, UNKNOWN if is_sent else NOT_SENT)

    def _transport(self):
        """Return the transport of this thread; raise MissingLibrary or InvalidInput."""
        if not hasattr(self._own, "transport"):
            self._own.transport = self._connect(self.settings.connection)
        return self._own.transport

    def _renew(self) -> bool:
        """Discard the token of the last attempt of this thread; return False when there can be no other."""
        return self._source is not None and self._source.renew(self._own.token)

    def _attempt(self, operation: Operation, request: Request) -> AttemptResult:
        try:
            token = self._own.token = self._source.token() if self._source else self.settings.access_token
            self.tokens.add(token)
            authorized = {**request.headers, "Authorization": f"Bearer {token}"}
            if self.settings.trace:
                authorized["traceparent"] = self.settings.trace.traceparent()
            self._in_flight = True
            result = self._send(request._replace(headers=authorized), lambda answer: read_answer(operation, answer))
        except ServicesError as error:  # there is no token, or the guard forbids sending
            return AttemptResult(Event.TOKEN_UNAVAILABLE, error.msg)
        self._effects.append(result.event.effect)
        self._in_flight = False
        return result

    def _fetch_token(self) -> Token:
        token = fetch_token(self.settings.credentials, self._exchange_token)
        missing = missing_scopes(self.settings.credentials, token)
        if missing:
            self.warnings.append(
                f"The token endpoint granted less than was asked for (scopes): {', '.join(missing)} is missing,"
                " so the service may refuse the operation. Allow it for the client, or ask for less."
            )
        return token

    def _exchange_token(self, request: Request, read: Callable[[Answer], AttemptResult]) -> Finished:
        """Send a token request under the policy for a PUT: it may be repeated, since a second token does no harm."""
        return self._with_retries(request, lambda: self._send(request, read), "PUT")

    def _send(self, request: Request, read: Callable[[Answer], AttemptResult]) -> AttemptResult:
        """Make one attempt; raise what the guard raises."""
        self._guard()
        try:
            return read(self._transport().send(request, self.settings.timeout))
        except AttemptFailed as error:
            kind = Event.UNANSWERED if error.sent else Event.UNSENT_HOPELESS if error.hopeless else Event.UNSENT
            return AttemptResult(kind, error.msg)

    def _with_retries(self, request: Request, attempt, column: str, renew=lambda: False) -> Finished:
        observe = partial(self._note, request)
        return retry(attempt, column, self.settings, renew=renew, observe=observe, sleep=self._sleep)

    def _note(self, request: Request, result: AttemptResult, seconds: float, wait: float | None) -> None:
        """Add an attempt to the trace."""
        self.trace.append(
            {
                "method": request.method,
                "url": request.url,
                "status": result.status,
                "error": result.reason,
                "seconds": round(seconds, 3),
                "wait": None if wait is None else round(wait, 3),
            }
        )
