# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a name or an id is, for whoever creates, adopts, settles or lists an asset."""

from __future__ import annotations

import re
import unicodedata

from .._errors import InvalidInput
from .._result import Json
from .._secrets import holds_placeholder

_LONGEST = 255  # characters; PostgreSQL has no index for a key of more than 2,704 bytes
_CONTROL = re.compile("[\0-\x1f\x7f-\x9f\ud800-\udfff]")  # C0, C1 and lone surrogates
# Printable for Python, and yet without a mark: Default_Ignorable_Code_Point of Unicode, and the
# blank pattern of Braille.
_INVISIBLE = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\u3164\ufe00-\ufe0f\uffa0"
    "\U000e0100-\U000e01ef]"
)


def require_name(option: str, name: str, is_new: bool = False) -> None:
    """Raise InvalidInput for a text that is no name or id.

    `is_new`: whether an asset gets this name, so that it has to look like no other one. An id, and
    the name of what exists, is what the service shows.
    """
    if name.strip() in ("", ".", ".."):  # the dots are no segment of a path, also percent-encoded
        raise InvalidInput(option, "must not be empty, . or ..")
    if len(name) > _LONGEST:
        raise InvalidInput(option, f"has {len(name):,} characters; {_LONGEST} is the most")
    if _CONTROL.search(name):
        raise InvalidInput(option, f"has a control character: {name!a}")
    require_filled_in(option, name)
    is_clear = name.isprintable() and name == name.strip() and not _INVISIBLE.search(name)
    if is_new and not (is_clear and unicodedata.is_normalized("NFC", name)):
        raise InvalidInput(
            option,
            f"{name!a} looks like another name. Take out blanks at its ends and characters that"
            " cannot be seen, and compose letters and their accents (Unicode NFC); or, if a machine"
            " of exactly this name exists, give its id as well",
        )


def require_names(name: str, identifier: str | None) -> None:
    """Raise InvalidInput for the name of a machine, or for its id if it exists."""
    require_name("name", name, is_new=identifier is None)
    if identifier is not None:
        require_name("id", identifier)


def require_filled_in(option: str, value: object) -> None:
    """Raise InvalidInput for a JSON value in which a template left a placeholder."""
    if holds_placeholder(value):
        raise InvalidInput(
            option,
            "contains a mask of a secret or the placeholder of omit, so it is not the real value",
        )


def is_name(value: object) -> bool:
    """Return whether a value is a text that can be the name or the id of what exists."""
    try:
        require_name("", value if isinstance(value, str) else "")
    except InvalidInput:
        return False
    return True


def id_of(asset: Json) -> str:
    """Return the id of an asset as text, since a service may show a number; '' if it has none."""
    identifier = asset.get("id")
    if isinstance(identifier, int) and not isinstance(identifier, bool):
        identifier = str(identifier)
    return str(identifier) if is_name(identifier) else ""
