# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Read CSV text as the items of a plural module or as the entries of ledger_entries."""

from __future__ import annotations

from typing import Dict, NamedTuple

from ...module_utils._resources import KEYS, RESOURCES
from ...module_utils._resources.planning import ENVELOPE
from ...module_utils._secrets import printable
from .._ledger.entries import ABSENT, DONE, PRESENT, STATES
from .cells import read_cells
from .columns import find_columns
from .faults import Faults
from .rows import Row, read_rows

Values = Dict[str, object]  # by the names of options

_DOUBTFUL = {*STATES} - {DONE}


class Asset(NamedTuple):
    """What a row says."""

    line: int
    resource: str
    values: Values

    @property
    def key(self) -> str:
        """Return the name of the field that identifies the asset."""
        return KEYS[self.resource]


def read_csv(
    text: str, entries: bool = False, resource: str = "compute_virtual_machine", delimiter: str = ""
) -> list[Values]:
    """Return the items or entries that a text lists; raise InvalidInput with all that is wrong.

    `resource`: of rows that do not name theirs; `delimiter`: empty to find it out.
    """
    faults = Faults()
    assets = _read_assets(text, resource, delimiter, faults)
    for asset in assets:
        if not asset.values.get(asset.key):
            faults.add(asset.line, f"{asset.key} is empty")
    faults.raise_if_any()
    if entries:
        return [{"line": asset.line, **_entry(asset)} for asset in assets]
    return [_item(asset) for asset in assets]


def _read_assets(text: str, resource: str, delimiter: str, faults: Faults) -> list[Asset]:
    header, *rows = read_rows(text, delimiter, faults) or [Row(1, [])]
    resources = [_resource_of(row, header, faults) or resource for row in rows]
    faults.raise_if_any()
    columns = find_columns(header.cells, resources or [resource], faults)
    assets = []
    for row, each in zip(rows, resources):
        if len(row.cells) != len(header.cells):
            faults.add(row.line, _wrong_length(row, header))
        assets.append(Asset(row.line, each, read_cells(row, columns[each], faults)))
    return assets


def _resource_of(row: Row, header: Row, faults: Faults) -> str:
    """Return the resource that a row names, empty if it names none."""
    if "resource" not in header.cells:
        return ""
    number = header.cells.index("resource") + 1
    resource = row.cell(number)
    if resource and resource not in RESOURCES:
        problem = f"{printable(resource)} is none; there are {', '.join(RESOURCES)}"
        faults.add_to_cell(row.line, f"column {number} (resource): {problem}")
    return resource


def _wrong_length(row: Row, header: Row) -> str:
    cells = "1 cell" if len(row.cells) == 1 else f"{len(row.cells)} cells"
    return f"it has {cells}, and there are {len(header.cells)} columns"


def _item(asset: Asset) -> Values:
    """Return the item of a plural module, without what only entries have."""
    options = RESOURCES[asset.resource].options
    return {name: value for name, value in asset.values.items() if name in options}


def _entry(asset: Asset) -> Values:
    """Return the entry of ledger_entries; its asset is what settles it or is adopted."""
    values = asset.values
    state = values.get("state", PRESENT)
    entry: Values = {"resource": asset.resource}
    if "base_url" in values:
        entry["base_url"] = values["base_url"]
    entry.update({asset.key: values.get(asset.key), "state": state})
    if "since" in values:
        entry["changed_at"] = values["since"]  # when the entry changed that the row is about
    is_found = asset.key == "name" and "id" in values
    if state == ABSENT:
        if is_found:
            entry["asset"] = {"id": values["id"]}
    elif is_found or state not in _DOUBTFUL:
        entry["asset"] = _envelope(values)
    return entry


def _envelope(values: Values) -> Values:
    """Return the whole asset of a row; the column `asset` has what no other one says."""
    asset = values.get("asset")
    envelope = dict(asset) if isinstance(asset, dict) else {"attributes": _attributes(values)}
    for name in ENVELOPE:
        if name in values and name != "attributes":
            envelope[name] = values[name]
    return envelope


def _attributes(values: Values) -> Values:
    """Return the attributes of a row, typed and extra ones."""
    attributes: Values = {}
    for name in ("attributes", "extra_attributes"):
        part = values.get(name)
        if isinstance(part, dict):
            attributes.update(part)
    return attributes
