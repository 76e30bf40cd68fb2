# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The run of a report as text: JSON, JUnit XML for CI systems, a page for people, Markdown for a merge request."""

from __future__ import annotations

import json
import re
from typing import Callable
from xml.etree import ElementTree

from ...module_utils._errors import UNKNOWN
from .screen import listed

PLANNED = "planned"  # the state of a run in check mode
_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")  # XML 1.0, section 2.2
_MARKED = "<!-- infrastructure.services report -->\n"
_NOT_PLAIN = re.compile(r"[^A-Za-z0-9 .,:;()/-]")
_COUNTED = {"failure": "failures", "error": "errors", "skipped": "skipped"}
_MOST_ROWS, _LONGEST_CELL = 100, 120  # in Markdown: more than a reviewer reads, less than a comment may have
_POLICY = "default-src 'none'; style-src 'unsafe-inline'"  # whatever the page contains, it neither runs nor loads it
_PROBLEMS = {"result": "Result", "name": "Name", "msg": "What is known, and what to do"}
_ALL = {"result": "Result", "name": "Name", "resource": "Kind", "status": "Status", "seconds": "Seconds",
        "trace_id": "Trace", "note": "Note"}
_STYLE = """
:root { color-scheme: light dark; --line: #8886; --problem: #d6334c }
body { font: 15px/1.5 system-ui, sans-serif; max-width: 75rem; margin: 2rem auto; padding: 0 1rem }
ul { display: flex; flex-wrap: wrap; gap: .5rem 2rem; padding: 0; list-style: none } b { display: block }
table { border-collapse: collapse; width: 100% }
th, td { padding: .3rem 1rem .3rem 0; text-align: left; vertical-align: top; border-bottom: 1px solid var(--line) }
td { overflow-wrap: anywhere } td:nth-child(1) { white-space: nowrap } td:nth-child(2) { min-width: 8rem }
tr.problem td:nth-child(1) { color: var(--problem) }
@media (max-width: 40rem) { thead { display: none } tr { display: block; border-bottom: 1px solid var(--line) }
  td { display: inline-block; border: 0; padding: .1rem 1rem .1rem 0 } td:empty { display: none } }
"""


def as_json(run: dict) -> str:
    """Return JSON, whose first lines say what it is."""
    return json.dumps({"format": "infrastructure.services report", "runs": [run]}, indent=1) + "\n"


def as_xml(run: dict) -> str:
    """Return JUnit XML: an asset is a test case, its module a suite."""
    root = ElementTree.Element("testsuites", name="infrastructure.services")
    for resource in run["counts"]:
        _add_suite(root, run, resource, [asset for asset in run["assets"] if asset["resource"] == resource])
    return f"{ElementTree.tostring(root, encoding='unicode')}\n"


def as_html(run: dict) -> str:
    """Return a page that needs no script and no network: counts, then problems, then all assets."""
    page = ElementTree.Element("html", lang="en")
    head, body = _add(page, "head"), _add(page, "body")
    _add(head, "meta", charset="utf-8")
    _add(head, "meta", name="viewport", content="width=device-width, initial-scale=1")
    _add(head, "meta", **{"http-equiv": "Content-Security-Policy", "content": _POLICY})
    _add(head, "title", title := "Plan" if run["state"] == PLANNED else "Report")
    _add(head, "style", _STYLE)
    _add(body, "h1", title)
    _add(body, "p", f"{run['began_at']} to {run['ended_at']}, run {run['run']}")
    for resource, counts in run["counts"].items():
        _add(body, "h2", _heading(resource))
        numbers = _add(body, "ul")
        for word, number in counts.items():
            item = _add(numbers, "li")
            _add(item, "b", f"{number:,}").tail = word
    problems = [asset for asset in run["assets"] if _is_problem(asset)]
    for heading, columns, assets in (("To look at", _PROBLEMS, problems), ("All", _ALL, run["assets"])):
        _add_table(body, heading, columns, assets)
    return f"<!DOCTYPE html>\n{_MARKED}{ElementTree.tostring(page, encoding='unicode', method='html')}\n"


def as_markdown(run: dict) -> str:
    """Return the counts, and a table of what is not unchanged, problems first."""
    changes = [asset for asset in run["assets"] if asset["result"] != "unchanged"]
    changes.sort(key=lambda asset: not _is_problem(asset))
    lines = [f"**{_heading(resource)}**: {listed(counts)}\n" for resource, counts in run["counts"].items()]
    lines += ["| Result | Name | Note |", "|---|---|---|"] if changes else []
    for asset in changes[:_MOST_ROWS]:
        name, note = (_plain(asset.get(field, "")[:_LONGEST_CELL]) for field in ("name", "note"))
        lines.append(f"| {asset['result']} | <code>{name}</code> | {note} |")
    more = len(changes) - _MOST_ROWS
    return _MARKED + "\n".join([*lines, *([f"\nand {more:,} more"] if more > 0 else []), ""])


# By the suffix of the file: how its text begins, by which a report is known from any other file, and what makes it.
FORMATS: dict[str, tuple[str, Callable[[dict], str]]] = {
    ".md": (_MARKED, as_markdown),
    ".html": (f"<!DOCTYPE html>\n{_MARKED}", as_html),
    ".xml": ('<testsuites name="infrastructure.services"', as_xml),
    ".json": ('{\n "format": "infrastructure.services report",\n', as_json),
}


def _is_problem(asset: dict) -> bool:
    """Whether somebody has to look at an asset; why one was not begun is said of another."""
    return "msg" in asset and not asset.get("skipped")


def _heading(resource: str) -> str:
    return f"{resource.replace('_', ' ')}s"


def _plain(text: str) -> str:
    """Return text without anything that means something in Markdown or HTML."""
    return _NOT_PLAIN.sub(lambda found: f"&#{ord(found[0])};", _valid(text))


def _add_table(body: ElementTree.Element, heading: str, columns: dict[str, str], assets: list[dict]) -> None:
    if not assets:
        return
    columns = {field: title for field, title in columns.items() if any(asset.get(field) for asset in assets)}
    _add(body, "h2", heading)
    table = _add(body, "table")
    head = _add(_add(table, "thead"), "tr")
    for title in columns.values():
        _add(head, "th", title)
    rows = _add(table, "tbody")
    for asset in assets:
        row = _add(rows, "tr", **({"class": "problem"} if _is_problem(asset) else {}))
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
