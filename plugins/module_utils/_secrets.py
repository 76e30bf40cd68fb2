# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The forms in which a secret may come back, all of which are scrubbed."""

from __future__ import annotations

import base64
import json
import re
from functools import lru_cache
from urllib.parse import quote, quote_plus, unquote, unquote_plus

from ansible.module_utils.common.parameters import remove_values

_PASSWORD_OPTION = re.compile(r"(?:password|passwd|secret)\s*=\s*('(?:[^'\\]|\\.)*'|[^&\s]*)", re.IGNORECASE)
_LONGEST_RETOLD = 1000  # letters; what identity providers say of an error has some hundred


@lru_cache  # the same ones over all items of a loop
def forms(secret: str) -> frozenset[str]:
    """Return the secret as it is, URL-quoted, JSON-escaped, as Python shows it and as messages do; none if empty."""
    shown = {
        secret,
        quote(secret, "", errors="replace"),
        quote(secret, errors="replace"),
        quote_plus(secret, errors="replace"),
    }
    shown |= {repr(secret)[1:-1], printable(secret)}
    shown |= {json.dumps(form)[1:-1] for form in (secret, repr(secret)[1:-1])}
    shown |= {_in_json(secret)}
    return frozenset(shown - {""})


def basic(user: str, password: str) -> set[str]:
    """Return the Basic credentials (RFC 7617) of both, as they are and form-encoded first (RFC 6749 section 2.3.1)."""
    pairs = f"{user}:{password}", f"{quote_plus(user, errors='replace')}:{quote_plus(password, errors='replace')}"
    return {base64.b64encode(pair.encode("utf-8", "replace")).decode("ascii") for pair in pairs}


def password_in(url: str) -> frozenset[str]:
    """Return every form of the passwords in the location of a ledger: a URL, or what libpq would take for one.

    A password that is not percent-encoded may hold any of `/ @ # ?`: it ends at the last `@` at the latest.
    """
    found = _PASSWORD_OPTION.findall(url)
    _scheme, _slashes, rest = url.partition("://")
    before, is_user_info, _host = rest.rpartition("@")
    if is_user_info and ":" in before:
        found += [before.partition(":")[2], rest.partition("@")[0].partition(":")[2]]
    written = [text.strip("'") for text in found]
    return frozenset(
        form for text in written for form in forms(text) | forms(unquote(text)) | forms(unquote_plus(text))
    )


def printable(said: str) -> str:
    """Return a text without what a terminal would not show."""
    return "".join(letter if letter.isprintable() else " " for letter in said)


def retold(said: str) -> str:
    """Return what the other side said, fit for a message: all of it or nothing, as half a secret is no known form."""
    return printable(said) if len(said) <= _LONGEST_RETOLD else "(too long to be shown)"


def scrub(result: dict, secrets: set[str]) -> dict:
    """Return the result without any of the secrets, in its values and in the keys below its own."""
    if not _mentions(result, secrets):
        return result
    return {key: _without_keys(value, secrets) for key, value in remove_values(result, secrets).items()}


def _mentions(result: dict, secrets: set[str]) -> bool:
    """Whether a secret stands anywhere: JSON escapes letter by letter, so it stands in the text as in the values."""
    text = json.dumps(result, ensure_ascii=False)
    return any(_in_json(secret) in text for secret in secrets)


@lru_cache(maxsize=1024)
def _in_json(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)[1:-1]


def _without_keys(value: object, secrets: set[str]) -> object:
    """Return the value with its keys scrubbed, also those that ansible-core's sanitize_keys spares (`_ansible...`)."""
    if isinstance(value, dict):
        return {remove_values(key, secrets): _without_keys(item, secrets) for key, item in value.items()}
    return [_without_keys(item, secrets) for item in value] if isinstance(value, list) else value
