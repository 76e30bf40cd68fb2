"""The page shows what happens, as it happens, without moving what the reader looks at."""

from __future__ import annotations

import re

from emulator.server import start


def rows(page, table: str):
    return page.locator(f"#{table} tbody")


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
