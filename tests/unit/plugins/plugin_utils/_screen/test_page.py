# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The page of a report, as far as it shows without a browser; tests/page has the rest."""

from __future__ import annotations

import base64
import hashlib
import re
from collections import Counter
from html import unescape
from html.parser import HTMLParser

import pytest
from ansible_collections.infrastructure.services.plugins.plugin_utils._screen.page import (
    look,
    page_data,
)
from ansible_collections.infrastructure.services.plugins.plugin_utils._screen.picture import Picture
from support.checkout import CHECKOUT
from support.pages import (
    LEDGER,
    LOST,
    MACHINE,
    REFUSED,
    SERVICE,
    SETTLE,
    asset_of,
    fleet,
    page_of,
    plan,
    run_of,
    typed,
)

FLEET, PLAN = fleet(), plan()
HOSTILE = {
    "</table><script>alert(1)</script>": "</table><script>alert(1)</script>",
    "<img src=x onerror=alert(1)>": None,
    "{{ 7 * 7 }}{% raw %}{# #}": None,
    "a & b": None,
    "</style></title>": None,
    '" onload="alert(1)': None,
    "web\n01": "web\\u000a01",
    "\u202egnp.exe": "\\u202egnp.exe",
    "\x1b[2J\ud800": "\\u001b[2J\\ud800",
    "a\u200bb": "a\\u200bb",
    "\u05d0\u05d1": None,
}
_COLOUR = re.compile(r"--(\w+): #(\w{6})")


class Elements(HTMLParser):
    """The elements of a page, and the names of their attributes."""

    def __init__(self) -> None:
        super().__init__()
        self.tags, self.attributes = Counter(), Counter()

    def handle_starttag(self, tag: str, attrs: list) -> None:
        self.tags[tag] += 1
        self.attributes.update(name for name, _value in attrs)


def data_of(run: dict) -> dict:
    return page_data(typed(run))


def picture_of(assets: list[dict]) -> Picture | None:
    return data_of(run_of(assets, {"created": len(assets)}))["pictures"][MACHINE]


def texts(page: str, tag: str) -> list[str]:
    found = re.findall(rf"<{tag}(?: [^>]*)?>(.*?)</{tag}>", page, re.DOTALL)
    return [unescape(re.sub(r"<[^>]*>", "", text)).strip() for text in found]


def rows(page: str) -> list[str]:
    return re.findall(r'<td class="name">(.*?)</td>', page)


def test_the_title_names_how_it_went_the_service_the_ledger_and_the_run():
    assert (
        texts(page_of(FLEET), "title")[0]
        == f"Run: 1 in doubt, 2 rejected of 500 | {SERVICE} | {LEDGER} | 4711-web"
    )
    assert texts(page_of(PLAN), "title")[0] == (
        f"Plan: 3 to create, 1 differs, 1 in doubt, 1 to update | {SERVICE} | {LEDGER} | 4711-web"
    )


@pytest.mark.parametrize(
    ("counts", "more", "verdict"),
    [
        (
            {"created": 2, "unchanged": 1, "in doubt": 0, "rejected": 0},
            {},
            "2 created, 1 unchanged",
        ),
        ({"unchanged": 3}, {"state": "planned"}, "3 unchanged"),
        ({}, {}, "nothing is listed"),
    ],
)
def test_without_a_problem_it_says_what_was_done(counts, more, verdict):
    assert data_of(run_of([], counts, **more))["verdict"] == verdict


@pytest.mark.parametrize(
    ("mark", "results"),
    [
        ("+", {"created", "to create"}),
        ("~", {"updated", "to update"}),
        ("?", {"in doubt"}),
        ("!", {"differs"}),
        ("x", {"rejected", "not sent"}),
        ("=", {"unchanged"}),
        (".", {"not begun"}),
    ],
)
def test_what_is_done_looks_as_it_was_planned(mark, results):
    (found,) = {look(result) for result in results}
    assert found[0] == mark


def test_a_problem_is_told_once_for_each_cause_with_its_command():
    first, second = data_of(FLEET)["problems"]
    assert (first.names, first.cause, [*first.commands]) == (["web099"], LOST, [SETTLE])
    assert (second.names, second.cause, [*second.commands]) == (
        ["web100", "web307"],
        REFUSED,
        [],
    )
    assert f"<code>{SETTLE}</code>" in page_of(FLEET)


def test_many_with_one_cause_are_counted():
    assets = [
        asset_of(f"vm{number}", "rejected", outcome="rejected", failed=True, cause="no")
        for number in range(25)
    ]
    (problem,) = data_of(run_of(assets, {"rejected": 25}))["problems"]
    assert len(problem.names) == 25


def test_what_was_not_started_is_said_and_what_lost_fields_is_a_problem():
    assets = [
        asset_of("a", "not begun", skipped=True, msg="max_unknown: 1 was reached"),
        asset_of(
            "b",
            "updated",
            outcome="accepted",
            changed=True,
            msg="lost",
            lost=[{"name": "x", "known": 1}],
        ),
    ]
    assert [(each.names, each.cause) for each in data_of(run_of(assets, {}))["problems"]] == [
        (["b"], "lost"),
        (["a"], "max_unknown: 1 was reached"),
    ]
    assert "Nothing to do: nothing is in doubt" in page_of(run_of([], {}))
    page = page_of(run_of(assets, {"updated": 1, "not begun": 1}))
    assert page.count(">not started<") == 3  # the count, the problem and the row
    assert ">not begun<" not in page


@pytest.mark.parametrize(
    ("result", "plan", "says_nothing", "says_how"),
    [
        ("to create", "create", False, True),
        ("unchanged", "keep", True, False),
        ("in doubt", "in_doubt", False, False),
    ],
)
def test_a_plan_says_how_it_is_carried_out_or_that_there_is_nothing_to_do(
    result, plan, says_nothing, says_how
):
    asset = asset_of("a", result, plan=plan, msg="sent, no answer", failed=result == "in doubt")
    page = page_of(run_of([asset], {result: 1}, state="planned"))
    assert ("Nothing to do." in page) is says_nothing
    assert ("To carry out this plan" in page) is says_how


def test_a_run_that_ended_early_says_so_with_how_many_were_not_started():
    stopped = run_of([], {"created": 208, "in doubt": 1, "not begun": 291})
    assert data_of(stopped)["verdict"] == "Stopped early: 1 in doubt, 291 not started of 500"
    assert data_of({**stopped, "interrupted": "the task received SIGINT"})["verdict"] == (
        "Interrupted, the task received SIGINT: 1 in doubt, 291 not started of 500"
    )


def test_fields_that_an_update_may_lose_are_something_to_do():
    role = {**next(asset for asset in PLAN["assets"] if asset["name"] == "role-1")}
    role["resource"] = MACHINE
    page = page_of(run_of([role], {"to update": 1}, state="planned"))
    kept = "login, cluster_id are known and not sent: send: complete keeps them"
    assert [each.cause for each in data_of(run_of([role], {}))["problems"]] == [kept]
    assert "Nothing" not in page
    same = [{"name": "name", "value": "a"}, {"name": "attributes.name", "value": "b"}]
    page = page_of(run_of([{**role, "unsent": same}], {"to update": 1}, state="planned"))
    assert "<th>name</th><td>a</td>" in page
    assert "<th>attributes.name</th><td>b</td>" in page
    unknown = {**role, "unsent": [], "changes": [{"name": "service", "new": "cassandra"}]}
    page = page_of(run_of([unknown], {"to update": 1}, state="planned"))
    assert page.count("nothing else is known of it: a service that replaces drops the rest") == 2
    assert "<del>not known</del></td><td><ins>cassandra</ins>" in page


def test_the_page_of_a_plan_has_the_arguments_that_carry_it_out():
    assert "-e fleet_approved=/srv/fleet/fleet.plan.json" in texts(page_of(PLAN), "code")


def test_columns_that_would_be_empty_are_left_out_and_updates_come_before_creations():
    new = [
        asset_of(f"vm{number}", "to create", plan="create", request_attempts=0, body={})
        for number in range(500)
    ]
    update = asset_of("old", "to update", plan="update", request_attempts=0, known={"id": "old"})
    page = page_of(run_of([*new, update], {"to create": 500}, state="planned"))
    assert texts(page, "th") == ["Result", "Name", "What changes"]
    assert rows(page)[0] == "old"


def test_what_was_sent_for_a_rejected_machine_is_told():
    body = {"name": "a", "attributes": {"cpu": 4}}
    page = page_of(run_of([asset_of("a", "rejected", failed=True, body=body)], {"rejected": 1}))
    assert '{"name": "a", "attributes": {"cpu": 4}}' in unescape(page)


def test_the_bar_shows_one_in_ten_thousand_in_the_look_of_its_mark():
    page = page_of(run_of([], {"created": 9_999, "in doubt": 1, "rejected": 0}))
    parts = [
        (look, float(at), float(width))
        for look, at, width in re.findall(
            r'<rect class="(\w+)" x="([\d.]+)%" width="([\d.]+)%" height="100%">', page
        )
    ]
    assert [part[0] for part in parts] == ["good", "doubt"]
    assert parts[0][1:] == (0, parts[1][1])
    assert parts[1][2] > 1
    assert sum(part[2] for part in parts) == pytest.approx(100, abs=0.02)
    assert re.findall(r'<li class="(\w+)"><span class="mark">(.)</span><b>([\d,]+)</b>', page) == [
        ("good", "+", "9,999"),
        ("doubt", "?", "1"),
        ("calm", "x", "0"),
    ]


def timed(name: str, begun: float, seconds: float, **more: object) -> dict:
    return asset_of(
        name,
        "created",
        outcome="accepted",
        changed=True,
        begun_after=begun,
        seconds=seconds,
        **more,
    )


def test_the_picture_has_a_dot_for_each_request_and_what_was_in_flight():
    assets = [
        timed("a", 0, 4, waits=[[1, 2]]),
        timed("b", 2, 2),
        timed("c", 2, 2),
        timed("d", 8, 2, waits=[[8.5, 1]]),
    ]
    picture = picture_of([*assets, asset_of("e", "unchanged")])
    assert [dot.names for dot in picture.dots] == [["a"], ["b", "c"], ["d"]]
    assert (picture.end, picture.longest, picture.requests) == (10, 4, 4)
    flying = {
        time: [number for at, number in picture.flight if at <= time][-1]
        for time in (0.5, 1.5, 2.5, 3.5, 5, 8.2, 9, 9.8)
    }
    assert flying == {0.5: 1, 1.5: 0, 2.5: 2, 3.5: 3, 5: 0, 8.2: 1, 9: 0, 9.8: 1}
    assert (picture.waits, picture.limited) == ([(1, 3), (8.5, 9.5)], 2)
    assert (picture.times, picture.latencies) == ([0, 2, 4, 6, 8, 10], [0, 1, 2, 3, 4])


def test_one_after_the_other_is_one_in_flight_though_times_are_rounded():
    assets = [
        timed("a", 0.011, 0.031),
        timed("b", 0.041, 0.03),
    ]  # from 0.0106 to 0.0412, when the other begins
    assert max(number for _at, number in picture_of(assets).flight) == 1


def test_waits_at_once_are_one_and_nothing_sent_is_no_picture():
    assets = [timed("a", 0, 9, waits=[[1, 2], [5, 1]]), timed("b", 0, 9, waits=[[2, 2]])]
    picture = picture_of(assets)
    assert (picture.waits, picture.limited) == ([(1, 4), (5, 6)], 3)
    assert picture_of([asset_of("a", "unchanged")]) is None
    assert picture_of([timed("a", 0, 0)]).requests == 1


def test_axes_have_units_and_a_dot_says_its_name():
    page = page_of(FLEET)
    assert {"0 s", "0.2 s", "1.2 s", "10 s"} <= set(texts(page, "text"))
    assert "web099: in doubt, 1.3 s" in texts(page, "title")
    assert "waiting after a 429: 7 times, 0.9 s" in page


def test_all_assets_are_rows_problems_first():
    page = page_of(FLEET)
    assert (len(rows(page)), rows(page)[:3], rows(page)[-1]) == (
        500,
        ["web099", "web100", "web307"],
        "web039",
    )
    assert '<td class="id" data-is="id">vm-49e1859f</td><td class="address">192.0.2.41</td>' in page


def test_a_plan_has_old_and_new_side_by_side_and_what_is_left_alone():
    page = page_of(PLAN)
    assert re.search(r"<th>cpu</th><td><del>2</del></td><td><ins>8</ins></td>", page)
    assert re.search(r"<th>login</th><td>true</td><td class=\"trace\">not sent</td>", page)
    assert "recorded, not listed: left alone" in page
    assert ">ip 192.0.2.1, vm_ram 16</td>" in re.sub(r"\s+<", "<", page)
    assert page.count("operating_system") == 1  # shared by all new ones
    assert "fleet_approved" in page


def test_names_are_data_whatever_they_are():
    shown = [seen or name for name, seen in HOSTILE.items()]
    page = page_of(
        run_of(
            [asset_of(name, "rejected", failed=True, cause=name, command=name) for name in HOSTILE],
            {"rejected": len(HOSTILE)},
            ledger="</title><script>",
            by="{{ by }}",
        )
    )
    assert [unescape(name) for name in rows(page)] == shown
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
    page = page_of(PLAN)
    (policy,) = re.findall(r'http-equiv="Content-Security-Policy" content="(.*?)"', page)
    allowed = dict(rule.split(" ", 1) for rule in unescape(policy).split("; "))
    for kind in ("style", "script"):
        (text,) = re.findall(rf"<{kind}>(.*?)</{kind}>", page, re.DOTALL)
        digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        assert allowed.pop(f"{kind}-src") == f"'sha256-{digest}'"
    assert allowed == {"default-src": "'none'", "base-uri": "'none'", "form-action": "'none'"}


def luminance(color: str) -> float:
    parts = [int(color[at : at + 2], 16) / 255 for at in (0, 2, 4)]
    red, green, blue = (
        part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts
    )
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: str, other: str) -> float:
    dark, light = sorted((luminance(one), luminance(other)))
    return (light + 0.05) / (dark + 0.05)


def test_every_color_has_contrast_in_both_schemes():
    """WCAG 2.2, 1.4.3: the contrast of colors with both backgrounds, which are also what stands on
    the colors.
    """
    (style,) = re.findall(r"<style>(.*?)</style>", page_of(PLAN), re.DOTALL)
    both = [
        dict(_COLOUR.findall(block)) for block in re.findall(r":root \{(.*?)\}", style, re.DOTALL)
    ]
    assert len(both) == 2
    for colors in both:
        grounds = [colors.pop(name) for name in ("card", "page", "code")]
        colors.pop("line")
        low = {
            name: round(contrast(color, grounds[0]), 2)
            for name, color in colors.items()
            if min(contrast(color, ground) for ground in grounds[:2]) < 4.5
        }
        assert low == {}
        assert contrast(colors["text"], grounds[2]) > 4.5
        assert len({colors["doubt"], colors["bad"], colors["differs"], colors["good"]}) == 4


def test_the_picture_in_the_guides_is_of_this_page():
    """`make picture` takes it anew, in Chromium."""
    assert (
        hashlib.sha256(page_of(FLEET).encode()).hexdigest()
        in (CHECKOUT / "tests/page/picture.sha256").read_text()
    )
    assert (CHECKOUT / "docs/docsite/rst/report.png").stat().st_size < 150_000


def test_a_page_of_thousands_is_small_and_has_no_part_that_repeats():
    page = page_of(fleet(5_000))
    assert (len(rows(page)), page.count("<tbody>")) == (5_000, 20)
    assert len(page) < 2_500_000
    assert MACHINE not in page  # one kind needs no column
