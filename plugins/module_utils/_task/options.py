# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The options that every module shares: what is made of them, and the credentials in them."""

from __future__ import annotations

import os
import re
from typing import Any, Iterator

from .._call.sending import Credentials, Settings
from .._call.tokens import TOKEN
from .._errors import InvalidInput
from .._http.transport import ConnectionSettings
from .._http.urls import checked_url, proxies_in_environment, service_url
from .._secrets import basic, credentials_in_url, is_credential_name, printable
from .._values import (
    BOOLEAN,
    DICT,
    LIST,
    NUMBER,
    PATH,
    TEXT,
    WHOLE_NUMBER,
    Params,
    Spec,
    between,
    fields,
    prune,
)

ENVIRONMENT_PREFIX = "INFRASTRUCTURE_SERVICES_"
LEDGER_VARIABLE = f"{ENVIRONMENT_PREFIX}LEDGER"
NO_LEDGER = "none"  # in place of a location: each run creates another asset
_DAY = 86400.0  # seconds
_TIMEOUT = between(NUMBER, 0.001, _DAY)
_COUNT = between(WHOLE_NUMBER, 0)
_RETRIES = between(WHOLE_NUMBER, 0, 100)
_LONGEST_ATTEMPT = 900.0  # seconds, with a ledger: a lease is as long

ARGUMENT_SPEC: Spec = dict(
    base_url=dict(type=TEXT, required=True),
    **fields(TEXT, "access_token", "auth_url", "client_id", "client_secret", "ledger"),
    client_authentication=dict(type=TEXT, choices=["basic", "post"], default="basic"),
    scopes=dict(type=LIST, elements=TEXT),
    **fields(DICT, "auth_parameters", "headers"),
    **fields(PATH, "ca_path", "client_cert"),
    client_key=dict(type=PATH, no_log=False),
    allow_http=dict(type=BOOLEAN, default=False),
    validate_certs=dict(type=BOOLEAN, default=True),
    use_proxy=dict(type=BOOLEAN, default=True),
    timeout=dict(type=_TIMEOUT, default=120),
    connect_timeout=dict(type=_TIMEOUT, default=10),
    retries=dict(type=_RETRIES, default=3),
    retry_max_delay=dict(type=between(NUMBER, 0, _DAY), default=30),
)
# The options that an environment variable can set.
_FROM_ENVIRONMENT = {*ARGUMENT_SPEC, "concurrency"}.difference(
    ("auth_parameters", "headers", "use_proxy", "connect_timeout", "retry_max_delay")
)
_OTHER_VARIABLES = {"ca_path": ("REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE")}

# Documented as no_log. The validator must not know: since ansible-core 2.22 it would have their
# values, short ones too, redacted in all that the process shows, names and ids included.
SECRET = ("access_token", "client_secret", "auth_parameters")
# Headers that the collection sets, or that belong to one connection (RFC 9110 section 7.6.1).
_RESERVED = re.compile(
    "accept|accept-encoding|authorization|connection|content-encoding|content-length"
    "|content-type|expect|host|keep-alive|proxy-authorization|proxy-connection|te"
    "|trailer|transfer-encoding|upgrade|user-agent",
    re.IGNORECASE,
)
_HEADER = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")  # RFC 9110 section 5.6.2
_HEADER_VALUE = re.compile(r"[ -~\xa0-\xff]*")  # printable Latin-1
URLS = ("auth_url", "base_url", "ledger", "to")

# The additional options of the modules for a list.
MANY: Spec = dict(
    concurrency=dict(type=between(WHOLE_NUMBER, 1, 256), default=10),
    max_unknown=dict(type=_COUNT, default=1),
    max_failures=dict(type=_COUNT, default=0),
    asset_fields=dict(type=LIST, elements=TEXT),
    defaults=dict(type=DICT),
    results=dict(type=TEXT, choices=["all", "problems"], default="all"),
    in_doubt=dict(type=TEXT, choices=["fail", "skip", "stop"], default="fail"),
    report=dict(type=PATH),
    approved=dict(type=PATH),
)


def variables_of(option: str) -> list[str]:
    """Return the environment variables that can set an option; the first one that is set counts."""
    if option not in _FROM_ENVIRONMENT:
        return []
    return [f"{ENVIRONMENT_PREFIX}{option.upper()}", *_OTHER_VARIABLES.get(option, ())]


def variable_of(option: str) -> str:
    """Return the variable that sets an option, '' if none does; AWX exports empty variables."""
    return next(filter(os.environ.get, variables_of(option)), "")


def settings_from(params: Params, check_mode: bool = False) -> Settings:
    """Return the settings of a task; raise InvalidInput for a value that cannot be used.

    Check mode sends nothing, so it needs no token.
    """
    has_ledger = params["ledger"] not in (None, NO_LEDGER)
    if has_ledger and params["timeout"] > _LONGEST_ATTEMPT:
        raise InvalidInput("timeout", f"must be at most {_LONGEST_ATTEMPT:g} with a ledger")
    proxies = proxies_in_environment() if params["use_proxy"] else {}
    connection = {**params, "proxies": tuple(proxies.items())}
    return Settings(
        base_url=service_url("base_url", params["base_url"], params["allow_http"]),
        access_token=_token(params, check_mode),
        credentials=_credentials(params, check_mode),
        connection=ConnectionSettings._make(map(connection.get, ConnectionSettings._fields)),
        headers=_headers(params),
        timeout=params["timeout"],
        retries=params["retries"],
        retry_max_delay=params["retry_max_delay"],
    )


def _token(params: Params, check_mode: bool) -> str | None:
    token: str | None = params["access_token"]
    if token is None and not params["auth_url"] and not check_mode:
        raise InvalidInput(
            "access_token",
            f"is missing: set it, or the environment variable {ENVIRONMENT_PREFIX}ACCESS_TOKEN, or"
            " auth_url and its client",
        )
    if token is None or TOKEN.fullmatch(token):
        return token
    scheme = '; leave out "Bearer "' if token.lower().startswith("bearer ") else ""
    raise InvalidInput(
        "access_token",
        "contains a space, a line break or another character that a token cannot have, or is"
        f" empty{scheme}",
    )


def _credentials(params: Params, check_mode: bool) -> Credentials | None:
    """Return what gets a token, None if the user gives one; raise InvalidInput."""
    if params["access_token"] or not params["auth_url"]:
        return None
    auth_url = checked_url("auth_url", params["auth_url"], params["allow_http"], query=True)
    for option in ("client_id", "client_secret", "scopes"):
        if not "".join(params[option] or "").isprintable():
            raise InvalidInput(option, "contains a line break or another control character")
    has_client = params["client_id"] and params["client_secret"]
    if not (has_client or params["auth_parameters"] or check_mode):
        raise InvalidInput(
            "auth_url", "needs client_id and client_secret, or auth_parameters for another grant"
        )
    return Credentials(
        auth_url=auth_url,
        client_id=params["client_id"],
        client_secret=params["client_secret"],
        client_authentication=params["client_authentication"],
        scopes=params["scopes"] or [],
        parameters=_texts("auth_parameters", params),
    )


def _texts(option: str, params: Params) -> dict[str, str]:
    """Return the members of a dict as texts, without nulls; raise InvalidInput."""
    texts = {}
    for name, value in prune(params[option] or {}).items():
        try:
            texts[str(name)] = str(TEXT(value))
        except TypeError as error:
            raise InvalidInput(option, f"the value of {str(name)!r} {error}") from None
    return texts


def _headers(params: Params) -> dict[str, str]:
    """Return `headers` without nulls; raise InvalidInput if one cannot be sent."""
    checked: dict[str, str] = {}
    for name, value in _texts("headers", params).items():
        problem = ""
        if not _HEADER.fullmatch(name) or not _HEADER_VALUE.fullmatch(value):
            problem = "has a character that no name, or no value in Latin-1, of a header can have"
        elif _RESERVED.fullmatch(name):
            problem = "cannot be given: the collection or the connection sets it"
        elif name.lower() in map(str.lower, checked):
            problem = "is given twice: case makes no difference"
        if problem:
            raise InvalidInput("headers", f"{printable(name)} {problem}")
        checked[name] = value
    return checked


def credentials_in(params: Params) -> Iterator[str]:
    """Yield the credentials in options, valid or not, and those of proxies."""
    client_id, client_secret, access_token, *urls = (
        str(params.get(name) or "")
        for name in ("client_id", "client_secret", "access_token", *URLS)
    )
    yield from (access_token, client_secret, *basic(client_id, client_secret))
    for url in (*urls, *proxies_in_environment().values()):
        yield from credentials_in_url(url)
    query = str(params["auth_url"]).partition("?")[2].split("&")
    members: list[Any] = [member.partition("=")[::2] for member in query]
    for option in ("auth_parameters", "headers"):
        given = params[option]
        members += given.items() if isinstance(given, dict) else ()
    for name, value in members:
        if is_credential_name(str(name)) and isinstance(value, (str, int)):
            # Of a header such as `Bearer abc` the last word alone as well.
            yield from (str(value), str(value).rpartition(" ")[2])
