# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The front of the module path: what Ansible reads from standard output, for every way a module can
end.
"""

from __future__ import annotations

import json
from base64 import b64encode
from types import SimpleNamespace
from urllib.parse import quote

import pytest
from ansible_collections.infrastructure.services.plugins.module_utils._task import module
from support import CREATE, LEAST, RESOURCES, SPECS, UPDATE
from support.front import printed, run_module
from support.wire import answer, serving

ASSET = {"id": "a1", "name": "WEB01", "attributes": {"login": True}}
TOKEN = "token-of-the-tests"


def run(
    resource: str, *answers: bytes, check_mode=False, diff=False, verbosity=0, **options
) -> dict:
    """Run a module against a server with these answers, all of which have to be requested."""
    with serving(*answers) as wire:
        given = {
            "base_url": wire.url,
            "access_token": TOKEN,
            "retries": 0,
            **LEAST[resource],
            **options,
        }
        result = run_module(resource, given, check_mode=check_mode, diff=diff, verbosity=verbosity)
        assert len(wire.sent) == len(answers)
    return result


@pytest.mark.parametrize("resource", RESOURCES)
def test_a_module_prints_the_result(resource):
    result = run(resource, answer(200, ASSET))
    assert (result["asset"], result["changed"], result.get("failed", False)) == (ASSET, True, False)
    assert result["ansible_facts"] == {resource: ASSET}


@pytest.mark.parametrize("resource", RESOURCES)
def test_a_module_supports_check_mode(resource):
    result = run(resource, check_mode=True)
    assert "skipped" not in result
    assert (result["changed"], result["outcome"]) == (True, "not_sent")


@pytest.mark.parametrize("diff", [False, True])
def test_the_diff_is_printed_when_requested(diff):
    assert ("diff" in run(CREATE, answer(200, ASSET), diff=diff)) is diff


def test_warnings_are_passed_to_ansible():
    result = run(CREATE, answer(200, ASSET))
    assert "these fields came back different from what was sent: name" in json.dumps(
        result["warnings"]
    )
    assert len(result["warnings"]) == 1


@pytest.mark.parametrize(
    ("status", "outcome"), [(403, "rejected"), (500, "unknown"), (204, "accepted")]
)
def test_a_failure_is_printed_as_one(status, outcome):
    result = run(CREATE, answer(status))
    assert (result["failed"], result["outcome"], result["changed"]) == (
        True,
        outcome,
        outcome == "accepted",
    )
    assert "exception" not in result


@pytest.mark.parametrize(
    ("resource", "options", "named"),
    [
        (CREATE, {"no_such_option": 1}, "no_such_option"),
        (CREATE, {"attributes": {"no_such_field": 1}}, "no_such_field"),
        (CREATE, {"attributes": {"cpu": "four"}}, "cpu"),
        (CREATE, {"attributes": {"cpu": True}}, "cpu"),
        (CREATE, {"attributes": {"team": True}}, "team"),
        (CREATE, {"attributes": {"creation_date": "2026-02-30"}}, "creation_date"),
        (CREATE, {"attributes": {"volumes": [{"size_gb": "big"}]}}, "size_gb"),
        (CREATE, {"name": ["web01"]}, "name"),
        (CREATE, {"retries": "many"}, "retries"),
        (CREATE, {"access_token": None}, "access_token"),
        (UPDATE, {"body": {"a": 1}}, "body"),
        (UPDATE, {"attributes": None}, "attributes"),
        (UPDATE, {"attributes": {"login": "perhaps"}}, "login"),
        (UPDATE, {"id": ".."}, "id"),
    ],
)
def test_a_refused_option_is_named_and_nothing_is_sent(resource, options, named):
    result = run(resource, **options)
    assert (result["failed"], result["outcome"], result["changed"]) == (True, "not_sent", False)
    assert named in result["msg"]
    assert "exception" not in result


def test_a_failure_of_ansible_itself_says_that_nothing_was_sent():
    """As AnsibleModule fails before the task begins."""
    options = {"base_url": "https://s", "access_token": TOKEN, **LEAST[CREATE]}
    result = printed(lambda: module.ServicesModule(SPECS[CREATE]).fail_json("no room"), options)
    found = result["failed"], result["outcome"], result["changed"], result["msg"]
    assert found == (True, "not_sent", False, "no room")


def test_null_leaves_an_option_to_its_default_and_its_variable(monkeypatch):
    with serving(answer(201, ASSET)) as wire:
        monkeypatch.setenv("INFRASTRUCTURE_SERVICES_BASE_URL", wire.url)
        given = dict(
            LEAST[CREATE], base_url=None, http_agent=None, timeout=None, access_token=TOKEN
        )
        assert run_module(CREATE, given)["outcome"] == "accepted"
    assert dict(wire.sent[0].headers)["User-Agent"].startswith("infrastructure.services/")


@pytest.mark.parametrize(
    ("attributes", "told"),
    [
        (
            {"creation_date": "tomorrow"},
            'attributes.creation_date: must be a date-time such as 2026-01-02T03:04:05Z, not "tomorrow"',
        ),
        ({"cpu": "four"}, 'attributes.cpu: must be a number, not "four"'),
        (
            {"volumes": [{}, {"size_gb": True}]},
            "attributes.volumes[1].size_gb: must be a number, not true",
        ),
        (
            {"puppet_classes": [True]},
            (
                "attributes.puppet_classes[0]: must be a string"
                " (a word such as yes, no, true or false needs quotes), not true"
            ),
        ),
        ({"cpus": 1}, "attributes.cpus: there is no such option (did you mean cpu?)"),
        (
            {"cpu": "x", "vm_ram": [1]},
            'attributes.cpu: must be a number, not "x"; attributes.vm_ram: must be a number, ',
        ),
    ],
)
def test_a_value_of_the_wrong_type_is_reported_with_the_full_name_of_its_option(attributes, told):
    result = run(CREATE, name="vm", attributes=attributes)
    assert told in result["msg"]
    assert "convert" not in result["msg"]


@pytest.mark.parametrize("options", [{}, {"timeout": 0}, {"no_such_option": 1}])
def test_the_token_is_not_printed(options):
    answers = [] if options else [answer(200, {"name": TOKEN})]
    assert TOKEN not in json.dumps(run(CREATE, *answers, verbosity=4, **options))


@pytest.mark.parametrize(
    "url", ["postgresql://me:hunter2%21@db/l", "postgresql://db/l?user=me&password=hunter2%21"]
)
def test_the_password_of_a_ledger_is_not_printed(url):
    result = run(CREATE, ledger=url)
    assert (result["failed"], result["outcome"]) == (True, "not_sent")
    assert "hunter2" not in json.dumps(result)


KEY = "k3y/of-the+endpoint"
QUERIES = {
    "as it is": (f"key={KEY}", KEY),
    "percent-encoded": (f"v=2&key={quote(KEY, safe='')}", KEY),
    "after another, padded": (
        f"v=2&code={b64encode(KEY.encode()).decode()}",
        b64encode(KEY.encode()).decode(),
    ),
    "without a name": ("k3y-of-the-endpoint", "k3y-of-the-endpoint"),
    "short": ("pin=k3y", "k3y"),
}


@pytest.mark.parametrize("said", [b"HTTP/1.1 403 No\r\nContent-Length: 0\r\n\r\n", None])
@pytest.mark.parametrize(("query", "key"), QUERIES.values(), ids=QUERIES)
def test_what_the_query_of_auth_url_holds_is_not_printed(query, key, said):
    """Neither when it is sent nor when the endpoint says it again, in the form of its choice."""
    error = answer(
        401,
        {"error": "bad_key", "error_description": f"{key} {quote(key, safe='')} {json.dumps(key)}"},
    )
    with serving(said or error) as wire:
        given = {
            "base_url": wire.url,
            "auth_url": f"{wire.url}/token?{query}",
            "client_id": "c",
            "retries": 0,
        }
        result = run_module(
            CREATE, {**given, "client_secret": "s3cret-s3cret", **LEAST[CREATE]}, verbosity=4
        )
    assert wire.sent[0].target == f"/token?{query}"
    assert "no access token from http://127.0.0.1" in result["msg"]
    assert [each for each in (key, quote(key, safe=""), "k3y") if each in json.dumps(result)] == []


@pytest.mark.parametrize("option", ["base_url", "auth_url"])
def test_a_password_in_a_refused_url_is_not_printed(option):
    result = run(
        CREATE, **{"access_token": None, option: "https://me:hunter2-hunter2@service.example"}
    )
    assert result["msg"].startswith(f"{option}: contains a user name or password")
    assert "hunter2" not in json.dumps(result)


def test_a_list_on_a_target_stops_for_a_signal():
    place = module._ListPlace(SimpleNamespace(caught=True, name="SIGTERM"))
    assert place.why_to_stop() == "the module received SIGTERM"
