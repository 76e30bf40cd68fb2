# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Lines about a list: its progress, its waits, and its result."""

from __future__ import annotations

import math
import textwrap
import time
from itertools import chain
from typing import Callable, Iterable

from ...module_utils._call.operation import Operation
from ...module_utils._call.place import ListStatus
from ...module_utils._errors import REJECTED, listing, quantity
from ...module_utils._resources import RESOURCES
from ...module_utils._secrets import printable
from ...module_utils._task.signals import GRACE
from .._ledger.entries import INTENT, Entry, Key
from .assets import IN_DOUBT, UNCHANGED, Asset, counted, is_in_doubt, tally
from .text import wrapped

EMPTY = "the list is empty"
_UNBROKEN = "\xa0"  # a space at which no line ends
_FIRST_LINE, _NEXT_LINE = 2.0, 5.0  # seconds
_MOST_PROBLEMS = 10


class Progress:
    """Shows the progress of a list every few seconds."""

    def __init__(
        self, noun: str, say: Callable[[str], None], clock: Callable[[], float] = time.monotonic
    ) -> None:
        """`say`: displays a line; `clock`: in seconds."""
        self._noun = noun
        self._say = say
        self._clock = clock
        self._last = clock()
        self._done = 0
        self._lines = 0
        self._due = self._last + _FIRST_LINE

    def show(self, status: ListStatus, by_ctrl_c: bool) -> None:
        """Show the progress, if it is time to; `by_ctrl_c`: whether Ctrl-C ends the list."""
        total, settled, ended, in_flight, is_ending = status
        if is_ending and in_flight and self._due < math.inf:
            self._due = math.inf
            them = "it" if in_flight == 1 else "them"
            second = f"; a second Ctrl-C leaves {them} in doubt" if by_ctrl_c else ""
            self._say(f"waiting up to {GRACE:g} s for {quantity(in_flight, 'request')}{second}")
        now = self._clock()
        if now < self._due:
            return
        done = len(ended)
        rejected = sum(result.outcome == REJECTED for result in ended)
        rate = (done - self._done) / (now - self._last)
        self._last = now
        self._done = done
        self._due = now + _NEXT_LINE
        parts = [f"{self._noun}s: {settled + done:,} of {total:,}", f"{in_flight:,} in flight"]
        parts.append(f"{sum(map(is_in_doubt, ended)):,} in doubt")
        if rejected:
            parts.append(f"{rejected:,} rejected")
        parts.append(f"{rate:,.0f}/s")
        # At first the pace still rises, so that an estimate would be many times too long.
        if rate and self._lines:
            parts.append(f"{(total - settled - done) / rate:,.0f} s left")
        self._lines += 1
        self._say(", ".join(parts))


def waiting_line(keys: list[Key], entry: Entry | None) -> str:
    """Return the line about assets that a task waits for; `entry`: of the first of them."""
    noun = keys[0].resource
    if noun in RESOURCES:
        noun = RESOURCES[noun].operation.noun
    if len(keys) > 1:
        noun = f"{noun}s"
    who = "another task"
    if entry and entry.state == INTENT:
        who = f"{entry.by}, since {entry.began_at}"
    return printable(f"{noun} {listing([key.name for key in keys])}: waiting for {who}")


def result_lines(
    operation: Operation, assets: list[Asset], seconds: float, width: int
) -> list[str]:
    """Return the result of a list: a line of counts, then each cause of a problem once.

    `width`: in columns.
    """
    counts = tally(operation, assets, is_plan=False)
    took = f"{seconds:,.0f} s{_waited(assets)}".replace(" ", _UNBROKEN)
    text = _fitting(f"{operation.noun}s", counts, took, width) if counts else ""
    head = textwrap.wrap(text or f"{operation.noun}s: {EMPTY}", width, subsequent_indent="  ")
    problems = [asset for asset in assets if asset.failed or asset.lost]
    return [*(line.replace(_UNBROKEN, " ") for line in head), *_problems(problems, width)]


def _fitting(noun: str, counts: dict[str, int], took: str, width: int) -> str:
    """Return the line of counts, without some that are 0, first the unchanged, if it then fits."""
    told = dict(counts)
    lines = [f"{noun}: {counted(told)}, {took}"]
    for word in (UNCHANGED, *reversed(counts)):
        if told.get(word) == 0:
            del told[word]
            lines.append(f"{noun}: {counted(told)}, {took}")
    return next((line for line in lines if len(line) <= width), lines[0])


def _waited(assets: list[Asset]) -> str:
    """Return in words the number of 429s, and how long at least one asset waited."""
    waits = spans(assets)
    if not waits:
        return ""
    waited = sum(until - began for began, until in merged_spans(waits))
    return f" ({len(waits):,} x 429, {waited:,.0f} s waited)"


def spans(assets: Iterable[Asset]) -> list[tuple[float, float]]:
    """Return from when to when each wait of some assets was, sorted."""
    waits = chain.from_iterable(asset.waits for asset in assets)
    return sorted((began, began + seconds) for began, seconds in waits)


def merged_spans(spans: list[tuple[float, float]]) -> list[tuple[float, float]]:
    """Return from when to when at least one of the sorted spans is."""
    found: list[tuple[float, float]] = []
    for first, last in spans:
        if found and first <= found[-1][1]:
            begun, until = found.pop()
            found.append((begun, max(last, until)))
        else:
            found.append((first, last))
    return found


def _problems(assets: list[Asset], width: int) -> list[str]:
    """Return the lines about problems: the names of those with one cause, then that cause."""
    by_cause: dict[tuple[str, str], list[str]] = {}
    for asset in assets:
        by_cause.setdefault((_mark(asset), asset.cause), []).append(asset.name)
    lines: list[str] = []
    for (mark, cause), names in list(by_cause.items())[:_MOST_PROBLEMS]:
        lines += [f"  {mark} {line}" for line in wrapped(listing(names), width - 4)[:2]]
        lines += [f"      {line}" for line in wrapped(cause, width - 6)]
    if len(by_cause) > _MOST_PROBLEMS:
        lines.append(f"  and {quantity(len(by_cause) - _MOST_PROBLEMS, 'more cause')}")
    return lines + commands(assets)


def _mark(asset: Asset) -> str:
    if asset.result == IN_DOUBT:
        return "?"
    return "x" if asset.failed else "!"


def commands(assets: Iterable[Asset]) -> list[str]:
    """Return a line for each command of the messages, whole, so that it can be copied."""
    found = dict.fromkeys(asset.command for asset in assets if asset.command)
    return [f"  To settle it: {printable(command)}" for command in found]
