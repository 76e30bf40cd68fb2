# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the pages mention exists: layers in ARCHITECTURE.md; options, settings and tests in
docs/open_points.md.
"""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest
from ansible_collections.infrastructure.services.plugins.module_utils._task import options
from emulator.settings import RULES
from support import SPECS
from tools import docs_tree, matrix

ROOT = Path(__file__).resolve().parents[2]
ARCHITECTURE = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
OPEN_POINTS = (ROOT / "docs/open_points.md").read_text(encoding="utf-8")
SUPPORT = (ROOT / "docs/docsite/rst/support.rst").read_text(encoding="utf-8")
PRIVATE_PARTS = [
    (ROOT / "plugins" / file).read_text(encoding="utf-8")
    for file in ("plugin_utils/_run/ansible_core.py", "module_utils/_task/module.py")
]
OPTIONS = {name for spec in SPECS.values() for name in spec.options}
SECTIONS = {
    "2.3",
    "3",
    "4.1",
    "4.2",
    "5",
    "6",
    "7",
    "8",
    "9",
}  # of the interface, those with an open point


def rows(page: str) -> list[list[str]]:
    """Return the cells of each row of the page's tables, without the headers."""
    lines = [
        line
        for line in page.splitlines()
        if line.startswith("| ") and not line.startswith(("| Folder", "| | "))
    ]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


def quoted(cell: str) -> list[str]:
    """Return the parts in backticks."""
    return re.findall(r"`([^`]+)`", cell)


def test_the_page_describes_every_folder_by_its_docstring_if_it_has_one():
    """Ansible sends module_utils to targets as packages; on the controller a folder needs no file
    for that.
    """
    told = {quoted(folder)[0].strip("/"): what for folder, what in rows(ARCHITECTURE)}
    assert told.keys() == {
        path.parent.relative_to(ROOT / "plugins").as_posix()
        for path in ROOT.glob("plugins/*_utils/*/*.py")
    }
    packages = {
        path.parent.relative_to(ROOT / "plugins").as_posix(): ast.get_docstring(
            ast.parse(path.read_text())
        )
        for path in ROOT.glob("plugins/*/*/__init__.py")
    }
    assert told.items() >= packages.items()


@pytest.mark.parametrize("page", ["ARCHITECTURE.md", "docs/open_points.md"])
def test_links_lead_somewhere(page):
    links = re.findall(r"\]\((?!https?:)([^)#]+)", (ROOT / page).read_text(encoding="utf-8"))
    assert links
    assert [link for link in links if not (ROOT / page).parent.joinpath(link).exists()] == []


def test_the_files_that_the_architecture_names_exist():
    paths = re.findall(r"(?:plugins|tests|docs|extensions)/[\w/.]+\w", ARCHITECTURE)
    assert paths
    assert [path for path in paths if not (ROOT / path).exists()] == []


def test_every_section_with_an_open_point_has_a_row():
    assert {number for row in rows(OPEN_POINTS) for number in row[0].split(", ")} == SECTIONS


@pytest.mark.parametrize("row", rows(OPEN_POINTS), ids=lambda row: f"{row[0]} {row[1]}"[:50])
def test_everything_that_a_row_names_exists(row):
    _section, unknown, does, options, settings, tests = row
    assert unknown
    assert does
    assert set(quoted(options)) <= OPTIONS
    assert set(quoted(settings)) <= set(RULES)
    assert quoted(tests)
    for test in quoted(tests):
        file, name = test.split("::")
        trees = [
            ast.parse(path.read_text(encoding="utf-8")) for path in ROOT.glob(f"tests/**/{file}")
        ]
        assert name in [
            node.name for tree in trees for node in tree.body if isinstance(node, ast.FunctionDef)
        ], test


def test_every_emulator_setting_belongs_to_an_open_point():
    assert {setting for row in rows(OPEN_POINTS) for setting in quoted(row[4])} == set(RULES)


def private_attributes(text: str) -> set[str]:
    """Return the private attributes that a file uses and does not define itself."""
    tree = ast.parse(text)
    attributes = [node for node in ast.walk(tree) if isinstance(node, ast.Attribute)]
    stored = {node.attr for node in attributes if isinstance(node.ctx, ast.Store)}
    used = {node.attr for node in attributes if re.match("_[a-z]", node.attr)}
    return used - (stored - {"_bare_run"})


def test_the_page_on_support_lists_what_is_used_of_ansible_core():
    _before, _title, table = SUPPORT.partition("\nUndocumented parts of ansible-core\n")
    named = set(re.findall("``([^`]+)``", table))
    assert set().union(*map(private_attributes, PRIVATE_PARTS)) <= named
    code = "".join(PRIVATE_PARTS)
    parts = {name for name in named - {"ssh", "outcome", "unknown"} if not re.search("[./]", name)}
    assert [name for name in sorted(parts) if name not in code] == []


def test_the_page_on_support_names_the_tested_versions():
    oldest, newest = min(matrix.CORES, key=version), max(matrix.CORES, key=version)
    pythons = sorted({python for some in matrix.PYTHONS.values() for python in some}, key=version)
    assert f"- {oldest} to {newest}." in SUPPORT
    assert f": {pythons[0]} to {pythons[-1]} are tested." in SUPPORT
    assert f"{matrix.OLDEST_TARGET} and {pythons[0]} to {pythons[-1]} are tested." in SUPPORT


def test_the_page_of_environment_variables_names_each_and_no_other():
    page = (ROOT / "docs/docsite/rst/environment_variables.rst").read_text(encoding="utf-8")
    specs = {**options.ARGUMENT_SPEC, **options.MANY}
    variables = {name: spec["fallback"][1] for name, spec in specs.items() if "fallback" in spec}
    told = {
        option: re.findall(r"``(\w+)``", row)
        for row, option in re.findall(r"\* - (.*)\n      - ``(\w+)``", page)
    }
    assert told == variables


def test_the_guides_of_users_do_not_name_our_tests():
    texts = {
        name: (ROOT / f"docs/docsite/rst/{name}.rst").read_text(encoding="utf-8")
        for name in docs_tree.guides()
    }
    ours = re.compile(r"\btests?/|\btest_\w+\.py|make (test|matrix|bench)")
    assert [name for name, text in texts.items() if ours.search(text)] == []


def version(name: str) -> list[int]:
    return [int(part) for part in name.split(".")]
