"""The site of the documents, as `make docs` builds it: its first page, its parts, on a telephone.
Sphinx checks its links.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from support.checkout import CHECKOUT

SITE = CHECKOUT / ".build/docs/html"
PARTS = ("Start", "Use", "Operate", "Reference")
# What of the text begins or ends outside of the screen, unless it can be scrolled into view in a
# box of its own.
CUT_OFF = """() => [...document.querySelectorAll('.document *')].filter(element => {
    const box = element.getBoundingClientRect();
    if (!box.width || (box.right <= innerWidth + 1 && box.left >= 0)) return false;
    for (let above = element.parentElement; above.matches('.document *'); above = above.parentElement)
        if (['auto', 'scroll'].includes(getComputedStyle(above).overflowX)) return false;
    return true;
}).map(element => element.outerHTML.slice(0, 80))"""
OF_SPHINX = {"genindex.html", "search.html"}
PAGES = sorted(path for path in SITE.rglob("*.html") if path.name not in OF_SPHINX)


@pytest.fixture(scope="module", autouse=True)
def built() -> None:
    assert PAGES, "the site is missing: make docs"


@pytest.fixture(scope="module", params=[1280, 390])
def tab(request, browser) -> Iterator:
    """A tab of this width, in pixels."""
    context = browser.new_context(viewport={"width": request.param, "height": 900})
    yield context.new_page()
    context.close()


def test_the_first_page_is_home_and_leads_to_each_part(tab):
    home = SITE / "index.html"
    tab.goto(home.as_uri())
    assert (
        tab.locator("h1").inner_text().strip("\uf0c1¶ ")
        == "Virtual machines and Cassandra roles, created once"
    )
    captions = [text.strip() for text in tab.locator("nav .caption-text").all_text_contents()]
    assert captions == list(PARTS)
    for part in PARTS:
        tab.goto(home.as_uri())
        first = tab.locator(f"nav p.caption:has-text('{part}') + ul a").first.get_attribute("href")
        tab.goto((SITE / first).as_uri())
        assert tab.locator("h1").inner_text().strip("\uf0c1¶ ")


def test_nothing_of_a_page_is_outside_of_the_screen(tab):
    cut_off = {}
    for path in PAGES:
        tab.goto(path.as_uri(), wait_until="domcontentloaded")
        cut_off[path.name] = tab.evaluate(CUT_OFF)
    assert {name: elements for name, elements in cut_off.items() if elements} == {}


def test_code_keeps_its_lines(tab):
    tab.goto((SITE / "docsite/fleet.html").as_uri(), wait_until="domcontentloaded")
    wrapped = (
        "[...document.querySelectorAll('pre')].filter(e => getComputedStyle(e).whiteSpace != 'pre')"
    )
    assert tab.evaluate(f"{wrapped}.length") == 0
