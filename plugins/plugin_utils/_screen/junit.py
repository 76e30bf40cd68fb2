# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The report of runs as JUnit XML, which CI systems show: an asset is a test case, a resource of a run is a suite."""

from __future__ import annotations

import os
import re
from xml.etree import ElementTree

from ...module_utils._errors import UNKNOWN

SUFFIX = ".xml"
_NAME = "infrastructure.services"
HEAD = f'<testsuites name="{_NAME}"'
_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")  # XML 1.0, section 2.2
_PROPERTIES = ("outcome", "status", "trace_id")
_COUNTED = {"failure": "failures", "error": "errors", "skipped": "skipped"}


def xml_path(path: str) -> str:
    """Return the path of the XML file that goes with a JSON file."""
    return f"{os.path.splitext(path)[0]}{SUFFIX}"


def document(runs: list[dict]) -> str:
    """Return the XML of the runs of a report."""
    root = ElementTree.Element("testsuites", name=_NAME)
    for run in runs:
        for resource in sorted({asset["resource"] for asset in run["assets"]}):
            _add_suite(root, run, resource, [asset for asset in run["assets"] if asset["resource"] == resource])
    return ElementTree.tostring(root, encoding="unicode")


def _add_suite(root: ElementTree.Element, run: dict, resource: str, assets: list[dict]) -> None:
    kinds = [_kind(asset) for asset in assets]
    seconds = sum(asset.get("seconds", 0) for asset in assets)
    suite = _add(root, "testsuite", name=f"{resource} (run {run['run']})", timestamp=run["began_at"])
    suite.attrib.update(tests=str(len(assets)), time=f"{seconds:.3f}")
    suite.attrib.update({count: str(kinds.count(kind)) for kind, count in _COUNTED.items()})
    for asset, kind in zip(assets, kinds):
        case = _add(suite, "testcase", classname=resource, name=asset["name"], time=f"{asset.get('seconds', 0):.3f}")
        properties = ElementTree.SubElement(case, "properties")
        for name in _PROPERTIES:
            if name in asset:
                _add(properties, "property", name=name, value=str(asset[name]))
        if kind:
            _add(case, kind, type=asset["outcome"], message=asset.get("msg", ""))
        elif asset.get("msg"):  # a warning
            _add(case, "system-out").text = _NOT_XML.sub("\ufffd", asset["msg"])


def _kind(asset: dict) -> str:
    """Return the element that says how a case ended, empty for success: a failure in doubt is an `error`."""
    if asset.get("failed"):
        return "error" if asset["outcome"] == UNKNOWN else "failure"
    return "skipped" if asset.get("skipped") or asset["outcome"] == UNKNOWN else ""


def _add(parent: ElementTree.Element, tag: str, **attributes: str) -> ElementTree.Element:
    return ElementTree.SubElement(parent, tag, {key: _NOT_XML.sub("\ufffd", text) for key, text in attributes.items()})
