# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Values and texts as the screen and the files show them."""

from __future__ import annotations

import json
import textwrap

from ...module_utils._secrets import printable

_MAX_SHOWN = 60  # characters of a value


def shown(value: object) -> str:
    """Return a value as text, shortened if it is long."""
    return shortened(text(value), _MAX_SHOWN)


def text(value: object) -> str:
    """Return a value as text: the members of a list or dict without brackets."""
    if value in (None, "", [], {}):
        return "none"
    if isinstance(value, dict):
        return _members(value)
    if isinstance(value, list):
        return ", ".join(map(text, value))
    if not isinstance(value, str):
        return json.dumps(value)
    return f'"{value}"' if "," in value or value != value.strip() else value


def _members(value: dict[str, object]) -> str:
    if not any(isinstance(item, (bool, dict, list)) for item in value.values()):
        return " ".join(map(text, value.values()))
    return " ".join(f"{name} {text(item)}" for name, item in value.items())


def shortened(line: str, width: int) -> str:
    """Return a printable line, with an ellipsis at its end if it is longer than `width`."""
    return printable(line) if len(line) <= width else f"{printable(line[: width - 3])}..."


def wrapped(text: str, width: int) -> list[str]:
    """Return a text as printable lines; a word that is longer than `width` stays whole."""
    width = max(width, 20)
    return textwrap.wrap(printable(text), width, break_long_words=False, break_on_hyphens=False)
