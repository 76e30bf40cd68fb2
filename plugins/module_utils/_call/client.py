# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Calls an operation: returns its success, or raises an error with the known effect."""

from __future__ import annotations

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
from .operation import Operation, failure_message, read_answer
from .place import Place
from .policy import AttemptResult, Event, event_of, retry
from .settings import Settings
from .tokens import (
    Credentials,
    FetchedToken,
    Token,
    build_token_request,
    missing_scopes,
    read_token,
)

Value = TypeVar("Value")


class Client:
    """Calls one operation with the settings of a task, in the place where the task runs.

    The first request creates the transport and fetches the token.
    """

    _transport: Sender  # from the first call on
    _token: str  # of the last attempt

    def __init__(self, settings: Settings, place: Place) -> None:
        self.settings = settings
        self._place = place
        self.tokens: set[str] = set()  # all fetched tokens that were used
        self.warnings: list[str] = []
        # The known effect of each attempt that ended.
        self._effects: list[str] = []
        self._in_flight = False
        # None: the user gives the token.
        self._source: FetchedToken | None = None
        if settings.credentials:
            fetch = partial(self._fetch_token, settings.credentials)
            memory = place.token_memory(settings.credentials)
            self._source = FetchedToken(settings.credentials, fetch, memory)

    def build_request(self, operation: Operation, segment: str, body: bytes) -> Request:
        """Return the request of an operation.

        `segment`: the percent-encoded id, '' if the path has none.
        """
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
        self, operation: Operation, request: Request, key: str
    ) -> tuple[Asset, dict[str, Any]]:
        """Send the request as the policy allows; return the envelope and details of the success.

        `key`: the name or id of the asset, for messages. Raises RequestFailed with the known
        effect. Before anything is sent, raises MissingLibrary, or InvalidInput for a TLS file.
        """
        self._transport = self._place.connect(self.settings.connection)
        attempt = partial(self._attempt_with_token, operation, request)
        last = self._retry(attempt, request.method, self._renew_token)
        details = {"status": last.status, **self.counts()}
        if last.value is not None:
            return last.value, {**details, "outcome": last.event.effect}
        attempts = len(self._effects)
        msg = failure_message(operation, request, last, self.outcome, attempts, key)
        raise RequestFailed(msg, self.outcome, **last.details, **details)

    def counts(self) -> dict[str, Any]:
        """Return the number of attempts and the trace id, as keys of a result."""
        counts: dict[str, Any] = {"request_attempts": len(self._effects)}
        if self.settings.trace:
            counts["trace_id"] = self.settings.trace.trace_id
        return counts

    @property
    def outcome(self) -> str:
        """The known effect of the request if the task ended now."""
        is_sent = self._in_flight and self._transport.has_sent
        return gravest(*self._effects, UNKNOWN if is_sent else NOT_SENT)

    def _attempt_with_token(self, operation: Operation, request: Request) -> AttemptResult[Asset]:
        try:
            self._token = self._current_token()
            headers = {**request.headers, "Authorization": f"Bearer {self._token}"}
            if self.settings.trace:
                headers["traceparent"] = self.settings.trace.traceparent()
            self._in_flight = True
            read = partial(read_answer, operation)
            result = self._attempt(request._replace(headers=headers), read)
            self._effects.append(result.event.effect)
            if result.event == Event.UNAUTHORIZED:
                origin = self._source.origin if self._source else "is that of access_token"
                result = result.because(f"{result.reason} (the token {origin})")
        except ServicesError as error:
            # There is no token, or nothing may be sent any more.
            result = AttemptResult(Event.TOKEN_UNAVAILABLE, error.msg)
        self._in_flight = False
        return result

    def _current_token(self) -> str:
        """Return the token for the next attempt; raise ServicesError if there is none."""
        if not self._source:
            return self.settings.access_token or ""
        token = self._source.token()
        self.tokens.add(token)
        return token

    def _renew_token(self) -> bool:
        """Discard the token of the last attempt; return False if there can be no other."""
        if self._source:
            self._source.discard(self._token)
        return self._source is not None

    def _fetch_token(self, credentials: Credentials) -> Token:
        """Return a new token; raise TokenError.

        A token request follows the policy of a PUT, because a second token does no harm.
        """
        attempt = partial(self._attempt, build_token_request(credentials), read_token)
        last = self._retry(attempt, "PUT")
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

    def _retry(
        self,
        attempt: Callable[[], AttemptResult[Value]],
        method: str,
        renew: Callable[[], bool] = lambda: False,
    ) -> AttemptResult[Value]:
        """Make attempts until the policy allows no further one; return the result of the last."""
        retries = self.settings.retries
        longest = self.settings.retry_max_delay
        return retry(attempt, method, retries, longest, self._place.wait, renew)

    def _attempt(
        self, request: Request, read: Callable[[Answer], AttemptResult[Value]]
    ) -> AttemptResult[Value]:
        """Make one attempt; raise ServicesError if nothing may be sent any more."""
        self._place.require_reader()
        try:
            return read(self._transport.send_once(request, self.settings.timeout))
        except AttemptFailed as error:
            return AttemptResult(event_of(error), error.msg)
