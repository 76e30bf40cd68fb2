"""The front of the module path: what Ansible reads from standard output, for every way a module can
end.
"""

from __future__ import annotations

import json
from base64 import b64encode
from urllib.parse import quote

import pytest
from ansible.module_utils.basic import AnsibleModule
from ansible_collections.infrastructure.services.plugins.module_utils._task import module
from support import CREATE, LEAST, SPECS
from support.front import printed, run_module
from support.wire import answer, serving

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


def test_a_failure_of_ansible_itself_says_that_nothing_was_sent():
    """As AnsibleModule fails before the task begins."""
    options = {"base_url": "https://s", "access_token": TOKEN, **LEAST[CREATE]}
    result = printed(lambda: module.ServicesModule(SPECS[CREATE]).fail_json("no room"), options)
    found = result["failed"], result["outcome"], result["changed"], result["msg"]
    assert found == (True, "not_sent", False, "no room")


@pytest.mark.parametrize("options", [{}, {"timeout": 0}, {"no_such_option": 1}])
def test_the_token_is_neither_printed_nor_logged(monkeypatch, options):
    logged: list[object] = []
    monkeypatch.setattr(
        AnsibleModule, "log", lambda _self, msg, log_args=None: logged.append((msg, log_args))
    )
    answers = [] if options else [answer(200, {"name": TOKEN})]
    headers = {"X-Api-Key": "s3cret-key", "X-Tenant": "blue"}
    result = run(CREATE, *answers, verbosity=4, headers=headers, **options)
    assert TOKEN not in json.dumps(result)
    assert logged[0] == ("Invoked", {})
    assert TOKEN not in str(logged)  # ansible-core 2.16 logs warnings as well


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
