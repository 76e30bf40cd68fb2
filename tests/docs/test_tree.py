"""Every picture is shown with a text, and the guides are linked with each other."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from docs.guides import GUIDES, ROOT

TEXTS = {path.stem: path.read_text(encoding="utf-8") for path in GUIDES}
# To another page, relative as GitHub reads it.
LINK = re.compile(r"`([^`<]+?)\s+<(?![a-z]+:)([^>]+)>`__")
IMAGE = re.compile(r"\.\. image:: (\S+)\n    :alt: \S")


def test_every_picture_is_shown_with_a_text_instead():
    shown = [name for text in TEXTS.values() for name in IMAGE.findall(text)]
    pictures = {path.name for path in (ROOT / "docs/docsite/rst").iterdir()} - {
        path.name for path in GUIDES
    }
    assert sorted(shown) == sorted(pictures)


@pytest.mark.parametrize("name", TEXTS)
def test_a_guide_shows_on_github_what_it_shows_on_the_site(name):
    """GitHub knows no role of Sphinx, and no caption: the text names the file."""
    text, links = TEXTS[name], LINK.findall(TEXTS[name])
    assert re.findall(r":\w+:`", text) == []
    assert [to for _text, to in links if not (ROOT / "docs/docsite/rst" / to).exists()] == []
    parts = re.split(r":caption: (\S+)\n", text)
    assert [
        file for file, before in zip(parts[1::2], parts[::2]) if f"``{file}``" not in before
    ] == []


def test_each_guide_is_linked_from_another_one():
    linked = {
        Path(to).stem
        for name, text in TEXTS.items()
        for _text, to in LINK.findall(text)
        if Path(to).stem != name
    }
    assert TEXTS.keys() - linked - {"home"} == set()
