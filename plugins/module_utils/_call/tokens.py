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
from contextlib import suppress
from hashlib import sha256
from typing import Any, Callable, ContextManager, Mapping, NamedTuple
from urllib.parse import quote_plus, urlencode

from .._errors import ServicesError
from .._http import Answer, Request, strict_json
from .._secrets import for_message
from .._version import VERSION
from .policy import AttemptResult, Event, meaning

# Printable ASCII without spaces: a little more than RFC 6750 section 2.1 allows.
TOKEN = re.compile(r"[!-~]+")
_MARGIN = 30.0  # seconds before its expiry from which a token is no longer used
# Of every request.
HEADERS = {
    "Accept": "application/json",
    "Accept-Encoding": "identity",
    "User-Agent": f"infrastructure.services/{VERSION}",
}
_ADVICE = "check auth_url, client_id, client_secret, client_authentication, scopes, auth_parameters"


class Token(NamedTuple):
    """An access token."""

    value: str
    use_until: float  # seconds of time.time
    # The granted ones; None: as requested (RFC 6749 section 5.1).
    scope: str | None = None


class Credentials(NamedTuple):
    """Everything that goes into a token request, and identifies the token."""

    auth_url: str
    client_id: str | None
    client_secret: str | None
    client_authentication: str
    scopes: list[str]
    parameters: dict[str, str]


class Memory:
    """Values by name, shared by the threads of a process."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._values: dict[str, Any] = {}

    def alone(self, name: str) -> ContextManager[object]:
        """Return a context manager that is an exclusive lock for this name."""
        return self._lock

    def read(self, name: str) -> Any:
        """Return the value that was written last under this name, None if there is none."""
        return self._values.get(name)

    def write(self, name: str, value: Any) -> None:
        """Write a value."""
        self._values[name] = value


def shared_token(credentials: Credentials, fetch: Callable[[], Token], memory: Memory) -> str:
    """Return a token that can still be used; raise any error of `fetch`.

    One holder of the memory fetches it for all, while the others wait, until it expires or is
    discarded. Those that waited share a failure, so that a hundred hosts do not try a dead endpoint
    one by one.
    """
    name = _name_of(credentials)
    asked_at = time.time()
    with memory.alone(name):
        # A token as a dict, or `error` and `failed_at`.
        known: Mapping[str, Any] = memory.read(name) or {}
        if known.get("failed_at", 0) >= asked_at:
            raise ServicesError(known["error"])
        if known.get("use_until", 0) <= time.time():
            try:
                known = fetch()._asdict()
            except ServicesError as error:
                memory.write(name, {"error": error.msg, "failed_at": time.time()})
                raise
            memory.write(name, known)
        return str(known["value"])


def discard_token(credentials: Credentials, refused: str, memory: Memory) -> None:
    """Discard the refused token, unless there is a newer one."""
    name = _name_of(credentials)
    with memory.alone(name):
        if (memory.read(name) or {}).get("value") == refused:
            memory.write(name, {})


def _name_of(credentials: Credentials) -> str:
    return sha256(repr(credentials).encode()).hexdigest()


def build_token_request(credentials: Credentials) -> Request:
    """Return the token request (RFC 6749 sections 2.3.1 and 4.4.2)."""
    form = {"grant_type": "client_credentials"}
    headers = {**HEADERS, "Content-Type": "application/x-www-form-urlencoded"}
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
    with suppress(strict_json.InvalidJSON):
        fields = strict_json.decode_object(answer.body)
    token = _token_in(fields) if event == Event.SUCCESS else None
    if event == Event.SUCCESS and not token:
        event = Event.ANSWER_CUT if answer.cut else Event.ANSWER_UNUSABLE
        reason = f"{reason}, but {answer.problem or 'without a usable Bearer token (access_token)'}"
    told = [fields.get(name) for name in ("error", "error_description")]
    reason = ": ".join([reason, *(for_message(text) for text in told if isinstance(text, str))])
    if event in (Event.REFUSED, Event.UNAUTHORIZED):
        reason = f"{reason}; {_ADVICE}"
    return AttemptResult(event, reason, answer.status, answer.headers, token)


def _token_in(fields: Mapping[str, Any]) -> Token | None:
    """Return the bearer token of a successful answer, None if it has none."""
    value = fields.get("access_token")
    scope = fields.get("scope")
    is_bearer = str(fields.get("token_type", "bearer")).lower() == "bearer"
    if not (is_bearer and isinstance(value, str) and TOKEN.fullmatch(value)):
        return None
    try:
        seconds = float(fields["expires_in"])
    except (KeyError, TypeError, ValueError, OverflowError):
        seconds = math.inf
    seconds = max(0.0, seconds - min(_MARGIN, seconds / 2))
    return Token(value, time.time() + seconds, scope if isinstance(scope, str) else None)
