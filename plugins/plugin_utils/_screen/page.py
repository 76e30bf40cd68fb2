# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The page of a report: its data. page.html draws it."""

from __future__ import annotations

import base64
import hashlib
import json
import re
import shlex
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from jinja2 import Environment, StrictUndefined

from .assets import NOT_STARTED, PLANNED, Run, counted, result_word
from .picture import picture_of
from .plan import Row, field_name, lists_and_rows, risk

# How each result is drawn: its mark, as on the screen, and the name of its color in the template.
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
_INLINE = re.compile("<(style|script)>(.*?)</", re.DOTALL)


def as_html(run: Run, file: str) -> str:
    """Return the page of a run, one file that loads nothing; `file`: the JSON file beside it."""
    source = Path(__file__).with_name("page.html").read_text("utf-8")
    template = Environment(
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_visible,
        trim_blocks=True,
        lstrip_blocks=True,
    ).from_string(source)
    data = {**page_data(run), "policy": _policy(source), "approve": _approve(file)}
    functions = dict(
        look=look, risk=risk, whole=_whole_text, field_name=field_name, result_word=result_word
    )
    return f"{template.render(data, **functions)}\n"


def _approve(file: str) -> str:
    """Return the arguments with which ansible-playbook carries out a plan."""
    return f"-e {shlex.quote(f'fleet_approved={shlex.quote(file)}')}"


def _policy(source: str) -> str:
    """Return the policy that allows the style and the script of the page by their hashes."""
    rules = []
    for kind, text in _INLINE.findall(source):
        digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        rules.append(f"{kind}-src 'sha256-{digest}'")
    return "; ".join(rules)


def page_data(run: Run) -> dict[str, object]:
    """Return the data of the page; times in seconds."""
    lists, rows = lists_and_rows(run)
    traces = {row.asset.trace_id for row in rows if row.asset.trace_id}
    pictures = {}
    for each in lists:
        assets = [row.asset for row in rows if row.asset.resource == each.resource]
        pictures[each.resource] = picture_of(assets)
    return {
        "run": run,
        "lists": lists,
        "rows": rows,
        "pictures": pictures,
        "verdict": _verdict(run),
        "trace": traces.pop() if len(traces) == 1 else "",
        "problems": _problems(rows),
        "results": Counter(row.asset.result for row in rows),
        "columns": {name for row in rows for name, value in vars(row.asset).items() if value},
    }


def look(result: str) -> str:
    """Return the mark of a result, followed by the name of its color."""
    return _LOOKS.get(result, _LEFT_ALONE)


def _verdict(run: Run) -> str:
    """Return the result of a run in a few words: its problems, or the changes of a plan."""
    is_plan = run.state == PLANNED
    found: Counter[str] = Counter()
    for counts in run.counts.values():
        found.update(counts)
    found = +found  # without zeros
    wanted = "?x!+~" if is_plan else "?x!"
    some = {word: number for word, number in found.items() if look(word)[0] in wanted}
    begin = ""
    if found[NOT_STARTED] and not is_plan:
        some[NOT_STARTED] = found[NOT_STARTED]
        begin = "Stopped early: "
    if run.interrupted:
        begin = f"Interrupted, {run.interrupted}: "
    of_all = f" of {sum(found.values()):,}" if some and not is_plan else ""
    return f"{begin}{counted(some or found) or 'nothing is listed'}{of_all}"


@dataclass(frozen=True)
class Problem:
    """A problem of several assets, with one cause."""

    result: str
    cause: str
    names: list[str] = field(default_factory=list)
    commands: dict[str, None] = field(default_factory=dict)


def _problems(rows: list[Row]) -> list[Problem]:
    found: dict[tuple[str, str], Problem] = {}
    for row in rows:
        asset = row.asset
        cause = asset.cause or row.note or asset.msg
        if asset.plan == "update":
            cause = risk(asset)
        is_told = asset.is_problem or asset.result == NOT_STARTED or asset.plan == "update"
        if not is_told or not cause:
            continue
        problem = found.setdefault((asset.result, cause), Problem(asset.result, cause))
        problem.names.append(asset.name)
        if asset.command:
            problem.commands[asset.command] = None
    return [*found.values()]


def _whole_text(value: object) -> str:
    return value if value and isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _visible(value: object) -> object:
    """Return text with the code point of each invisible or bidirectional character instead of it."""
    if value is None:
        return ""
    if not isinstance(value, str) or value.isprintable():
        return value
    return "".join(letter if letter.isprintable() else f"\\u{ord(letter):04x}" for letter in value)
