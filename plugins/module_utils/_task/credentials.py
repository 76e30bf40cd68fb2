# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which options of a task hold credentials, and how an invocation shows them."""

from __future__ import annotations

import re
from typing import Any, Iterable, Iterator
from urllib.parse import unquote, unquote_plus

from .. import _secrets
from .._fields import Params
from .._http.urls import named_in_environment
from .._resources import WORDS
from .._secrets import Secrets
from . import options

# The value of a header such as `Bearer abc`.
_WITH_SCHEME = re.compile(r"[A-Za-z-]+ +([^\s,;]+)")
_LEDGERS = ("to", "ledger")  # URLs that may have a password
_URLS = (*_LEDGERS, "base_url", "to_base_url", "auth_url")
_MARKS_OF_SECRETS = re.compile("[?@]|^postgres")  # in a URL


def secrets_of(own: Iterable[str], params: Params) -> Secrets:
    """Return the secrets in options, valid or not; `own`: the names of the module's own options."""
    names = {*own, "base_url"} - {*_LEDGERS}
    public = [{name: params.get(name) for name in names}, WORDS]
    client = _text(params.get("client_id"))
    client_secret = _text(params.get("client_secret"))
    basic = _secrets.basic(client, client_secret) if client and client_secret else ()
    plain = {
        _text(params.get("access_token")),
        *_credentials_in_fields(params),
        *_credentials_in_urls(params),
    }
    found = [
        (client_secret, basic),
        *((credential, ()) for credential in plain),
        *_credentials_of_proxies(params),
    ]
    return Secrets(public, [(credential, derived) for credential, derived in found if credential])


def _credentials_in_fields(params: Params) -> Iterator[str]:
    """Yield the values of parameters and headers that are credentials.

    An option that is not a dict is one credential as a whole.
    """
    for option in ("auth_parameters", "headers"):
        fields = params.get(option) or {}
        named = fields.items() if isinstance(fields, dict) else [("secret", fields)]
        for name, value in named:
            if not _secrets.is_credential_name(str(name)):
                continue
            yield _text(value)
            after_scheme = _WITH_SCHEME.fullmatch(_text(value))
            if option == "headers" and after_scheme:
                yield after_scheme[1]


def _credentials_in_urls(params: Params) -> set[str]:
    """Return the passwords in URLs, and the values in the query of auth_url, also decoded."""
    urls = [_text(params.get(option)) for option in _URLS]
    query = _text(params.get("auth_url")).partition("?")[2]
    members = [member.partition("=") for member in query.split("&")]
    # A member without a value is one.
    values = {value or name for name, _sign, value in members}
    return {*_secrets.password_in(*urls), *values, *map(unquote_plus, values)}


def _credentials_of_proxies(params: Params) -> Iterator[tuple[str, set[str]]]:
    """Yield the password of each proxy, with the Basic credentials made of it."""
    urls = () if params.get("use_proxy") is False else named_in_environment()[:2]
    for url in filter(None, urls):
        user = unquote(url.partition("://")[2].partition(":")[0])
        for password in _secrets.password_in(url):
            yield password, _secrets.basic(user, password)


def _text(value: object) -> str:
    is_text = isinstance(value, (str, int, float)) and not isinstance(value, bool)
    return str(value) if is_text else ""


def shown_options(params: Params, secrets: Secrets) -> Params:
    """Return the options as the invocation shows them."""
    shown = {name: _option_shown(name, value) for name, value in params.items()}
    return secrets.scrub_data(shown)


def _option_shown(name: str, value: Any) -> Any:
    if value is None:
        return None
    is_secret = options.ARGUMENT_SPEC.get(name, {}).get("no_log")
    if is_secret or (name in _URLS and _may_hold_secrets(str(value))):
        return _secrets.HIDDEN
    if name == "headers" and isinstance(value, dict):
        return {
            key: _secrets.HIDDEN if _secrets.is_credential_name(key) else item
            for key, item in value.items()
        }
    return value


def _may_hold_secrets(url: str) -> bool:
    return bool(_MARKS_OF_SECRETS.search(url) or _secrets.password_in(url))
