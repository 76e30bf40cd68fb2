# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Bearer tokens (RFC 6750): given by the user, or from a token endpoint (RFC 6749 section 4.4)."""

from __future__ import annotations

import math
import re
import time
from base64 import b64encode
from contextlib import suppress
from hashlib import sha256
from typing import Any, Callable, Mapping, NamedTuple
from urllib.parse import quote_plus, urlencode

from .._http import Answer, Request, strict_json
from .._secrets import for_message
from .policy import AttemptResult, Event, meaning, next_wait
from .sending import HEADERS, Credentials, Settings, send

# Printable ASCII without spaces: a little more than RFC 6750 section 2.1 allows.
TOKEN = re.compile(r"[!-~]+")
_MARGIN = 30.0  # seconds before its expiry from which a token is no longer used
_LOOK = 0.1  # seconds between two looks at what another process fetches
_NONE = Credentials("", None, None, "", [], {})
_ADVICE = "check auth_url, client_id, client_secret, client_authentication, scopes, auth_parameters"


class Token(NamedTuple):
    """An access token."""

    value: str
    use_until: float  # seconds of time.time
    # The granted ones; None: as requested (RFC 6749 section 5.1).
    scope: str | None = None


class Memory:
    """Values by name, and a lock for each name, of this process."""

    def read(self, name: str) -> Any:
        """Return the value that was written last under this name, None if there is none."""
        return vars(self).get(name)

    def write(self, name: str, value: Any) -> None:
        """Write a value."""
        vars(self)[name] = value

    def try_lock(self, name: str) -> bool:
        """Take the lock of a name unless another process has it; return whether it was taken."""
        return True

    def unlock(self, name: str) -> None:
        """Give a lock back."""


class Tokens:
    """The token of a task: given, fetched here, or by another process of the run.

    One holder of the memory's lock fetches it for all, until it expires or is discarded. Those that
    wait for it share a failure, so that a hundred hosts do not try a dead endpoint one by one. A
    token request follows the policy of a PUT, because a second token does no harm.
    """

    def __init__(self, settings: Settings, memory: Memory, mask: Callable[[str], None]) -> None:
        """`mask`: masks a token in all that is shown."""
        self.value = settings.access_token or ""  # '' while there is none
        self.error = ""  # why there can be none
        self.warnings: list[str] = []
        self._settings = settings
        self._credentials = settings.credentials or _NONE
        self._memory = memory
        self._mask = mask
        self._name = sha256(repr(settings.credentials).encode()).hexdigest()
        self._asked_at = time.time()
        self._attempts: list[AttemptResult[Token]] = []
        self._is_fetching = False  # whether this process has the lock
        # When to make an attempt or to look at the others, by the clock of the loop; inf: an
        # attempt is in flight.
        self.due = 0.0
        self._own: dict[str, Any] = {}  # as the memory has it, unless that has no room

    def is_ready(self, now: float, start: Callable[[], None]) -> bool:
        """Return whether there is a token; start to fetch one, unless somebody does."""
        if not self._settings.credentials:
            return True
        if now < self.due:
            return False
        if not self._is_fetching:
            if self._look():
                return bool(self.value)
            self.due = now + _LOOK
            if not self._memory.try_lock(self._name):
                return False
            self._is_fetching = True
            if self._look():  # another process has just fetched it
                self._end()
                return bool(self.value)
        self.due = math.inf
        start()
        return False

    def _look(self) -> bool:
        """Read what the processes of the run know; return whether that is a token or a failure."""
        # A token as a dict, or `error` and `failed_at`.
        known: Mapping[str, Any] = self._memory.read(self._name) or self._own
        if known.get("failed_at", 0) >= self._asked_at:
            self.error = known["error"]
        is_usable = known.get("use_until", 0) > time.time()
        self.value = str(known["value"]) if is_usable else ""
        self._mask(self.value)
        return bool(self.value or self.error)

    def fetch(self) -> AttemptResult[Token]:
        """Make one attempt, in a thread of its own."""
        settings = self._settings
        try:
            request = build_token_request(self._credentials)
            return send(settings.connection, request, settings.timeout, read_token)
        except BaseException as error:  # noqa: BLE001 (the loop waits for an answer)
            return AttemptResult(Event.UNCLEAR, f"an unexpected {type(error).__name__}")

    def take(self, answer: AttemptResult[Token], now: float) -> None:
        """Take the answer to an attempt."""
        settings = self._settings
        self._attempts.append(answer)
        wait, why = next_wait(
            "PUT", self._attempts, settings.retries, settings.retry_max_delay, can_renew=False
        )
        if answer.value is None and wait is not None:
            self.due = now + wait
            return
        if answer.value is None:
            endpoint = self._credentials.auth_url.partition("?")[0]
            reason = "; ".join(filter(None, [answer.reason, why]))
            error = f"no access token from {endpoint} (auth_url): {reason}"
            self._own = {"error": error, "failed_at": time.time()}
        else:
            self._own = answer.value._asdict()
            self._warn_of_less(answer.value.scope)
        self._memory.write(self._name, self._own)
        self._end()

    def _end(self) -> None:
        """Let the other processes fetch."""
        self._memory.unlock(self._name)
        self._is_fetching, self._attempts, self.due = False, [], 0.0

    def _warn_of_less(self, scope: str | None) -> None:
        """Warn of a token with fewer scopes than were asked for."""
        asked = {*" ".join(self._credentials.scopes).split()}
        missing = set() if scope is None else asked.difference(scope.split())
        if missing:
            self.warnings.append(
                "The token endpoint granted less than was asked for (scopes):"
                f" {', '.join(sorted(missing))} is missing, so the service may refuse the"
                " operation. Allow it for the client, or ask for less."
            )

    def discard(self, refused: str) -> None:
        """Discard a token that the service refused, unless there is a newer one."""
        if (self._memory.read(self._name) or self._own).get("value") == refused:
            self._own = {}
            self._memory.write(self._name, {})


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
    if not seconds > 0:  # also nan; it would be fetched again and again
        seconds = math.inf
    seconds -= min(_MARGIN, seconds / 2)
    return Token(value, time.time() + seconds, scope if isinstance(scope, str) else None)
