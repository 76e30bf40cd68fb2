# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The entries of a ledger as people look at them: a table, and how to settle those in doubt."""

from __future__ import annotations

from ...module_utils._errors import ACCEPTED
from ...module_utils._secrets import printable
from .._ledger.entries import INTENT

_HEAD = ("NAME", "STATE", "SINCE (UTC)", "ADDRESS", "TEAM")
_MAX_SETTLED = 10  # machines whose commands are shown
_IN_FLIGHT = (
    "A request in state intent may still be in flight: ledger_entry waits for it, and changes nothing if it ends."
)
_ROLES = "A Cassandra role needs no settling: run its task again, which is safe."


def ledger_lines(listed: dict, what: str = "recorded") -> list[str]:
    """Return the result of ledger_info as lines: a table, then what to do about the entries in doubt.

    `what`: what is said not to be there when there are no entries.
    """
    entries = listed["entries"]
    if not entries:
        return [f"Nothing is {what} in {listed['ledger']}."]
    counts = ", ".join(f"{count:,} {state}" for state, count in listed["counts"].items() if count)
    rows = [_HEAD, *map(_row, entries)]
    widths = [max(map(len, column)) for column in zip(*rows)]
    head, *rows = ("  ".join(map(str.ljust, row, widths)).rstrip() for row in rows)
    lines, group = [f"{listed['ledger']}: {counts}", head], None
    for entry, row in zip(entries, rows):
        if group != (group := (entry["resource"], entry["base_url"])):
            lines.append("{} at {}".format(*group))
        lines.append(row)
    return [*lines, *_settling(entries)]


def _row(entry: dict) -> tuple[str, ...]:
    since = entry["changed_at"].replace("T", " ")[:16]
    attributes = {**_attributes(entry["sent"]), **_attributes(entry["asset"])}
    cells = (entry.get("name") or entry.get("id"), entry["state"], since, attributes.get("ip"), attributes.get("team"))
    return tuple(printable(str(cell or "")) for cell in cells)


def _attributes(body: dict | None) -> dict:
    attributes = (body or {}).get("attributes")
    return attributes if isinstance(attributes, dict) else {}


def _settling(entries: list[dict]) -> list[str]:
    doubtful = [entry for entry in entries if "settle" in entry]
    machines = [entry for entry in doubtful if "name" in entry]
    lines = [_IN_FLIGHT] if any(entry["state"] == INTENT for entry in machines) else []
    lines += ["Look for each machine on the service."] if machines else []
    for machine in machines[:_MAX_SETTLED]:
        lines += _steps(printable(machine["name"]), machine)
    if len(machines) > _MAX_SETTLED:
        lines.append(f"For the other {len(machines) - _MAX_SETTLED:,} use the same commands with their names.")
    return [*lines, _ROLES] if len(machines) < len(doubtful) else lines


def _steps(name: str, machine: dict) -> list[str]:
    if not machine["settle"]:
        return [f"{name} cannot be put on a command line: use a task of infrastructure.services.ledger_entry."]
    there, gone = f"If {name} is there, record it", "If it is not there"
    if machine["state"] == ACCEPTED:
        there, gone = f"The service accepted {name}: record it", "If somebody has removed it"
    record, remove = machine["settle"]
    gone = f"{gone}, remove its entry, and the next run creates it:"
    return [f"{there}, with its id at the end:", record, gone, remove]
