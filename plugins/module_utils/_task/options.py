# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The options that every module shares, and what they are once checked."""

from __future__ import annotations

import math
import re

from ansible.module_utils.basic import env_fallback

from .._call.settings import Settings
from .._call.tokens import TOKEN, Credentials, checked_parameters
from .._errors import InvalidInput
from .._http.urls import checked_url
from .._version import VERSION

ENVIRONMENT_PREFIX = "INFRASTRUCTURE_SERVICES_"
USER_AGENT = f"infrastructure.services/{VERSION}"


def _environment(option: str, *others: str) -> dict:
    return dict(fallback=(env_fallback, [ENVIRONMENT_PREFIX + option.upper(), *others]))


ARGUMENT_SPEC = dict(
    base_url=dict(type="str", required=True, **_environment("base_url")),
    access_token=dict(type="str", no_log=True, **_environment("access_token")),
    auth_url=dict(type="str", **_environment("auth_url")),
    client_id=dict(type="str", **_environment("client_id")),
    client_secret=dict(type="str", no_log=True, **_environment("client_secret")),
    client_authentication=dict(
        type="str", choices=["basic", "post"], default="basic", **_environment("client_authentication")
    ),
    scopes=dict(type="list", elements="str", **_environment("scopes")),
    auth_parameters=dict(type="dict", no_log=True),
    allow_http=dict(type="bool", default=False, **_environment("allow_http")),
    validate_certs=dict(type="bool", default=True, **_environment("validate_certs")),
    ca_path=dict(type="path", **_environment("ca_path", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE")),
    client_cert=dict(type="path", **_environment("client_cert")),
    client_key=dict(type="path", no_log=False, **_environment("client_key")),
    use_proxy=dict(type="bool", default=True),
    http_agent=dict(type="str", default=USER_AGENT),
    timeout=dict(type="float", default=120, **_environment("timeout")),
    connect_timeout=dict(type="float", default=10),
    retries=dict(type="int", default=3, **_environment("retries")),
    retry_max_delay=dict(type="float", default=30),
    ledger=dict(type="str", **_environment("ledger")),
    force=dict(type="bool", default=False),
)

_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")  # surrogates too: UTF-8 has no form for them


def settings_from(params: dict) -> Settings:
    """Return the settings of a task; raise InvalidInput, naming the option, for what cannot be used."""
    base_url = checked_url("base_url", params["base_url"], params["allow_http"]).rstrip("/")
    return Settings(
        base_url=base_url,
        access_token=_token(params["access_token"], params["auth_url"]),
        credentials=None if params["access_token"] else _credentials(params),
        validate_certs=params["validate_certs"],
        ca_path=params["ca_path"] or None,
        client_cert=params["client_cert"] or None,
        client_key=params["client_key"] or None,
        use_proxy=params["use_proxy"],
        http_agent=_header("http_agent", params["http_agent"]),
        timeout=_at_least("timeout", params["timeout"], 0, exclusive=True),
        connect_timeout=_at_least("connect_timeout", params["connect_timeout"], 0, exclusive=True),
        retries=_at_least("retries", params["retries"], 0),
        retry_max_delay=_at_least("retry_max_delay", params["retry_max_delay"], 0),
    )


def _token(token: str | None, auth_url: str | None) -> str | None:
    if token is None and not auth_url:
        raise InvalidInput(
            "access_token", "is missing: give access_token, or auth_url with client_id and client_secret"
        )
    if token is None or TOKEN.fullmatch(token):
        return token
    raise InvalidInput(
        "access_token", "holds a space, a line end or another character that no token has" if token else "is empty"
    )


def _credentials(params: dict) -> Credentials:
    for option in ("client_id", "client_secret"):
        if _CONTROL.search(params[option] or ""):
            raise InvalidInput(option, "holds a line end or another control character")
    credentials = Credentials(
        auth_url=checked_url("auth_url", params["auth_url"], params["allow_http"], query=True),
        client_id=params["client_id"],
        client_secret=params["client_secret"],
        client_authentication=params["client_authentication"],
        scopes=tuple(_header("scopes", scope) for scope in params["scopes"] or ()),
        parameters=checked_parameters(params["auth_parameters"]),
        http_agent=params["http_agent"],
    )
    if not (credentials.client_id and credentials.client_secret) and not params["auth_parameters"]:
        raise InvalidInput("client_id", "client_id and client_secret are needed to get a token from auth_url")
    return credentials


def _header(option: str, value: str) -> str:
    if _CONTROL.search(value) or not value.isascii():
        raise InvalidInput(option, "holds a line end, another control character or one that is not ASCII")
    return value


def _at_least(option: str, value: float, least: float, exclusive: bool = False) -> float:
    if not math.isfinite(value) or value < least or (exclusive and value == least):
        raise InvalidInput(option, f"must be a finite number {'above' if exclusive else 'not below'} {least}")
    return value
