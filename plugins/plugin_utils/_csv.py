# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Reads CSV text as machines or as ledger entries.

The first row names the columns. A column holds one field at any depth, such as `cpu`, `subnet.mask`
or `volumes[0].size_gb`. The validation of the modules checks the values of each row.
"""

from __future__ import annotations

import csv
import io
import json
import re
from collections import defaultdict
from contextlib import suppress
from pathlib import Path
from typing import Any, Iterator, Mapping, NamedTuple

from ..module_utils._errors import InvalidInput, listing
from ..module_utils._http import strict_json
from ..module_utils._resources.names import require_names
from ..module_utils._resources.planning import ENVELOPE
from ..module_utils._resources.resources import RESOURCES
from ..module_utils._secrets import for_message, printable
from ..module_utils._task.specs import DELIMITER, LEDGER_ENTRY, VIRTUAL_MACHINE, VIRTUAL_MACHINES
from ..module_utils._task.validation import nearest, validated
from ..module_utils._values import DICT, LIST, TEXT, Option, Params, Spec, dotted, shown
from ._ledger.entries import ABSENT, STATES_IN_DOUBT

FieldPath = tuple["str | int", ...]  # names of fields and places in lists
Rows = list[tuple[int, list[str]]]  # the number of the first line, and the cells
Faults = defaultdict[str, list[int]]  # the lines of each fault

# Of from_csv.
_OPTIONS: Spec = {
    "text": {"type": TEXT, "required": True},
    "delimiter": {"type": DELIMITER},
    "decimal": {"type": TEXT, "choices": [".", ","], "default": "."},
    "columns": {"type": DICT, "default": {}},
    "ignore": {"type": LIST, "elements": TEXT, "default": []},
}
# Fields of an entry, with those of its asset in place of `asset`.
_ENTRY_OPTIONS: Spec = {
    **{name: {"type": TEXT} for name in (*ENVELOPE, *LEDGER_ENTRY.item_options) if name != "asset"},
    "attributes": {
        "type": DICT,
        "options": {
            name: option
            for resource in RESOURCES.values()
            for name, option in resource.attributes.items()
        },
    },
}
_ALIASES = {"address": "attributes.ip", "since": "changed_at"}
_PATH = re.compile(r"[a-z_]\w*(\[\d\d?\])?(\.[a-z_]\w*(\[\d\d?\])?)*", re.ASCII | re.IGNORECASE)
_JSON = ('"', "[", "{")


class _Column(NamedTuple):
    number: int  # of its cell, from 0
    label: str  # how messages continue after the line
    path: FieldPath
    is_number: bool


def read_machines(given: Params) -> list[Params]:
    """Return the machines that a text lists, given the options of from_csv.

    Raise InvalidInput with all faults.
    """
    how, wrong = validated(_OPTIONS, {}, given)
    if wrong:
        raise InvalidInput("from_csv", "; ".join(wrong))
    options = VIRTUAL_MACHINES.item_options
    faults: Faults = defaultdict(list)
    rows = _rows(how["text"], how["delimiter"], faults)
    found = _columns(rows, options, {**how["columns"], **dict.fromkeys(how["ignore"])}, faults)
    machines = []
    for line, fields in _fields(rows, found, how["decimal"], faults):
        values, problems = validated(options, {}, fields)
        machines.append({name: values[name] for name in fields})
        try:
            if not problems:
                require_names(values["name"], values["id"])
        except InvalidInput as error:
            problems.append(error.msg)
        for problem in problems:
            faults[_located(problem, found)].append(line)
    _raise_if_any(faults)
    return machines


def entries_in(file: str, delimiter: str | None = None) -> object:
    """Return the entries of ledger_entry in a file, those of CSV with the `line` of each row.

    Of a JSON file, return what it has. Raise InvalidInput with all faults of the file;
    ledger_entry validates the values.
    """
    try:
        content = Path(file).read_bytes()
        if not file.endswith(".json"):
            return _entries(content.decode(errors="surrogateescape"), delimiter)
        return strict_json.decode(content.decode())
    except OSError as error:
        raise InvalidInput("file", f"{printable(file)} cannot be read: {error.strerror}") from None
    except ValueError as error:
        raise InvalidInput("file", f"{printable(file)} is not JSON ({error})") from None
    except InvalidInput as error:
        raise InvalidInput("file", f"{printable(file)}: {error.problem}") from None


def _entries(text: str, delimiter: str | None) -> list[object]:
    faults: Faults = defaultdict(list)
    rows = _rows(text, delimiter, faults)
    fields = _fields(rows, _columns(rows, _ENTRY_OPTIONS, {}, faults), ".", faults)
    entries: list[object] = [{"line": line, **_entry(values)} for line, values in fields]
    _raise_if_any(faults)
    return entries


def _entry(fields: Params) -> Params:
    """Return an entry of ledger_entry; its asset is what settles it or is adopted."""
    entry = {name: value for name, value in fields.items() if name not in ENVELOPE}
    resource = RESOURCES.get(entry.setdefault("resource", VIRTUAL_MACHINE.name))
    key = resource.key if resource else "name"
    entry[key] = fields.get(key)
    has_id = key == "name" and "id" in fields
    if has_id or entry.get("state") not in (ABSENT, *STATES_IN_DOUBT):
        entry["asset"] = {name: fields[name] for name in ENVELOPE if name in fields}
    return entry


def _rows(text: str, delimiter: str | None, faults: Faults) -> Rows:
    """Return the rows that are not empty; the first one is the header."""
    try:
        text.encode()
    except UnicodeEncodeError as error:  # bytes of another encoding are surrogates (PEP 383)
        line = text.count("\n", 0, error.start) + 1
        raise InvalidInput(
            "from_csv",
            f"line {line} is not UTF-8. Save the sheet as CSV UTF-8, or convert the file: iconv -f"
            " WINDOWS-1252 -t UTF-8 old.csv > new.csv",
        ) from None
    delimiter = delimiter or max(",;\t|", key=text.partition("\n")[0].count)
    file = io.StringIO(text.removeprefix("\ufeff"), newline="")
    reader = csv.reader(file, delimiter=delimiter, strict=True)
    rows: Rows = []
    line = 1
    try:
        for cells in reader:
            if any(map(str.strip, cells)):
                rows.append((line, [cell.strip() for cell in cells]))
            line = reader.line_num + 1
    except csv.Error as error:
        faults[f": it is not CSV ({printable(str(error))})"].append(line)
    return rows or [(line, [])]


def _columns(
    rows: Rows, options: Spec, names: Mapping[str, object], faults: Faults
) -> list[_Column]:
    """Return the columns of known fields; adds the faults of the others.

    `names`: fields by headings, None for a column to leave out.
    """
    columns: list[_Column] = []
    first, headings = rows[0]
    for index, heading in enumerate(headings):
        name = names.get(heading, heading)
        is_blank = not any("".join(cells[index : index + 1]) for _line, cells in rows)
        if is_blank or name is None:
            continue
        path = _path(_ALIASES.get(str(name), str(name)), options)
        option = _option_at(options, path)
        label = f", column {index + 1} ({for_message(heading)})"
        if not option:
            near = nearest(str(name), [*_ALIASES, *options, *options["attributes"]["options"]])
            hint = f"did you mean {near}?" if near else "remove it; from_csv has columns and ignore"
            faults[f"{label}: there is no such field ({hint})"].append(first)
        elif any(path[: len(other.path)] == other.path[: len(path)] for other in columns):
            faults[f"{label}: another column has this field or a part of it"].append(first)
        else:
            columns.append(_Column(index, label, path, option.get("type") == "float"))
    return columns


def _path(name: str, options: Spec) -> FieldPath:
    """Return the path of a field that a name such as `volumes[0].size_gb` spells."""
    if not _PATH.fullmatch(name):
        return ("",)
    path = [int(step) if step.isdigit() else step for step in re.findall(r"\w+", name)]
    return tuple(path) if path[0] in options else ("attributes", *path)


def _option_at(options: Spec, path: FieldPath) -> Option:
    """Return the option of a field, {} for an unknown one; a place in a list has the list's."""
    option: Option = {"options": options}
    for step in path:
        if isinstance(step, str):
            option = option.get("options", {}).get(step, {})
    return option


def _fields(
    rows: Rows, columns: list[_Column], decimal: str, faults: Faults
) -> Iterator[tuple[int, Params]]:
    """Yield the line and the fields of each row; a field whose cell is empty is not given."""
    (_first, headings), *others = rows
    for line, cells in others:
        if len(cells) != len(headings):
            faults[f": {len(cells)} cells instead of {len(headings)}"].append(line)
            continue
        fields: Params = {}
        for column in columns:
            cell = cells[column.number]
            if not cell:
                continue
            inner: Any = fields
            for step in column.path[:-1]:
                inner = inner.setdefault(step, {})
            try:
                inner[column.path[-1]] = _value(cell, column.is_number, decimal)
            except ValueError as error:
                faults[f"{column.label}: {error}"].append(line)
        yield line, _with_lists(fields)


def _value(cell: str, is_number: bool, decimal: str) -> object:
    """Return the JSON that a cell holds, or else its text; raise ValueError."""
    if cell.startswith(_JSON):
        with suppress(json.JSONDecodeError):
            return strict_json.decode(cell)
    elif is_number and decimal == ",":
        if "." in cell:
            raise ValueError(f"must be a number with a decimal comma, not {shown(cell)}")
        return cell.replace(",", ".")
    return cell


def _with_lists(value: Any) -> Any:
    """Return a value with a list, null for a gap, in place of each dict whose keys are places."""
    if not isinstance(value, dict):
        return value
    inner = {step: _with_lists(item) for step, item in value.items()}
    if inner and all(isinstance(step, int) for step in inner):
        return [inner.get(place) for place in range(max(inner) + 1)]
    return inner


def _located(problem: str, columns: list[_Column]) -> str:
    """Return a fault of the validation with the column of its field, if there is one."""
    for column in columns:
        rest = problem.removeprefix(dotted(column.path))
        if rest != problem and rest.startswith((":", ".", "[")):
            return column.label + for_message(rest)
    return f": {for_message(problem)}"


def _raise_if_any(faults: Faults) -> None:
    if faults:
        told = [
            f"line{'s' * (len(at) > 1)} {listing([*map(str, at)])}{fault}"
            for fault, at in faults.items()
        ]
        raise InvalidInput("from_csv", listing(told, between="; "))
