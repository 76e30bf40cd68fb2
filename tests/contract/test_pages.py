"""What the pages name exists: links, files, targets of make, options, settings, tests, versions and
environment variables.
"""

from __future__ import annotations

import ast
import re
import subprocess
from pathlib import Path

import pytest
from ansible_collections.infrastructure.services.plugins.module_utils._task import options
from emulator.settings import RULES
from support import SPECS

ROOT = Path(__file__).resolve().parents[2]
PAGES = {
    name: (ROOT / name).read_text(encoding="utf-8")
    for name in (
        "AGENTS.md",
        ".github/CONTRIBUTING.md",
        "docs/architecture.md",
        "docs/open_points.md",
    )
}
PATH = re.compile(r"(?<![\w/.~-])(?:plugins|tests|docs|extensions)/[\w/.]+\w")
OPTIONS = {name for spec in SPECS.values() for name in spec.options}
OPEN_POINTS = [
    [cell.strip() for cell in line.strip("|").split("|")]
    for line in PAGES["docs/open_points.md"].splitlines()
    if re.match(r"\| \d", line)
]
SECTIONS = {
    "1",
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


def quoted(text: str) -> list[str]:
    """Return the parts in backticks, outside of blocks of code."""
    return re.findall(r"`([^`\n]+)`", re.sub(r"```.*?```", "", text, flags=re.DOTALL))


@pytest.mark.parametrize("page", PAGES)
def test_links_and_files_exist(page):
    links = re.findall(r"\]\((?!https?:)([^)#]+)", PAGES[page])
    assert [link for link in links if not (ROOT / page).parent.joinpath(link).exists()] == []
    assert [path for path in PATH.findall(PAGES[page]) if not (ROOT / path).exists()] == []


def test_targets_exist():
    words = " ".join(part for page in PAGES.values() for part in quoted(page))
    named = set(re.findall(r"(?<![\w/])make (?:PYTHON=\S+ )?([a-z]+)", words))
    assert len(named) > 10
    for target in sorted(named):
        subprocess.run(["make", "--dry-run", target], cwd=ROOT, check=True, capture_output=True)


def test_every_section_with_an_open_point_has_a_row():
    assert {number for row in OPEN_POINTS for number in row[0].split(", ")} == SECTIONS


@pytest.mark.parametrize("row", OPEN_POINTS, ids=lambda row: f"{row[0]} {row[1]}"[:50])
def test_everything_that_an_open_point_names_exists(row):
    _section, unknown, does, given, settings, tests = row
    assert unknown
    assert does
    assert set(quoted(given)) <= OPTIONS
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


def test_the_page_on_versions_names_the_tested_versions():
    def version(name: str) -> list[int]:
        return [int(part) for part in name.split(".")]

    page = (ROOT / "docs/docsite/rst/versions.rst").read_text(encoding="utf-8")
    nox = (ROOT / "noxfile.py").read_text(encoding="utf-8")
    cores = dict(re.findall(r'"(2\.\d+)": \("2[\w.]+", "(3\.\d+)"\)', nox))
    oldest, newest = min(cores, key=version), max(cores, key=version)
    pythons = sorted({*cores.values()}, key=version)
    (target,) = re.findall(r'^OLDEST_TARGET = "(.*?)"', nox, re.MULTILINE)
    assert f": {oldest} to {newest}." in page
    assert f"; {pythons[0]} to {pythons[-1]} are tested." in page
    assert f"{target} and {pythons[0]} to {pythons[-1]} are tested." in page


def test_the_reference_names_each_environment_variable_and_no_other():
    page = (ROOT / "docs/docsite/rst/reference.rst").read_text(encoding="utf-8")
    listed = page.partition("Environment variables\n---")[2].partition("\n\nThe collection")[0]
    names = {**options.ARGUMENT_SPEC, **options.MANY}
    variables = {name: options.variables_of(name) for name in names if options.variables_of(name)}
    told = re.findall(r"``([A-Z_]+)``", listed)
    assert sorted(told) == sorted(name for places in variables.values() for name in places)
    fragments = "".join(path.read_text() for path in ROOT.glob("plugins/doc_fragments/*.py"))
    for places in variables.values():  # in order of precedence
        assert re.search(r"[^.]*".join(f"E\\({each}\\)" for each in places), fragments), places


def test_the_messages_that_the_page_on_failures_quotes_are_those_of_the_code():
    page = (ROOT / "docs/docsite/rst/failures.rst").read_text(encoding="utf-8")
    quoted = re.findall(r'"([^"\n]+)"', page)
    trees = [ast.parse(path.read_text(encoding="utf-8")) for path in ROOT.glob("plugins/**/*.py")]
    texts = [
        node.value
        for tree in trees
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    ]
    assert quoted
    assert [each for each in quoted if not any(each in text for text in texts)] == []
