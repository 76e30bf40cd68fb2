# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Lines about a ledger: its entries as a table, how to settle a doubt, and the edits of a list."""

from __future__ import annotations

from itertools import groupby
from typing import Any, Mapping, Sequence

from ...module_utils._errors import listing
from ...module_utils._secrets import printable
from ...module_utils._values import Params
from .._ledger.entries import time_of
from .rows import counted
from .screen import wrapped

_HEAD = ("NAME", "STATE", "SINCE (UTC)", "ADDRESS", "TEAM", "ID")
_WIDTH = 80  # columns of what is told
_MAX_SETTLED = 3  # machines whose commands are shown
_HOW = (
    "Look for each machine on the service, and look again later: it may still appear. If it is"
    " there, record it with its id and address in place of ID and ADDRESS. If it is not, remove its"
    " entry, and the next run creates it:"
)
_BY_FILE = (
    "To settle all of them at once, write a file, fill in an id or the state absent, and record it:"
)
_FILL_IN = (
    "In doubt: {}. Fill in the id of each machine that exists on the service, and the state absent"
    " for each that does not. Then run:"
)


def written_lines(file: str, entries: Sequence[Params], settle: str) -> list[str]:
    """Return the lines about a file of entries; `settle`: the command that records it."""
    lines = [f"Entries for {printable(file)}: {len(entries):,}"]
    doubtful = sum("settle" in entry for entry in entries)
    if doubtful:
        lines += [*wrapped(_FILL_IN.format(f"{doubtful:,}"), _WIDTH), settle]
    return lines


def ledger_lines(
    rows: Sequence[Params],
    listed: Mapping[str, Any],
    what: str,
    by_file: list[str],
    width: int,
) -> list[str]:
    """Return the requests in flight, the entries as a table, and how to settle those in doubt.

    `rows`: of the entries; `listed`: the result of ledger_info; `what`: the entries that were looked
    for, in words; `by_file`: the commands that settle those in doubt by a file; `width`: in columns,
    to which a row continues on the next line.
    """
    lines = [
        f"in flight: {entry.get('name') or entry.get('id')}, for {entry['by']} since"
        f" {entry['began_at']}, at most until {time_of(entry['lease_until'])}"
        for entry in listed["in_flight"]
    ]
    if not rows:
        return [*map(printable, [*lines, f"Nothing that matches is {what} in {listed['ledger']}."])]
    cells = [_HEAD, *map(_cells, rows)]
    widths = [max(map(len, column)) for column in zip(*cells)]
    head, *texts = [
        wrapped("  ".join(map(str.ljust, row, widths)), width, "", "    ") for row in cells
    ]
    counts = {state: count for state, count in listed["counts"].items() if count}
    lines += [f"{listed['ledger']}: {counted(counts)}", *head]
    for resource, group in groupby(zip(rows, texts), lambda row: str(row[0]["resource"])):
        lines += [resource, *(line for _row, text in group for line in text)]
    return [*map(printable, lines), *_settling(rows, by_file)]


def edit_lines(
    counts: Mapping[str, int], names: Mapping[str, list[str]], is_plan: bool
) -> list[str]:
    """Return the lines about the edits of a list: the counts, then the names."""
    done = {_words(kind): count for kind, count in counts.items() if count}
    begin = "ledger entries in check mode" if is_plan else "ledger entries"
    lines = [f"{begin}: {counted(done)}"]
    for kind, found in names.items():
        if found:
            lines.append(f"  {_words(kind)}: {printable(listing(found))}")
    return lines


def _words(kind: str) -> str:
    return "left in doubt" if kind == "in_doubt" else kind.replace("_", " as ")


def _cells(row: Params) -> tuple[str, ...]:
    since = row["since"].replace("T", " ")[:16]
    cells = (row["name"], row["state"], since, row["address"], row["team"], row["id"])
    return tuple(printable(str(cell or "")) for cell in cells)


def _settling(rows: Sequence[Params], by_file: list[str]) -> list[str]:
    doubtful = [row for row in rows if "settle" in row]
    lines = wrapped(_HOW, _WIDTH) if doubtful else []
    for row in doubtful[:_MAX_SETTLED]:
        lines += row["settle"]
    if len(doubtful) > _MAX_SETTLED:
        lines += [*wrapped(_BY_FILE, _WIDTH), *by_file]
    return lines
