# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Write entries of the ledger as CSV text, for people to fill in.

A cell is the text of a value, or its JSON where a spreadsheet would change the text.
"""

from __future__ import annotations

import csv
import io
import json
import re
from typing import Dict, Iterable, Mapping

from ...module_utils._errors import InvalidInput
from ...module_utils._fields import dotted, leaves
from ...module_utils._resources import KEYS, RESOURCES
from ...module_utils._resources.planning import ENVELOPE
from ...module_utils._secrets import printable
from .layout import require_delimiter

_FIRST = ("name", "id", "state", "since", "address", "base_url", "resource", "by")
_NEEDED = ("resource", "sent", "asset", "changed_at")  # of an entry
# A cell that begins with one of these is a formula to a spreadsheet, or JSON to `cells`.
_FORMULA = ("=", "+", "-", "@", '"')
_MONTH = "jan|feb|m[aä]r|apr|ma[iy]|jun|jul|aug|sep|o[ck]t|nov|de[cz]"
# Text that a spreadsheet takes for something else, whatever its language, and writes differently.
_CHANGED = [
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        # 0012 becomes 12.
        r"0\d+|\d{16,}",
        # 12.10 becomes 12.1, 1E5 100000.
        r"[+-]?(\d+[.,'\s])*\d+([.,]\d*)?(e[+-]?\d+)?\s*%?",
        # 1-2 becomes a date, a date-time too.
        r"\d{1,4}([-/.]\d{1,4}){1,2}(t[\d:.]+z?)?",
        # 1:30 becomes a time.
        r"\d{1,4}(:\d{1,2}){1,2}(\.\d+)?(\s*[ap]m)?",
        r"true|false|wahr|falsch|vrai|faux|verdadero|falso",
        # MAR1 becomes a date.
        rf"(\d{{1,2}}[-. ]*)?({_MONTH})[a-z]*[-. ]*\d{{0,4}}",
    )
]
_WHOLE_NUMBER = re.compile(r"-?(0|[1-9]\d{0,14})")
_IP_ADDRESS = re.compile(r"\d{1,3}(\.\d{1,3}){3}")

Entry = Mapping[str, object]  # as ledger_info returns it
Cells = Dict[str, str]  # by the names of columns


def csv_of(entries: Iterable[object], delimiter: str = ",") -> str:
    """Return entries, as ledger_info returns them, as CSV; raise InvalidInput for anything else."""
    require_delimiter(delimiter)
    rows = [_cells(_checked(number, entry), delimiter) for number, entry in enumerate(entries)]
    columns = dict.fromkeys(_FIRST)
    for row in rows:
        columns.update(dict.fromkeys(row))
    columns.pop("asset", None)
    file = io.StringIO()
    writer = csv.DictWriter(file, [*columns, "asset"], delimiter=delimiter, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return file.getvalue()


def _checked(number: int, entry: object) -> Entry:
    """Return an entry as ledger_info returns it; raise InvalidInput for anything else."""
    if not isinstance(entry, Mapping):
        raise _no_entry(number, "it is no dict")
    lacking = [name for name in _NEEDED if name not in entry]
    if lacking:
        raise _no_entry(number, f"it lacks {', '.join(lacking)}")
    resource = entry["resource"]
    if resource not in [*RESOURCES]:
        shown = printable(str(resource))
        problem = f"the resource {shown} is none; there are {', '.join(RESOURCES)}"
        name = printable(str(entry.get("name") or entry.get("id")))
        raise InvalidInput("to_csv", f"[{number}] ({name}): {problem}")
    return entry


def _no_entry(number: int, problem: str) -> InvalidInput:
    return InvalidInput("to_csv", f"[{number}] is no entry as ledger_info returns it: {problem}")


def _cells(entry: Entry, delimiter: str) -> Cells:
    """Return the cells of an entry; `asset` is the whole envelope as JSON."""
    resource = str(entry["resource"])
    sent = _dict(entry["sent"])
    asset = _dict(entry["asset"])
    # An update may have sent a part of what is there.
    body = asset if asset and KEYS[resource] == "id" else sent
    attributes = _dict(body.get("attributes"))
    typed = RESOURCES[resource].attributes
    extra = {name: value for name, value in attributes.items() if name not in typed}
    values: dict[str, object] = {name: body.get(name) for name in ENVELOPE}
    values.update(entry)
    values.update(
        id=entry.get("id", asset.get("id")),
        since=entry["changed_at"],
        address=_dict(asset.get("attributes")).get("ip"),
        attributes=None,
    )
    cells = {}
    for name in (*_FIRST, *ENVELOPE):
        if values.get(name) is not None:
            cells[name] = _cell(values[name], delimiter)
    for path, value in leaves({name: attributes[name] for name in attributes if name in typed}):
        name = dotted(path)
        if value is not None and path:
            cells[f"attributes.{name}" if name in ENVELOPE else name] = _cell(value, delimiter)
    cells["extra_attributes"] = _json(extra) if extra else ""
    cells["asset"] = _json(asset) if asset else ""
    return cells


def _dict(value: object) -> dict[str, object]:
    return value if isinstance(value, dict) else {}


def _cell(value: object, delimiter: str) -> str:
    """Return a value as the text of a cell."""
    # 1.5 becomes a date where 1,5 is a number.
    if isinstance(value, float) and delimiter != ",":
        value = str(value)
    if isinstance(value, str) and _is_kept_by_spreadsheets(value):
        return value
    return _json(value)


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)


def _is_kept_by_spreadsheets(text: str) -> bool:
    """Return whether a spreadsheet saves a cell as it was."""
    if text == "" or text != text.strip() or not text.isprintable() or text.startswith(_FORMULA):
        return False
    if _WHOLE_NUMBER.fullmatch(text) or _IP_ADDRESS.fullmatch(text):
        return True
    return not any(changed.fullmatch(text) for changed in _CHANGED)
