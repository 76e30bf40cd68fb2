# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Lines about a list: its progress, and its result."""

from __future__ import annotations

import math
import textwrap
import time
from typing import Callable, Iterable

from ...module_utils._call.policy import Operation
from ...module_utils._errors import REJECTED, listing, quantity
from ...module_utils._result import Result
from ...module_utils._secrets import printable
from ...module_utils._task.loop import GRACE
from .rows import by_cause, counted, is_in_doubt, mark, tally

_FIRST_LINE, _NEXT_LINE = 2.0, 5.0  # seconds
_MOST_PROBLEMS = 10
_MOST_LINES = 20  # of one text


class Progress:
    """Shows the progress of a list every few seconds."""

    def __init__(self, noun: str, say: Callable[[str], None]) -> None:
        """`say`: displays a line."""
        self._noun = noun
        self._say = say
        self._due = time.monotonic() + _FIRST_LINE

    def show(
        self, total: int, settled: int, ended: list[Result], in_flight: int, is_ending: bool
    ) -> None:
        """Show the progress, if it is time to.

        `total`: items of the list; `settled`: those with nothing to send; `ended`: results of
        others, so far; `in_flight`: requests; `is_ending`: whether the list only waits for these.
        """
        if is_ending and in_flight and self._due < math.inf:
            self._due = math.inf
            self._say(f"waiting up to {GRACE:g} s for {quantity(in_flight, 'request')}")
        now = time.monotonic()
        if now < self._due:
            return
        self._due = now + _NEXT_LINE
        doubtful = sum(map(is_in_doubt, ended))
        rejected = sum(result.outcome == REJECTED for result in ended)
        self._say(
            f"{self._noun}s: {settled + len(ended):,} of {total:,}, {in_flight:,} in flight,"
            f" {doubtful:,} in doubt, {rejected:,} rejected"
        )


def result_lines(operation: Operation, rows: list[Result], seconds: float, width: int) -> list[str]:
    """Return the result of a list: a line of counts, then each cause of a problem once.

    `width`: in columns.
    """
    head = f"{operation.resource.noun}s: {counted(tally(rows))}, {seconds:,.0f} s"
    lines = wrapped(head, width, "", "  ")
    failed = [row for row in rows if row.failed or row.lost]
    causes = by_cause(failed)
    for same in causes[:_MOST_PROBLEMS]:
        names = listing([str(row.item) for row in same])
        lines += wrapped(names, width, f"  {mark(same[0])} ", "    ")
        lines += wrapped(same[0].msg.text, width, "      ", "      ")
    if len(causes) > _MOST_PROBLEMS:
        lines.append(f"  and {quantity(len(causes) - _MOST_PROBLEMS, 'more cause')}")
    return lines + command_lines(failed)


def command_lines(rows: Iterable[Result]) -> list[str]:
    """Return a line for each command that settles some rows, whole, so that it can be copied."""
    commands = dict.fromkeys(row.command for row in rows if row.command)
    return [f"  To settle it: {printable(command)}" for command in commands]


def wrapped(text: str, width: int, first: str = "", others: str = "") -> list[str]:
    """Return a text as printable lines; a word that is longer than `width` stays whole.

    `first`, `others`: begin the first line and the other ones. An ellipsis ends a text that is cut.
    """
    lines = textwrap.wrap(
        text,
        width,
        initial_indent=first,
        subsequent_indent=others,
        break_long_words=False,
        break_on_hyphens=False,
        max_lines=_MOST_LINES,
    )
    return [*map(printable, lines)]
