# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Read CSV text as the items of a plural module or as the entries of ledger_entries."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

from ...module_utils._errors import InvalidInput, quantity
from ...module_utils._resources import KEYS, RESOURCES
from ...module_utils._resources.planning import ENVELOPE
from ...module_utils._task.validation import nearest, shown
from .._ledger.entries import ABSENT, PRESENT, STATES_IN_DOUBT
from .cells import Values, read_cells
from .columns import Heading, find_columns, find_header_faults, read_header
from .faults import Faults
from .layout import Layout
from .rows import Row, Table, read_table, why_unreadable

_OUR_LAYOUT = Layout()


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
    text: str,
    entries: bool = False,
    resource: str = "compute_virtual_machine",
    layout: Layout = _OUR_LAYOUT,
) -> list[Values]:
    """Return the items or entries that a text lists; raise InvalidInput with all that is wrong.

    `resource`: of rows that do not name theirs.
    """
    problem = why_unreadable(text)
    if problem:
        raise InvalidInput("from_csv", f"the text {problem}")
    faults = Faults()
    table = read_table(text, layout.delimiter, faults)
    layout = replace(layout, delimiter=table.delimiter)
    assets = _read_assets(table, layout, resource, not entries, faults)
    faults.raise_if_any()
    if entries:
        return [{"line": asset.line, **_entry_of(asset)} for asset in assets]
    return [_item(asset) for asset in assets]


def _read_assets(
    table: Table, layout: Layout, resource: str, is_sent: bool, faults: Faults
) -> list[Asset]:
    headings = read_header(table, layout)
    resources = [_resource_of(row, headings, faults) or resource for row in table.rows]
    faults.raise_if_any()
    columns = {each: find_columns(headings, each, is_sent) for each in resources or [resource]}
    find_header_faults(table.header.line, headings, columns, faults)
    faults.raise_if_any()
    assets = []
    for row, each in zip(table.rows, resources):
        if len(row.cells) != len(table.header.cells):
            faults.add(row.line, _wrong_length(row, table.header))
        asset = Asset(row.line, each, read_cells(row, columns[each], layout, faults))
        if not asset.values.get(asset.key):
            faults.add(row.line, f"{asset.key} is empty")
        assets.append(asset)
    return assets


def _resource_of(row: Row, headings: list[Heading], faults: Faults) -> str:
    """Return the resource that a row names, empty if it names none."""
    for heading in headings:
        resource = row.cell(heading.number)
        if heading.name != "resource" or not resource:
            continue
        if resource not in RESOURCES:
            near = nearest(resource, RESOURCES)
            hint = f"did you mean {near}?" if near else f"there are {', '.join(RESOURCES)}"
            problem = f"column {heading.number} (resource): {shown(resource)} is none ({hint})"
            faults.add_to_cell(row.line, problem, shown(resource))
        return resource
    return ""


def _wrong_length(row: Row, header: Row) -> str:
    are = "is" if len(header.cells) == 1 else "are"
    columns = quantity(len(header.cells), "column")
    return f"it has {quantity(len(row.cells), 'cell')}, and there {are} {columns}"


def _item(asset: Asset) -> Values:
    """Return the item of a plural module, without what only entries have."""
    options = RESOURCES[asset.resource].options
    return {name: value for name, value in asset.values.items() if name in options}


def _entry_of(asset: Asset) -> Values:
    """Return the entry of ledger_entries; its asset is what settles it or is adopted."""
    values = asset.values
    state = values.get("state", PRESENT)
    entry: Values = {"resource": asset.resource}
    if "base_url" in values:
        entry["base_url"] = values["base_url"]
    entry.update({asset.key: values.get(asset.key), "state": state})
    if "since" in values:
        # When the entry changed that the row is about.
        entry["changed_at"] = values["since"]
    is_found = asset.key == "name" and "id" in values
    if state == ABSENT:
        if is_found:
            entry["asset"] = {"id": values["id"]}
    elif is_found or state not in STATES_IN_DOUBT:
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
