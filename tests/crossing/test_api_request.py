"""Any other request inside the worker and as a module: the same at the socket, the same result."""

from __future__ import annotations

from collections import Counter

import pytest
from support.wire import Last, Sent, answer

pytestmark = pytest.mark.matrix

MODULE = "infrastructure.services.api_request"
PATHS = {"worker": "local", "module": "process"}  # the connection
REFUSED = ("not_sent", True, None, 0)
POST = {"method": "POST", "body": {"name": "x"}}
UNTIL = {"register": "seen", "until": "seen.json is defined and seen.json == 2", "delay": 0}
ALL = {"retries": 2, **UNTIL}
# Options, keywords, what is expected: outcome, whether it failed, JSON, number of requests.
CASES = {
    "get": ({}, {}, ("accepted", False, 1, 1)),
    "get checked": ({}, {"check_mode": True}, ("accepted", False, 1, 1)),
    "get until": ({}, ALL, ("accepted", False, 2, 2)),
    "get lost": ({"retries": 1}, {}, ("unknown", True, None, 2)),
    "get async": ({}, {"async": 60, "poll": 1}, ("accepted", False, 1, 1)),
    "post": (POST, {}, ("accepted", False, 1, 1)),
    "post checked": (POST, {"check_mode": True}, ("not_sent", False, None, 0)),
    "post lost": (POST, {}, ("unknown", True, None, 1)),
    "post until": (POST, ALL, REFUSED),
    "post retries": (POST, {"retries": 1}, REFUSED),
    "patch until": ({"method": "PATCH"}, ALL, REFUSED),
}
# The connection is lost once the module has run, and would run it again: options, check mode, how
# many requests the service gets.
AWAY = {
    "put": ({"method": "PUT"}, False, 2),
    "post": (POST, False, 1),
    "get checked": ({}, True, 2),
    "post checked": (POST, True, 0),
}


def task(case: str, options: dict, **keywords: object) -> dict:
    where = {"base_url": f"{{{{ service }}}}/{case.replace(', ', ' ').replace(' ', '-')}"}
    return {"name": case, MODULE: {**where, "path": "/api/v1/things", **options}, **keywords}


@pytest.fixture(scope="module")
def ran(played):
    """Run all cases in both places, with a ledger that is not for them."""
    numbers = Counter()

    def choose(sent: Sent) -> bytes:
        numbers[sent.case] += 1
        return Last() if "lost" in sent.case else answer(200, numbers[sent.case])

    shared = {"retry_max_delay": 0}
    tasks = [
        task(
            f"{name}, {path}",
            {**shared, **options},
            vars={"ansible_connection": connection},
            **keywords,
        )
        for name, (options, keywords, _expected) in CASES.items()
        for path, connection in PATHS.items()
    ]
    away = {"ansible_connection": "away", "ansible_away": "late", "ansible_ssh_retries": 1}
    tasks += [
        task(f"{name}, away", options, check_mode=check_mode, vars=away)
        for name, (options, check_mode, _requests) in AWAY.items()
    ]
    ledger = {"INFRASTRUCTURE_SERVICES_LEDGER": "/nowhere/ledger.db"}
    return played(tasks, choose, environment=ledger)


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("name", CASES)
def test_the_requests_and_the_result(ran, name, path):
    result = ran.run.result(f"{name}, {path}")
    sent = ran.service.sent_by(f"{name.replace(' ', '-')}-{path}")
    seen = (result["outcome"], result.get("failed", False), result.get("json"), len(sent))
    assert seen == CASES[name][2], result
    method = CASES[name][0].get("method", "GET")
    assert {each.line.split()[0] for each in sent} <= {method}
    reads = seen[1] or method in ("GET", "HEAD")
    assert result["changed"] is not reads


def test_until_names_what_to_do_instead(ran):
    said = [ran.run.result(f"{name}, worker")["msg"] for name in ("post until", "patch until")]
    assert [text for text in said if "method: GET" not in text] == []


@pytest.mark.parametrize("name", AWAY)
def test_a_connection_that_runs_a_module_again(ran, name):
    _options, _check_mode, requests = AWAY[name]
    result = ran.run.result(f"{name}, away")
    assert result["outcome"] == "unknown"
    assert len(ran.service.sent_by(f"{name.replace(' ', '-')}-away")) == requests
    assert "request /api/v1/things: the module gave no result" in result["msg"]
