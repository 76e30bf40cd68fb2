"""The page shows what happens, as it happens, without moving what the reader looks at."""

from __future__ import annotations

import re

from emulator.server import start


def rows(page, table: str):
    return page.locator(f"#{table} tbody")


def test_an_empty_page_says_so(page, service, expect):
    expect(page.locator("#base")).to_have_text(service.url)
    expect(page.get_by_text("No request yet.")).to_be_visible()
    expect(page.get_by_role("table", name="Virtual machines")).to_be_hidden()
    expect(rows(page, "roles")).to_contain_text(["role-1"])


def test_the_settings_are_shown_and_follow_a_change(page, service, expect):
    expect(rows(page, "settings")).to_contain_text(["requiredstrict", "putmerge"])
    service.control(
        "PUT",
        "settings",
        json={"put": "replace", "delay": {"any": 0.5}, "token": "a-secret-of-all"},
    )
    expect(rows(page, "settings")).to_contain_text(
        ["putreplace", "tokena-s\u2026 (15 characters)", 'delay{"any":0.5}']
    )


def test_the_newest_is_first(page, service, expect):
    for name in ("one", "two", "three"):
        service.create(name)
    expect(rows(page, "machines")).to_contain_text(["three", "two", "one"])
    expect(rows(page, "requests").locator("td").first).to_have_text("3")


def test_what_is_open_stays_open_and_keeps_the_focus(page, service, expect):
    service.create("first", team="blue")
    name = page.get_by_role("button", name="first")
    name.press("Enter")
    expect(name).to_have_attribute("aria-expanded", "true")
    expect(page.locator("#machines pre")).to_contain_text('"team": "blue"')
    service.create("second")
    expect(rows(page, "machines")).to_contain_text(["second", "first"])
    expect(name).to_be_focused()
    expect(page.locator("#machines pre")).to_have_count(1)
    name.press("Enter")
    expect(page.locator("#machines pre")).to_have_count(0)


def test_a_body_is_shown_as_it_was_sent(page, service, expect):
    service.send(
        b'{"name":"a:b, {c}\\"","attributes":{"cpu":4.0,"vm_ram":12345678901234567890,"team":"\\u00e4",'
        b'"puppet_classes":[ ],"volumes":[{"name":"x"},{}]},"name":"again"}'
    )
    page.locator("#requests button").click()
    expect(page.locator("#requests pre").last).to_have_text("""{
  "name": "a:b, {c}\\"",
  "attributes": {
    "cpu": 4.0,
    "vm_ram": 12345678901234567890,
    "team": "\\u00e4",
    "puppet_classes": [ ],
    "volumes": [
      {
        "name": "x"
      },
      {}
    ]
  },
  "name": "again"
}""")


def test_it_shows_when_the_emulator_is_gone_and_when_it_is_back(page, service, errors, expect):
    state, port = page.get_by_role("status"), int(service.url.rpartition(":")[2])
    service.running.stop()
    expect(state).to_have_text("no answer; trying again")
    with start(port=port, roles=["another"]):
        expect(state).to_have_text("live")
        expect(rows(page, "roles")).to_contain_text(["another"])
        assert {re.search(r"ERR_\w+", error)[0] for error in errors} <= {
            "ERR_CONNECTION_REFUSED",
            "ERR_CONNECTION_RESET",
            "ERR_EMPTY_RESPONSE",
        }
        errors.clear()


def test_it_works_below_a_prefix(page, errors, expect):
    with start(prefix="/a/b", roles=["below"]) as running:
        page.goto(running.url)
        expect(rows(page, "roles")).to_contain_text(["below"])
        expect(page.locator("#base")).to_have_text(running.url)
        page.goto("about:blank")
