"""How an answer is classified, and how a failure is described in the terms of the operation."""

from __future__ import annotations

import pytest
from ansible_collections.infrastructure.services.plugins.module_utils._call.policy import (
    AttemptResult,
    Event,
    failure_text,
    read_answer,
)
from ansible_collections.infrastructure.services.plugins.module_utils._http import Answer
from support import OPERATIONS

CREATE, UPDATE = (
    OPERATIONS[name] for name in ("compute_virtual_machine", "cassandra_application_role")
)
URL = "https://service.example/a"


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
    told = failure_text(operation, URL, last, outcome, 1)
    assert told.startswith(f"{operation.method} {URL}: the line went dead. ")
    assert effect in told


@pytest.mark.parametrize(
    ("answer", "details"),
    [
        (Answer(201, {"Location": "/vm/1"}, b"{}"), {}),
        (Answer(201, {"Location": "/vm/1"}, b""), {"location": "/vm/1"}),
        (
            Answer(201, {"Location": "/vm/1"}, b"<html>"),
            {"location": "/vm/1", "error_body": "<html>"},
        ),
        (
            Answer(502, {"Location": "/x"}, b" bad\x1b[31m \xff\n"),
            {"error_body": "bad [31m \ufffd"},
        ),
    ],
)
def test_a_failure_keeps_what_the_service_said(answer, details):
    known = read_answer(CREATE, answer).details
    assert {name: value for name, value in known.items() if value} == details


def test_a_message_says_status_attempts_and_request_ids():
    headers = {"x-request-id": "r-1", "x-correlation-id": "c-1\x1b[31m", "x-other": "o"}
    last = AttemptResult(Event.THROTTLED, "too many requests", 429, headers)
    told = failure_text(CREATE, URL, last, "rejected", 3)
    assert "(attempt 3): status 429: too many requests. " in told
    assert "[x-request-id: r-1, x-correlation-id: c-1" in told
    assert told.isprintable()
