# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Lines about a ledger: its entries as a table, how to settle a doubt, and the edits of a list."""

from __future__ import annotations

from typing import Any, Mapping, Sequence

from ...module_utils._errors import ACCEPTED, listing
from ...module_utils._secrets import printable
from ...module_utils._task.specs import IN_DOUBT
from .._ledger.entries import INTENT
from .assets import counted
from .screen import EMPTY
from .text import shown

_HEAD = ("NAME", "STATE", "SINCE (UTC)", "ADDRESS", "TEAM", "ID")
_MAX_SETTLED = 5  # machines whose commands are shown
_IN_FLIGHT = (
    "A request in state intent may still be in flight: ledger_entry waits for it,"
    " and changes nothing if it ends."
)
_BY_FILE = (
    "To settle all of them at once, write a file, fill in an id or the state absent, and record it:"
)
_FILL_IN = (
    "In doubt: {}. Fill in the id of each machine that exists on the service, and the state absent"
    " for each that does not. Then run:"
)
_ROLES = "A Cassandra role needs no settling: run its task again, which is safe."
_BY_TASK = "{} cannot be put on a command line: use a task of infrastructure.services.ledger_entry."
_WORDS = {
    "in_doubt": "left in doubt",
    "left_out": "left out",
    "recorded_in_doubt": "recorded as in doubt",
}
Entries = Sequence[Mapping[str, Any]]  # as ledger_info returns them


def nothing_found(ledger: str, filters: Mapping[str, Any], counts: Mapping[str, int]) -> str:
    """Return the line for no matching entry; `counts`: by state, without the filters."""
    if not counts:
        return printable(f"Nothing is recorded in {ledger}.")
    if filters == {"states": [IN_DOUBT]}:
        return printable(f"Nothing is in doubt in {ledger}.")
    parts = []
    for name, value in filters.items():
        text = ", ".join(value) if isinstance(value, list) else value
        parts.append(f"{name}: {text}")
    there = ", ".join(f"{count:,} {state}" for state, count in sorted(counts.items()))
    none = f"No entry of {ledger} matches {'; '.join(parts)}."
    return printable(f"{none} Without these filters there are {there}.")


def written_lines(file: str, entries: Entries, settle: str) -> list[str]:
    """Return the lines about a file of entries; `settle`: the command that records it."""
    written = "1 entry was" if len(entries) == 1 else f"{len(entries):,} entries were"
    lines = [f"{written} written to {printable(file)}"]
    doubtful = sum("settle" in entry for entry in entries)
    if doubtful:
        lines += [_FILL_IN.format(f"{doubtful:,}"), settle]
    return lines


def ledger_lines(listed: Mapping[str, Any], by_file: list[str]) -> list[str]:
    """Return the entries of ledger_info as a table, then how to settle those in doubt.

    `by_file`: the commands that settle them by a file.
    """
    entries: Entries = listed["entries"]
    rows = [_HEAD, *map(_row, entries)]
    widths = [max(map(len, column)) for column in zip(*rows)]
    head, *texts = ["  ".join(map(str.ljust, row, widths)).rstrip() for row in rows]
    counts = {state: count for state, count in listed["counts"].items() if count}
    lines = [printable(f"{listed['ledger']}: {counted(counts)}"), head]
    group = ""
    for entry, text in zip(entries, texts):
        own = f"{entry['resource']} at {entry['base_url']}"
        if own != group:
            lines.append(printable(own))
        lines.append(text)
        group = own
    return [*lines, *_settling(entries, by_file)]


def edit_lines(
    counts: Mapping[str, int], names: Mapping[str, list[str]], is_plan: bool
) -> list[str]:
    """Return the lines about the edits of a list: the counts, then the names."""
    left = names.get("in_doubt", [])
    known = {**counts, "in_doubt": len(left), "unchanged": counts["unchanged"] - len(left)}
    done = {_words(kind): count for kind, count in known.items() if count}
    begin = "ledger entries in check mode" if is_plan else "ledger entries"
    lines = [f"{begin}: {counted(done) or EMPTY}; {counts['in_doubt']:,} still in doubt"]
    for kind, found in names.items():
        if found:
            lines.append(f"  {_words(kind)}: {printable(listing(found))}")
    return lines


def _words(kind: str) -> str:
    if kind in _WORDS:
        return _WORDS[kind]
    return kind.replace("_", " as ")


def _row(entry: Mapping[str, Any]) -> tuple[str, ...]:
    attributes = {**_attributes(entry["sent"]), **_attributes(entry["asset"])}
    cells = (
        entry.get("name") or entry.get("id"),
        entry["state"],
        entry["changed_at"].replace("T", " ")[:16],
        attributes.get("ip"),
        attributes.get("team"),
        (entry["asset"] or {}).get("id"),
    )
    return tuple(printable(str(cell or "")) for cell in cells)


def _attributes(body: Mapping[str, Any] | None) -> Mapping[str, object]:
    attributes = (body or {}).get("attributes")
    return attributes if isinstance(attributes, dict) else {}


def _settling(entries: Entries, by_file: list[str]) -> list[str]:
    doubtful = [entry for entry in entries if "settle" in entry]
    machines = [entry for entry in doubtful if "name" in entry]
    lines = []
    if any(entry["state"] == INTENT for entry in machines):
        lines.append(_IN_FLIGHT)
    if machines:
        lines.append("Look for each machine on the service.")
    for machine in machines[:_MAX_SETTLED]:
        lines += _steps(printable(machine["name"]), machine)
    if len(machines) > _MAX_SETTLED:
        lines += [_BY_FILE, *by_file]
    if len(machines) < len(doubtful):
        lines.append(_ROLES)
    return lines


def _steps(name: str, machine: Mapping[str, Any]) -> list[str]:
    if not machine["settle"]:
        return [_BY_TASK.format(name)]
    record, remove = machine["settle"]
    attributes = _attributes(machine["sent"])
    sent = ", ".join(f"{key} {shown(value)}" for key, value in attributes.items())
    there = f"If {name} is there, record it"
    gone = "If it is not there"
    if machine["state"] == ACCEPTED:
        there = f"The service accepted {name}: record it"
        gone = "If somebody has removed it"
    return [
        f"{name} was sent with {printable(sent) or 'no attributes'}.",
        f"{there}, with its id at the end:",
        record,
        f"{gone}, remove its entry, and the next run creates it:",
        remove,
    ]
