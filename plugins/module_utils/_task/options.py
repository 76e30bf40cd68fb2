# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The options that every module shares, and the settings made from them once checked."""

from __future__ import annotations

import math
import os
import re
from typing import Any, Dict, TypeVar

from ansible.module_utils.common.parameters import env_fallback

from .._call.settings import Settings, checked_headers, trace_of
from .._call.tokens import TOKEN, Credentials, checked_parameters
from .._errors import InvalidInput
from .._fields import SECONDS, Params
from .._http.tls_context import ConnectionSettings
from .._http.urls import Proxies, checked_url, named_in_environment
from .._version import VERSION

Option = Dict[str, Any]  # of an argument spec
_Number = TypeVar("_Number", int, float)

ENVIRONMENT_PREFIX = "INFRASTRUCTURE_SERVICES_"
LEDGER_VARIABLE = f"{ENVIRONMENT_PREFIX}LEDGER"
USER_AGENT = f"infrastructure.services/{VERSION}"
API = "/api/v1"  # the start of every path of the service (docs/openapi.yaml)
DAY = 86400.0  # seconds


def _environment(option: str, *others: str) -> Option:
    """Return the fallback of an option; `validation` ignores empty variables."""
    return dict(fallback=(env_fallback, [ENVIRONMENT_PREFIX + option.upper(), *others]))


ARGUMENT_SPEC: dict[str, Option] = dict(
    base_url=dict(type="str", required=True, **_environment("base_url")),
    access_token=dict(type="str", no_log=True, **_environment("access_token")),
    auth_url=dict(type="str", **_environment("auth_url")),
    client_id=dict(type="str", **_environment("client_id")),
    client_secret=dict(type="str", no_log=True, **_environment("client_secret")),
    client_authentication=dict(
        type="str",
        choices=["basic", "post"],
        default="basic",
        **_environment("client_authentication"),
    ),
    scopes=dict(type="list", elements="str", **_environment("scopes")),
    auth_parameters=dict(type="dict", no_log=True),
    headers=dict(type="dict"),
    allow_http=dict(type="bool", default=False, **_environment("allow_http")),
    validate_certs=dict(type="bool", default=True, **_environment("validate_certs")),
    ca_path=dict(type="path", **_environment("ca_path", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE")),
    client_cert=dict(type="path", **_environment("client_cert")),
    client_key=dict(type="path", no_log=False, **_environment("client_key")),
    use_proxy=dict(type="bool", default=True),
    http_agent=dict(type="str", default=USER_AGENT),
    timeout=dict(type=SECONDS, default=120, **_environment("timeout")),
    connect_timeout=dict(type=SECONDS, default=10),
    retries=dict(type="int", default=3, **_environment("retries")),
    retry_max_delay=dict(type=SECONDS, default=30),
    ledger=dict(type="str", **_environment("ledger")),
    ledger_create=dict(type="bool", default=True, **_environment("ledger_create")),
    force=dict(type="bool", default=False),
)

# UTF-8 cannot encode surrogates.
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")

# The additional options of the modules for a list.
MANY: dict[str, Option] = dict(
    concurrency=dict(type="int", default=10, **_environment("concurrency")),
    max_unknown=dict(type="int", default=1),
    max_failures=dict(type="int", default=0),
    asset_fields=dict(type="list", elements="str"),
    defaults=dict(type="dict"),
    results=dict(type="str", choices=["all", "problems"], default="all"),
    in_doubt=dict(type="str", choices=["fail", "skip", "stop"], default="fail"),
    report=dict(type="path"),
    approved=dict(type="path"),
)
MOST_AT_ONCE = 256


def settings_from(params: Params, check_mode: bool = False) -> Settings:
    """Return the settings of a task; raise InvalidInput for a value that cannot be used.

    Check mode sends nothing, so it needs no token.
    """
    return Settings(
        base_url=service_url("base_url", params["base_url"], params["allow_http"]),
        access_token=_token(params["access_token"], params["auth_url"], check_mode),
        credentials=None if params["access_token"] else _credentials(params, check_mode),
        connection=_connection(params),
        http_agent=_header("http_agent", params["http_agent"]),
        headers=checked_headers(params["headers"]),
        trace=trace_of(os.environ.get("TRACEPARENT", "")),
        timeout=in_range("timeout", params["timeout"], most=DAY, above=True),
        retries=in_range("retries", params["retries"]),
        retry_max_delay=min(DAY, in_range("retry_max_delay", params["retry_max_delay"])),
    )


def _connection(params: Params) -> ConnectionSettings:
    """Return how to connect; the environment may change between items of a loop."""
    return ConnectionSettings(
        connect_timeout=in_range("connect_timeout", params["connect_timeout"], above=True),
        proxies=named_in_environment() if params["use_proxy"] else Proxies(),
        validate_certs=params["validate_certs"],
        ca_path=params["ca_path"] or None,
        client_cert=params["client_cert"] or None,
        client_key=params["client_key"] or None,
        system_trust=(os.environ.get("SSL_CERT_FILE"), os.environ.get("SSL_CERT_DIR")),
    )


def service_url(option: str, url: str, allow_http: bool) -> str:
    """Return the base URL of a service without a trailing slash; raise InvalidInput."""
    url = checked_url(option, url, allow_http).rstrip("/")
    if url.lower().endswith(API):
        right = url[: -len(API)].rstrip("/")
        problem = f"must not end in {API}, which every path starts with; give {right}"
        raise InvalidInput(option, problem)
    return url


def _token(token: str | None, auth_url: str | None, check_mode: bool) -> str | None:
    if token is None and not auth_url and not check_mode:
        others = (
            f"or the environment variable {ENVIRONMENT_PREFIX}ACCESS_TOKEN, or"
            " auth_url and its client"
        )
        raise InvalidInput("access_token", f"is missing: set it, {others}")
    if token is None or TOKEN.fullmatch(token):
        return token
    if not token:
        raise InvalidInput("access_token", "is empty; give a token, or omit it and set auth_url")
    scheme = '; leave out "Bearer "' if token.lower().startswith("bearer ") else ""
    problem = "contains a space, a line break or another character that a token cannot have"
    raise InvalidInput("access_token", f"{problem}{scheme}")


def _credentials(params: Params, check_mode: bool) -> Credentials:
    for option in ("client_id", "client_secret"):
        if _CONTROL.search(params[option] or ""):
            raise InvalidInput(option, "contains a line break or another control character")
    auth_url = params["auth_url"] or ""  # only check mode goes on without one
    if auth_url:
        auth_url = checked_url("auth_url", auth_url, params["allow_http"], query=True)
    credentials = Credentials(
        auth_url=auth_url,
        client_id=params["client_id"],
        client_secret=params["client_secret"],
        client_authentication=params["client_authentication"],
        scopes=tuple(_header("scopes", scope) for scope in params["scopes"] or ()),
        parameters=checked_parameters(params["auth_parameters"]),
        http_agent=params["http_agent"],
    )
    has_client = credentials.client_id and credentials.client_secret
    if not has_client and not params["auth_parameters"] and not check_mode:
        problem = "needs client_id and client_secret, or auth_parameters for another grant"
        raise InvalidInput("auth_url", problem)
    return credentials


def _header(option: str, value: str) -> str:
    if _CONTROL.search(value) or not value.isascii():
        problem = "contains a line break, another control character or one that is not ASCII"
        raise InvalidInput(option, problem)
    return value


def in_range(
    option: str, value: _Number, least: float = 0, most: float = math.inf, above: bool = False
) -> _Number:
    """Return a number from `least` to `most`, not `least` itself if `above`; raise InvalidInput."""
    if least <= value <= most and not (above and value == least):
        return value
    limit = f" and at most {most:g}" if most < math.inf else ""
    start = "greater than" if above else "at least"
    raise InvalidInput(option, f"must be {start} {least:g}{limit}")
