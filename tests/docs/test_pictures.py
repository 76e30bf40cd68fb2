# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The drawings of a terminal show what the collection prints."""

from __future__ import annotations

from itertools import pairwise
from xml.etree import ElementTree

import pytest
from ansible_collections.infrastructure.services.plugins.module_utils._resources import (
    application_role,
    virtual_machine,
)
from ansible_collections.infrastructure.services.plugins.plugin_utils._screen.assets import Asset
from ansible_collections.infrastructure.services.plugins.plugin_utils._screen.ledger_table import (
    edit_lines,
    written_lines,
)
from ansible_collections.infrastructure.services.plugins.plugin_utils._screen.plan import plan_lines
from ansible_collections.infrastructure.services.plugins.plugin_utils._screen.screen import (
    result_lines,
)
from docs.guides import ROOT
from support.pages import LOST, MACHINE, ROLE

COLUMNS, COLUMN = 42, 7.8  # of the terminal, and the pixels of each
DIRECTORY = ROOT / "docs/docsite/rst"
MACHINES, ROLES = virtual_machine.OPERATION, application_role.OPERATION
IN_DOUBT = "ansible-playbook infrastructure.services.in_doubt -e ledger=fleet.db"
SETTLE = "ansible-playbook infrastructure.services.settle -e ledger=fleet.db -e file=doubt.csv"


def asset(name: str, result: str, plan: str = "", resource: str = MACHINE, **more) -> Asset:
    """An asset of a plan."""
    return Asset(resource, name, result, "not_sent", True, False, plan=plan, **more)


def new(name: str, **attributes) -> Asset:
    return asset(name, "to create", "create", body={"name": name, "attributes": attributes})


def plan() -> list[str]:
    machines = [
        asset("shop01", "in doubt", "in_doubt", since="2026-11-22 10:02"),
        asset(
            "shop02", "differs", "differs", changes=[{"name": "attributes.cpu", "old": 2, "new": 8}]
        ),
        new("shop03", cpu=4, team="web", ip="192.0.2.11", vm_ram=16),
        new("shop04", cpu=4, team="web", ip="192.0.2.12", vm_ram=32),
        asset("old01", "not listed"),
        *(asset(f"shop{number}", "unchanged", "keep") for number in range(114)),
    ]
    role = asset(
        "role-1",
        "to update",
        "update",
        ROLE,
        changes=[{"name": "attributes.login", "old": False, "new": True}],
        unsent=[{"name": "description", "value": "Orders"}],
    )
    return plan_lines(MACHINES, machines, COLUMNS) + plan_lines(ROLES, [role], COLUMNS)


def ended(name: str, result: str, **more) -> Asset:
    outcome = {"created": "accepted", "in doubt": "unknown"}.get(result, "not_sent")
    return Asset(MACHINE, name, result, outcome, result == "created", result == "in doubt", **more)


def terminal() -> list[str]:
    """What is printed when an answer is lost, the machine is settled, and the list runs again."""
    names = ["shop01", "shop02", "shop03"]
    first = [
        ended(name, "created") if name != "shop02" else ended(name, "in doubt", cause=LOST)
        for name in names
    ]
    again = [ended(name, "unchanged") for name in names]
    settled = {"settled_present": 1, "settled_absent": 0, "adopted": 0, "corrected": 0}
    counts = {**settled, "forgotten": 0, "unchanged": 0, "in_doubt": 0, "recorded_in_doubt": 0}
    return [
        "$ ansible-playbook fleet.yml",
        *result_lines(MACHINES, first, 1, COLUMNS),
        f"$ {IN_DOUBT} -e file=doubt.csv",
        written_lines("doubt.csv", [{"settle": []}], "")[0],
        f"$ {SETTLE}",
        *edit_lines(counts, {"settled_present": ["shop02"]}, False),
        "$ ansible-playbook fleet.yml",
        *result_lines(MACHINES, again, 0, COLUMNS),
    ]


@pytest.mark.parametrize("lines", [plan, terminal], ids=lambda lines: lines.__name__)
def test_a_drawing_has_the_words_that_are_printed(lines):
    drawing = ElementTree.parse(DIRECTORY / f"{lines.__name__}.svg")
    texts = drawing.findall(".//{*}text")
    drawn = " ".join(text.text for text in texts).replace(" \\ ", " ").split()
    assert drawn == " ".join(lines()).split()
    width = float(drawing.getroot().attrib["width"])
    assert [
        text.text
        for text in texts
        if float(text.attrib["x"]) + COLUMN * len(text.text) > width - COLUMN
    ] == []
    lowest = [float(text.attrib["y"]) for text in texts]
    assert all(below >= above for above, below in pairwise(lowest))
