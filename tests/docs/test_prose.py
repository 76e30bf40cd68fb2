# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The guides are short and in plain English, as far as a pattern can tell."""

from __future__ import annotations

import re

import pytest
from docs.guides import ROOT

from docs import prose

ALL, OF_A_PAGE, OF_A_SENTENCE = 9_900, 1_100, 35  # words at most
TEXTS = prose.guides()
MARKDOWN = {
    name: re.sub(
        r"^```.*?^```$",
        "",
        (ROOT / name).read_text(encoding="utf-8"),
        flags=re.MULTILINE | re.DOTALL,
    )
    for name in ("README.md", "CONTRIBUTING.md", "docs/open_points.md")
}
# What to avoid, and what says it better.
FORBIDDEN = {
    "a private word": r"\b(?:held (?:to|against)|at work|begun|conversation|an? double of|(?:each|other) reading)\b",
    "a passive without an actor": r"\b(?:is|are) (?:told|said|refused)\b",
    "a clause with what as a noun": r"^What .*[^?]$|\b[Ww]hat (?:came|became|has|they) ",
    "an adverb at the end of a clause": r", too[.,;:]|\b(?:[Ll]ikewise|by itself)\b|[.;] Else\b",
    "a spelling that is not American": r"\b(?:misspelt|honour|colour|behaviour|licence|cancelled|whilst)",
    "a pronoun without a noun": r"\b[Ww]hoever\b",
}
HEADINGS = {"What happens when", "What a task returns", "What a change includes"}
SENTENCE = re.compile(r"(?<=[.?!:]) +")


def flat(text: str) -> str:
    return " ".join(text.split())


def sentences(text: str) -> list[str]:
    """Return the sentences of a guide; a heading and a cell of a table are sentences."""
    parts = re.split(r"\n\s*\n|\n *(?:\* - |- |\d\. )", prose.prose(text))
    return [each for part in parts for each in SENTENCE.split(flat(part))]


def test_the_guides_are_short():
    count = {name: len(prose.words(text)) for name, text in TEXTS.items()}
    assert {name: words for name, words in count.items() if words > OF_A_PAGE} == {}
    assert sum(count.values()) <= ALL


def test_a_link_counts_by_its_text():
    text = "See `this page <https://example.com/a/b>`__ and :ref:`that one <label>`."
    assert prose.words(text) == ["See", "this", "page", "and", "that", "one"]


@pytest.mark.parametrize("name", TEXTS)
def test_a_sentence_can_be_read_in_one_breath(name):
    long = [each for each in sentences(TEXTS[name]) if len(prose.words(each)) > OF_A_SENTENCE]
    assert long == []


@pytest.mark.parametrize("what", FORBIDDEN)
def test_no_guide_has(what):
    pattern = re.compile(FORBIDDEN[what])
    found = {
        name: [each for each in sentences(text) if pattern.search(each) and each not in HEADINGS]
        for name, text in {**TEXTS, **MARKDOWN}.items()
    }
    assert {name: matches for name, matches in found.items() if matches} == {}


@pytest.mark.parametrize(
    ("what", "sentence"),
    [
        ("a private word", "Let no run be at work."),
        ("a private word", "The emulator is a double of the service."),
        ("a passive without an actor", "A misspelled variable is refused."),
        ("a clause with what as a noun", "What is wrong is told with its line."),
        ("a clause with what as a noun", "It says what became of it."),
        ("an adverb at the end of a clause", "They are in the inventory, too."),
        ("a spelling that is not American", "A misspelt path fails."),
        ("a pronoun without a noun", "Whoever gives one grant has revoked all others."),
    ],
)
def test_a_pattern_finds(what, sentence):
    assert re.search(FORBIDDEN[what], sentence)
