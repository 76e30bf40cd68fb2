# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The page of a report: its data. page.html draws it."""

from __future__ import annotations

import base64
import hashlib
import json
import math
import re
from collections import Counter
from pathlib import Path
from typing import Any

from jinja2 import Environment, StrictUndefined

from .screen import counted, merged

# How each result is drawn: its mark, as on the screen, and the name of its colour in the template.
_LOOKS = {
    "created": "+good",
    "to create": "+good",
    "updated": "~change",
    "to update": "~change",
    "in doubt": "?doubt",
    "differs": "!differs",
    "rejected": "xbad",
    "not sent": "xbad",
    "unchanged": "=calm",
}
_LEFT_ALONE = ".calm"
_COLUMNS, _LINES = 480, 80  # of the picture: dots in one place are one dot
_MOST_NAMED = 10
_INLINE = re.compile("<(style|script)>(.*?)</", re.DOTALL)


def as_html(run: dict) -> str:
    """Return the page of a run, one file that loads nothing; `run`: as it is told."""
    source = Path(__file__).with_name("page.html").read_text("utf-8")
    digests = {
        kind: hashlib.sha256(text.encode()).digest() for kind, text in _INLINE.findall(source)
    }
    policy = "; ".join(
        f"{kind}-src 'sha256-{base64.b64encode(each).decode()}'" for kind, each in digests.items()
    )
    template = Environment(
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_visible,
        trim_blocks=True,
        lstrip_blocks=True,
    ).from_string(source)
    return f"{template.render(page_data(run), policy=policy, whole=_whole)}\n"


def page_data(run: dict) -> dict[str, Any]:
    """Return what the page says, in the order in which it says it; times in seconds."""
    assets = [
        {**asset, "mark": _look(asset["result"])[0], "look": _look(asset["result"])[1:]}
        for asset in run["assets"]
    ]
    traces = {asset.get("trace_id") for asset in assets} - {None}
    return {
        **run,
        "assets": assets,
        "verdict": _verdict(run),
        "trace": traces.pop() if len(traces) == 1 else "",
        "lists": [
            {
                **each,
                "picture": _picture(
                    [asset for asset in assets if asset["resource"] == each["resource"]]
                ),
            }
            for each in run["lists"]
        ],
        "problems": _problems(assets),
        "results": Counter(asset["result"] for asset in assets),
        "looks": {word: _look(word) for each in run["lists"] for word in each["counts"]},
        "columns": {field for asset in assets for field in asset},
    }


def _look(result: str) -> str:
    return _LOOKS.get(result, _LEFT_ALONE)


def _verdict(run: dict) -> str:
    """Return how it went in a few words: what is wrong if anything is, else all; of a plan what
    would be done.
    """
    found = Counter()
    for each in run["lists"]:
        found.update(each["counts"])
    wanted = "?x!+~" if run["state"] == "planned" else "?x!"
    some = {word: number for word, number in found.items() if number and _look(word)[0] in wanted}
    of_all = f" of {sum(found.values()):,}" if some and wanted == "?x!" else ""
    return counted(some or +found) + of_all or "nothing is listed"


def _problems(assets: list[dict]) -> list[dict]:
    """Return what somebody has to do something about: the names of the assets with one cause, then
    that cause.
    """
    found: dict[tuple, dict] = {}
    for asset in assets:
        if not asset["is_problem"] and not (asset["result"] == "not begun" and asset.get("msg")):
            continue
        cause = asset.get("cause") or asset.get("note") or asset.get("msg", "")
        problem = found.setdefault(
            (asset["result"], cause), {**asset, "cause": cause, "names": [], "commands": {}}
        )
        problem["names"].append(asset["name"])
        problem["commands"].update({asset["command"]: None} if asset.get("command") else {})
    return [
        {
            **each,
            "names": each["names"][:_MOST_NAMED],
            "more": max(len(each["names"]) - _MOST_NAMED, 0),
        }
        for each in found.values()
    ]


def _picture(assets: list[dict]) -> dict[str, Any] | None:
    """Return what is drawn of the requests of a list, None if there were none."""
    timed = [asset for asset in assets if "begun_after" in asset and "seconds" in asset]
    if not timed:
        return None
    end = max(asset["begun_after"] + asset["seconds"] for asset in timed) or 1.0
    longest = max(asset["seconds"] for asset in timed) or 1.0
    waits = sorted(
        (begun, begun + seconds) for asset in timed for begun, seconds in asset.get("waits", ())
    )
    # Begin and length are rounded to a millisecond each, so one that ended may seem to overlap the
    # next.
    spans = [
        (begun := asset["begun_after"], begun + max(asset["seconds"] - 0.001, 0)) for asset in timed
    ]
    flight, waiting = _in_flight(spans, waits, end), merged(waits)
    return {
        "end": end,
        "longest": longest,
        "most": max(number for _at, number in flight),
        "flight": flight,
        "waits": [(first, last - first) for first, last in waiting],
        "limited": len(waits),
        "waited": sum(last - first for first, last in waiting),
        "dots": _dots(timed, end, longest),
        "times": _ticks(end),
        "latencies": _ticks(longest),
        "number": len(timed),
        "legend": {asset["result"]: asset for asset in timed},
    }


def _dots(timed: list[dict], end: float, longest: float) -> list[dict]:
    """Return a dot for each request, or for several of one result in one place; problems last,
    above the others.
    """
    found: dict[tuple, dict] = {}
    for asset in sorted(timed, key=lambda asset: asset["is_problem"]):
        place = (
            round(_COLUMNS * asset["begun_after"] / end),
            round(_LINES * asset["seconds"] / longest),
        )
        found.setdefault((*place, asset["result"]), {**asset, "names": []})["names"].append(
            asset["name"]
        )
    return [*found.values()]


def _in_flight(spans: list[tuple], waits: list[tuple], end: float) -> list[tuple[float, int]]:
    """Return how many requests were in flight, from when on; what waited was not."""
    begin = [(first, 1) for first, _last in spans] + [(last, 1) for _first, last in waits]
    stop = [(last, -1) for _first, last in spans] + [(first, -1) for first, _last in waits]
    number, most = 0, {0: 0}
    for at, step in sorted(begin + stop):
        column, number = math.ceil(_COLUMNS * at / end), number + step
        most[column], most[column + 1] = max(number, most.get(column, 0)), number
    return [
        (end * column / _COLUMNS, number) for column, number in most.items() if column <= _COLUMNS
    ]


def _ticks(end: float) -> list[float]:
    """Return round numbers from 0 up to the end, up to eight of them."""
    step = 10.0 ** math.floor(math.log10(end))
    step *= next(part for part in (0.2, 0.5, 1, 2) if end / (step * part) < 8)
    return [float(f"{step * number:.6g}") for number in range(int(end / step) + 1)]


def _whole(value: Any) -> str:
    return value if value and isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _visible(value: Any) -> Any:
    """Return text with what is not seen, or changes how other text is seen, as its number."""
    if value is None or not isinstance(value, str) or value.isprintable():
        return "" if value is None else value
    return "".join(letter if letter.isprintable() else f"\\u{ord(letter):04x}" for letter in value)
