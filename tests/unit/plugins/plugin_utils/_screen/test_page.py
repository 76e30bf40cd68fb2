"""The page of a report, as far as it shows without a browser; tests/page has the rest."""

from __future__ import annotations

import base64
import hashlib
import re
from collections import Counter
from functools import cache
from html import unescape
from html.parser import HTMLParser

import pytest
from ansible_collections.infrastructure.services.plugins.module_utils._secrets import printable
from support.checkout import CHECKOUT
from support.pages import (
    LEDGER,
    LOST,
    REFUSED,
    SERVICE,
    SETTLE,
    fleet,
    page_of,
    plan,
    row_of,
    run_of,
)

PLAN = plan()
HOSTILE = [
    "</table><script>alert(1)</script>",
    "{{ 7 * 7 }}{% raw %}{# #}",
    "</style></title>",
    '" onload="alert(1)',
    "\u202egnp.exe",
    "\x1b[2J\ud800",
]


@cache
def page_of_fleet() -> str:
    return page_of(fleet())


@cache
def page_of_plan() -> str:
    return page_of(PLAN)


class Elements(HTMLParser):
    """The elements of a page, and the names of their attributes."""

    def __init__(self) -> None:
        super().__init__()
        self.tags, self.attributes = Counter(), Counter()

    def handle_starttag(self, tag: str, attrs: list) -> None:
        self.tags[tag] += 1
        self.attributes.update(name for name, _value in attrs)


def texts(page: str, tag: str) -> list[str]:
    found = re.findall(rf"<{tag}(?: [^>]*)?>(.*?)</{tag}>", page, re.DOTALL)
    return [unescape(re.sub(r"<[^>]*>", "", text)).strip() for text in found]


def rows(page: str) -> list[str]:
    return re.findall(r'<td class="name">(.*?)</td>', page)


def test_the_title_names_how_it_went_the_service_the_ledger_and_the_run():
    assert (
        texts(page_of_fleet(), "title")[0]
        == f"Run: 457 created, 1 in doubt, 2 rejected, 40 unchanged | {SERVICE} | {LEDGER} | 4711-web"
    )
    assert texts(page_of_plan(), "title")[0].startswith(
        "Plan: 3 to create, 1 to update, 1 differs, 1 in doubt, 2 not listed, 114 unchanged | "
    )


def test_a_problem_is_told_once_for_each_cause_with_its_command():
    todo = page_of_fleet().partition('id="todo"')[2].partition("</section>")[0]
    assert [texts(todo, "bdi"), todo.count(LOST), todo.count(REFUSED)] == [
        ["web099", "web100", "web307"],
        1,
        1,
    ]
    assert texts(todo, "code") == [SETTLE]


def test_fields_that_an_update_may_lose_are_something_to_do():
    (role,) = [row for row in PLAN["results"] if row["item"] == "role-1"]
    page = page_of(run_of([role], state="planned"))
    assert f"<p>{role['msg']}</p>" in page
    assert "Nothing" not in page
    same = [{"name": "name", "value": "a"}, {"name": "attributes.name", "value": "b"}]
    page = page_of(run_of([{**role, "unsent": same}], state="planned"))
    assert "<th>name</th><td>a</td>" in page
    assert "<th>attributes.name</th><td>b</td>" in page
    changes = [{"name": "service", "new": "cassandra"}]
    page = page_of(run_of([{**role, "changes": changes}], state="planned"))
    assert "<del>not known</del></td><td><ins>cassandra</ins>" in page


@pytest.mark.parametrize(("requests", "dots"), [(9, 0), (10, 10)])
def test_ten_requests_or_more_are_drawn_over_time_with_problems_above(requests, dots):
    timed = [
        row_of(f"vm{number}", "created", begun_after=number, seconds=2)
        for number in range(requests)
    ]
    timed[3].update(word="in doubt", failed=True, seconds=4)
    page = page_of(run_of([*timed, row_of("kept", "unchanged")]))
    drawn = re.findall(r'<circle class="(\w+)" cx="(.*?)%" cy="(.*?)%"', page)
    assert len(drawn) == dots
    assert drawn[-1:] == ([("doubt", "33.33", "0.0")] if dots else [])


def test_a_plan_has_old_and_new_side_by_side_and_what_is_left_alone():
    page = page_of_plan()
    assert re.search(r"<th>attributes.cpu</th><td><del>2</del></td><td><ins>8</ins></td>", page)
    assert re.search(
        r"<th>attributes.login</th><td>true</td><td class=\"unsent\">not sent</td>", page
    )
    assert [name for name in rows(page) if "gone" in name] == ["gone1", "gone2"]
    assert '<i>ip</i> <bdi>192.0.2.1</bdi></span><span class="fact"><i>vm_ram</i>' in page
    assert page.count("operating_system") == 1  # shared by all new ones
    assert "-e fleet_approved=" in page


def test_names_are_data_whatever_they_are():
    page = page_of(
        run_of(
            [row_of(name, "rejected", failed=True, msg=name, command=name) for name in HOSTILE],
            ledger="</title><script>",
            by="{{ by }}",
        )
    )
    assert [unescape(name) for name in rows(page)] == [*map(printable, HOSTILE)]
    elements = Elements()
    elements.feed(page)
    assert elements.tags["script"] == 1
    assert not {"img", "iframe", "form", "link", "a"} & elements.tags.keys()
    assert [
        name
        for name in elements.attributes
        if name in ("style", "src", "href") or name.startswith("on")
    ] == []
    page.encode()


def test_the_policy_allows_the_style_and_the_script_of_the_page_by_their_hashes_alone():
    page = page_of_plan()
    (policy,) = re.findall(r'http-equiv="Content-Security-Policy" content="(.*?)"', page)
    allowed = dict(rule.split(" ", 1) for rule in unescape(policy).split("; "))
    for kind in ("style", "script"):
        (text,) = re.findall(rf"<{kind}>(.*?)</{kind}>", page, re.DOTALL)
        digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        assert allowed.pop(f"{kind}-src") == f"'sha256-{digest}'"
    assert allowed == {"default-src": "'none'", "base-uri": "'none'", "form-action": "'none'"}


def test_the_picture_in_the_guides_is_of_this_page():
    """`make picture` takes it anew, in Chromium."""
    assert (
        hashlib.sha256(page_of_fleet().encode()).hexdigest()
        in (CHECKOUT / "tests/page/picture.sha256").read_text()
    )
    assert (CHECKOUT / "docs/docsite/rst/report.png").stat().st_size < 150_000
