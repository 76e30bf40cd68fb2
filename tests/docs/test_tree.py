"""Every picture is shown with a text, and the guides are linked with each other."""

from __future__ import annotations

import re

from docs.guides import GUIDES, ROOT

TEXTS = {path.stem: path.read_text(encoding="utf-8") for path in GUIDES}
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
