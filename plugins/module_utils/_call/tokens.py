# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Bearer tokens (RFC 6750): given by the user, or from a token endpoint (RFC 6749 section 4.4)."""

from __future__ import annotations

import math
import re
import threading
import time
from base64 import b64encode
from typing import Any, Callable, ContextManager, Mapping, NamedTuple
from urllib.parse import quote_plus, urlencode

from .._errors import InvalidInput, TokenError
from .._http import strict_json
from .._http.exchange import Answer, Request
from .._secrets import for_message, printable
from .policy import AttemptResult, Event, meaning

# Printable ASCII without spaces: a little more than RFC 6750 section 2.1 allows.
TOKEN = re.compile(r"[!-~]+")
_MARGIN = 30.0  # seconds before its expiry from which a token is no longer used
_FORM = {
    "Content-Type": "application/x-www-form-urlencoded",
    "Accept": "application/json",
    "Accept-Encoding": "identity",
}
# Advice for the errors of RFC 6749 section 5.2, and for statuses.
_ADVICE: dict[str | int, str] = {
    404: "check auth_url",
    405: "check auth_url",
    "invalid_client": "check client_id, client_secret and client_authentication",
    "invalid_scope": "check scopes",
    "invalid_grant": "check auth_parameters",
    "unsupported_grant_type": "check auth_parameters",
}


class Token(NamedTuple):
    """An access token."""

    value: str
    use_until: float  # seconds of time.time
    # The granted ones; None: as requested (RFC 6749 section 5.1).
    scope: str | None = None


class Credentials(NamedTuple):
    """Everything that goes into a token request; hashable, so that it can identify the token."""

    auth_url: str
    client_id: str | None
    client_secret: str | None
    client_authentication: str
    scopes: tuple[str, ...]
    parameters: tuple[tuple[str, str], ...]
    http_agent: str


class Memory:
    """The state of a token, shared by the threads of a process.

    It has `token` and `use_until`, or `error` and `failed_at`.
    """

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._content: dict[str, Any] = {}

    def alone(self) -> ContextManager[object]:
        """Return a context manager that is an exclusive lock."""
        return self._lock

    def read(self) -> dict[str, Any]:
        """Return the state, empty if there is none."""
        return self._content

    def write(self, content: dict[str, Any]) -> None:
        """Replace the state."""
        self._content = content


class FetchedToken:
    """A token that is fetched once for all holders of a memory, until it expires or is refused.

    One of them fetches it while the others wait. Those that waited share a failure, so that a
    hundred hosts do not try a dead endpoint one by one.
    """

    def __init__(
        self, credentials: Credentials, fetch: Callable[[], Token], memory: Memory
    ) -> None:
        self._credentials = credentials
        self._fetch = fetch
        self._memory = memory

    @property
    def origin(self) -> str:
        """The source of the token, for messages."""
        client = self._credentials.client_id
        named = f" for the client {printable(client)}" if client else ""
        return f"comes from {self._credentials.auth_url}{named}"

    def token(self) -> str:
        """Return a token that can still be used; raise TokenError, or any error of `fetch`."""
        asked_at = time.time()
        token = _usable(self._memory.read(), asked_at)
        if token:
            return token
        with self._memory.alone():
            known = self._memory.read()
            if known.get("failed_at", 0) >= asked_at:
                raise TokenError(known["error"])
            return _usable(known, time.time()) or self._fetch_for_all()

    def discard(self, refused: str) -> None:
        """Discard the refused token, unless there is a newer one."""
        with self._memory.alone():
            if self._memory.read().get("token") == refused:
                self._memory.write({})

    def _fetch_for_all(self) -> str:
        try:
            token = self._fetch()
        except TokenError as error:
            self._memory.write({"error": error.msg, "failed_at": time.time()})
            raise
        self._memory.write({"token": token.value, "use_until": token.use_until})
        return token.value


def _usable(known: Mapping[str, Any], now: float) -> str:
    return str(known["token"]) if now < known.get("use_until", 0) else ""


def checked_parameters(parameters: Mapping[str, object] | None) -> tuple[tuple[str, str], ...]:
    """Return `auth_parameters` as form fields, without nulls; raise InvalidInput for a list or dict."""
    fields = []
    for name, value in (parameters or {}).items():
        if value is None:
            continue
        if not isinstance(value, (str, int, float)):
            why = f"the value of {name!r} must be a string, a number or a boolean"
            raise InvalidInput("auth_parameters", why)
        text = str(value).lower() if isinstance(value, bool) else str(value)
        fields.append((str(name), text))
    return tuple(fields)


def missing_scopes(credentials: Credentials, token: Token) -> list[str]:
    """Return the scopes that were requested but not granted."""
    if token.scope is None:
        return []
    asked = dict(credentials.parameters).get("scope", " ".join(credentials.scopes)).split()
    return [scope for scope in asked if scope not in token.scope.split()]


def build_token_request(credentials: Credentials) -> Request:
    """Return the token request (RFC 6749 sections 2.3.1 and 4.4.2)."""
    form = {"grant_type": "client_credentials"}
    headers = {**_FORM, "User-Agent": credentials.http_agent}
    client_id = credentials.client_id
    secret = credentials.client_secret
    if credentials.scopes:
        form["scope"] = " ".join(credentials.scopes)
    if client_id and secret and credentials.client_authentication == "basic":
        pair = f"{quote_plus(client_id)}:{quote_plus(secret)}"
        headers["Authorization"] = f"Basic {b64encode(pair.encode('ascii')).decode('ascii')}"
    elif client_id:
        form["client_id"] = client_id
        if secret:
            form["client_secret"] = secret
    form.update(credentials.parameters)
    body = urlencode(form).encode("ascii")
    return Request("POST", credentials.auth_url, headers, body)


def read_token(answer: Answer) -> AttemptResult[Token]:
    """Return the token in an answer of the token endpoint (RFC 6749 5.1), or the error in it (5.2)."""
    event, _text = meaning(answer.status)
    reason = f"it answered with status {answer.status}"
    fields: dict[str, Any] = {}
    token = None
    try:
        fields = strict_json.decode_object(answer.body)
        token = _token_in(fields) if event == Event.SUCCESS else None
    except ValueError as error:
        if event == Event.SUCCESS:
            event = Event.ANSWER_CUT if answer.cut and not fields else Event.ANSWER_UNUSABLE
            reason = f"{reason}, but {answer.problem or error}"
    reason = _with_error(reason, fields, answer.status)
    return AttemptResult(event, reason, answer.status, answer.headers, token)


def _token_in(fields: Mapping[str, object]) -> Token:
    """Return the token of a successful answer; raise ValueError."""
    value = fields.get("access_token")
    kind = fields.get("token_type")
    scope = fields.get("scope")
    if not (isinstance(value, str) and TOKEN.fullmatch(value)):
        raise ValueError("without a usable access_token")
    if "token_type" in fields and str(kind).lower() != "bearer":
        raise ValueError("its token_type is not Bearer")
    use_until = time.time() + _usable_for(fields.get("expires_in"))
    return Token(value, use_until, scope if isinstance(scope, str) else None)


def _with_error(reason: str, fields: Mapping[str, object], status: int) -> str:
    """Return the reason with the error in the answer, and advice."""
    error = fields.get("error")
    description = fields.get("error_description")
    said = [for_message(text) for text in (error, description) if isinstance(text, str)]
    advice = _ADVICE.get(error if isinstance(error, str) else "") or _ADVICE.get(status)
    explained = ": ".join([reason, *said])
    return f"{explained}; {advice}" if advice else explained


def _usable_for(lifetime: object) -> float:
    """Return for how many seconds to use a token of this lifetime; infinity if it is unknown."""
    seconds = math.nan
    if isinstance(lifetime, (str, int, float)) and not isinstance(lifetime, bool):
        try:
            seconds = float(lifetime)
        except (ValueError, OverflowError):
            seconds = math.nan
    if math.isnan(seconds):
        return math.inf
    return max(0.0, seconds - min(_MARGIN, seconds / 2))
