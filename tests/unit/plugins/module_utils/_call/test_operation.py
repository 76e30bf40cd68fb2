# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What an answer is, and how a failure is told in the words of the operation."""

from __future__ import annotations

import pytest
from ansible_collections.infrastructure.services.plugins.module_utils._call.operation import judge, message
from ansible_collections.infrastructure.services.plugins.module_utils._call.retry import Finished, Happened
from ansible_collections.infrastructure.services.plugins.module_utils._http.transport import Answer, Request
from ansible_collections.infrastructure.services.plugins.module_utils._resources import (
    application_role,
    virtual_machine,
)

CREATE, UPDATE = virtual_machine.OPERATION, application_role.OPERATION
REQUEST = Request("POST", "https://service.example/a", {}, b"")


@pytest.mark.parametrize(("answer", "event", "reason"), [
    (Answer(200, {}, b'{"id":"1"}'), "success", ""),
    (Answer(299, {}, b"{}"), "success", ""),
    (Answer(200, {}, b'{"id":"1"}', cut=True), "success", ""),
    (Answer(200, {}, b""), "accepted, answer unusable", "it is not JSON"),
    (Answer(204, {}, b""), "accepted, answer unusable", "it is not JSON"),
    (Answer(200, {}, b"[]"), "accepted, answer unusable", "not an object"),
    (Answer(200, {}, b"{", cut=True), "accepted, answer cut", "it is not JSON"),
    (Answer(200, {}, b"", "it took too long", cut=True), "accepted, answer cut", "it took too long"),
    (Answer(200, {}, b"", "it is longer than 4 bytes"), "accepted, answer unusable", "longer than 4"),
    (Answer(302, {"Location": "https://user:pw@other.example/x?secret"}), "refused", "(it points to other.example)"),
    (Answer(302, {"Location": "/x"}), "refused", "(it points to another path of the same host)"),
    (Answer(302, {"Location": "http://[x"}), "refused", "(it points to no valid address)"),
    (Answer(302, {}), "refused", "another path"),
    (Answer(403, {}, b'{"detail":"secret"}'), "refused", "lacks the permission"),
    (Answer(401, {}), "unauthorized", "access token"),
    (Answer(429, {}), "throttled", "too many requests"),
    (Answer(503, {}), "unavailable", "maintenance"),
    (Answer(500, {}), "server error", "failed inside"),
    (Answer(102, {}), "irregular status", "not a final status"),
    (Answer(999, {}), "irregular status", "not a final status"),
])
@pytest.mark.parametrize("operation", [CREATE, UPDATE])
def test_an_answer_is_one_event(operation, answer, event, reason):
    happened = judge(operation, answer)
    assert happened.event == event
    assert reason in happened.reason
    assert "secret" not in happened.reason
    assert (happened.value is not None) is (event == "success")


@pytest.mark.parametrize(("operation", "status", "words"), [
    (CREATE, 404, "base_url is probably wrong"),
    (CREATE, 409, "a virtual machine of this name"),
    (UPDATE, 404, "no application role with this id"),
    (UPDATE, 409, "a conflict with the role"),
    (UPDATE, 423, "the application role is locked"),
])
def test_a_status_is_told_in_the_words_of_the_operation(operation, status, words):
    assert words in judge(operation, Answer(status, {})).reason


@pytest.mark.parametrize(("operation", "outcome", "effect"), [
    (CREATE, "not_sent", "The request was not sent, so no virtual machine was created."),
    (CREATE, "rejected", "No virtual machine was created."),
    (CREATE, "unknown", "It is unknown whether the virtual machine was created. Look for it on the service before"),
    (CREATE, "accepted", "the virtual machine was created: do not repeat it."),
    (UPDATE, "unknown", "It is unknown whether the application role was updated. Running the task again is safe"),
])
def test_a_message_says_what_is_known_of_the_effect(operation, outcome, effect):
    told = message(operation, REQUEST, Finished(Happened("lost", "the line went dead"), 1, outcome))
    assert told.startswith("POST https://service.example/a: the line went dead. ")
    assert effect in told


def test_a_message_says_status_attempts_note_and_request_ids():
    headers = {"x-request-id": "r-1", "traceparent": "00-a-b\x1b[31m", "x-other": "o"}
    last = Happened("throttled", "too many requests", 429, headers)
    told = message(CREATE, REQUEST, Finished(last, 3, "rejected", "the service asks to wait"))
    assert "(attempt 3): status 429: too many requests; the service asks to wait." in told
    assert "[x-request-id: r-1, traceparent: 00-a-b" in told
    assert told.isprintable()
