# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Secrets: where one is found, however it is escaped, and how it is masked (docs/SECURITY.md)."""

from __future__ import annotations

import base64
import html
import json
import re
import unicodedata
from functools import lru_cache
from typing import Any, Iterable, Iterator, Match, TypeVar, cast
from urllib.parse import quote_plus, unquote, unquote_plus

from ._errors import Message
from ._result import Json, Result

# The placeholders of ansible-core: for a secret that is part of a text, for one that is all of it,
# and, until ansible-core 2.18, for `omit` within a text.
PLACEHOLDER = "********"
PLACEHOLDERS = (PLACEHOLDER, "VALUE_SPECIFIED_IN_NO_LOG_PARAMETER", "__omit_place_holder__")
# Characters; masking a shorter credential would change text that only looks like it.
SHORTEST = 8

T = TypeVar("T")

# Names of parameters and headers whose values are credentials (docs/SECURITY.md), in lower case with a
# hyphen between words: by a match anywhere, by a word or by the end.
_CREDENTIAL = re.compile(
    "pass-?w|pass-?phrase|pass-?code|secret|token|assertion|credential|api-?key|private-?key"
    "|authorization|cookie|signature"
    "|(^|-)(auth|authentication|bearer|hmac|jwt|mfa|otp|totp|pin|pwd|saml|sas|session|sid|sig"
    "|verifier)(-|$)|^((authorization|device)-)?code$"
    "|(?<!idempotency-)(?<!public-)key$"
)
_WORD = re.compile("[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
# A last word that marks the value as metadata: `subject_token_type` is only the type.
_METADATA = re.compile("(^|-)(type|method|version|algorithm|alg|user|username|email|attrs)$")
_SHORT = (
    f"A credential has fewer than {SHORTEST} characters, so it is not masked in results, messages"
    " and reports. Use a longer one."
)
_HIDDEN_BODY = "(hidden, because it contains a credential)"
_PASSWORD_OPTION = re.compile(r"(?:password|passwd|secret)=([^&\s]+)", re.IGNORECASE)
_BACKSLASH = re.compile(r"\\(?:u([0-9a-fA-F]{4})|x([0-9a-fA-F]{2})|(.))")
_CONTROLS = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}
_ROUNDS = 4  # of undoing escapes: a gateway may quote an answer that quotes another one
# Characters of a server's text; identity providers describe errors in a few hundred.
_LONGEST_QUOTED = 1000


def is_credential_name(name: str) -> bool:
    """Return whether the value of a parameter or header with this name is a credential."""
    words = "-".join(_WORD.findall(name)).lower()
    return bool(_CREDENTIAL.search(words)) and not _METADATA.search(words)


def basic(user: str, password: str) -> set[str]:
    """Return the Basic credentials (RFC 7617), without their padding; none without both.

    They are made from both verbatim and form-encoded first (RFC 6749 section 2.3.1).
    """
    pairs = (
        f"{user}:{password}",
        f"{quote_plus(user, errors='replace')}:{quote_plus(password, errors='replace')}",
    )
    return {
        base64.b64encode(pair.encode("utf-8", "replace")).decode("ascii").rstrip("=")
        for pair in pairs
        if user and password
    }


def credentials_in_url(url: str) -> set[str]:
    """Return the passwords in a URL, as they are written and decoded, and their Basic credentials.

    A password that is not percent-encoded may contain any of `/ @ # ?`, so it may end at the first
    or the last `@`.
    """
    rest = url.partition("://")[2]
    user, _colon, password = rest.rpartition("@")[0].partition(":")
    found = [password, password.partition("@")[0], *_PASSWORD_OPTION.findall(url)]
    passwords = {*found, *map(unquote, found), *map(unquote_plus, found)} - {""}
    return passwords.union(*(basic(unquote(user), each) for each in passwords))


def printable(text: str) -> str:
    """Return the text with a space for each control character and blank, and other characters that
    cannot be seen escaped, since a name may differ from another one in nothing else.
    """
    return "".join(letter if letter.isprintable() else _escaped(letter) for letter in text)


@lru_cache  # a text of 4 MiB may be nothing else
def _escaped(letter: str) -> str:
    is_blank = letter.isspace() or unicodedata.category(letter) == "Cc"
    return " " if is_blank else letter.encode("unicode_escape").decode()


def for_message(text: str) -> str:
    """Return text from a server for a message; never cut, since half a secret is not found."""
    return printable(text) if len(text) <= _LONGEST_QUOTED else "(too long to be shown)"


class Secrets:
    """The credentials of one task: each is masked wherever it occurs, however it is escaped.

    Options with a credential in them are refused, so masking never changes a name, an id or a body.
    """

    def __init__(self, credentials: Iterable[str] = ()) -> None:
        self._has_short = False
        # Each as it is, and with its escapes undone; threads only append.
        self._credentials: list[tuple[str, str]] = []
        for credential in credentials:
            self.mask(credential)

    def mask(self, credential: str) -> None:
        """Mask a credential from now on, in any thread."""
        if len(credential) < SHORTEST:
            self._has_short |= bool(credential)
            return
        for shown in (credential, printable(credential)):
            *_stages, plain = _unescaped(shown)
            pair = shown, plain if len(plain) >= SHORTEST else shown
            if pair not in self._credentials:
                self._credentials.append(pair)

    def warnings(self) -> list[str]:
        """Return a warning if a credential is not masked."""
        return [_SHORT] if self._has_short else []

    def scrub(self, value: T) -> T:
        """Return a result, a message or any JSON value, with keys and values masked.

        A word in which a credential is escaped is masked as a whole.
        """
        shown: Any = value
        if isinstance(value, Result):
            shown = self._scrubbed(value)
        elif self.is_in(value):
            shown = self._masked(value)
        return cast(T, shown)

    def is_in(self, value: object) -> bool:
        """Return whether a text or the JSON of a value contains a credential, also an escaped one."""
        text = value if isinstance(value, str) else _json(value)
        return _is_any_in(text, self._credentials)

    def recordable(self, data: Json) -> dict[str, Any]:
        """Return data for a ledger: members that would be masked, or are already, are left out."""
        recorded: dict[str, Any] = without_placeholders(self.scrub(data))
        return recorded

    def _scrubbed(self, result: Result) -> Result:
        body = result.error_body
        if body and self.is_in(body):
            body = _HIDDEN_BODY
        values = {**result.present(), "more": result.more, "error_body": body}
        shown = dict(zip(values, self.scrub([*values.values()])))
        # These two are words of our own.
        shown.update(outcome=result.outcome, plan=result.plan)
        # Cut after masking, since half a credential cannot be found.
        return result.but(**{**shown, "error_body": body and body[:_LONGEST_QUOTED]})

    def _masked(self, value: Any) -> Any:
        """Return the value with each key, string and number masked; core would skip some keys."""
        if isinstance(value, dict):
            return {self._masked(key): self._masked(item) for key, item in value.items()}
        if isinstance(value, Message):
            return Message(*map(self._masked, value))
        if isinstance(value, (list, tuple)):
            return type(value)(map(self._masked, value))
        if isinstance(value, str):
            # The longest first: a shorter one may be a part of it.
            for pair in sorted(self._credentials, key=lambda pair: -len(pair[0])):
                words = value.replace(pair[0], PLACEHOLDER).split(" ")
                masked = (PLACEHOLDER if _is_any_in(word, [pair]) else word for word in words)
                value = " ".join(masked)
        return PLACEHOLDER if self.is_in(value) else value


def holds_placeholder(value: object) -> bool:
    """Whether the value, a text or any JSON value, contains a placeholder for a secret."""
    text = _json(value)
    return any(placeholder in text for placeholder in PLACEHOLDERS)


def without_placeholders(value: object) -> Any:
    """Return the value without the dict members, dicts apart, that contain a placeholder."""
    if not isinstance(value, dict) or not holds_placeholder(value):
        return value
    return {
        key: without_placeholders(item)
        for key, item in value.items()
        if not holds_placeholder(key if isinstance(item, dict) else [key, item])
    }


def _is_any_in(text: str, credentials: list[tuple[str, str]]) -> bool:
    return any(
        shown in stage or plain in stage
        for stage in _unescaped(text)
        for shown, plain in credentials
    )


def _unescaped(text: str) -> Iterator[str]:
    """Yield the text, and what is left of it each time that escapes of one kind are undone."""
    yield text
    for _round in range(_ROUNDS):
        whole = text
        for undo in (_without_backslashes, html.unescape, unquote_plus):
            before, text = text, undo(text)
            if text != before:
                yield text
        if text == whole:
            return


def _without_backslashes(text: str) -> str:
    if "\\" not in text:
        return text

    def character(escape: Match[str]) -> str:
        code = escape[1] or escape[2]
        return chr(int(code, 16)) if code else _CONTROLS.get(escape[3], escape[3])

    text = _BACKSLASH.sub(character, text)
    # JSON escapes a letter beyond U+FFFF as two.
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


# json.dumps would make an encoder each time. `default` is for warnings of ansible-core.
_json = json.JSONEncoder(ensure_ascii=False, default=str).encode
