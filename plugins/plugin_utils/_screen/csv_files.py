# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""CSV files of assets (RFC 4180): what a ledger has, for people to fill in, and lists in the types
of the resource.

A column is named for the option that it holds, at any depth: `cpu`, `subnet.mask`,
`volumes[0].size_gb`. A cell is what the option holds as text; as JSON where it is a list or a dict,
or where a spreadsheet would not keep it as it is.
"""

from __future__ import annotations

import csv
import io
import json
import os
import re
from pathlib import Path
from typing import Any, Iterator, Mapping, NamedTuple

from ...module_utils._errors import MAX_FAULTS, InvalidInput, listing
from ...module_utils._fields import DATE_TIME, dotted, leaves
from ...module_utils._resources import KEYS, RESOURCES
from ...module_utils._resources.flow import ENVELOPE
from ...module_utils._secrets import printable
from ...module_utils._task.validation import converted, nearest
from .._ledger.entries import ABSENT, DONE, PRESENT, STATES

_FIRST = (
    "name",
    "id",
    "state",
    "since",
    "address",
    "base_url",
    "resource",
    "by",
)  # of what is written
_OF_ENTRY = ("state", "base_url", "resource", "asset")
_NEEDED = ("resource", "sent", "asset", "changed_at")  # of an entry that is written
_UNREAD = ("address", "by")  # what an entry has, too
_JSON = {"asset": dict(type="dict"), "extra_attributes": dict(type="dict")}
_SINCE = dict(type=DATE_TIME)  # when the entry changed that the row is about
_STEP = re.compile(r"\.?([A-Za-z_]\w*)|\[(\d{1,6})\]")
_LINE_END = re.compile(r"[\r\n]")
_FORMULA = ("=", "+", "-", "@", '"')  # a cell that begins so is one to a spreadsheet, or JSON to us
# Text that a spreadsheet reads as something else and then writes differently, whatever its
# language.
_CHANGED_BY_SPREADSHEETS = (
    re.compile(r"0\d+|\d{16,}"),  # 0012 becomes 12
    re.compile(
        r"[+-]?(\d+[.,'\s])*\d+([.,]\d*)?(e[+-]?\d+)?\s*%?", re.IGNORECASE
    ),  # 12.10 becomes 12.1, 1E5 100000
    re.compile(r"\d{1,4}([-/.]\d{1,4}){1,2}"),  # 1-2 and 1/2/26 become dates
    re.compile(r"\d{1,4}(:\d{1,2}){1,2}(\.\d+)?(\s*[ap]m)?", re.IGNORECASE),  # 1:30 becomes a time
    re.compile(r"true|false|wahr|falsch|vrai|faux|verdadero|falso", re.IGNORECASE),
    re.compile(
        r"(\d{1,2}[-. ]*)?(jan|feb|m[aä]r|apr|ma[iy]|jun|jul|aug|sep|o[ck]t|nov|de[cz])[a-z]*[-. ]*\d{0,4}",
        re.IGNORECASE,
    ),
)
_WHOLE_NUMBER = re.compile(r"-?(0|[1-9]\d{0,14})")
_IP_ADDRESS = re.compile(r"\d{1,3}(\.\d{1,3}){3}")
_DOUBTFUL = {*STATES} - {DONE}
csv.field_size_limit(1 << 24)  # characters


class Column(NamedTuple):
    """A column of a file that is read."""

    name: str
    path: tuple[
        str | int, ...
    ]  # where the value belongs: names of options, places in lists; empty: another resource's
    option: dict  # its argument spec


def written(entries: list[dict]) -> str:
    """Return entries, as ledger_info returns them, as CSV; `asset` is the whole envelope as JSON.

    Raises InvalidInput for anything else.
    """
    for number, entry in enumerate(entries):
        _require_entry(number, entry)
    rows = [dict(_cells(entry)) for entry in entries]
    columns = [
        *dict.fromkeys((*_FIRST, *(name for row in rows for name in row if name != "asset"))),
        "asset",
    ]
    file = io.StringIO()
    writer = csv.DictWriter(file, columns, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return file.getvalue()


def _require_entry(number: int, entry: Any) -> None:
    """Raise InvalidInput for what is no entry as ledger_info returns it."""
    is_dict = isinstance(entry, dict)
    lacking = [name for name in _NEEDED if name not in entry] if is_dict else []
    if not is_dict or lacking:
        problem = f"it lacks {', '.join(lacking)}" if lacking else "it is no dict"
        raise InvalidInput("to_csv", f"[{number}] is no entry as ledger_info returns it: {problem}")
    if entry["resource"] not in [*RESOURCES]:
        name = entry.get("name") or entry.get("id")
        problem = f"the resource {printable(str(entry['resource']))} is none; there are {', '.join(RESOURCES)}"
        raise InvalidInput("to_csv", printable(f"[{number}] ({name}): {problem}"))


def _cells(entry: dict) -> Iterator[tuple[str, str]]:
    sent, asset, key = entry["sent"], entry["asset"] or {}, KEYS.get(entry["resource"], "name")
    typed = RESOURCES[entry["resource"]].attributes
    body = (
        sent if key == "name" or not asset else asset
    )  # an update may send a part of what is there
    attributes = body.get("attributes") or {}
    extra = {name: value for name, value in attributes.items() if name not in typed}
    address = (asset.get("attributes") or {}).get("ip")
    told = {
        **body,
        "id": asset.get("id"),
        **entry,
        "since": entry["changed_at"],
        "address": address,
    }
    for name, value in told.items():
        if value is not None and (name in _FIRST or (name in ENVELOPE and name != "attributes")):
            yield name, _cell(value)
    for path, value in leaves({name: value for name, value in attributes.items() if name in typed}):
        if value is not None and path:
            name = dotted(path)
            yield (f"attributes.{name}" if name in ENVELOPE else name), _cell(value)
    yield "extra_attributes", json.dumps(extra, ensure_ascii=False) if extra else ""
    yield "asset", json.dumps(asset, ensure_ascii=False) if asset else ""


def _cell(value: Any) -> str:
    """Return a value as the text of a cell: as it is where a spreadsheet keeps that, else as JSON."""
    if isinstance(value, str) and _is_kept_by_spreadsheets(value):
        return value
    return json.dumps(value, ensure_ascii=False)


def _is_kept_by_spreadsheets(text: str) -> bool:
    if not text.isprintable() or text != text.strip() or text == "" or text.startswith(_FORMULA):
        return False
    if _WHOLE_NUMBER.fullmatch(text) or _IP_ADDRESS.fullmatch(text):
        return True
    return not any(changed.fullmatch(text) for changed in _CHANGED_BY_SPREADSHEETS)


def read(
    text: str, entries: bool = False, resource: str = "compute_virtual_machine", delimiter: str = ""
) -> list[dict]:
    """Return the items of a plural module or the entries of ledger_entries; raise InvalidInput with
    all that is wrong.

    `resource`: of rows that do not name theirs; `delimiter`: empty to find it out.
    """
    faults: list[str] = []
    (_line, header), *rows = [*_rows(text.removeprefix("\ufeff"), delimiter, faults)] or [(1, [])]
    kinds = [dict(zip(header, row)).get("resource") or resource for _line, row in rows]
    columns = _columns(header, [*dict.fromkeys(kinds or [resource])], faults)
    found = [
        (line, kind, _values(columns[kind], row, line, faults))
        for kind, (line, row) in zip(kinds, rows)
    ]
    for line, kind, values in found:
        if not values.get(key := KEYS.get(kind, "name")):
            faults.append(f"line {line}: {key} is empty")
    if faults:
        raise InvalidInput("from_csv", listing(faults, MAX_FAULTS, "; "))
    if entries:
        return [{"line": line, **_entry(values, kind)} for line, kind, values in found]
    return [_item(values, kind) for _line, kind, values in found]


def require_new_file(file: str) -> None:
    """Raise InvalidInput for a file that has content, which may have been filled in, or that is of
    another kind.
    """
    if not file.endswith((".csv", ".json")):
        raise InvalidInput("file", f"{printable(file)} must end in .csv or .json")
    if os.path.lexists(file) and (not os.path.isfile(file) or os.path.getsize(file)):
        why = "exists and is not empty, so it was not overwritten. Give another name, or remove it"
        raise InvalidInput("file", f"{printable(file)} {why}")


def write_entries(file: str, entries: list[dict]) -> None:
    """Write entries to a new or empty file that only its owner can read; raise InvalidInput."""
    require_new_file(file)
    text = (
        written(entries)
        if file.endswith(".csv")
        else json.dumps(entries, indent=4, ensure_ascii=False) + "\n"
    )
    try:
        descriptor = os.open(file, os.O_CREAT | os.O_WRONLY | os.O_NOFOLLOW, 0o600)
        with open(descriptor, "w", encoding="utf-8", newline="") as to:
            to.write(text)
    except OSError as error:
        raise InvalidInput(
            "file", f"{printable(file)} cannot be written: {error.strerror}"
        ) from None


def entries_in(file: str) -> list[dict]:
    """Return the entries in a file, JSON by its name or else CSV; raise InvalidInput."""
    try:
        text = Path(file).read_text("utf-8")
        return json.loads(text) if file.endswith(".json") else read(text, entries=True)
    except OSError as error:
        raise InvalidInput("file", f"{printable(file)} cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise InvalidInput("file", f"{printable(file)} is not UTF-8") from None
    except ValueError as error:
        raise InvalidInput("file", f"{printable(file)} is not JSON ({error})") from None


def _rows(text: str, delimiter: str, faults: list[str]) -> Iterator[tuple[int, list[str]]]:
    """Yield the rows that are not empty, without the blanks around cells, each with the number of
    its first line.
    """
    reader = csv.reader(
        io.StringIO(text, newline=""), delimiter=delimiter or _delimiter(text), strict=True
    )
    line = 1
    try:
        for row in reader:
            if any(cells := [cell.strip() for cell in row]):
                yield line, cells
            line = reader.line_num + 1
    except csv.Error as error:
        faults.append(f"line {line}: it is not CSV ({error})")


def _delimiter(text: str) -> str:
    """Return the delimiter that splits the first row into the most columns."""
    line = _LINE_END.split(text, maxsplit=1)[0]
    return max(",;\t|", key=lambda each: len(next(csv.reader([line], delimiter=each), ())))


def _columns(
    header: list[str], resources: list[str], faults: list[str]
) -> dict[str, list[Column | None]]:
    """Return the columns by the resource of a row; None for one that is not read, or wrong."""
    typed = {
        resource: RESOURCES[resource].attributes for resource in resources if resource in RESOURCES
    }
    other = [printable(resource) for resource in resources if resource not in typed]
    faults.extend(
        f"column resource: {resource} is none; there are {', '.join(RESOURCES)}"
        for resource in other
    )
    columns: dict[str, list[Column | None]] = {resource: [] for resource in resources}
    for number, name in enumerate(header, 1):
        found = {resource: _column(name, attributes) for resource, attributes in typed.items()}
        is_read = any(found.values())
        if typed and not is_read and name not in _UNREAD:
            names = (attribute for attributes in typed.values() for attribute in attributes)
            near = nearest(name, [*ENVELOPE, *_OF_ENTRY, "extra_attributes", *names])
            hint = (
                f"did you mean {near}?"
                if near
                else "attributes go by their names, others into extra_attributes"
            )
            faults.append(
                f"line 1, column {number}: there is no {printable(name) or 'empty name'} ({hint})"
            )
        elif header.index(name) < number - 1:
            faults.append(f"line 1, column {number}: {printable(name)} is there twice")
        for resource, each in columns.items():
            of_other = Column(name, (), {}) if is_read and resource in typed else None
            each.append(found.get(resource) or of_other)
    return columns


def _column(name: str, typed: Mapping[str, dict]) -> Column | None:
    """Return the column of this name, None if there is none."""
    if name == "since":
        return Column(name, ("changed_at",), _SINCE)
    if name in _JSON or name in _OF_ENTRY or (name in ENVELOPE and name != "attributes"):
        return Column(name, (name,), _JSON.get(name, dict(type="str")))
    steps = [*_STEP.finditer(name.removeprefix("attributes."))]
    path, option = [], dict(type="dict", options=typed)
    for step in steps:
        if step[1]:
            option, place = option.get("options", {}).get(step[1]), step[1]
        else:
            is_list, place = option.get("elements"), int(step[2])
            option = {**option, "type": option["elements"], "elements": None} if is_list else None
        if not option:
            return None
        path.append(place)
    is_whole = "".join(step[0] for step in steps) == name.removeprefix("attributes.")
    return Column(name, ("attributes", *path), option) if path and is_whole else None


def _values(
    columns: list[Column | None], row: list[str], line: int, faults: list[str]
) -> dict[str, Any]:
    """Return the values of a row as nested dicts, those in lists by their places."""
    if len(row) != len(columns):
        cells = f"{len(row)} cell{'s' if len(row) > 1 else ''}"
        faults.append(f"line {line}: it has {cells}, and there are {len(columns)} columns")
    found: dict[str, Any] = {}
    filled = [
        (f"line {line}, column {number} ({column.name})", column, cell)
        for number, (column, cell) in enumerate(zip(columns, row), 1)
        if column and cell
    ]
    given = {
        column.path[:end]: place
        for place, column, _cell in filled
        for end in range(1, len(column.path) + 1)
    }
    faults.extend(
        f"{place}: {dotted((*path[1:-1], path[-1] - 1))} is not given"
        for path, place in given.items()
        if isinstance(path[-1], int) and path[-1] and (*path[:-1], path[-1] - 1) not in given
    )
    for place, column, cell in filled:
        inner = found
        if not column.path:
            faults.append(f"{place}: this row's resource has none")
            continue
        *above, last = column.path
        for step in above:
            inner = inner.setdefault(step, {}) if isinstance(inner, dict) else None
        if not isinstance(inner, dict) or last in inner:
            faults.append(f"{place}: another column has a part of it")
        else:
            inner[last] = converted(
                column.option, _decoded(cell, column.option), str(last), place, faults
            )
    return {name: _with_lists(value) for name, value in found.items()}


def _decoded(cell: str, option: dict) -> Any:
    """Return a cell as the value that JSON says, where it may be JSON, else as text."""
    is_json = cell.startswith(("[", "{") if option["type"] in ("list", "dict") else '"')
    try:
        return json.loads(cell) if is_json else cell
    except ValueError:
        return cell


def _with_lists(value: Any) -> Any:
    """Return a value with a list for each dict of places."""
    if not isinstance(value, dict):
        return value
    found = {key: _with_lists(item) for key, item in value.items()}
    return (
        [found[key] for key in sorted(found)]
        if any(isinstance(key, int) for key in found)
        else found
    )


def _item(values: dict, resource: str) -> dict:
    """Return the item of a plural module; what only entries have is left out."""
    return {name: value for name, value in values.items() if name in RESOURCES[resource].options}


def _entry(values: dict, resource: str) -> dict:
    """Return the entry of a row. One in doubt has an asset only if its id is given, which settles
    it.
    """
    state, key = values.get("state", PRESENT), KEYS.get(resource, "name")
    of_service = {"base_url": values["base_url"]} if "base_url" in values else {}
    entry = {"resource": resource, **of_service, key: values.get(key), "state": state}
    if "changed_at" in values:
        entry["changed_at"] = values["changed_at"]
    has_id = key == "name" and "id" in values
    if state == ABSENT:
        return {**entry, "asset": {"id": values["id"]}} if has_id else entry
    if state in _DOUBTFUL and not has_id:
        return entry
    extra = values.get("extra_attributes", {})
    attributes = {**values.get("attributes", {}), **extra}
    named = {name: values[name] for name in ENVELOPE if name in values and name != "attributes"}
    return {**entry, "asset": {**values.get("asset", {"attributes": attributes}), **named}}
