# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Bearer tokens (RFC 6750): one given by the user, or one from a token endpoint (RFC 6749 section
4.4).
"""

from __future__ import annotations

import math
import re
import threading
import time
from base64 import b64encode
from typing import Any, Callable, ContextManager, NamedTuple
from urllib.parse import quote_plus, urlencode

from .._errors import InvalidInput, TokenError
from .._http import strict_json
from .._http.exchange import Answer, Request
from .._secrets import for_message
from .policy import AttemptResult, Event, meaning

TOKEN = re.compile(
    r"[!-~]+"
)  # printable ASCII without spaces: a little more than RFC 6750 section 2.1 allows
_MARGIN = 30.0  # seconds before its expiry from which a token is no longer used
_FORM = {
    "Content-Type": "application/x-www-form-urlencoded",
    "Accept": "application/json",
    "Accept-Encoding": "identity",
}
# What to do about the errors of RFC 6749 section 5.2, and about statuses.
_ADVICE = {
    **dict.fromkeys((404, 405), "check auth_url"),
    "invalid_client": "check client_id, client_secret and client_authentication",
    "invalid_scope": "check scopes",
    **dict.fromkeys(("invalid_grant", "unsupported_grant_type"), "check auth_parameters"),
}


class Token(NamedTuple):
    """An access token, the time (seconds of time.time) until which it is used, and the scope that
    was granted.
    """

    value: str
    use_until: float
    scope: str | None = None  # None: what was requested (RFC 6749 section 5.1)


class Memory:
    """The state of a token, shared by the threads of a process: `token` and `use_until`, or `error`
    and `failed_at`.
    """

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._content: dict[str, Any] = {}

    def alone(self) -> ContextManager:
        """Return a context manager that is an exclusive lock."""
        return self._lock

    def read(self) -> dict[str, Any]:
        return self._content

    def write(self, content: dict[str, Any]) -> None:
        self._content = content


class FetchedToken:
    """A token that is fetched once for all holders of a memory, and used until it expires or is
    refused.

    One of them fetches it while the others wait. A failure is shared with those that waited, so
    that a hundred hosts do not try a dead endpoint one by one.
    """

    def __init__(
        self, credentials: Credentials, fetch: Callable[[], Token], memory: Memory | None = None
    ) -> None:
        self._fetch = fetch
        self._memory = memory or Memory()

    def token(self) -> str:
        """Return a token that can still be used; raise TokenError, or whatever else `fetch` raises."""
        asked_at = time.time()
        token = _usable(self._memory.read(), asked_at)
        if token:
            return token
        with self._memory.alone():
            known = self._memory.read()
            if known.get("failed_at", 0) >= asked_at:
                raise TokenError(known["error"])
            return _usable(known, time.time()) or self._fetch_for_all()

    def renew(self, refused: str) -> bool:
        """Discard the token that the service refused, unless there is a newer one; return True: it
        can be replaced.
        """
        with self._memory.alone():
            if self._memory.read().get("token") == refused:
                self._memory.write({})
        return True

    def _fetch_for_all(self) -> str:
        try:
            token = self._fetch()
        except TokenError as error:
            self._memory.write({"error": error.msg, "failed_at": time.time()})
            raise
        self._memory.write({"token": token.value, "use_until": token.use_until})
        return token.value


def _usable(known: dict[str, Any], now: float) -> str:
    return known.get("token", "") if now < known.get("use_until", 0) else ""


class Credentials(NamedTuple):
    """Everything that goes into a token request; hashable, so that it can identify the token."""

    auth_url: str
    client_id: str | None
    client_secret: str | None
    client_authentication: str
    scopes: tuple[str, ...]
    parameters: tuple[tuple[str, str], ...]
    http_agent: str


def checked_parameters(parameters: dict | None) -> tuple[tuple[str, str], ...]:
    """Return `auth_parameters` as form fields, without nulls; raise InvalidInput for a value that
    is not a scalar.
    """
    given = {name: value for name, value in (parameters or {}).items() if value is not None}
    for name, value in given.items():
        if not isinstance(value, (str, int, float)):
            raise InvalidInput(
                "auth_parameters", f"the value of {name!r} must be a string, a number or a boolean"
            )
    return tuple(
        (str(name), str(value).lower() if isinstance(value, bool) else str(value))
        for name, value in given.items()
    )


def missing_scopes(credentials: Credentials, token: Token) -> list[str]:
    """Return the scopes that were requested but not granted."""
    if token.scope is None:
        return []
    asked = dict(credentials.parameters).get("scope", " ".join(credentials.scopes)).split()
    return [scope for scope in asked if scope not in token.scope.split()]


def token_request(credentials: Credentials) -> Request:
    """Return the token request (RFC 6749 sections 2.3.1 and 4.4.2)."""
    form, headers = (
        {"grant_type": "client_credentials"},
        dict(_FORM, **{"User-Agent": credentials.http_agent}),
    )
    client_id, secret = credentials.client_id, credentials.client_secret
    if credentials.scopes:
        form["scope"] = " ".join(credentials.scopes)
    if client_id and secret and credentials.client_authentication == "basic":
        pair = f"{quote_plus(client_id)}:{quote_plus(secret)}"
        headers["Authorization"] = f"Basic {b64encode(pair.encode('ascii')).decode('ascii')}"
    elif client_id:
        form.update(
            {"client_id": client_id, "client_secret": secret}
            if secret
            else {"client_id": client_id}
        )
    form.update(credentials.parameters)
    return Request("POST", credentials.auth_url, headers, urlencode(form).encode("ascii"))


def read_token(answer: Answer) -> AttemptResult:
    """Return the token in the answer of the token endpoint (RFC 6749 5.1), or why there is none
    (5.2).
    """
    event, reason, fields, token = (
        meaning(answer.status)[0],
        f"it answered with status {answer.status}",
        {},
        None,
    )
    try:
        fields = strict_json.decode_object(answer.body)
        token = _token_in(fields) if event == Event.SUCCESS else None
    except ValueError as error:
        if event == Event.SUCCESS:
            event = Event.ANSWER_CUT if answer.cut and not fields else Event.ANSWER_UNUSABLE
            reason = f"{reason}, but {answer.problem or error}"
    reason = "" if token else _with_error(reason, fields, answer.status)
    return AttemptResult(event, reason, answer.status, answer.headers, token)


def _token_in(fields: dict) -> Token:
    """Return the token of a successful answer; raise ValueError."""
    value, kind, scope = (
        fields.get("access_token"),
        fields.get("token_type", "Bearer"),
        fields.get("scope"),
    )
    if not (isinstance(value, str) and TOKEN.fullmatch(value)):
        raise ValueError("without a usable access_token")
    if not (isinstance(kind, str) and kind.lower() == "bearer"):
        raise ValueError("its token_type is not Bearer")
    use_until = time.time() + _usable_for(fields.get("expires_in"))
    return Token(value, use_until, scope if isinstance(scope, str) else None)


def _with_error(reason: str, fields: dict, status: int) -> str:
    """Return the reason with what the token endpoint says of it, and what to do about it."""
    said = [
        text
        for text in (fields.get("error"), fields.get("error_description"))
        if isinstance(text, str)
    ]
    advice = [_ADVICE[key] for key in (*said[:1], status) if key in _ADVICE][:1]
    return "; ".join([": ".join([reason, *map(for_message, said)]), *advice])


def _usable_for(lifetime: object) -> float:
    """Return for how many seconds to use a token that lasts `lifetime`; if unknown, until it is
    refused.
    """
    try:
        seconds = math.nan if isinstance(lifetime, bool) else float(lifetime)
    except (TypeError, ValueError, OverflowError):
        seconds = math.nan
    return math.inf if math.isnan(seconds) else max(0.0, seconds - min(_MARGIN, seconds / 2))
