# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The text of each file of a report: JSON, JUnit XML, a page, Markdown for a merge request."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Callable
from xml.etree import ElementTree

from .assets import IN_DOUBT, UNCHANGED, Asset, Run, counted, result_word
from .page import as_html
from .plan import lists_and_rows
from .text import shortened

FORMAT = "infrastructure.services report"
_NOT_XML = re.compile(  # XML 1.0, section 2.2
    "[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]"
)
_MARKED = "<!-- infrastructure.services report -->\n"
_NOT_PLAIN = re.compile(r"[^A-Za-z0-9 .,:;()/-]")
# In Markdown: more than a reviewer reads, and fewer characters than a comment may have.
_MOST_ROWS, _LONGEST, _LONGEST_NOTE = 100, 60_000, 160


@dataclass(frozen=True)
class Format:
    """A format of a report; `head`: the start of its text, by which a report is recognized."""

    head: str
    # Takes the run, and the path of the JSON file.
    text_of: Callable[[Run, str], str]


def as_json(run: Run, _file: str) -> str:
    """Return JSON that begins with its format."""
    return json.dumps({"format": FORMAT, "runs": [run.as_json()]}, indent=1) + "\n"


def as_xml(run: Run, _file: str) -> str:
    """Return JUnit XML: an asset is a test case, its module a suite."""
    root = ElementTree.Element("testsuites", name="infrastructure.services")
    for warning in run.warnings:
        suite = _add_element(root, "testsuite", name=f"warnings (run {run.run})", tests="1")
        case = _add_element(suite, "testcase", classname="warnings", name=warning)
        _add_element(case, "system-out", warning)
    for resource in run.counts:
        _add_suite(root, run, resource)
    return f"{ElementTree.tostring(root, encoding='unicode')}\n"


def _add_suite(root: ElementTree.Element, run: Run, resource: str) -> None:
    assets = [asset for asset in run.assets if asset.resource == resource]
    kinds = [_kind(asset) for asset in assets]
    suite = _add_element(
        root,
        "testsuite",
        name=f"{resource} (run {run.run})",
        timestamp=run.began_at,
        tests=str(len(assets)),
        time=f"{sum(asset.seconds or 0 for asset in assets):.3f}",
        failures=str(kinds.count("failure")),
        errors=str(kinds.count("error")),
        skipped=str(kinds.count("skipped")),
    )
    for asset, kind in zip(assets, kinds):
        _add_case(suite, asset, kind)


def _kind(asset: Asset) -> str:
    """Return the element for the end of a case, '' for success; in doubt is an error."""
    if asset.failed:
        return "error" if asset.result == IN_DOUBT else "failure"
    return "skipped" if asset.skipped or asset.result == IN_DOUBT else ""


def _add_case(suite: ElementTree.Element, asset: Asset, kind: str) -> None:
    time = f"{asset.seconds or 0:.3f}"
    case = _add_element(suite, "testcase", classname=asset.resource, name=asset.name, time=time)
    known = {"id": asset.id, "address": asset.address}
    properties = {name: str(value) for name, value in known.items() if value not in (None, "")}
    if properties:
        parent = _add_element(case, "properties")
        for name, value in properties.items():
            _add_element(parent, "property", name=name, value=value)
    if kind:
        _add_element(case, kind, type=asset.outcome, message=asset.msg)
    elif asset.msg:  # a warning
        _add_element(case, "system-out", asset.msg)


def _add_element(
    parent: ElementTree.Element, tag: str, text: str = "", **attributes: str
) -> ElementTree.Element:
    valid = {name: _valid(value) for name, value in attributes.items()}
    added = ElementTree.SubElement(parent, tag, valid)
    added.text = _valid(text)
    return added


def _valid(text: str) -> str:
    return _NOT_XML.sub("\ufffd", text)


def as_markdown(run: Run, _file: str) -> str:
    """Return the counts, the fields that new assets share, and a table of the changes."""
    lists, rows = lists_and_rows(run, _LONGEST_NOTE)
    lines = [f"{_plain(run.service)}\n"]
    lines += [f"> {_plain(warning)}\n" for warning in run.warnings]
    for each in lists:
        lines.append(f"**{each.heading}**: {counted(each.counts)}\n")
        if each.shared:
            shared = ", ".join(f"{name} {value}" for name, value in each.shared)
            lines.append(f"each new one: {_plain(shared)}\n")
    changes = [row for row in rows if row.asset.result != UNCHANGED]
    if changes:
        lines += ["| Result | Name | Note |", "|---|---|---|"]
    left = _LONGEST - sum(map(len, lines))
    for number, row in enumerate(changes):
        name = _plain(shortened(row.asset.name, _LONGEST_NOTE))
        note = _plain(row.note)
        line = f"| {result_word(row.asset.result)} | <code>{name}</code> | {note} |"
        left -= len(line)
        if number == _MOST_ROWS or left < 0:
            lines.append(f"\nand {len(changes) - number:,} more: the page of the plan has them")
            break
        lines.append(line)
    return _MARKED + "\n".join([*lines, ""])


def _plain(text: str) -> str:
    """Return text without characters that have a meaning in Markdown or HTML."""
    return _NOT_PLAIN.sub(lambda found: f"&#{ord(found[0])};", _valid(text))


FORMATS = {  # by the suffix of the file
    ".md": Format(_MARKED, as_markdown),
    ".html": Format(f"<!DOCTYPE html>\n{_MARKED}", as_html),
    ".xml": Format('<testsuites name="infrastructure.services"', as_xml),
    ".json": Format(f'{{\n "format": "{FORMAT}",\n', as_json),
}
