# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The page's fault form and its other buttons work as labeled."""

from __future__ import annotations

import re

import pytest
from emulator.faults import KINDS, parse


@pytest.fixture
def form(page):
    page.get_by_text("Any other fault").click()
    return page.locator("form")


def add(form) -> None:
    form.get_by_role("button", name="Add fault").click()


def pending(page):
    return page.locator("#pending tbody")


def test_the_next_create_meets_the_fault_in_the_form(page, service, form, expect):
    form.get_by_role("combobox", name="Kind").select_option("status")
    form.get_by_role("spinbutton", name="Status").fill("503")
    form.get_by_role("combobox", name="For").select_option("create_virtual_machine")
    add(form)
    expect(pending(page)).to_have_text(
        re.compile("status 503, before.*1 of create_virtual_machine")
    )
    assert service.update(login=True) == 200
    assert service.create() == 503
    assert service.create() == 201
    expect(page.get_by_text("No faults queued.")).to_be_visible()
    expect(page.locator("#requests tbody")).to_contain_text(
        ["201 stored", "503 fault: status", "200 stored"]
    )


def test_every_field_of_the_form_is_sent(page, service, form, expect):
    form.get_by_role("spinbutton", name="Status").fill("429")
    form.get_by_role("textbox", name="Headers").fill("Retry-After: 2\n\nX-Link: a:b\nX-Empty")
    form.get_by_role("textbox", name="Body").fill('{"a": 1}')
    form.get_by_role("combobox", name="For").select_option("token")
    form.get_by_role("spinbutton", name="Requests").fill("0")
    form.get_by_role("spinbutton", name="After skipping").fill("3")
    form.get_by_role("combobox", name="Strikes").select_option("after")
    add(form)
    expect(pending(page)).to_contain_text(["all of token, after 3"])
    expect(pending(page)).to_contain_text(["headers Retry-After: 2; X-Link: a:b"])
    (fault,) = service.control("GET", "faults")
    assert {**fault, "id": 0} == {
        "id": 0,
        "kind": "status",
        "operation": "token",
        "count": None,
        "skip": 3,
        "when": "after",
        "status": 429,
        "headers": [["Retry-After", "2"], ["X-Link", "a:b"], ["X-Empty", ""]],
        "body": '{"a": 1}',
    }


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_can_be_added_with_its_default_values(page, service, form, expect, kind):
    form.get_by_role("combobox", name="Kind").select_option(kind)
    needed = {
        "status": {"status": 503},
        "redirect": {"location": "/x"},
        "close": {"seconds": 1},
    }.get(kind, {})
    if kind == "redirect":
        form.get_by_role("textbox", name="Location").fill("/x")
    add(form)
    expect(pending(page)).to_contain_text([kind])
    (fault,) = service.control("GET", "faults")
    assert parse({key: value for key, value in fault.items() if key != "id"}) == parse(
        {"kind": kind, **needed}
    )


def test_an_invalid_fault_is_refused_with_a_message(page, service, form, errors, expect):
    form.get_by_role("combobox", name="Kind").select_option("garbage")
    form.get_by_role("textbox", name="Base64").fill("!")
    add(form)
    expect(page.get_by_role("alert")).to_have_text("base64 of garbage cannot be '!'")
    assert errors == [
        "Failed to load resource: the server responded with a status of 400 (Bad Request)"
    ]
    errors.clear()
    form.get_by_role("textbox", name="Base64").fill("aGk=")
    add(form)
    expect(pending(page)).to_contain_text(["base64 aGk="])
    expect(page.locator("#problem")).to_be_empty()


@pytest.mark.parametrize(
    ("button", "status"), [("503", 503), ("429, wait 2 s", 429), ("expired token", 401)]
)
def test_a_button_makes_the_next_request_fail(page, service, expect, button, status):
    page.get_by_role("button", name=button, exact=True).click()
    expect(pending(page)).to_have_count(1)
    assert [service.create(), service.create()] == [status, 201]


def test_one_fault_is_removed_then_all(page, service, expect):
    for status in (501, 502, 503):
        service.control("POST", "faults", json={"kind": "status", "status": status})
    expect(pending(page)).to_contain_text(["status 501", "status 502", "status 503"])
    pending(page).nth(1).get_by_role("button").click()
    expect(pending(page)).to_contain_text(["status 501", "status 503"])
    page.get_by_role("button", name="Remove all").click()
    expect(pending(page)).to_have_count(0)
    assert service.control("GET", "faults") == []


def test_reset_empties_everything(page, service, expect):
    service.create()
    service.control("POST", "faults", json={"kind": "drop", "skip": 9})
    for table in ("machines", "requests", "pending"):
        expect(page.locator(f"#{table} tbody")).to_have_count(1)
    page.get_by_role("button", name="Reset").click()
    for table in ("machines", "requests", "pending"):
        expect(page.locator(f"#{table} tbody")).to_have_count(0)
        expect(page.locator(f"#{table}-empty")).to_be_visible()
    assert service.control("GET", "health") == {
        "status": "ok",
        "requests": 0,
        "virtual_machines": 0,
        "application_roles": 1,
    }


def test_forget_empties_the_conversation_only(page, service, expect):
    service.create()
    expect(page.locator("#requests tbody")).to_have_count(1)
    page.get_by_role("button", name="Forget").click()
    expect(page.locator("#requests tbody")).to_have_count(0)
    expect(page.locator("#machines tbody")).to_have_count(1)
