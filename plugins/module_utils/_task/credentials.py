# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which options of a task hold credentials, and how an invocation shows them."""

from __future__ import annotations

import os
import re
from typing import Any, Iterable

from .. import _secrets
from .._http.proxies import named_in
from .._resources.words import WORDS
from .._secrets import Secrets
from . import options

_WITH_SCHEME = re.compile(r"[A-Za-z-]+ +([^\s,;]+)")  # the value of a header such as `Bearer abc`
_URLS = ("ledger", "base_url", "auth_url")
_MAY_HOLD_SECRETS = re.compile("[?@]|^postgres")  # a URL that does


def secrets_of(own: Iterable[str], params: dict) -> Secrets:
    """Return the secrets that the options hold, valid or not; `own`: the names of the module's own options."""
    secrets = Secrets([{name: params.get(name) for name in (*own, "base_url")}, WORDS])
    client, client_secret = _text(params.get("client_id")), _text(params.get("client_secret"))
    if client_secret:
        secrets.add(client_secret, _secrets.basic(client, client_secret) if client else ())
    given = [params.get("access_token")]
    for option in ("auth_parameters", "headers"):
        fields = params.get(option)
        named = fields.items() if isinstance(fields, dict) else [("secret", fields)]
        values = [_text(value) for name, value in named if _secrets.is_credential_name(str(name))]
        schemes = map(_WITH_SCHEME.fullmatch, values if option == "headers" else ())
        given += [*values, *(match[1] for match in schemes if match)]
    for credential in filter(None, map(_text, given)):
        secrets.add(credential)
    urls = [_text(params.get(option)) for option in _URLS]
    for credential in frozenset().union(*map(_secrets.password_in, urls), _secrets.values_in_query(urls[-1])):
        secrets.add(credential)
    proxies = () if params.get("use_proxy") is False else named_in(os.environ)[:2]
    for proxy in filter(None, proxies):
        user, passwords = _secrets.login_in(proxy.url)
        for password in passwords:
            secrets.add(password, _secrets.basic(user, password))
    return secrets


def _text(value: object) -> str:
    return str(value) if isinstance(value, (str, int, float)) and not isinstance(value, bool) else ""


def shown_options(params: dict, secrets: Secrets) -> dict:
    """Return the options as the invocation shows them."""
    shown = {name: _shown(name, value) for name, value in params.items()}
    return secrets.scrub({"invocation": shown})["invocation"]


def _shown(name: str, value: Any) -> Any:
    if value is None or name not in options.ARGUMENT_SPEC:
        return value
    if options.ARGUMENT_SPEC[name].get("no_log") or (name in _URLS and _MAY_HOLD_SECRETS.search(str(value))):
        return _secrets.HIDDEN
    if name == "headers" and isinstance(value, dict):
        return {key: _secrets.HIDDEN if _secrets.is_credential_name(key) else item for key, item in value.items()}
    return value
