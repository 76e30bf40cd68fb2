"""The emulator's page as a file and as an answer; its behaviour in a browser is tested in
tests/page.
"""

from __future__ import annotations

import base64
import hashlib
import re
from html.parser import HTMLParser

import requests
from emulator import page

TEXT = page.content().decode("utf-8")


class Elements(HTMLParser):
    """The attributes of every element of the page, in order."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.all: list[dict] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list) -> None:
        self.all.append(dict(attrs))


ELEMENTS = Elements(TEXT).all


def test_it_is_served_and_is_not_part_of_the_conversation(emulator):
    for url in (emulator.url, f"{emulator.url}/?x=1"):
        answer = requests.get(url, timeout=5)
        assert (answer.status_code, answer.headers["Content-Type"]) == (
            200,
            "text/html; charset=utf-8",
        )
        assert answer.text == TEXT
        assert answer.headers["Cache-Control"] == "no-store"
        assert answer.headers["X-Content-Type-Options"] == "nosniff"
    assert emulator.conversation() == []


def test_its_policy_allows_only_its_own_scripts_and_styles(emulator):
    header = requests.get(emulator.url, timeout=5).headers["Content-Security-Policy"]
    policy = dict(directive.split(" ", 1) for directive in header.split("; "))
    for tag in ("script", "style"):
        (text,) = re.findall(rf"<{tag}>(.*?)</{tag}>", TEXT, re.DOTALL)
        digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        assert policy.pop(f"{tag}-src") == f"'sha256-{digest}'"
    assert policy == {
        "default-src": "'none'",
        "base-uri": "'none'",
        "form-action": "'none'",
        "frame-ancestors": "'none'",
        "connect-src": "'self'",
        "img-src": "data:",
        "require-trusted-types-for": "'script'",
        "trusted-types": "'none'",
    }


def test_it_loads_nothing_from_elsewhere():
    assert re.findall(r"(?:https?:)?//\w|@import|url\(", TEXT) == []
    outward = {"src", "srcset", "action", "formaction", "style"}
    assert [attributes for attributes in ELEMENTS if outward & set(attributes)] == []
    assert [each["href"] for each in ELEMENTS if "href" in each] == ["data:,"]
