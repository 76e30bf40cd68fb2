# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The run of a report as text: JSON, JUnit XML for CI systems, a page for people, Markdown for a
merge request.
"""

from __future__ import annotations

import json
import re
from typing import Callable
from xml.etree import ElementTree

from ...module_utils._errors import UNKNOWN
from .page import as_html
from .plan import note, own_fields, shown
from .screen import counted, shortened

FORMAT = "infrastructure.services report"
PLANNED = "planned"  # the state of a run in check mode
_NOT_XML = re.compile(
    "[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]"
)  # XML 1.0, section 2.2
_MARKED = "<!-- infrastructure.services report -->\n"
_NOT_PLAIN = re.compile(r"[^A-Za-z0-9 .,:;()/-]")
_COUNTED = {"failure": "failures", "error": "errors", "skipped": "skipped"}
_MOST_ROWS, _LONGEST_CELL = (
    100,
    160,
)  # in Markdown: more than a reviewer reads, less than a comment may have


def as_json(run: dict) -> str:
    """Return JSON, whose first lines say what it is."""
    return json.dumps({"format": FORMAT, "runs": [run]}, indent=1) + "\n"


def as_xml(run: dict) -> str:
    """Return JUnit XML: an asset is a test case, its module a suite."""
    root = ElementTree.Element("testsuites", name="infrastructure.services")
    for warning in run["warnings"]:
        suite = _add(root, "testsuite", name=f"warnings (run {run['run']})", tests="1")
        _add(_add(suite, "testcase", classname="warnings", name=warning), "system-out", warning)
    for resource in run["counts"]:
        _add_suite(
            root, run, resource, [asset for asset in run["assets"] if asset["resource"] == resource]
        )
    return f"{ElementTree.tostring(root, encoding='unicode')}\n"


def as_markdown(run: dict) -> str:
    """Return the counts, what new assets share, and a table of what is not unchanged, problems
    first.
    """
    run = told(run)
    changes = [asset for asset in run["assets"] if asset["result"] != "unchanged"]
    lines = [
        f"{_plain(run['service'])}\n",
        *(f"> {_plain(warning)}\n" for warning in run["warnings"]),
    ]
    for each in run["lists"]:
        lines.append(f"**{each['heading']}**: {counted(each['counts'])}\n")
        lines += (
            [f"each new one: {_plain(', '.join(map(' '.join, each['shared'])))}\n"]
            if each["shared"]
            else []
        )
    lines += ["| Result | Name | Note |", "|---|---|---|"] if changes else []
    for asset in changes[:_MOST_ROWS]:
        name, note = (
            _plain(shortened(asset.get(field, ""), _LONGEST_CELL)) for field in ("name", "note")
        )
        lines.append(f"| {asset['result']} | <code>{name}</code> | {note} |")
    more = len(changes) - _MOST_ROWS
    return _MARKED + "\n".join([*lines, *([f"\nand {more:,} more"] if more > 0 else []), ""])


# By the suffix of the file: how its text begins, by which a report is known from any other file,
# and what makes it.
FORMATS: dict[str, tuple[str, Callable[[dict], str]]] = {
    ".md": (_MARKED, as_markdown),
    ".html": (f"<!DOCTYPE html>\n{_MARKED}", lambda run: as_html(told(run))),
    ".xml": ('<testsuites name="infrastructure.services"', as_xml),
    ".json": (f'{{\n "format": "{FORMAT}",\n', as_json),
}


def told(run: dict) -> dict:
    """Return a run as it is told to people: its lists, and its assets with what the plan says of
    each, problems first.

    What new assets share is told of their list.
    """
    lists, own = [], {}
    for resource, counts in run["counts"].items():
        new = [
            asset
            for asset in run["assets"]
            if asset["resource"] == resource and asset.get("plan") == "create"
        ]
        shared, owns = own_fields(asset["body"] for asset in new)
        own.update(zip(((resource, asset["name"]) for asset in new), owns))
        said = [(name, shown(value)) for name, value in shared.items()]
        lists.append(
            dict(
                resource=resource,
                heading=f"{resource.replace('_', ' ')}s",
                counts=counts,
                shared=said,
            )
        )
    assets = [
        {
            **asset,
            "is_problem": _is_problem(asset),
            **_note(asset, own.get((asset["resource"], asset["name"]))),
        }
        for asset in run["assets"]
    ]
    assets.sort(key=lambda asset: (not asset["is_problem"], asset["result"] == "unchanged"))
    return {**run, "lists": lists, "assets": assets}


def _note(asset: dict, own: dict | None) -> dict[str, str]:
    return {"note": note(asset, own)} if asset.get("plan", "keep") != "keep" else {}


def _is_problem(asset: dict) -> bool:
    """Whether somebody has to look at an asset; why one was not begun is said of another."""
    is_wrong = (
        asset["failed"] or asset["outcome"] == UNKNOWN or asset["result"] in ("differs", "in doubt")
    )
    return (is_wrong or "lost" in asset) and not asset.get("skipped")


def _plain(text: str) -> str:
    """Return text without anything that means something in Markdown or HTML."""
    return _NOT_PLAIN.sub(lambda found: f"&#{ord(found[0])};", _valid(text))


def _add_suite(root: ElementTree.Element, run: dict, resource: str, assets: list[dict]) -> None:
    kinds = [_kind(asset) for asset in assets]
    seconds = sum(asset.get("seconds", 0) for asset in assets)
    suite = _add(
        root, "testsuite", name=f"{resource} (run {run['run']})", timestamp=run["began_at"]
    )
    suite.attrib.update(tests=str(len(assets)), time=f"{seconds:.3f}")
    suite.attrib.update({count: str(kinds.count(kind)) for kind, count in _COUNTED.items()})
    for asset, kind in zip(assets, kinds):
        case = _add(
            suite,
            "testcase",
            classname=resource,
            name=asset["name"],
            time=f"{asset.get('seconds', 0):.3f}",
        )
        known = {field: asset[field] for field in ("id", "address") if field in asset}
        properties = _add(case, "properties") if known else None
        for field, value in known.items():
            _add(properties, "property", name=field, value=str(value))
        if kind:
            _add(case, kind, type=asset["outcome"], message=asset.get("msg", ""))
        elif asset.get("msg"):  # a warning
            _add(case, "system-out", asset["msg"])


def _kind(asset: dict) -> str:
    """Return the element that says how a case ended, empty for success: a failure in doubt is an
    `error`.
    """
    if asset["failed"]:
        return "error" if asset["outcome"] == UNKNOWN else "failure"
    return "skipped" if asset.get("skipped") or asset["outcome"] == UNKNOWN else ""


def _add(
    parent: ElementTree.Element, tag: str, text: str = "", **attributes: str
) -> ElementTree.Element:
    added = ElementTree.SubElement(
        parent, tag, {name: _valid(value) for name, value in attributes.items()}
    )
    added.text = _valid(text)
    return added


def _valid(text: str) -> str:
    return _NOT_XML.sub("\ufffd", text)
