"""How long a token is used: until shortly before it expires, or until the service refuses it."""

from __future__ import annotations

import json
import math
from itertools import count

import pytest
from ansible_collections.infrastructure.services.plugins.module_utils._call import tokens
from ansible_collections.infrastructure.services.plugins.module_utils._call.policy import (
    AttemptResult,
    Event,
)
from ansible_collections.infrastructure.services.plugins.module_utils._http.transport import Answer
from ansible_collections.infrastructure.services.plugins.module_utils._task.options import (
    settings_from,
)
from emulator.faults import parse
from support import CREATE, LEAST, UPDATE, validated

NOW = 1_700_000_000.0
# expires_in as it is in the answer (None: missing): for how many seconds the token is used.
LIFETIMES = {
    "an hour": ("3600", 3570),
    "a minute, exactly twice the margin": ("60", 30),
    "shorter than twice the margin": ("40", 20),
    "a fraction": ("0.5", 0.25),
    "a number in quotes": ('"3600"', 3570),
    "zero": ("0", math.inf),
    "negative": ("-5", math.inf),
    "no number": ('"nan"', math.inf),
    "absent": (None, math.inf),
    "text": ('"soon"', math.inf),
    "beyond a double": ("1" + "0" * 400, math.inf),
}


@pytest.mark.parametrize(("expires_in", "seconds"), LIFETIMES.values(), ids=LIFETIMES)
def test_how_long_a_token_is_used(monkeypatch, expires_in, seconds):
    monkeypatch.setattr(tokens.time, "time", lambda: NOW)
    more = "" if expires_in is None else f', "expires_in": {expires_in}'
    answer = Answer(200, {}, f'{{"access_token": "abc", "token_type": "Bearer"{more}}}'.encode())
    assert tokens.read_token(answer).value == ("abc", NOW + seconds, None)


def test_a_kept_token_is_replaced_only_when_it_expires(monkeypatch):
    clock, numbers = [NOW], count(1)
    monkeypatch.setattr(tokens.time, "time", lambda: clock[0])
    lifetimes = iter((NOW + 3570, NOW + 7140, NOW + 9999))
    memory, seen = tokens.Memory(), []
    given = {
        "base_url": "https://s",
        "auth_url": "https://s/token",
        "client_secret": "s",
        "client_id": "web",
        **LEAST[CREATE],
    }
    settings = settings_from(validated(CREATE, given))

    def task() -> tokens.Tokens:
        found = tokens.Tokens(settings, memory, str)
        if not found.is_ready(0.0, lambda: None):
            token = tokens.Token(f"token-{next(numbers)}", next(lifetimes))
            found.take(AttemptResult(Event.SUCCESS, value=token), 0.0)
            assert found.is_ready(0.0, lambda: None)
        return found

    for clock[0] in (NOW, NOW + 3569, NOW + 3570, NOW + 3571):
        seen.append(task().value)
    assert seen == ["token-1", "token-1", "token-2", "token-2"]
    task().discard("token-1")  # of an attempt that took long
    assert task().value == "token-2"
    task().discard("token-2")
    assert task().value == "token-3"


OPERATIONS = {CREATE: ("create_virtual_machine", 201), UPDATE: ("update_application_role", 200)}


@pytest.mark.parametrize("retries", [0, 3])
@pytest.mark.parametrize("resource", OPERATIONS)
def test_a_refused_token_is_replaced_once(task, emulator, conversation, resource, retries):
    operation, success = OPERATIONS[resource]
    emulator.api.faults = (parse({"kind": "status", "status": 401, "operation": operation}),)
    result = task(resource, retries=retries)
    assert (result["outcome"], result["request_attempts"]) == ("accepted", 2)
    assert conversation.statuses() == [
        ("token", 200),
        (operation, 401),
        ("token", 200),
        (operation, success),
    ]
    first, second = (
        dict(request.headers)["Authorization"] for request in conversation.requests(operation)
    )
    assert first != second, "the refused token was sent again"


@pytest.mark.parametrize("resource", OPERATIONS)
def test_a_second_refusal_is_final(task, emulator, conversation, resource):
    operation, _success = OPERATIONS[resource]
    emulator.api.faults = (
        parse({"kind": "status", "status": 401, "operation": operation, "count": 0}),
    )
    result = task(resource)
    assert (result["outcome"], result["request_attempts"], result["status"]) == ("rejected", 2, 401)
    assert conversation.statuses() == [("token", 200), (operation, 401)] * 2


def test_a_given_token_is_not_replaced(task, conversation):
    result = task(access_token="unknown")
    assert (result["outcome"], result["request_attempts"], result["status"]) == ("rejected", 1, 401)
    assert "check access_token" in result["msg"]
    assert conversation.statuses() == [("create_virtual_machine", 401)]


def test_the_refusal_stands_when_no_new_token_can_be_fetched(task, emulator, conversation):
    gone = {
        "kind": "status",
        "status": 403,
        "operation": "token",
        "skip": 1,
        "body": json.dumps({"error": "gone"}),
    }
    emulator.api.faults = (
        parse({"kind": "status", "status": 401, "operation": "create_virtual_machine"}),
        parse(gone),
    )
    result = task()
    assert (result["failed"], result["outcome"], result["request_attempts"]) == (
        True,
        "rejected",
        1,
    )
    assert "(auth_url): it answered with status 403: gone" in result["msg"]
