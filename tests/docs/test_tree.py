# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The site is one tree: every page is in it, its links have targets, and a search finds what people look for."""

from __future__ import annotations

import re
from xml.etree import ElementTree

import pytest
from docs.guides import GUIDES, ROOT
from tools import docs_tree

TEXTS = {path.stem: path.read_text(encoding="utf-8") for path in GUIDES}
# What people in trouble search for, and the page that helps.
SEARCHES = {
    "crash": "after_a_crash", "resume": "after_a_crash", "doubt": "after_a_crash", "killed": "after_a_crash",
    "duplicate": "home", "until": "repeating_safely", "async": "repeating_safely", "slow": "speed", "429": "failures",
    "tampered": "verify_a_release", "signature": "verify_a_release",
}


@pytest.mark.parametrize("word", SEARCHES)
def test_a_search_finds_the_page_that_helps(word):
    found = [name for name, text in TEXTS.items() if re.search(rf"\b{word}", text, re.IGNORECASE)]
    assert SEARCHES[word] in found


@pytest.mark.parametrize("name", docs_tree.PAGES)
def test_a_page_kept_as_markdown_links_to_pages_and_files_that_exist(name):
    links = re.findall(r"\]\(([^)#\s]+)", docs_tree.converted(name))
    inside = [link for link in links if "://" not in link]
    files = [link.removeprefix(docs_tree.SOURCES) for link in links if link.startswith(docs_tree.SOURCES)]
    assert set(inside) <= {f"{page}.md" for page in docs_tree.PAGES} | {f"{guide}.rst" for guide in docs_tree.guides()}
    assert [file for file in files if not (ROOT / file).exists()] == []


def test_the_home_page_comes_first_and_shows_its_picture():
    text = TEXTS["home"]
    (picture,) = re.findall(r"\.\. image:: (\S+)\n    :alt: \S", text)
    ElementTree.parse(ROOT / "docs/docsite/rst" / picture)
    assert "    toctree:\n      - home\n" in (ROOT / "docs/docsite/extra-docs.yml").read_text(encoding="utf-8")


def test_a_built_site_has_every_page_in_a_table_of_contents(tmp_path):
    (tmp_path / "rst/docsite").mkdir(parents=True)
    (tmp_path / "rst/docsite/home.rst").write_text(TEXTS["home"], encoding="utf-8")
    listed = "".join(f"    docsite/{name}\n" for name in docs_tree.guides())
    (tmp_path / "rst/index.rst").write_text(f".. toctree::\n\n{listed}\n    module\n", encoding="utf-8")
    docs_tree.main(tmp_path)
    home = (tmp_path / "rst/docsite/home.rst").read_text(encoding="utf-8")
    pages = {*TEXTS, *docs_tree.PAGES} - {"home"}
    assert {line.strip() for line in home.splitlines()} >= {*pages, "../index"}
    assert {path.stem for path in (tmp_path / "rst/docsite").glob("*.md")} == docs_tree.PAGES.keys()
    assert "docsite/" not in (tmp_path / "rst/index.rst").read_text(encoding="utf-8")


def test_a_diagram_is_a_table_of_its_arrows_on_the_site():
    diagram = "flowchart LR\n    a[one<br>first] -- sends --> b[(two)]\n    b --> a\n    [*] --> a: begin\n"
    rows = docs_tree.arrows(diagram).splitlines()[2:]
    assert rows == ["| one: first | two | sends |", "| two | one: first |  |", "| (none) | one: first | begin |"]


@pytest.mark.parametrize("name", docs_tree.PAGES)
def test_no_page_of_the_site_shows_the_source_of_a_diagram(name):
    assert "mermaid" not in docs_tree.converted(name)
