# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The site is one tree: every page is in it, its links have targets, and a search finds what people
look for.
"""

from __future__ import annotations

import re
from xml.etree import ElementTree

import pytest
from docs.guides import GUIDES, ROOT
from tools import docs_tree

from docs import prose

TEXTS = {path.stem: path.read_text(encoding="utf-8") for path in GUIDES}
# What people in trouble search for, and the page that helps.
SEARCHES = {
    "crash": "failures",
    "resume": "failures",
    "doubt": "failures",
    "killed": "failures",
    "settle": "failures",
    "duplicate": "home",
    "until": "repeating_safely",
    "async": "repeating_safely",
    "slow": "create_machines",
    "429": "messages",
    "proxy": "proxies",
    "vault": "authenticate",
    "CSV": "existing_machines",
    "tampered": "verify_a_release",
    "signature": "verify_a_release",
}


@pytest.mark.parametrize("word", SEARCHES)
def test_a_search_finds_the_page_that_helps(word):
    found = [name for name, text in TEXTS.items() if re.search(rf"\b{word}", text, re.IGNORECASE)]
    assert SEARCHES[word] in found


@pytest.mark.parametrize("name", docs_tree.PAGES)
def test_a_page_kept_as_markdown_links_to_pages_and_files_that_exist(name):
    links = re.findall(r"\]\(([^)#\s]+)", docs_tree.converted(name))
    inside = [link for link in links if "://" not in link]
    files = [
        link.removeprefix(docs_tree.SOURCES) for link in links if link.startswith(docs_tree.SOURCES)
    ]
    assert set(inside) <= {f"{page}.md" for page in docs_tree.PAGES} | {
        f"{guide}.rst" for guide in docs_tree.guides()
    } | {"../index.rst"}
    assert [file for file in files if not (ROOT / file).exists()] == []


def test_the_home_page_comes_first_and_shows_its_picture():
    text = TEXTS["home"]
    (picture,) = re.findall(r"\.\. image:: (\S+)\n    :alt: \S", text)
    ElementTree.parse(ROOT / "docs/docsite/rst" / picture)
    assert docs_tree.guides()[0] == "home"


IMAGE = re.compile(r"\.\. image:: (\S+)\n    :alt: \S")
COLUMN = 338  # pixels of text on a screen of 390


def test_every_picture_is_shown_with_a_text_instead():
    shown = [name for text in TEXTS.values() for name in IMAGE.findall(text)]
    pictures = {path.name for path in (ROOT / "docs/docsite/rst").iterdir()} - {
        path.name for path in GUIDES
    }
    assert sorted(shown) == sorted(pictures)


@pytest.mark.parametrize("path", sorted((ROOT / "docs/docsite/rst").glob("*.svg")), ids=str)
def test_a_drawing_can_be_read_on_a_phone_and_on_any_background(path):
    drawing = ElementTree.parse(path).getroot()
    shrinks = min(1, COLUMN / float(drawing.attrib["width"]))
    sizes = [
        float(each.attrib["font-size"]) for each in drawing.iter() if "font-size" in each.attrib
    ]
    assert min(sizes) * shrinks >= 12
    background = drawing.find("{*}rect")
    assert background.attrib["fill"] == "#ffffff"
    assert background.attrib["width"] == drawing.attrib["width"]
    assert drawing.find("{*}title").text


def test_a_built_site_opens_on_home_and_has_every_page_in_a_table_of_contents(tmp_path):
    (tmp_path / "rst/docsite").mkdir(parents=True)
    (tmp_path / "rst/docsite/home.rst").write_text(TEXTS["home"], encoding="utf-8")
    sections = "".join(
        f"{title}\n{'-' * len(title)}\n\n.. toctree::\n    :maxdepth: 1\n\n"
        + "".join(f"    docsite/{name}\n" for name in names)
        + "\n"
        for title, names in docs_tree.sections().items()
    )
    (tmp_path / "rst/index.rst").write_text(
        f"Name\n====\n\n{sections}\nPlugin Index\n------------\n", encoding="utf-8"
    )
    docs_tree.main(tmp_path)
    home = (tmp_path / "rst/index.rst").read_text(encoding="utf-8")
    pages = {f"docsite/{name}" for name in {*TEXTS, *docs_tree.PAGES} - {"home"}}
    assert {line.strip() for line in home.splitlines()} >= {*pages, "plugins"}
    assert {path.stem for path in (tmp_path / "rst/docsite").glob("*.md")} == docs_tree.PAGES.keys()
    plugins = (tmp_path / "rst/plugins.rst").read_text(encoding="utf-8")
    assert re.findall(r"^(.*)\n[=-]+$", plugins, re.MULTILINE) == [
        "Modules, plugins and role",
        "Plugin Index",
    ]


@pytest.mark.parametrize("name", docs_tree.PAGES)
def test_no_page_of_the_site_shows_the_source_of_a_diagram(name):
    assert "mermaid" not in docs_tree.converted(name)


def test_each_guide_is_linked_from_another_one_and_links_to_another_one():
    texts = prose.guides()
    out = {name: prose.links(text) - {name} for name, text in texts.items()}
    assert [name for name, targets in out.items() if not targets] == []
    assert set().union(*out.values()) == texts.keys() - {"home"}
