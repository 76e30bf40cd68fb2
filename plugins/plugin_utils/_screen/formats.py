# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The run of a report as text: JSON, JUnit XML for CI systems, a page for people, Markdown for a merge request."""

from __future__ import annotations

import json
import re
from typing import Callable, Iterable
from xml.etree import ElementTree

from ...module_utils._errors import UNKNOWN
from .plan import note, own_fields, shown
from .screen import counted, shortened

FORMAT = "infrastructure.services report"
PLANNED = "planned"  # the state of a run in check mode
_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")  # XML 1.0, section 2.2
_MARKED = "<!-- infrastructure.services report -->\n"
_NOT_PLAIN = re.compile(r"[^A-Za-z0-9 .,:;()/-]")
_COUNTED = {"failure": "failures", "error": "errors", "skipped": "skipped"}
_MOST_ROWS, _LONGEST_CELL = 100, 160  # in Markdown: more than a reviewer reads, less than a comment may have
_POLICY = "default-src 'none'; style-src 'unsafe-inline'"  # whatever the page contains, it neither runs nor loads it
_COLUMNS = {"result": "Result", "name": "Name", "resource": "Kind", "id": "Id", "address": "Address",
            "status": "Status", "seconds": "Seconds", "trace_id": "Trace", "note": "Note", "msg": "What is known"}
_STYLE = """
:root { color-scheme: light dark; --line: #8886; --problem: #d6334c }
body { font: 15px/1.5 system-ui, sans-serif; max-width: 75rem; margin: 2rem auto; padding: 0 1rem }
ul { display: flex; flex-wrap: wrap; gap: .5rem 2rem; padding: 0; list-style: none } b { display: block }
table { border-collapse: collapse; width: 100% }
th, td { padding: .3rem 1rem .3rem 0; text-align: left; vertical-align: top; border-bottom: 1px solid var(--line) }
td { overflow-wrap: anywhere } td:nth-child(2) { min-width: 8rem } label { margin-right: 1rem }
td:nth-child(1), td:nth-child(3), label { white-space: nowrap } tr.problem td:nth-child(1) { color: var(--problem) }
figure { margin: 0 } svg { width: 100%; height: 8rem; border: solid var(--line); border-width: 0 0 1px 1px }
path { stroke: #3b82c4; stroke-width: 4; stroke-linecap: round; vector-effect: non-scaling-stroke }
path.problem { stroke: var(--problem) }
@media (max-width: 40rem) { thead { display: none } tr { display: block; border-bottom: 1px solid var(--line) }
  td { display: inline-block; border: 0; padding: .1rem 1rem .1rem 0 } td:empty { display: none } }
"""


def as_json(run: dict) -> str:
    """Return JSON, whose first lines say what it is."""
    return json.dumps({"format": FORMAT, "runs": [run]}, indent=1) + "\n"


def as_xml(run: dict) -> str:
    """Return JUnit XML: an asset is a test case, its module a suite."""
    root = ElementTree.Element("testsuites", name="infrastructure.services")
    for resource in run["counts"]:
        _add_suite(root, run, resource, [asset for asset in run["assets"] if asset["resource"] == resource])
    return f"{ElementTree.tostring(root, encoding='unicode')}\n"


def as_html(run: dict) -> str:
    """Return a page that needs no script and no network: counts, requests over time, and all assets, problems first."""
    page = ElementTree.Element("html", lang="en")
    head, body = _add(page, "head"), _add(page, "body")
    _add(head, "meta", charset="utf-8")
    _add(head, "meta", name="viewport", content="width=device-width, initial-scale=1")
    _add(head, "meta", **{"http-equiv": "Content-Security-Policy", "content": _POLICY})
    what = "Plan for" if run["state"] == PLANNED else "Report of"
    _add(head, "title", title := f"{what} {run['service']}")
    _add(head, "style", _STYLE)
    _add(body, "h1", title)
    ledger = f", ledger {run['ledger']}" if run.get("ledger") else ""
    _add(body, "p", f"{run['began_at']} to {run['ended_at']}, run {run['run']} by {run['by']}{ledger}")
    run = noted(run)
    for resource, counts in run["counts"].items():
        _add(body, "h2", _heading(resource))
        numbers = _add(body, "ul")
        shared = _said(_shared(run, resource)[0])
        _add(body, "p", f"each new one: {', '.join(map(' '.join, shared))}") if shared else None
        for word, number in counts.items():
            item = _add(numbers, "li")
            _add(item, "b", f"{number:,}").tail = word
        _add_picture(body, [asset for asset in run["assets"] if asset["resource"] == resource])
    _add_table(body, sorted(run["assets"], key=_order))
    return f"<!DOCTYPE html>\n{_MARKED}{ElementTree.tostring(page, encoding='unicode', method='html')}\n"


def as_markdown(run: dict) -> str:
    """Return the counts, what new assets share, and a table of what is not unchanged, problems first."""
    run = noted(run)
    changes = [asset for asset in run["assets"] if asset["result"] != "unchanged"]
    changes.sort(key=_order)
    lines = [f"{_plain(run['service'])}\n"]
    for resource, counts in run["counts"].items():
        lines.append(f"**{_heading(resource)}**: {counted(counts)}\n")
        shared = _shared(run, resource)[0]
        lines += [f"each new one: {_plain(', '.join(map(' '.join, _said(shared))))}\n"] if shared else []
    lines += ["| Result | Name | Note |", "|---|---|---|"] if changes else []
    for asset in changes[:_MOST_ROWS]:
        name, note = (_plain(shortened(asset.get(field, ""), _LONGEST_CELL)) for field in ("name", "note"))
        lines.append(f"| {asset['result']} | <code>{name}</code> | {note} |")
    more = len(changes) - _MOST_ROWS
    return _MARKED + "\n".join([*lines, *([f"\nand {more:,} more"] if more > 0 else []), ""])


# By the suffix of the file: how its text begins, by which a report is known from any other file, and what makes it.
FORMATS: dict[str, tuple[str, Callable[[dict], str]]] = {
    ".md": (_MARKED, as_markdown),
    ".html": (f"<!DOCTYPE html>\n{_MARKED}", as_html),
    ".xml": ('<testsuites name="infrastructure.services"', as_xml),
    ".json": (f'{{\n "format": "{FORMAT}",\n', as_json),
}


def noted(run: dict) -> dict:
    """Return a run with what the plan says of each asset as `note`; what new ones share is for their heading."""
    own = {}
    for resource in run["counts"]:
        names, owns = [asset["name"] for asset in _new(run, resource)], _shared(run, resource)[1]
        own.update({(resource, name): fields for name, fields in zip(names, owns)})
    assets = [{**asset, **_note(asset, own.get((asset["resource"], asset["name"])))} for asset in run["assets"]]
    return {**run, "assets": assets}


def _note(asset: dict, own: dict | None) -> dict[str, str]:
    return {"note": note(asset, own)} if asset.get("plan", "keep") != "keep" else {}


def _new(run: dict, resource: str) -> list[dict]:
    return [asset for asset in run["assets"] if asset["resource"] == resource and asset.get("plan") == "create"]


def _shared(run: dict, resource: str) -> tuple[dict, list[dict]]:
    return own_fields(asset["body"] for asset in _new(run, resource))


def _said(fields: dict) -> list[tuple[str, str]]:
    return [(name, shown(value)) for name, value in fields.items()]


def _is_problem(asset: dict) -> bool:
    """Whether somebody has to look at an asset; why one was not begun is said of another."""
    is_wrong = asset["failed"] or asset["outcome"] == UNKNOWN or asset["result"] in ("differs", "in doubt")
    return is_wrong and not asset.get("skipped")


def _order(asset: dict) -> tuple[bool, bool]:
    """Return by what assets are sorted: problems first, what is unchanged last."""
    return not _is_problem(asset), asset["result"] == "unchanged"


def _css_class(asset: dict) -> str:
    return "problem" if _is_problem(asset) else "plain"


def _heading(resource: str) -> str:
    return f"{resource.replace('_', ' ')}s"


def _plain(text: str) -> str:
    """Return text without anything that means something in Markdown or HTML."""
    return _NOT_PLAIN.sub(lambda found: f"&#{ord(found[0])};", _valid(text))


def _add_picture(body: ElementTree.Element, assets: list[dict]) -> None:
    """Add a dot for each asset that was begun: to the right, when that was; upwards, how long it took."""
    timed = [asset for asset in assets if "begun_after" in asset]
    if not timed:
        return
    end, longest = (max(asset[field] for asset in timed) for field in ("begun_after", "seconds"))
    figure = _add(body, "figure")
    picture = _add(figure, "svg", viewBox="-9 -9 818 118", preserveAspectRatio="none", role="img")
    for kind in ("plain", "problem"):
        some = [asset for asset in timed if _css_class(asset) == kind]
        dots = {(round(800 * asset["begun_after"] / (end or 1)), round(100 - 100 * asset["seconds"] / (longest or 1)))
                for asset in some}
        _add(picture, "path", d="".join(f"M{right} {down}h0" for right, down in sorted(dots)), **{"class": kind})
    _add(figure, "figcaption", f"Requests: {len(timed):,}, begun within {end:.1f} s; the longest took {longest:.1f} s")


def _add_filter(body: ElementTree.Element, results: Iterable[str]) -> None:
    """Add a choice of the rows that the table shows; rules of style make it work, since nothing runs on the page."""
    choices, hidden = _add(body, "p"), []
    for number, result in enumerate(("all", *results)):
        shown = {} if number else {"checked": "checked"}
        choice = _add(choices, "label")
        _add(choice, "input", type="radio", name="shown", id=f"shown{number}", **shown).tail = result
        hidden.append(f"body:has(#shown{number}:checked) tr[data-result]:not([data-result='{result}'])")
    _add(body, "style", f"{', '.join(hidden[1:])} {{ display: none }}")


def _add_table(body: ElementTree.Element, assets: list[dict]) -> None:
    if not assets:
        return
    columns = {field: title for field, title in _COLUMNS.items() if any(asset.get(field) for asset in assets)}
    _add_filter(body, dict.fromkeys(asset["result"] for asset in assets))
    table = _add(body, "table")
    head = _add(_add(table, "thead"), "tr")
    for title in columns.values():
        _add(head, "th", title)
    rows = _add(table, "tbody")
    for asset in assets:
        row = _add(rows, "tr", **{"data-result": asset["result"], "class": _css_class(asset)})
        for field in columns:
            _add(row, "td", str(asset.get(field, "")))


def _add_suite(root: ElementTree.Element, run: dict, resource: str, assets: list[dict]) -> None:
    kinds = [_kind(asset) for asset in assets]
    seconds = sum(asset.get("seconds", 0) for asset in assets)
    suite = _add(root, "testsuite", name=f"{resource} (run {run['run']})", timestamp=run["began_at"])
    suite.attrib.update(tests=str(len(assets)), time=f"{seconds:.3f}")
    suite.attrib.update({count: str(kinds.count(kind)) for kind, count in _COUNTED.items()})
    for asset, kind in zip(assets, kinds):
        case = _add(suite, "testcase", classname=resource, name=asset["name"], time=f"{asset.get('seconds', 0):.3f}")
        if kind:
            _add(case, kind, type=asset["outcome"], message=asset.get("msg", ""))
        elif asset.get("msg"):  # a warning
            _add(case, "system-out", asset["msg"])


def _kind(asset: dict) -> str:
    """Return the element that says how a case ended, empty for success: a failure in doubt is an `error`."""
    if asset["failed"]:
        return "error" if asset["outcome"] == UNKNOWN else "failure"
    return "skipped" if asset.get("skipped") or asset["outcome"] == UNKNOWN else ""


def _add(parent: ElementTree.Element, tag: str, text: str = "", **attributes: str) -> ElementTree.Element:
    added = ElementTree.SubElement(parent, tag, {name: _valid(value) for name, value in attributes.items()})
    added.text = _valid(text)
    return added


def _valid(text: str) -> str:
    return _NOT_XML.sub("\ufffd", text)
