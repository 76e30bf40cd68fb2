# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The picture of the requests of a list: when each began, how long it took, how many at once."""

from __future__ import annotations

import math
from dataclasses import dataclass

from .assets import Asset
from .screen import merged_spans, spans

_COLUMNS, _LINES = 480, 80  # of the picture: dots in one place are one dot
Span = tuple[float, float]  # from when to when


@dataclass(frozen=True)
class Dot:
    """Requests with one result, in one place of the picture: the first of them, and all names."""

    asset: Asset
    begun: float
    seconds: float
    names: list[str]


@dataclass(frozen=True)
class Picture:
    """The content of a picture; times in seconds."""

    requests: int
    end: float
    longest: float
    flight: list[tuple[float, int]]
    limited: int  # 429s
    waits: list[Span]
    dots: list[Dot]
    times: list[float]
    latencies: list[float]
    legend: list[str]


def picture_of(assets: list[Asset]) -> Picture | None:
    """Return the picture of a list, None if nothing was sent."""
    dots = []
    for asset in assets:
        if asset.begun_after is not None and asset.seconds is not None:
            dots.append(Dot(asset, asset.begun_after, asset.seconds, [asset.name]))
    if not dots:
        return None
    end = max(dot.begun + dot.seconds for dot in dots) or 1.0
    longest = max(dot.seconds for dot in dots) or 1.0
    waits = spans([dot.asset for dot in dots])
    return Picture(
        requests=len(dots),
        end=end,
        longest=longest,
        flight=_in_flight(dots, waits, end),
        limited=len(waits),
        waits=merged_spans(waits),
        dots=_merged_dots(dots, end, longest),
        times=_ticks(end),
        latencies=_ticks(longest),
        legend=[*dict.fromkeys(dot.asset.result for dot in dots)],
    )


def _merged_dots(dots: list[Dot], end: float, longest: float) -> list[Dot]:
    """Return a dot for each place and result; problems last, above the others."""
    found: dict[tuple[float, float, str], Dot] = {}
    for dot in sorted(dots, key=lambda dot: dot.asset.is_problem):
        column = round(_COLUMNS * dot.begun / end)
        line = round(_LINES * dot.seconds / longest)
        place = column, line, dot.asset.result
        if place in found:
            found[place].names.append(dot.asset.name)
        else:
            found[place] = dot
    return [*found.values()]


def _in_flight(dots: list[Dot], waits: list[Span], end: float) -> list[tuple[float, int]]:
    """Return the number of requests in flight over time; one that waits is not in flight."""
    steps = []
    for dot in dots:
        # Begin and length are rounded to a millisecond each: without one less, a request could
        # seem to overlap the next one.
        steps += [(dot.begun, 1), (dot.begun + max(dot.seconds - 0.001, 0), -1)]
    for first, last in waits:
        steps += [(first, -1), (last, 1)]
    number = 0
    most = {0: 0}
    for at, step in sorted(steps):
        column = math.ceil(_COLUMNS * at / end)
        number += step
        most[column] = max(number, most.get(column, 0))
        most[column + 1] = number
    most.pop(_COLUMNS + 1, None)
    return [(end * column / _COLUMNS, number) for column, number in most.items()]


def _ticks(end: float) -> list[float]:
    """Return round numbers from 0 up to the end, up to eight of them."""
    step = 10.0 ** math.floor(math.log10(end))
    step *= next(part for part in (0.2, 0.5, 1, 2) if end / (step * part) < 8)
    return [float(f"{step * number:.6g}") for number in range(int(end / step) + 1)]
