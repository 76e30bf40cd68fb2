# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The files of entries that playbooks write and read: CSV, or JSON by their name."""

from __future__ import annotations

import json
import os
from pathlib import Path

from ...module_utils._errors import InvalidInput
from ...module_utils._http import strict_json
from ...module_utils._secrets import printable
from .layout import Layout
from .reading import read_csv
from .rows import why_unreadable
from .writing import csv_of


def require_new_file(file: str) -> None:
    """Raise InvalidInput for a file of another kind, or one that people may have filled in."""
    if not file.endswith((".csv", ".json")):
        raise InvalidInput("file", f"{printable(file)} must end in .csv or .json")
    if os.path.lexists(file) and (not os.path.isfile(file) or os.path.getsize(file)):
        why = "exists and is not empty, so it was not overwritten. Give another name, or remove it"
        raise InvalidInput("file", f"{printable(file)} {why}")


def write_entries(file: str, entries: list[dict[str, object]], delimiter: str) -> None:
    """Write entries to a new file with mode 0600, or to an empty one, which keeps its mode.

    Raise InvalidInput for any other.
    """
    require_new_file(file)
    text = _json_of(entries) if file.endswith(".json") else csv_of(entries, delimiter)
    try:
        descriptor = os.open(file, os.O_CREAT | os.O_WRONLY | os.O_NOFOLLOW, 0o600)
        with open(descriptor, "w", encoding="utf-8", newline="") as stream:
            stream.write(text)
    except OSError as error:
        why = f"{printable(file)} cannot be written: {error.strerror}"
        raise InvalidInput("file", why) from None


def _json_of(entries: list[dict[str, object]]) -> str:
    return json.dumps(entries, indent=4, ensure_ascii=False) + "\n"


def entries_in(file: str, delimiter: str = "") -> object:
    """Return the entries in a file, from JSON whatever it holds; raise InvalidInput.

    `delimiter`: empty to find it out.
    """
    try:
        content = Path(file).read_bytes()
    except OSError as error:
        raise InvalidInput("file", f"{printable(file)} cannot be read: {error.strerror}") from None
    if file.endswith(".json"):
        try:
            return strict_json.decode(content.decode(json.detect_encoding(content)))
        except ValueError as error:
            raise InvalidInput("file", f"{printable(file)} is not JSON ({error})") from None
    text = content.decode(errors="surrogateescape")
    problem = why_unreadable(text)
    if problem:
        raise InvalidInput("file", f"{printable(file)} {problem}")
    layout = Layout(delimiter)
    try:
        return read_csv(text, entries=True, layout=layout)
    except InvalidInput as error:  # it names the filter, which the user of a playbook never wrote
        raise InvalidInput("file", f"{printable(file)}: {error.problem}") from None
