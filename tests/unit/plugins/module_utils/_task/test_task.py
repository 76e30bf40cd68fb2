# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A task from options to result: every error of ours becomes a failed task, and no secret is shown."""

from __future__ import annotations

import base64
import json
from urllib.parse import quote

import pytest
from ansible_collections.infrastructure.services.plugins.module_utils._call.place import Place
from ansible_collections.infrastructure.services.plugins.module_utils._http import transport
from ansible_collections.infrastructure.services.plugins.module_utils._result import Result
from ansible_collections.infrastructure.services.plugins.module_utils._secrets import (
    Secrets,
    printable,
)
from ansible_collections.infrastructure.services.plugins.module_utils._task import options, task
from ansible_collections.infrastructure.services.plugins.module_utils._task.signals import (
    Interrupted,
)
from support import CREATE, RESOURCES, SPECS, UPDATE, run_exactly, run_task, validated
from support.wire import Last, answer, running, serving

SECRET = 's3cret/ü+"%'  # has another form in a URL, in a form field, in JSON and in Python
HIDDEN = [SECRET, quote(SECRET, safe=""), json.dumps(SECRET)[1:-1]]


@pytest.mark.parametrize("resource", RESOURCES)
def test_a_resource_adds_its_options_to_the_shared_ones(resource):
    spec = SPECS[resource].documented()
    assert set(spec["argument_spec"]) == set(options.ARGUMENT_SPEC) | set(
        RESOURCES[resource].options
    )
    assert {key: spec[key] for key in spec if key != "argument_spec"} == RESOURCES[
        resource
    ].constraints


@pytest.mark.parametrize(
    "options", [{"timeout": 0}, {"base_url": "x"}, {"access_token": "a b"}, {"name": ""}]
)
def test_a_refused_option_fails_the_task_and_nothing_is_sent(options):
    result = run_task(CREATE, **{"base_url": "https://service.example", **options})
    assert (result["failed"], result["changed"], result["outcome"]) == (True, False, "not_sent")
    assert result["msg"].startswith(f"{next(iter(options))}: ")


def test_a_missing_library_fails_the_task(monkeypatch):
    monkeypatch.setattr(transport, "requests", None)
    result = run_task(CREATE, base_url="https://service.example")
    assert (result["failed"], result["changed"], result["outcome"]) == (True, False, "not_sent")
    assert "requests" in result["msg"]


@pytest.mark.parametrize("check_mode", [True, False])
def test_no_message_about_an_asset_has_the_line_break_of_its_name(check_mode):
    with serving(answer(201, {"id": "1", "name": "other"})) as wire:
        result = run_task(
            CREATE, check_mode=check_mode, base_url=wire.url, name="web\n01", allow_http=True
        )
    diff = result["diff"]
    assert result["asset"]["name"] == ("web\n01" if check_mode else "other")
    shown = [*map(str, result["warnings"]), diff["before_header"], diff["after_header"]]
    assert all(each.isprintable() for each in shown)
    assert "virtual machine web 01" in shown[-1]
    assert check_mode or any("web 01: these fields came back" in each for each in shown)


def test_the_message_about_an_interrupted_task_has_no_line_break_of_a_name():
    options = validated(CREATE, dict(base_url="https://s", access_token="t", name="web\n01"))
    failure = task.interrupted(task.prepare(RESOURCES[CREATE], options), "unknown", Interrupted())
    assert failure.message.asset == "virtual machine web 01"


def test_a_bug_of_ours_is_not_reported_as_an_error_of_the_service():
    def connect(settings):
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        run_task(CREATE, base_url="https://service.example", connect=connect)


@pytest.mark.parametrize(("has_sent", "outcome"), [(True, "unknown"), (False, "not_sent")])
def test_an_interrupted_request_is_in_doubt_once_a_byte_was_sent(has_sent, outcome):
    class Interrupting:
        def __init__(self, settings) -> None:
            self.has_sent = has_sent

        def send_once(self, request, timeout):
            raise Interrupted("signal SIGTERM")

    result = run_task(CREATE, base_url="https://service.example", connect=Interrupting)
    assert (result["outcome"], result["failed"]) == (outcome, True)
    assert ("while POST" in result["msg"]) is has_sent


@pytest.mark.parametrize(
    ("validate_certs", "warned"), [(True, []), (False, ["validate_certs is false"])]
)
def test_disabled_certificate_validation_raises_a_warning(validate_certs, warned):
    result = run_task(
        CREATE, check_mode=True, base_url="https://service.example", validate_certs=validate_certs
    )
    assert [warning[:23] for warning in result["warnings"]] == warned


@pytest.mark.parametrize(
    ("module", "option", "key", "is_warned"),
    [
        (CREATE, "name", "web01 ", True),
        (CREATE, "name", "\u00a0web01", True),
        (CREATE, "name", "web\n01\n", True),
        (CREATE, "name", "web 01", False),
        (UPDATE, "id", " role-1", True),
        (UPDATE, "id", "role-1", False),
    ],
)
def test_a_blank_at_an_end_of_a_name_raises_a_warning(module, option, key, is_warned):
    given = {option: key, **({"description": "x"} if module == UPDATE else {})}
    warnings = " ".join(
        run_task(module, check_mode=True, base_url="https://s.example", **given).get("warnings", [])
    )
    shown, other = printable(key), printable(key.strip())
    told = (
        f'{option}: "{shown}" begins or ends with a blank, so it is another asset than "{other}".'
    )
    assert (told in warnings) is is_warned


def test_the_diff_is_shown_when_requested():
    result = Result(diff={})

    def shown(**how):
        return task.presentable(result, task.Context(False, Secrets(), Place(), **how))

    assert shown(diff_mode=False) == Result()
    assert shown(diff_mode=True) == result


@pytest.mark.parametrize("check_mode", [False, True])
@pytest.mark.parametrize(
    "last",
    [
        answer(200, {"name": SECRET, SECRET: [SECRET, "assertion-secret"]}),
        answer(403),
        Last(b""),
    ],
)
def test_a_secret_that_comes_back_is_hidden_in_every_form(last, check_mode):
    """As a value and as a key of the answer; values that other options state openly stay visible."""
    token = answer(200, {"access_token": "fetched-token"})
    with serving(token, last, token, last) as wire:
        options = {
            "base_url": wire.url,
            "auth_url": f"{wire.url}/token",
            "client_id": "c",
            "client_secret": SECRET,
            "id": "i",
            "auth_parameters": {"client_assertion": "assertion-secret", "audience": wire.url},
            "body": {"a": wire.url},
            "retries": 0,
        }
        result = run_exactly(UPDATE, options, check_mode)
        assert result["request"]["url"].startswith(wire.url)
        assert result["request"]["body"] == {"a": wire.url}
    shown = json.dumps(result, ensure_ascii=False)
    for secret in (*HIDDEN, "assertion-secret", *([] if check_mode else ["fetched-token"])):
        assert json.dumps(secret, ensure_ascii=False)[1:-1] not in shown


ASSET = {
    "id": "prod/web-1",
    "name": "company01",
    "description": "the password of an application",
    "service": "cassandra",
    "platform": "p",
    "region": "r",
    "tenant": "t",
    "attributes": {
        "password_location": "vault/x",
        "password_last_rotated_at": None,
        "name": "n",
        "cluster_id": "c",
    },
}


@pytest.mark.parametrize("option", ["access_token", "client_secret"])
@pytest.mark.parametrize(
    "secret",
    [
        "password",
        "rotated_at",
        "platform",
        "attributes",
        "cassandra",
        "services",
        "application",
        "description",
        "company0",
        "company01",
        "prod/web-1",
        "prod%2Fweb-1",
    ],
)
@pytest.mark.parametrize(
    "given",
    [
        {"name": "company01", "attributes": {"password_location": "vault/x"}},
        {"body": {"name": "company01"}},
    ],
    ids=["typed", "body"],
)
def test_a_secret_that_is_part_of_a_name_corrupts_no_data(option, secret, given):
    """Whether the name is that of a field, a resource or an asset."""
    with running(
        lambda sent: answer(200, {"access_token": "fetched"} if sent.case == "token" else ASSET)
    ) as wire:
        options = {
            "base_url": wire.url,
            "auth_url": f"{wire.url}/token",
            "client_id": "c",
            "id": ASSET["id"],
        }
        result = run_exactly(UPDATE, {**options, **given, option: secret})
    assert result["asset"] == result["diff"]["after"] == result["ansible_facts"][UPDATE] == ASSET
    assert result["request"]["body"] == given.get("body", given)
    assert result["request"]["url"].endswith(
        "/api/v1/services/cassandra/application_roles/prod%2Fweb-1"
    )


@pytest.mark.parametrize("scheme", ["http://", ""])
@pytest.mark.parametrize("variable", ["http_proxy", "HTTP_PROXY", "all_proxy"])
def test_the_login_at_a_proxy_is_hidden_when_the_proxy_echoes_it(monkeypatch, variable, scheme):
    def choose(sent):
        echo = "\n".join(f"{name}: {value}" for name, value in sent.headers)
        return answer(403, f"{echo} proxy/passw0rd proxy%2Fpassw0rd")

    with running(choose) as proxy:
        login = f"{scheme}user:proxy%2Fpassw0rd@"
        monkeypatch.setenv(variable, proxy.url.replace("http://", login))
        result = run_task(CREATE, base_url="http://service.example", allow_http=True)
    basic = base64.b64encode(b"user:proxy/passw0rd").decode()
    assert ("Proxy-Authorization", f"Basic {basic}") in proxy.sent[0].headers
    assert "Basic ********" in result["error_body"]
    assert [form for form in (basic, "passw0rd") if form in json.dumps(result)] == []


def test_a_fetched_token_that_comes_back_is_hidden():
    def choose(sent):
        if sent.case == "token":
            return answer(200, {"access_token": "fetched-token"})
        return answer(403, dict(sent.headers)["Authorization"])

    client = {"client_id": "c", "client_secret": "s3cret", "access_token": None}
    with running(choose) as wire:
        result = run_task(CREATE, base_url=wire.url, auth_url=f"{wire.url}/token", **client)
    assert result["error_body"] == '"Bearer ********"'


def test_a_login_at_a_proxy_that_is_no_utf_8_does_not_fail_the_task(monkeypatch):
    with running(lambda sent: answer(403)) as proxy:
        monkeypatch.setenv("http_proxy", proxy.url.replace("http://", "http://user:p\udcff@"))
        run_task(CREATE, base_url="http://service.example", allow_http=True)
    basic = base64.b64encode(b"user:p?").decode()
    assert ("Proxy-Authorization", f"Basic {basic}") in proxy.sent[0].headers


def test_a_credential_in_a_header_is_hidden_without_its_scheme_too():
    with serving(answer(403, "no such key: abcdef-123456")) as wire:
        result = run_task(CREATE, base_url=wire.url, headers={"X-Auth": "Bearer abcdef-123456"})
    assert "no such key: ********" in result["error_body"]


@pytest.mark.parametrize(
    "said", [r'{"error":"\ud800"}', r'{"a\u202e":"\u009b31m\u007f"}', r'["\u2028"]']
)
def test_an_error_body_has_only_printable_characters(said):
    """Even those that JSON escapes: ansible-core 2.19 loses a result with a lone surrogate."""
    body = said.encode()
    whole = b"HTTP/1.1 403 No\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body)
    with serving(whole) as wire:
        result = run_task(CREATE, base_url=wire.url)
    assert result["error_body"].isprintable()
    assert result["outcome"] == "rejected"
