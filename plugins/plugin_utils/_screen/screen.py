# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What is said on the screen, as text: the progress of a list, how it ended, and what a ledger has."""

from __future__ import annotations

import json
import math
import textwrap
import time
from collections import Counter
from typing import Any, Callable, Iterable

from ...module_utils._call.operation import Operation
from ...module_utils._errors import ACCEPTED, REJECTED, UNKNOWN, listing, message_of
from ...module_utils._resources import RESOURCES
from ...module_utils._secrets import printable
from ...module_utils._task.signals import GRACE
from ...module_utils._task.specs import IN_DOUBT
from .._ledger.entries import INTENT, Entry, Key

EMPTY = "the list is empty"
_UNBROKEN = "\xa0"  # a space at which no line ends
_FIRST_LINE, _NEXT_LINE = 2.0, 5.0  # seconds
_MOST_PROBLEMS = 10
_PLANS = {
    "create": "to create",
    "update": "to update",
    "differs": "differs",
    "in_doubt": "in doubt",
    "keep": "unchanged",
}
NOT_LISTED = "not listed"
_PLANNED = ("to create", "to update", "differs", "in doubt", NOT_LISTED, "unchanged")
_ENDED = ("unchanged", "in doubt", "rejected", "differs", "not sent", "not begun")
_HEAD = ("NAME", "STATE", "SINCE (UTC)", "ADDRESS", "TEAM", "ID")
_MAX_SETTLED = 5  # machines whose commands are shown
_MAX_SHOWN = 60  # characters of a value
_IN_FLIGHT = (
    "A request in state intent may still be in flight: ledger_entry waits for it,"
    " and changes nothing if it ends."
)
_BY_FILE = (
    "To settle all of them at once, write a file, fill in an id or the state absent, and record it:"
)
_ROLES = "A Cassandra role needs no settling: run its task again, which is safe."


class Progress:
    """Says every few seconds how far a list is."""

    def __init__(
        self, noun: str, say: Callable[[str], None], clock: Callable[[], float] = time.monotonic
    ) -> None:
        """`say`: displays a line; `clock`: in seconds."""
        self._noun, self._say, self._clock, began = noun, say, clock, clock()
        self._last, self._due = (began, 0), began + _FIRST_LINE

    def __call__(
        self, total: int, settled: int, ended: Iterable[dict], in_flight: int, is_ending: bool
    ) -> None:
        """Say it, if it is time to.

        `total`: items of the list; `settled`: those with nothing to send; `ended`: the results of
        others so far; `in_flight`: requests; `is_ending`: whether only these are waited for.
        """
        now = self._clock()
        if is_ending and in_flight and self._due < math.inf:
            self._due = math.inf
            second = "a second Ctrl-C leaves them in doubt"
            self._say(f"waiting up to {GRACE:g} s for {in_flight:,} requests; {second}")
        if now < self._due:
            return
        tally = Counter(result["outcome"] for result in ended)
        done, (before, earlier) = sum(tally.values()), self._last
        rate, self._last, self._due = (
            (done - earlier) / (now - before),
            (now, done),
            now + _NEXT_LINE,
        )
        rejected = f", {tally[REJECTED]:,} rejected" if tally[REJECTED] else ""
        left = f", {(total - settled - done) / rate:,.0f} s left" if rate else ""
        self._say(
            f"{self._noun}s: {settled + done:,} of {total:,}, {in_flight:,} in flight, {tally[UNKNOWN]:,} in doubt"
            f"{rejected}, {rate:,.0f}/s{left}"
        )


def waiting_line(keys: list[Key], entry: Entry | None) -> str:
    """Return what is said while assets are waited for; `entry`: of the first, of which it says who
    works on it.
    """
    operation = RESOURCES[keys[0].resource].operation if keys[0].resource in RESOURCES else None
    noun = f"{operation.noun if operation else keys[0].resource}{'s' if len(keys) > 1 else ''}"
    known = (
        f"{entry.by}, since {entry.began_at}" if entry and entry.state == INTENT else "another task"
    )
    return printable(f"{noun} {listing([key.name for key in keys])}: waiting for {known}")


def standing(operation: Operation, item: dict) -> str:
    """Return in words how an item of a list has ended, or in check mode what is to become of it."""
    if "plan" in item:
        return _PLANS[item["plan"]]
    if "skipped" in item:
        return "not begun"
    if item["outcome"] in (UNKNOWN, REJECTED):
        return "in doubt" if item["outcome"] == UNKNOWN else "rejected"
    if item["changed"]:
        return operation.done
    return "differs" if "differs" in item else "not sent" if item["failed"] else "unchanged"


def tally(operation: Operation, standings: Iterable[str], is_plan: bool) -> dict[str, int]:
    """Return how many assets of a list have each standing, in the order in which it is told."""
    found, words = Counter(standings), _PLANNED if is_plan else (operation.done, *_ENDED)
    always = words[:4] if found and not is_plan else ()
    return {word: found[word] for word in words if found[word] or word in always}


def counted(counts: dict[str, int]) -> str:
    """Return a tally as a text."""
    return ", ".join(f"{number:,} {word}" for word, number in counts.items())


def result_lines(operation: Operation, result: dict, seconds: float, width: int) -> list[str]:
    """Return what a list has done: a line of counts, then what failed or lost fields, each cause
    once.

    `result`: of all items; `width`: in columns.
    """
    counts = counted(
        tally(operation, (standing(operation, item) for item in result["results"]), is_plan=False)
    )
    took = f"{seconds:,.0f} s{_waited(result['results'])}".replace(" ", _UNBROKEN)
    told = f"{counts}, {took}" if counts else EMPTY
    head = textwrap.wrap(f"{operation.noun}s: {told}", width, subsequent_indent="  ")
    problems = [item for item in result["results"] if item["failed"] or "lost" in item]
    return [*(line.replace(_UNBROKEN, " ") for line in head), *_problems(problems, width)]


def _waited(items: list[dict]) -> str:
    """Return in words how many 429s there were, and how long a wait after one of them was under
    way.
    """
    waits = sorted(
        (began, began + seconds) for item in items for began, seconds in item.get("waits", ())
    )
    waited = sum(until - began for began, until in merged(waits))
    return f" ({len(waits):,} x 429, {waited:,.0f} s waited)" if waits else ""


def merged(spans: list[tuple[float, float]]) -> list[tuple[float, float]]:
    """Return from when to when at least one of the sorted spans is."""
    found: list[tuple[float, float]] = []
    for first, last in spans:
        begun, until = found.pop() if found and first <= found[-1][1] else (first, last)
        found.append((begun, max(last, until)))
    return found


def _problems(items: list[dict], width: int) -> list[str]:
    """Return the lines about items that failed or lost fields: the names of those with one cause,
    then that cause.
    """
    by_cause: dict[tuple[str, str], list[str]] = {}
    for item in items:
        mark = "?" if item["outcome"] == UNKNOWN else "x" if item["failed"] else "!"
        by_cause.setdefault((mark, message_of(item).text), []).append(item["item"])
    lines = []
    for (mark, cause), names in list(by_cause.items())[:_MOST_PROBLEMS]:
        lines += [f"  {mark} {line}" for line in _wrapped(listing(names), width - 4)[:2]]
        lines += [f"      {line}" for line in _wrapped(cause, width - 6)]
    more = len(by_cause) - _MOST_PROBLEMS
    return [*lines, *([f"  and {more:,} more causes"] if more > 0 else []), *commands(items)]


def commands(items: list[dict]) -> list[str]:
    """Return a line for each command of the messages of items, whole, so that it can be copied."""
    found = dict.fromkeys(message_of(item).command for item in items)
    return [f"  To settle it: {printable(command)}" for command in found if command]


def _wrapped(text: str, width: int) -> list[str]:
    return textwrap.wrap(
        printable(text), max(width, 20), break_long_words=False, break_on_hyphens=False
    )


def shortened(line: str, width: int) -> str:
    """Return a line without control characters, and with an ellipsis at its end if it is longer
    than `width`.
    """
    return printable(line) if len(line) <= width else f"{printable(line[: width - 3])}..."


def shown(value: Any) -> str:
    """Return a value in short: text as it is, what a list or dict holds without brackets."""
    if isinstance(value, dict):
        names_matter = any(isinstance(item, (bool, dict, list)) for item in value.values())
        parts = [
            f"{key} {shown(item)}" if names_matter else shown(item) for key, item in value.items()
        ]
        text = " ".join(parts)
    elif isinstance(value, list):
        text = ", ".join(map(shown, value))
    else:
        text = value if isinstance(value, str) else json.dumps(value)
    return shortened(text or "none", _MAX_SHOWN)


def nothing_found(ledger: str, filters: dict[str, Any], counts: dict[str, int]) -> str:
    """Return what is said when no entry matches; `counts`: how many entries are in each state
    without the filters.
    """
    there = ", ".join(f"{count:,} {state}" for state, count in sorted(counts.items()))
    if not there:
        return printable(f"Nothing is recorded in {ledger}.")
    if filters == {"states": [IN_DOUBT]}:
        return printable(f"Nothing is in doubt in {ledger}.")
    parts = [
        f"{name}: {', '.join(value) if isinstance(value, list) else value}"
        for name, value in filters.items()
    ]
    return printable(
        f"No entry of {ledger} matches {'; '.join(parts)}. Without these filters there are {there}."
    )


def written_lines(file: str, entries: list[dict], settle: str) -> list[str]:
    """Return what is said of a file of entries; `settle`: the command that records what is filled
    in there.
    """
    doubtful = sum("settle" in entry for entry in entries)
    lines = [f"{len(entries):,} entries were written to {printable(file)}"]
    if doubtful:
        lines += [
            (
                f"{doubtful:,} of them are in doubt. Fill in the id of each machine that is on the service, and the"
                " state absent for each that is not; then run:"
            ),
            settle,
        ]
    return lines


def ledger_lines(listed: dict, by_file: list[str]) -> list[str]:
    """Return the entries of ledger_info as lines: a table, then what to do about the entries in
    doubt.

    `by_file`: the commands that settle them by a file.
    """
    entries = listed["entries"]
    counts = ", ".join(f"{count:,} {state}" for state, count in listed["counts"].items() if count)
    rows = [_HEAD, *map(_row, entries)]
    widths = [max(map(len, column)) for column in zip(*rows)]
    head, *rows = ("  ".join(map(str.ljust, row, widths)).rstrip() for row in rows)
    lines, group = [printable(f"{listed['ledger']}: {counts}"), head], None
    for entry, row in zip(entries, rows):
        if group != (group := (entry["resource"], entry["base_url"])):
            lines.append(printable("{} at {}".format(*group)))
        lines.append(row)
    return [*lines, *_settling(entries, by_file)]


def edit_lines(counts: dict[str, int], names: dict[str, list[str]], is_plan: bool) -> list[str]:
    """Return what the edit of a list has done, or would do: a line of counts, then the names."""
    words = {kind: kind.replace("_", " as ") for kind in counts if kind != "in_doubt"}
    told = {words[kind]: count for kind, count in counts.items() if kind in words and count}
    left = f"{counts['in_doubt']:,} still in doubt"
    head = (
        f"ledger entries{' in check mode' if is_plan else ''}: {counted({**told}) or EMPTY}; {left}"
    )
    lines = [
        f"  {words[kind]}: {printable(listing(found))}" for kind, found in names.items() if found
    ]
    return [head, *lines]


def _row(entry: dict) -> tuple[str, ...]:
    since = entry["changed_at"].replace("T", " ")[:16]
    attributes = {**_attributes(entry["sent"]), **_attributes(entry["asset"])}
    name, asset = entry.get("name") or entry.get("id"), entry["asset"] or {}
    cells = (
        name,
        entry["state"],
        since,
        attributes.get("ip"),
        attributes.get("team"),
        asset.get("id"),
    )
    return tuple(printable(str(cell or "")) for cell in cells)


def _attributes(body: dict | None) -> dict:
    attributes = (body or {}).get("attributes")
    return attributes if isinstance(attributes, dict) else {}


def _settling(entries: list[dict], by_file: list[str]) -> list[str]:
    doubtful = [entry for entry in entries if "settle" in entry]
    machines = [entry for entry in doubtful if "name" in entry]
    lines = [_IN_FLIGHT] if any(entry["state"] == INTENT for entry in machines) else []
    lines += ["Look for each machine on the service."] if machines else []
    for machine in machines[:_MAX_SETTLED]:
        lines += _steps(printable(machine["name"]), machine)
    if len(machines) > _MAX_SETTLED:
        lines += [_BY_FILE, *by_file]
    return [*lines, _ROLES] if len(machines) < len(doubtful) else lines


def _steps(name: str, machine: dict) -> list[str]:
    if not machine["settle"]:
        return [
            f"{name} cannot be put on a command line: use a task of infrastructure.services.ledger_entry."
        ]
    there, gone = f"If {name} is there, record it", "If it is not there"
    if machine["state"] == ACCEPTED:
        there, gone = f"The service accepted {name}: record it", "If somebody has removed it"
    record, remove = machine["settle"]
    sent = ", ".join(f"{key} {shown(value)}" for key, value in _attributes(machine["sent"]).items())
    gone = f"{gone}, remove its entry, and the next run creates it:"
    return [
        f"{name} was sent with {printable(sent) or 'no attributes'}.",
        f"{there}, with its id at the end:",
        record,
        gone,
        remove,
    ]
