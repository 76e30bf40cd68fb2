# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The emulator's page as a file and as an answer; its behaviour in a browser is tested in
tests/page.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
from html.parser import HTMLParser

import pytest
import requests
from emulator import page
from emulator.faults import COMMON, KINDS, OPERATIONS, parse
from emulator.messages import Request
from emulator.server import start

TEXT = page.content().decode("utf-8")


class Elements(HTMLParser):
    """Every element of the page as (tag, attributes, attributes of its label), in order."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.all: list[tuple[str, dict, dict | None]] = []
        self._label: dict | None = None
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list) -> None:
        if tag == "label":
            self._label = dict(attrs)
        self.all.append((tag, dict(attrs), self._label))

    def handle_endtag(self, tag: str) -> None:
        if tag == "label":
            self._label = None


ELEMENTS = Elements(TEXT).all
FIELDS = [
    (attributes["name"], label)
    for tag, attributes, label in ELEMENTS
    if tag in ("input", "select", "textarea")
]


def options(select: str) -> list[str]:
    """Return the choices that a select element offers."""
    inner = re.search(rf'<select name="{select}">(.*?)</select>', TEXT, re.DOTALL)[1]
    return re.findall(r"<option>(\w+)</option>", inner)


def test_it_is_served_and_is_not_part_of_the_conversation(emulator):
    for url in (emulator.url, f"{emulator.url}/?x=1"):
        answer = requests.get(url, timeout=5)
        assert (answer.status_code, answer.headers["Content-Type"]) == (
            200,
            "text/html; charset=utf-8",
        )
        assert answer.text == TEXT
    assert emulator.conversation() == []


def test_it_stores_nothing_and_reveals_nothing_to_others(emulator):
    headers = requests.get(emulator.url, timeout=5).headers
    assert headers["Cache-Control"] == "no-store"
    assert headers["Referrer-Policy"] == "no-referrer"
    assert headers["X-Content-Type-Options"] == "nosniff"


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "HEAD"])
def test_other_methods_are_for_the_service(emulator, method):
    assert requests.request(method, emulator.url, timeout=5).status_code == 404
    assert [entry["method"] for entry in emulator.conversation()] == [method]


def test_a_fault_does_not_affect_the_page(emulator):
    emulator.meet(kind="status", status=503)
    assert requests.get(emulator.url, timeout=5).status_code == 200


def test_below_a_prefix_its_relative_urls_lead_to_the_emulator():
    with start(prefix="/a/b") as running:
        answer = requests.get(running.url, timeout=5)
        assert (answer.text, answer.url, [each.status_code for each in answer.history]) == (
            TEXT,
            f"{running.url}/",
            [308],
        )
        root = running.url.removesuffix("/a/b")
        assert [
            requests.get(f"{root}{path}", timeout=5).status_code for path in ("/", "/a/", "/a/bc")
        ] == [404] * 3


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


def test_the_policy_of_a_page_with_more_scripts_names_each():
    assert page.policy(b"<script>1</script><script>2</script>").count("sha256-") == 2


def test_it_loads_nothing_from_elsewhere():
    assert re.findall(r"(?:https?:)?//\w|@import|url\(", TEXT) == []
    outward = {"src", "srcset", "action", "formaction", "style"}
    assert [attributes for _tag, attributes, _label in ELEMENTS if outward & set(attributes)] == []
    assert [
        attributes["href"] for _tag, attributes, _label in ELEMENTS if "href" in attributes
    ] == ["data:,"]


def test_it_cannot_turn_text_into_markup():
    makers = (
        r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\b|new Function|DOMParser"
    )
    assert re.findall(makers, TEXT) == []
    assert [
        name
        for _tag, attributes, _label in ELEMENTS
        for name in attributes
        if name.startswith("on")
    ] == []


def test_each_field_has_a_label_and_each_heading_a_scope():
    assert FIELDS
    assert [name for name, label in FIELDS if label is None] == []
    assert {attributes.get("scope") for tag, attributes, _label in ELEMENTS if tag == "th"} == {
        "col"
    }


def test_ids_are_unique_and_those_referenced_exist():
    ids = [attributes["id"] for _tag, attributes, _label in ELEMENTS if "id" in attributes]
    named = [
        attributes["aria-labelledby"]
        for _tag, attributes, _label in ELEMENTS
        if "aria-labelledby" in attributes
    ]
    assert len(ids) == len(set(ids))
    assert set(named) | set(re.findall(r'byId\("([^"]+)"\)', TEXT)) <= set(ids)


def test_the_form_offers_every_fault():
    assert options("kind") == list(KINDS)
    assert sorted(options("operation")) == sorted(OPERATIONS)
    offered = {kind: set() for kind in KINDS}
    for name, label in FIELDS:
        for kind in label.get("data-kinds", " ".join(KINDS)).split():
            offered[kind].add(name)
    for kind, known in KINDS.items():
        common = set(COMMON) - ({"when"} if len(known.moments) == 1 else set())
        assert offered[kind] == common | set(known.parameters), kind


def test_the_buttons_are_faults():
    said = [
        attributes["data-fault"]
        for _tag, attributes, _label in ELEMENTS
        if "data-fault" in attributes
    ]
    assert len(said) > 3
    assert {parse(json.loads(fault)).count for fault in said} == {1}


def test_it_is_served_through_a_proxy_too():
    assert page.is_page(Request("GET", "http://emulator.example/", prefix=""))
    assert not page.is_page(Request("GET", "http://emulator.example/x", prefix=""))
