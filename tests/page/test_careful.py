"""Text from outside stays text, secrets stay hidden, and the page is accessible at every width."""

from __future__ import annotations

import json
from urllib.parse import quote

import pytest
import requests

HOSTILE = [
    "<script>window.hit = 1</script>",
    "\"><svg onload='window.hit = 1'>",
    "</pre></td></table><iframe srcdoc='<script>parent.hit = 1</script>'></iframe>",
    "{{7*7}}${7*7}",
    "\u202egnp.exe\u0000\U0001f600",
    "x" * 3000,
]


@pytest.mark.parametrize("text", HOSTILE, ids=range(len(HOSTILE)))
def test_a_hostile_text_is_shown_and_does_nothing(page, service, expect, text):
    elements = page.evaluate("document.querySelectorAll('script, img, svg, iframe').length")
    body = {"name": text, "attributes": {"ip": text, "status": text, "team": text}}
    assert service.send(json.dumps(body).encode()) == 201
    service.control(
        "PUT",
        f"assets/{quote(text, safe='')}",
        json={"name": text, "attributes": {"cluster_id": text}},
    )
    service.control("POST", "faults", json={"kind": "garbage", "text": text, "skip": 99})
    expect(page.locator("#roles tbody")).to_have_count(2)
    expect(page.locator("#pending tbody")).to_have_count(1)
    for table in ("machines", "requests", "roles"):
        page.locator(f"#{table} tbody button").first.click()
    assert page.locator("#machines tbody button").text_content() == text
    assert text in page.locator("#pending tbody").text_content()
    for table in ("machines", "roles"):
        assert json.loads(page.locator(f"#{table} pre").text_content())["name"] == text
    assert json.loads(page.locator("#requests pre").last.text_content()) == body
    assert page.evaluate("window.hit") is None
    assert page.evaluate("document.querySelectorAll('script, img, svg, iframe').length") == elements
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_no_secret_is_on_the_page(page, service, expect):
    secrets = {
        "Authorization": "Bearer first-secret-of-all",
        "Proxy-Authorization": "Basic c2Vjb25kOnNlY3JldA==",
        "cookie": "third=secret",
    }
    requests.put(f"{service.url}/x", headers=secrets, timeout=10)
    form = {
        "grant_type": "client_credentials",
        "client_id": "ci",
        "client_secret": "fourth-secret",
        "password": "no5",
    }
    requests.post(f"{service.url}/oauth/token", data=form, timeout=10)
    expect(page.locator("#requests tbody")).to_have_count(2)
    for button in page.locator("#requests tbody button").all():
        button.click()
    shown = page.locator("#requests").inner_text()
    for part in (
        "Bearer firs… (19 characters)",
        "Basic c2Vj… (20 characters)",
        "cookie: thi… (12 characters)",
        "client_id=ci&client_secret=fou… (13 characters)&password=… (3 characters)",
    ):
        assert part in shown
    content = page.content()
    assert [
        secret
        for secret in ("first-secret", "c2Vjb25k", "third=", "fourth-", "no5")
        if secret in content
    ] == []


@pytest.mark.parametrize("width", [320, 375, 768, 1280])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_it_is_accessible_and_fits_the_width(page, service, expect, scheme, width):
    from axe_playwright_python.sync_playwright import Axe  # noqa: PLC0415  make page installs it

    page.set_viewport_size({"width": width, "height": 800})
    page.emulate_media(color_scheme=scheme)
    service.create("web01", team="blue")
    service.create("no")
    service.send(b"no JSON")
    service.control("POST", "faults", json={"kind": "status", "status": 503, "operation": "token"})
    service.control(
        "POST",
        "faults",
        json={"kind": "status", "status": 500, "operation": "create_virtual_machine"},
    )
    service.create("no")
    page.get_by_text("Any other fault").click()
    expect(page.locator("#requests tbody")).to_have_count(4)
    page.locator("#machines tbody button").first.click()
    page.locator("#requests tbody button").last.click()
    found = Axe().run(page).response["violations"]
    assert [(each["id"], [node["html"] for node in each["nodes"]]) for each in found] == []
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
