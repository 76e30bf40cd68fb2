# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The page shows what happens, as it happens, without moving what the reader looks at."""

from __future__ import annotations

import re

import pytest
from emulator import openapi
from emulator.server import start


def rows(page, table: str):
    return page.locator(f"#{table} tbody")


def seed(service, machines: int, roles: int) -> None:
    """Put many assets into the emulator without a request for each."""
    operation = next(
        operation for operation in openapi.operations(openapi.load()) if operation.creates
    )
    for number in range(machines):
        service.running.api.store.create(
            operation, {"name": f"web{number}", "attributes": {}}, unique=False
        )
    for number in range(roles):
        service.control(
            "PUT", f"assets/role-{number}", json={"name": f"role {number}", "attributes": {}}
        )


def test_an_empty_page_says_so(page, service, expect):
    expect(page.locator("#base")).to_have_text(service.url)
    expect(page.get_by_text("No request yet.")).to_be_visible()
    expect(page.get_by_role("table", name="Virtual machines")).to_be_hidden()
    expect(rows(page, "roles")).to_contain_text(["role-1"])


def test_a_new_machine_and_its_request_appear(page, service, expect):
    assert service.create("web01") == 201
    machine = (
        page.get_by_role("table", name=re.compile("Virtual machines")).get_by_role("row").nth(1)
    )
    expect(machine).to_contain_text("web01")
    expect(machine).to_contain_text("10.0.0.1")
    request = page.get_by_role("table", name=re.compile("Requests")).get_by_role("row").nth(1)
    shown = r"1 *web01\d+:\d\d:\d\d.*POST /api/v1/services/compute/virtual_machines.*201 stored"
    expect(request).to_have_text(re.compile(shown))


def test_an_updated_role_changes_in_place(page, service, expect):
    expect(rows(page, "roles")).not_to_contain_text(["true"])
    assert service.update("role-1", login=True, cluster_id="eu/one") == 200
    expect(rows(page, "roles")).to_have_text([re.compile("role-1.*true.*eu/one")])


def test_a_row_names_its_role_unless_the_body_is_unreadable(page, service, expect):
    service.update("role-1", login=True)
    service.send(b"no JSON")
    expect(rows(page, "requests")).to_have_text(
        [re.compile("^ *2\u2013"), re.compile("^ *1role-1")]
    )


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


def test_many_are_counted_and_the_newest_shown(page, service, expect):
    for number in range(103):
        service.create(f"web{number}")
    for table in ("machines", "requests"):
        expect(page.locator(f"#{table}-count")).to_have_text("newest 100 of 103")
        expect(rows(page, table)).to_have_count(100)
    expect(rows(page, "machines").last).to_contain_text("web3")


@pytest.mark.parametrize(("width", "screens"), [(1280, 1), (390, 2.5)])
@pytest.mark.parametrize("machines", [100, 2000])
def test_the_conversation_is_near_however_many_machines_there_are(
    page, service, expect, machines, width, screens
):
    page.set_viewport_size({"width": width, "height": 900})
    seed(service, machines, roles=50)
    service.create("the last")
    expect(rows(page, "requests")).to_contain_text(["the last"])
    expect(page.locator("#machines-count")).to_have_text(f"newest 100 of {machines + 1:,}")
    assert page.locator("#requests tbody").first.bounding_box()["y"] < screens * 900
    page.locator("#machines tbody").last.scroll_into_view_if_needed()
    expect(page.locator("#machines tbody").last).to_be_in_viewport()


def test_a_number_stays_on_one_line(page, service, expect):
    service.create("a")
    expect(rows(page, "requests")).to_have_count(1)
    heights = page.evaluate("""() => {
        const cell = document.querySelector("#requests .number + *").previousElementSibling;
        return ["1", "12345", "1234567"].map((number) => {
          cell.textContent = number;
          const range = document.createRange();
          range.selectNodeContents(cell);
          return range.getBoundingClientRect().height;
        });
    }""")
    assert len(set(heights)) == 1


def test_before_the_first_answer_nothing_looks_well(browser, service, expect):
    context = browser.new_context()
    opened = context.new_page()
    opened.route("**/_emulator/**", lambda route: None)  # no answer yet
    opened.goto(service.url)
    dot = "getComputedStyle(document.getElementById('state'), '::before').color"
    expect(opened.get_by_role("status")).to_have_text("connecting")
    before = opened.evaluate(dot)
    opened.unroute_all(behavior="ignoreErrors")
    opened.reload()
    expect(opened.get_by_role("status")).to_have_text("live")
    assert opened.evaluate(dot) != before
    context.close()


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


def test_an_open_role_shows_its_update(page, service, expect):
    page.get_by_role("button", name="role-1").click()
    service.update("role-1", login=True)
    expect(page.locator("#roles pre")).to_contain_text('"login": true')


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


@pytest.mark.parametrize(
    ("body", "shown"),
    [
        (b"{not JSON, [", "{not JSON, ["),
        (b"\xff\xfe", "Base64: //4="),
        (b"x" * 20001, "(20001 characters)"),
    ],
)
def test_a_body_that_is_not_json_is_shown_too(page, service, expect, body, shown):
    service.send(body)
    page.locator("#requests button").click()
    expect(page.locator("#requests pre").last).to_contain_text(shown)


def test_a_request_without_an_answer_is_shown(page, service, expect):
    service.control("POST", "faults", json={"kind": "delay", "seconds": 60})
    page.evaluate("void fetch('x')")
    expect(rows(page, "requests")).to_have_text([re.compile("GET /x.*none fault: delay")])
    service.running.api.reset()


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


def test_its_own_requests_are_not_part_of_the_conversation(page, service):
    page.wait_for_timeout(1500)
    assert service.control("GET", "requests") == []
