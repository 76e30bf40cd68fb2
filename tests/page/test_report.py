"""The page of a report in a browser: what a reader does with it, whatever the names are, and
without its script.
"""

from __future__ import annotations

import pytest
from ansible_collections.infrastructure.services.plugins.module_utils._secrets import printable
from axe_playwright_python.sync_playwright import Axe
from page.conftest import PATIENCE
from support.pages import SETTLE, fleet, page_of, plan, row_of, run_of

WIDTHS = {"wide": 1280, "phone": 390}
NAMES = [
    "</table><script>window.hit = 1</script>",
    "\u202egnp.exe",
    "web\n01",
    "javascript:window.hit=1",
    "x" * 3000,
]


@pytest.fixture
def opened(browser, errors, tmp_path):
    """Return a function that opens a run's page."""
    contexts = []

    def open_page(run: dict, width: int = 1280, **options: object):
        file = tmp_path / "fleet.html"
        file.write_text(page_of(run), encoding="utf-8")
        contexts.append(browser.new_context(viewport={"width": width, "height": 900}, **options))
        contexts[-1].set_default_timeout(PATIENCE)
        page = contexts[-1].new_page()
        errors.watch(page)
        page.goto(file.as_uri())
        return page

    yield open_page
    for context in contexts:
        context.close()


def names(page) -> list[str]:
    return page.locator("#assets tbody tr:visible td.name").all_text_contents()


@pytest.mark.parametrize("scheme", ["dark", "light"])
@pytest.mark.parametrize("width", WIDTHS.values(), ids=WIDTHS)
@pytest.mark.parametrize("run", [fleet(320), plan()], ids=["run", "plan"])
def test_the_page_fits_and_is_accessible(opened, run, width, scheme):
    page = opened(run, width, color_scheme=scheme)
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    found = Axe().run(
        page, options={"runOnly": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"]}
    )
    assert found.violations_count == 0, found.generate_report()


@pytest.mark.parametrize("media", ["screen", "print"])
@pytest.mark.parametrize("width", [1280, 1123, 1000, 800, 390])
def test_no_row_is_tall_because_its_note_is_narrow(opened, width, media):
    """1123 pixels are the long side of A4."""
    for run in (fleet(320), plan()):
        page = opened(run, width)
        page.emulate_media(media=media)
        notes = "[...document.querySelectorAll('td.note')].filter((note) => note.textContent)"
        assert page.evaluate(f"Math.min(...{notes}.map((note) => note.offsetWidth)) > 200")
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_the_first_screen_has_how_it_went_and_what_to_do(opened, expect):
    page = opened(fleet())
    expect(page.get_by_role("heading", level=1)).to_contain_text("1 in doubt, 2 rejected")
    for text in (
        "https://infrastructure.example.com",
        "/srv/fleet/fleet.db",
        "4711-web",
        SETTLE,
        "web100",
    ):
        assert page.get_by_text(text, exact=True).first.bounding_box()["y"] < 900


def test_assets_can_be_searched_filtered_and_sorted(opened):
    page = opened(fleet())
    page.get_by_role("button", name="rejected 2").click()
    assert names(page) == ["web100", "web307"]
    page.get_by_role("button", name="all 500").click()
    page.get_by_role("searchbox").fill("WEB07")
    assert names(page) == [f"web07{number}" for number in range(10)]
    page.get_by_role("searchbox").fill("")
    page.get_by_role("button", name="Seconds").click()
    page.get_by_role("button", name="Seconds").click()
    assert names(page)[:1] == ["web099"]
    page.get_by_role("button", name="Name").click()
    assert names(page) == [f"web{number:03}" for number in range(500)]


def test_a_command_can_be_copied(opened, expect):
    page = opened(fleet(), permissions=["clipboard-read", "clipboard-write"])
    page.get_by_role("button", name="Copy").click()
    expect(page.get_by_role("button", name="Copied")).to_be_visible()
    assert page.evaluate("navigator.clipboard.readText()") == SETTLE


@pytest.mark.parametrize("script", [True, False], ids=["with its script", "without"])
def test_names_are_data(opened, script):
    run = run_of(
        [row_of(name, "rejected", failed=True, msg=name, command=name) for name in NAMES],
        ledger="</title><script>window.hit = 1</script>",
    )
    page = opened(run, java_script_enabled=script)
    shown = page.locator("#assets td.name").all_text_contents()
    assert shown == [*map(printable, NAMES)]
    if script:
        assert page.evaluate("window.hit") is None
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_the_browser_runs_no_other_script_and_no_other_style(opened, errors):
    page = opened(fleet())
    page.evaluate("""() => {
        const script = document.createElement("script");
        script.textContent = "window.hit = 1";
        document.body.append(script);
        document.body.setAttribute("onclick", "window.hit = 1");
        document.body.click();
    }""")
    assert page.evaluate("window.hit") is None
    assert errors
    assert all("Content Security Policy" in error for error in errors)
    errors.clear()


def test_without_its_script_everything_is_there_but_what_needs_one(opened):
    page = opened(fleet(), java_script_enabled=False)
    assert page.locator("#assets tbody tr").count() == 500
    assert page.locator("circle").count() > 400
    assert not page.locator(".tools").is_visible()
    assert page.locator("button:visible").count() == 0


def test_on_paper_all_assets_are_printed_in_light_colors(opened):
    page = opened(fleet(), color_scheme="dark")
    page.emulate_media(media="print")
    assert page.evaluate("getComputedStyle(document.body).color") == "rgb(31, 35, 40)"
    assert not page.locator(".tools").is_visible()
    assert page.pdf().count(b"/Type /Page\n") > 8
