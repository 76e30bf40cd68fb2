# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The token endpoint: the client credentials grant of RFC 6749, and which bearer tokens are valid."""

from __future__ import annotations

import base64
import binascii
import hmac
import secrets
from typing import Callable
from urllib.parse import parse_qsl, unquote_plus

from .messages import Request, Response, json_response
from .settings import Settings

FORM = "application/x-www-form-urlencoded"
_NO_STORE = ("Cache-Control", "no-store")


class GrantError(Exception):
    """An error answer of RFC 6749 section 5.2."""

    def __init__(self, error: str, description: str, status: int = 400) -> None:
        super().__init__(error)
        self.status = status
        self.body = {"error": error, "error_description": description}


class Tokens:
    """The tokens that were issued, each with the time at which it expires (None: never)."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self.requests = 0
        self._issued: dict[str, float | None] = {}
        self._clock = clock

    def answer(self, request: Request, settings: Settings) -> Response:
        """Answer a token request (RFC 6749 section 4.4); `applied` says that a token was issued."""
        self.requests += 1
        try:
            scope = granted_scope(request, settings)
        except GrantError as refused:
            response = json_response(refused.status, refused.body)
            challenge = (
                (("WWW-Authenticate", 'Basic realm="emulator"'),) if refused.status == 401 else ()
            )
            return Response(
                refused.status, (*response.headers, _NO_STORE, *challenge), response.body
            )
        token = secrets.token_urlsafe(24)
        lifetime = settings.expires_in
        self._issued[token] = None if lifetime is None else self._clock() + lifetime
        optional = {"expires_in": lifetime, "scope": scope}
        body = {
            "access_token": token,
            "token_type": "Bearer",
            **{k: v for k, v in optional.items() if v is not None},
        }
        response = json_response(200, body)
        return Response(200, (*response.headers, _NO_STORE), response.body, applied=True)

    def good(self, token: str, settings: Settings) -> bool:
        """Return whether operations accept the token: an issued one, the static one, or any."""
        if token in self._issued:
            expires = self._issued[token]
            return expires is None or self._clock() < expires
        if settings.token is not None:
            return token == settings.token
        return bool(token)

    def revoke(self) -> None:
        """Revoke every token that was issued."""
        self._issued = dict.fromkeys(self._issued, 0.0)

    def summary(self) -> dict[str, int]:
        """Return how many tokens were requested, issued, and are still valid."""
        now = self._clock()
        good = sum(expires is None or now < expires for expires in self._issued.values())
        return {"requests": self.requests, "issued": len(self._issued), "good": good}


def granted_scope(request: Request, settings: Settings) -> str | None:
    """Return the scope asked for; raise GrantError if the request may not have a token."""
    form = _form(request)
    _authenticate(*_client(request, form), settings)
    grant = form.get("grant_type", "")
    if not grant:
        raise GrantError("invalid_request", "grant_type is missing")
    if grant not in settings.grant_types:
        raise GrantError(
            "unsupported_grant_type", f"this endpoint supports {', '.join(settings.grant_types)}"
        )
    scope = form.get("scope")
    if settings.scopes is not None and not set((scope or "").split()) <= set(settings.scopes):
        raise GrantError("invalid_scope", f"this client may have {' '.join(settings.scopes)}")
    return scope


def _form(request: Request) -> dict[str, str]:
    if request.media_type != FORM:
        raise GrantError("invalid_request", f"the body is not {FORM}")
    try:
        pairs = parse_qsl(request.body.decode("ascii"), keep_blank_values=True, errors="strict")
    except UnicodeDecodeError:
        raise GrantError("invalid_request", "the form is not UTF-8") from None
    form = dict(pairs)
    if len(form) < len(pairs):
        raise GrantError("invalid_request", "a parameter is repeated")
    return form


def _client(request: Request, form: dict[str, str]) -> tuple[str, str, str]:
    """Return how the client authenticates itself, its id and its secret (RFC 6749 section 2.3.1)."""
    header = request.header("authorization")
    if header and "client_secret" in form:
        raise GrantError("invalid_request", "the client authenticates itself in two ways")
    if not header:
        return "post", form.get("client_id", ""), form.get("client_secret", "")
    scheme, _space, value = header.partition(" ")
    try:
        pair = base64.b64decode(value.strip(), validate=True).decode("utf-8")
    except (binascii.Error, UnicodeDecodeError):
        pair = ""
    if scheme.lower() != "basic" or ":" not in pair:
        raise GrantError("invalid_client", "the Authorization header is not Basic", 401)
    client_id, _colon, secret = pair.partition(":")
    return "basic", unquote_plus(client_id), unquote_plus(secret)


def _authenticate(way: str, client_id: str, secret: str, settings: Settings) -> None:
    if settings.client_authentication not in ("any", way):
        raise GrantError("invalid_client", f"{way} client authentication is not offered", 401)
    for name, got, wanted in (
        ("id", client_id, settings.client_id),
        ("secret", secret, settings.client_secret),
    ):
        matches = (
            bool(got) if wanted is None else hmac.compare_digest(got.encode(), wanted.encode())
        )
        if not matches:
            raise GrantError("invalid_client", f"the client {name} is missing or wrong", 401)
