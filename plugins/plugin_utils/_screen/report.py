# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a report says, as JSON and as JUnit XML, which CI systems show: an asset is a test case, its module a suite.

All tasks of one run of Ansible share its report; the first of them that ends replaces the report of an earlier run.
"""

from __future__ import annotations

import json
import re
from datetime import datetime, timezone
from xml.etree import ElementTree

from ...module_utils._errors import UNKNOWN

JSON_HEAD = '{\n "format": "infrastructure.services report",\n'  # identifies a report without reading all of it
XML_HEAD = '<testsuites name="infrastructure.services"'
_FIELDS = ("outcome", "changed", "failed", "skipped", "status", "seconds", "trace_id", "msg")
_RUN = {"run", "began_at", "assets"}
_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")  # XML 1.0, section 2.2
_PROPERTIES = ("outcome", "status", "trace_id")
_COUNTED = {"failure": "failures", "error": "errors", "skipped": "skipped"}


def with_results(runs: list[dict], results: list[dict], run: str, resource: str, began_at: str) -> list[dict]:
    """Return the runs of a report with the results of a task added to its run, and without the other runs.

    `run`: names the run of Ansible; `resource`: the module for a single asset; `began_at`: of the task, from `now`.
    """
    own = next((one for one in runs if one["run"] == run), dict(run=run, began_at=began_at, assets=[]))
    own.update(state="ended", began_at=min(began_at, own["began_at"]), ended_at=now())
    assets = [_asset(resource, result) for result in results]
    own["assets"] = [*own["assets"], *assets]
    return [own]


def now() -> str:
    """Return the time in UTC, as `YYYY-MM-DDTHH:MM:SSZ`."""
    return datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")


def as_json(runs: list[dict]) -> str:
    """Return the JSON of the runs of a report."""
    return f"{JSON_HEAD}{json.dumps({'runs': runs}, indent=1)[2:]}\n"


def from_json(text: str) -> list[dict]:
    """Return the runs of a report, none when it is empty or damaged."""
    try:
        runs = json.loads(text)["runs"]
        return runs if all(run.keys() >= _RUN for run in runs) else []
    except (ValueError, KeyError, TypeError, AttributeError):
        return []


def as_xml(runs: list[dict]) -> str:
    """Return the JUnit XML of the runs of a report."""
    root = ElementTree.Element("testsuites", name="infrastructure.services")
    for run in runs:
        for resource in sorted({asset["resource"] for asset in run["assets"]}):
            _add_suite(root, run, resource, [asset for asset in run["assets"] if asset["resource"] == resource])
    return f"{ElementTree.tostring(root, encoding='unicode')}\n"


def _asset(resource: str, result: dict) -> dict:
    given = {field: result[field] for field in _FIELDS if result.get(field) not in (None, "")}
    return {"resource": resource, "name": result["item"], **given}


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
