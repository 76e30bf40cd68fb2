# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Secrets: the forms in which each can appear, and where each form is masked (SECURITY.md)."""

from __future__ import annotations

import base64
import json
import re
import threading
from functools import lru_cache
from typing import Any, Callable, Iterable, TypeVar
from urllib.parse import quote, quote_plus, unquote, unquote_plus

from ._errors import Message
from ._result import DATA, MASKING, NEVER, Json, Result

# The placeholders of ansible-core for a secret that is part of a text, and for one that is all of it.
PLACEHOLDER = "********"
HIDDEN = "VALUE_SPECIFIED_IN_NO_LOG_PARAMETER"
PLACEHOLDERS = (PLACEHOLDER, HIDDEN)
# Characters, from which on a credential is hardly a name or an id by chance.
SHORTEST = 8
# Characters, from which on one is hardly part of a longer word by chance.
_DISTINCT = 32

# Names of parameters and headers whose values are credentials (SECURITY.md): by a match anywhere in
# the name or by one of its words, unless the last word marks it as metadata: `subject_token_type`
# is only the type.
_CREDENTIAL = re.compile(
    r"passw|passphrase|passcode|secret|token|assertion|credential|apikey|privatekey"
    r"|authorization|cookie|signature|^(?:authorization|device)?code$"
    r"|(?<!idempotency)(?<!sort)(?<!partition)(?<!cache)(?<!surrogate)(?<!public)key$"
)
_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
_CREDENTIAL_WORD = re.compile(
    "auth|authentication|bearer|hmac|jwt|mfa|otp|totp|pin|pwd|saml|sas|session|sid|sig|verifier"
)
_METADATA_WORDS = {"type", "method", "version", "algorithm", "alg", "user", "username", "email"}
# json.dumps would make an encoder each time.
_json = json.JSONEncoder(ensure_ascii=False).encode
_WEAK = (
    f"A credential has fewer than {SHORTEST} characters, or is also part"
    " of a name, an id or another value of the task."
    " Only messages mask it, since masking it elsewhere would change"
    " those values. Use a long one that is unlike them."
)
_PASSWORD_OPTION = re.compile(
    r"(?:password|passwd|secret)\s*=\s*('(?:[^'\\]|\\.)*'|[^&\s]*)", re.IGNORECASE
)
_ESCAPE = re.compile("%[0-9A-F]{2}")
# Characters; identity providers describe errors in a few hundred.
_LONGEST_QUOTED = 1000


T = TypeVar("T")


@lru_cache  # all items of a loop have the same secrets
def forms(secret: str) -> frozenset[str]:
    """Return the secret verbatim, URL-quoted, JSON-escaped, as repr() and as messages show it."""
    as_repr = repr(secret)[1:-1]
    in_url = {
        quote(secret, "", errors="replace"),
        quote(secret, errors="replace"),
        quote_plus(secret, errors="replace"),
    }
    in_url |= {_ESCAPE.sub(lambda escape: escape[0].lower(), form) for form in in_url}
    in_json = {_in_json(secret), json.dumps(secret)[1:-1], json.dumps(as_repr)[1:-1]}
    # PHP escapes slashes, too.
    in_json |= {form.replace("/", r"\/") for form in in_json}
    return frozenset({secret, as_repr, printable(secret), *in_url, *in_json} - {""})


def is_credential_name(name: str) -> bool:
    """Return whether the value of a parameter or header with this name is a credential."""
    words = [word.lower() for word in _WORD.findall(name)]
    says_so = _CREDENTIAL.search("".join(words)) or any(map(_CREDENTIAL_WORD.fullmatch, words))
    return bool(says_so) and words[-1] not in _METADATA_WORDS


def basic(user: str, password: str) -> set[str]:
    """Return the Basic credentials (RFC 7617), with and without their padding.

    They are made from both verbatim and form-encoded first (RFC 6749 section 2.3.1).
    """
    pairs = (
        f"{user}:{password}",
        f"{quote_plus(user, errors='replace')}:{quote_plus(password, errors='replace')}",
    )
    encoded = {base64.b64encode(pair.encode("utf-8", "replace")).decode("ascii") for pair in pairs}
    return encoded | {text.rstrip("=") for text in encoded}


def password_in(*urls: str) -> set[str]:
    """Return the passwords in URLs, or in libpq's other form, as they are written and decoded.

    A password that is not percent-encoded may contain any of `/ @ # ?`, so it may end at the first
    or the last `@`.
    """
    found = []
    for url in urls:
        found += [text.strip("'") for text in _PASSWORD_OPTION.findall(url)]
        rest = url.partition("://")[2]
        before = rest.rpartition("@")[0]
        if ":" in before:
            found += [before.partition(":")[2], rest.partition("@")[0].partition(":")[2]]
    return {*found, *map(unquote, found), *map(unquote_plus, found)} - {""}


def printable(text: str) -> str:
    """Return the text with a space for each unprintable character."""
    return "".join(letter if letter.isprintable() else " " for letter in text)


def for_message(text: str) -> str:
    """Return text from a server for a message; never cut, since half a secret is not found."""
    return printable(text) if len(text) <= _LONGEST_QUOTED else "(too long to be shown)"


class Secrets:
    """The credentials of one task, with every form in which they can appear.

    A credential of at least SHORTEST characters is masked everywhere. Two kinds are masked in
    messages only, and only as whole words, because masking them in data would corrupt names, ids
    and bodies: a shorter one, and one that has a form which is part of the public values (a whole
    word of them, from _DISTINCT characters on).
    """

    def __init__(
        self, public: object = None, credentials: Iterable[tuple[str, Iterable[str]]] = ()
    ) -> None:
        """`public`: options that are not secret, and the words of the interface.

        `credentials`: the arguments for `mask`.
        """
        self._public = _json(public)
        self._everywhere: set[str] = set()
        self._in_messages: set[str] = set()
        self._known: set[str] = set()
        self._one_at_a_time = threading.Lock()
        for credential, derived in credentials:
            self.mask(credential, derived)

    def mask(self, credential: str, derived: Iterable[str] = ()) -> None:
        """Mask a credential from now on, in any thread.

        `derived`: values made of it, which are never names.
        """
        if credential in self._known and not derived:
            return
        # New sets, and only then known: another thread may be reading.
        with self._one_at_a_time:
            shown = forms(credential)
            if self._may_alter_data(credential, shown):
                self._in_messages = self._in_messages | shown
            else:
                self._everywhere = self._everywhere | shown
            self._everywhere = self._everywhere | set(derived)
            self._known.add(credential)

    def _may_alter_data(self, credential: str, shown: frozenset[str]) -> bool:
        """Whether masking a credential everywhere could change names, ids or bodies."""
        if len(credential) < SHORTEST:
            return True
        # A URL quotes the id.
        written = frozenset(map(_in_json, shown | {unquote(credential)}))
        if not any(form in self._public for form in written):
            return False
        return len(credential) < _DISTINCT or bool(_words(written).search(self._public))

    def warnings(self) -> list[str]:
        """Return a warning if a credential cannot be masked everywhere."""
        return [_WEAK] if self._in_messages else []

    def scrub(self, result: Result) -> Result:
        """Return a task's result with the credentials masked."""
        values = {key: it for key, it in result.present().items() if MASKING[key] != NEVER}
        if result.more:
            values["more"] = result.more
        if not _mentions(values.values(), self._everywhere | self._in_messages):
            return result
        return result.but(**{key: self._scrubbed(key, it) for key, it in values.items()})

    def _scrubbed(self, key: str, value: object) -> Any:
        if MASKING.get(key) == DATA:
            return _each(value, self._masked)
        return self.scrub_message(value)

    def scrub_data(self, value: T) -> T:
        """Return data, such as a body, with masked credentials, except those that may be names."""
        return _each(value, self._masked) if _mentions([value], self._everywhere) else value

    def recordable(self, data: Json) -> dict[str, Any]:
        """Return data for a ledger: members that would be masked, or are already, are left out."""
        recorded: dict[str, Any] = without_placeholders(self.scrub_data(data))
        return recorded

    def scrub_message(self, value: Any) -> Any:
        """Return text for people, also within lists and dicts, with all credentials masked."""
        words = _words(frozenset(self._in_messages))

        def masked(part: object) -> object:
            part = self._masked(part)
            return words.sub(PLACEHOLDER, part) if isinstance(part, str) else part

        return _each(value, masked)

    def _masked(self, part: object) -> object:
        """Return a text or number masked as ansible-core's function does (deprecated in 2.22)."""
        is_maskable = isinstance(part, (str, int, float)) and not isinstance(part, bool)
        if not self._everywhere or not is_maskable:
            return part
        text = masked = str(part)
        for secret in sorted(self._everywhere, key=len, reverse=True):
            masked = masked.replace(secret, PLACEHOLDER)
        if masked == text:
            return part
        is_whole = text in self._everywhere or not isinstance(part, str)
        return HIDDEN if is_whole else masked


def holds_placeholder(value: object) -> bool:
    """Whether the value, a text or any JSON value, contains a placeholder for a secret."""
    text = _json(value)
    return any(placeholder in text for placeholder in PLACEHOLDERS)


def without_placeholders(value: object) -> Any:
    """Return the value without the dict members, dicts apart, that contain a placeholder."""
    if not isinstance(value, dict) or not holds_placeholder(value):
        return value
    kept = {}
    for key, item in value.items():
        is_known = isinstance(item, dict) or not holds_placeholder(item)
        if is_known and not holds_placeholder(key):
            kept[key] = without_placeholders(item)
    return kept


def _each(value: object, mask: Callable[[object], object]) -> Any:
    """Return the value with each key, string and number masked; core would skip some keys."""
    if isinstance(value, dict):
        return {_each(key, mask): _each(item, mask) for key, item in value.items()}
    if isinstance(value, Message):
        return Message(*(_each(item, mask) for item in value))
    if isinstance(value, (list, tuple)):
        return type(value)(_each(item, mask) for item in value)
    return mask(value)


@lru_cache(maxsize=16)
def _words(secrets: frozenset[str]) -> re.Pattern[str]:
    """Return a pattern that matches any of the secrets as a whole word."""
    if not secrets:
        return re.compile("(?!)")  # matches nothing
    longest_first = sorted(map(re.escape, secrets), key=len, reverse=True)
    return re.compile(rf"(?<!\w)(?:{'|'.join(longest_first)})(?!\w)")


def _mentions(values: Iterable[object], secrets: set[str]) -> bool:
    """Whether any secret occurs in the JSON of the values, which escapes letter by letter."""
    written = [_in_json(secret) for secret in secrets]
    # One at a time: several hold the same answer, which may be large.
    for value in values:
        text = _json(value)
        if any(secret in text for secret in written):
            return True
    return False


@lru_cache(maxsize=1024)
def _in_json(text: str) -> str:
    return _json(text)[1:-1]
