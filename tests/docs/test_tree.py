"""The site is one tree: every page is in it, its links have targets, and a search finds what people
look for.
"""

from __future__ import annotations

import re

import pytest
from docs.guides import GUIDES, ROOT
from tools import docs_tree

TEXTS = {path.stem: path.read_text(encoding="utf-8") for path in GUIDES}


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


IMAGE = re.compile(r"\.\. image:: (\S+)\n    :alt: \S")


def test_every_picture_is_shown_with_a_text_instead():
    shown = [name for text in TEXTS.values() for name in IMAGE.findall(text)]
    pictures = {path.name for path in (ROOT / "docs/docsite/rst").iterdir()} - {
        path.name for path in GUIDES
    }
    assert sorted(shown) == sorted(pictures)


def test_each_guide_is_linked_from_another_one_and_links_to_another_one():
    label = r"<?ansible_collections\.infrastructure\.services\.docsite\.(\w+)>?`"
    out = {name: {*re.findall(label, text)} - {name} for name, text in TEXTS.items()}
    assert [name for name, targets in out.items() if not targets] == []
    assert set().union(*out.values()) == TEXTS.keys() - {"home"}
