# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How an answer is classified, and how a failure is described in the terms of the operation."""

from __future__ import annotations

import pytest
from ansible_collections.infrastructure.services.plugins.module_utils._call.operation import (
    failure_message,
    read_answer,
)
from ansible_collections.infrastructure.services.plugins.module_utils._call.policy import (
    AttemptResult,
    Event,
)
from ansible_collections.infrastructure.services.plugins.module_utils._http.exchange import (
    Answer,
    Request,
)
from ansible_collections.infrastructure.services.plugins.module_utils._resources import (
    application_role,
    virtual_machine,
)

CREATE, UPDATE = virtual_machine.OPERATION, application_role.OPERATION
REQUEST = Request("POST", "https://service.example/a", {}, b"")


@pytest.mark.parametrize(
    ("answer", "event", "reason"),
    [
        (Answer(200, {}, b'{"id":"1"}'), Event.SUCCESS, ""),
        (Answer(299, {}, b"{}"), Event.SUCCESS, ""),
        (Answer(200, {}, b'{"id":"1"}', cut=True), Event.SUCCESS, ""),
        (Answer(200, {}, b""), Event.ANSWER_UNUSABLE, "it is not JSON"),
        (Answer(204, {}, b""), Event.ANSWER_UNUSABLE, "it is not JSON"),
        (Answer(200, {}, b"[]"), Event.ANSWER_UNUSABLE, "not an object"),
        (Answer(200, {}, b"{", cut=True), Event.ANSWER_CUT, "it is not JSON"),
        (Answer(200, {}, b"", "it took too long", cut=True), Event.ANSWER_CUT, "it took too long"),
        (Answer(200, {}, b"", "it is longer than 4 bytes"), Event.ANSWER_UNUSABLE, "longer than 4"),
        (
            Answer(307, {"Location": "https://user:pw@other.example/?secret"}),
            Event.REFUSED,
            "set base_url to the address",
        ),
        (Answer(304, {}), Event.REDIRECTED, "may have processed the request"),
        (Answer(308, {}), Event.REFUSED, "the new address"),
        (Answer(403, {}, b'{"detail":"secret"}'), Event.REFUSED, "lacks the permission"),
        (Answer(401, {}), Event.UNAUTHORIZED, "access token"),
        (Answer(429, {}), Event.THROTTLED, "too many requests"),
        (Answer(503, {}), Event.UNAVAILABLE, "maintenance"),
        (Answer(500, {}), Event.SERVER_ERROR, "failed internally"),
        (Answer(102, {}), Event.IRREGULAR, "not a final HTTP status"),
        (Answer(999, {}), Event.IRREGULAR, "not a final HTTP status"),
    ],
)
@pytest.mark.parametrize("operation", [CREATE, UPDATE])
def test_an_answer_maps_to_one_event(operation, answer, event, reason):
    result = read_answer(operation, answer)
    assert result.event == event
    assert reason in result.reason
    assert "secret" not in result.reason
    assert (result.value is not None) is (event == Event.SUCCESS)


@pytest.mark.parametrize(
    ("operation", "status", "words"),
    [
        (CREATE, 404, "base_url is probably wrong"),
        (CREATE, 409, "a virtual machine of this name"),
        (UPDATE, 404, "no application role with this id"),
        (UPDATE, 409, "a conflict with the current state of the role"),
    ],
)
def test_a_status_is_described_in_the_terms_of_the_operation(operation, status, words):
    assert words in read_answer(operation, Answer(status, {})).reason


@pytest.mark.parametrize(
    ("operation", "outcome", "effect"),
    [
        (CREATE, "not_sent", "The request was not sent, so no virtual machine was created."),
        (CREATE, "rejected", "No virtual machine was created."),
        (
            CREATE,
            "unknown",
            "It is unknown whether the virtual machine was created. Look for it on the service: ",
        ),
        (CREATE, "accepted", "the virtual machine was created: do not repeat it."),
        (
            UPDATE,
            "unknown",
            "It is unknown whether the application role was updated. Running the task again is safe",
        ),
    ],
)
def test_a_message_says_what_is_known_of_the_effect(operation, outcome, effect):
    last = AttemptResult(Event.UNANSWERED, "the line went dead")
    told = failure_message(operation, REQUEST, last, outcome, 1, "web01").text
    assert told.startswith("POST https://service.example/a: the line went dead. ")
    assert effect in told


@pytest.mark.parametrize("key", ["role\n1", "role\x1b1", "role\u20281"])
def test_the_label_of_an_asset_is_one_printable_line(key):
    assert UPDATE.label(key) == "application role role 1"


@pytest.mark.parametrize(
    ("operation", "key", "begin"),
    [
        (CREATE, "web01", "virtual machine web01: POST https://service.example/a: "),
        (UPDATE, "role\x1b1", "application role role 1: POST https://service.example/a: "),
    ],
)
def test_a_message_starts_with_the_asset(operation, key, begin):
    last = AttemptResult(Event.UNANSWERED, "the line went dead")
    assert str(failure_message(operation, REQUEST, last, "unknown", 1, key)).startswith(begin)


@pytest.mark.parametrize(
    ("answer", "details"),
    [
        (Answer(201, {"Location": "/vm/1"}, b"{}"), {}),
        (Answer(200, {"Location": "/vm/1"}, b""), {"location": "/vm/1"}),
        (Answer(201, {"Location": "/vm/1"}, b""), {"location": "/vm/1"}),
        (Answer(300, {"Location": "/vm/1"}, b""), {}),
        (
            Answer(201, {"Location": "/vm/1"}, b"<html>"),
            {"location": "/vm/1", "error_body": "<html>"},
        ),
        (Answer(201, {}, b""), {}),
        (
            Answer(502, {"Location": "/x"}, b" bad\x1b[31m \xff\n"),
            {"error_body": "bad [31m \ufffd"},
        ),
        (Answer(502, {}, b"a" * 20_000), {"error_body": "a" * 20_000}),
        (Answer(502, {}, b"a" * 20_001), {"error_body": "(too long to be shown)"}),
        (Answer(403, {}, b""), {}),
    ],
)
def test_a_failure_keeps_what_the_service_said(answer, details):
    assert read_answer(CREATE, answer).details == details


def test_a_message_says_status_attempts_and_request_ids():
    headers = {"x-request-id": "r-1", "traceparent": "00-a-b\x1b[31m", "x-other": "o"}
    last = AttemptResult(Event.THROTTLED, "too many requests", 429, headers)
    told = str(failure_message(CREATE, REQUEST, last, "rejected", 3, "web01"))
    assert "(attempt 3): status 429: too many requests. " in told
    assert "[x-request-id: r-1, traceparent: 00-a-b" in told
    assert told.isprintable()
