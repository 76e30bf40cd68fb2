"""The policy line by line, and that no sequence of attempts violates it; the waits, for any input;
what an answer means, and how a failure is described in the terms of the operation.
"""

from __future__ import annotations

import math
from datetime import datetime, timedelta, timezone
from email.utils import format_datetime
from typing import NamedTuple

import pytest
from ansible_collections.infrastructure.services.plugins.module_utils._call.policy import (
    AGAIN,
    NEVER,
    NEW_TOKEN,
    AttemptResult,
    Event,
    failure_text,
    meaning,
    next_wait,
    read_answer,
    retry_after,
)
from ansible_collections.infrastructure.services.plugins.module_utils._errors import (
    ACCEPTED,
    NOT_SENT,
    REJECTED,
    UNKNOWN,
)
from ansible_collections.infrastructure.services.plugins.module_utils._http import (
    Answer,
)
from hypothesis import example, given
from hypothesis import strategies as st
from support import OPERATIONS

EVENTS = set(Event)
HANDED_OVER = EVENTS - {Event.UNSENT, Event.UNSENT_HOPELESS}
NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=timezone.utc)
MALFORMED = [
    *(None, "", " ", "-5", "+5", "1.5", "abc", "1e3", "\u0665", "5 6", "0x10", "inf", "nan", "GMT"),
    "Fri, 32 Jan 2026 00:00:00 GMT",
    "Fri, 02 Jan 2026 25:00:00 GMT",
    "Fri, 02 Jan 99999 03:04:05 GMT",
]

# What a POST may do and what is known then, and the same for a PUT.
EXPECTED = {
    Event.UNSENT: (AGAIN, NOT_SENT, AGAIN, NOT_SENT),
    Event.UNSENT_HOPELESS: (NEVER, NOT_SENT, NEVER, NOT_SENT),
    Event.UNANSWERED: (NEVER, UNKNOWN, AGAIN, UNKNOWN),
    Event.THROTTLED: (AGAIN, REJECTED, AGAIN, REJECTED),
    Event.UNAVAILABLE: (NEVER, UNKNOWN, AGAIN, UNKNOWN),
    Event.UNCLEAR: (NEVER, UNKNOWN, NEVER, UNKNOWN),
    Event.UNAUTHORIZED: (NEW_TOKEN, REJECTED, NEW_TOKEN, REJECTED),
    Event.REFUSED: (NEVER, REJECTED, NEVER, REJECTED),
    Event.SUCCESS: (NEVER, ACCEPTED, NEVER, ACCEPTED),
    Event.ANSWER_CUT: (NEVER, ACCEPTED, AGAIN, ACCEPTED),
    Event.ANSWER_UNUSABLE: (NEVER, ACCEPTED, NEVER, ACCEPTED),
}


class Limits(NamedTuple):
    """The settings that next_wait reads."""

    retries: int
    retry_max_delay: float


HAPPENED = st.builds(
    lambda name, headers: AttemptResult(name, headers=headers),
    st.sampled_from(Event),
    st.sampled_from([{}, *({"Retry-After": asked} for asked in ("0", "7", "9999"))]),
)


def run(method: str, limits: Limits, future: list[AttemptResult], renewable: bool):
    """Make attempts with a future that repeats its last event, and the longest random waits; return
    what happened, the waits, and why there is no further attempt, if that is to be said.
    """
    past: list[AttemptResult] = []
    waits: list[float] = []
    while True:
        past.append(future[min(len(past), len(future) - 1)])
        wait, why = next_wait(method, past, *limits, renewable, fraction=lambda: 1.0)
        if wait is None:
            return past, waits, why
        waits.append(wait)


@pytest.mark.parametrize("name", Event, ids=str)
def test_each_event_has_its_row(name):
    assert (name.again("POST"), name.effect, name.again("PUT"), name.effect) == EXPECTED[name]
    assert name.again("PATCH") == name.again("POST")
    assert {name.again(method) for method in ("GET", "HEAD", "DELETE")} == {name.again("PUT")}


def test_the_policy_has_no_other_rows():
    assert set(EXPECTED) == EVENTS


@given(
    st.sampled_from(["POST", "PUT"]),
    st.builds(Limits, st.integers(0, 5), st.sampled_from([0.0, 10.0, 30.0])),
    st.lists(HAPPENED, min_size=1, max_size=10),
    st.booleans(),
)
def test_no_sequence_of_attempts_violates_the_policy(method, limits, future, renewable):
    past, waits, _why = run(method, limits, future, renewable)

    refused = [result for result in past[:-1] if result.event == Event.UNAUTHORIZED]
    assert len(refused) <= renewable, (
        "sent again after a 401 more than once, or without a new token"
    )
    assert len(past) - len(refused) <= limits.retries + 1
    assert len(waits) == len(past) - 1
    assert all(0 <= wait <= limits.retry_max_delay for wait in waits)
    if method == "POST":
        repeated = {result.event for result in past[:-1]}
        assert repeated & HANDED_OVER <= {Event.THROTTLED, Event.UNAUTHORIZED}


@pytest.mark.parametrize(
    ("method", "names", "waits"),
    [
        ("POST", [Event.THROTTLED], [1.0, 2.0, 4.0, 5.0]),
        ("POST", [Event.UNSENT, Event.SUCCESS], [1.0]),
        (
            "POST",
            [Event.THROTTLED, Event.THROTTLED, Event.UNAUTHORIZED, Event.THROTTLED],
            [1.0, 2.0, 0.0, 4.0, 5.0],
        ),
        ("POST", [Event.UNANSWERED], []),
        ("PUT", [Event.UNANSWERED, Event.UNAVAILABLE, Event.SUCCESS], [1.0, 2.0]),
        ("PUT", [Event.ANSWER_CUT], [1.0, 2.0, 4.0, 5.0]),
    ],
)
def test_repeatable_requests_are_sent_until_the_retries_are_used_up(method, names, waits):
    """With four retries and a retry_max_delay of 5."""
    past, waited, why = run(
        method, Limits(4, 5.0), [AttemptResult(name) for name in names], renewable=True
    )
    assert waited == waits
    assert (len(past), why) == (len(waits) + 1, "")


def test_the_only_token_is_not_renewed():
    future = [AttemptResult(Event.UNAUTHORIZED), AttemptResult(Event.SUCCESS)]
    assert run("POST", Limits(3, 0), future, renewable=False) == (future[:1], [], "")


def test_the_longest_allowed_wait_is_honoured():
    busy = AttemptResult(Event.THROTTLED, headers={"Retry-After": "30"})
    assert run("POST", Limits(2, 30), [busy], renewable=False)[1] == [30.0, 30.0]


@given(st.integers(0, 10**12), st.sampled_from(["", " ", "\t "]))
def test_retry_after_in_seconds(seconds, around):
    assert retry_after(f"{around}{seconds}{around}", NOW) == seconds


@given(
    st.datetimes(datetime(1000, 1, 1), datetime(9999, 12, 31))
)  # four-digit years, as in RFC 9110
def test_retry_after_as_a_date(moment):
    moment = moment.replace(tzinfo=timezone.utc, microsecond=0)
    header = format_datetime(moment, usegmt=True)
    assert retry_after(header, NOW) == max(0.0, (moment - NOW) / timedelta(seconds=1))


@given(
    st.datetimes(datetime(1970, 1, 1), datetime(2068, 12, 31)),
    st.sampled_from(["%A, %d-%b-%y %H:%M:%S GMT", "%c"]),
)
@example(datetime(2026, 1, 9), "%c")  # a single-digit day, padded with a space
def test_retry_after_as_a_date_in_the_obsolete_forms_that_recipients_must_accept(moment, form):
    moment = moment.replace(tzinfo=timezone.utc, microsecond=0)
    assert retry_after(moment.strftime(form), NOW) == max(
        0.0, (moment - NOW) / timedelta(seconds=1)
    )


@pytest.mark.parametrize("malformed", MALFORMED)
def test_a_malformed_retry_after_is_ignored(malformed):
    assert retry_after(malformed, NOW) is None


@given(st.text() | st.from_regex(r"[\d :,A-Za-z-]{0,40}GMT"))
@example("9" * 5000)
def test_any_retry_after_is_a_wait_or_none(header):
    asked = retry_after(header, NOW)
    assert asked is None or (asked >= 0 and not math.isnan(asked))


@pytest.mark.parametrize("asked", ["31", "9" * 5000, "Fri, 31 Dec 9999 23:59:59 GMT"])
def test_a_wait_longer_than_allowed_ends_the_task_and_says_so(asked):
    result = AttemptResult(Event.THROTTLED, "too many requests", headers={"Retry-After": asked})
    past, waits, why = run("POST", Limits(3, 30), [result], renewable=False)
    assert (len(past), waits) == (1, [])
    assert why.startswith("it asks for a wait of ")
    assert "retry_max_delay (30)" in why


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


# A status that is not listed here belongs to its class.
NAMED = {
    307: Event.REFUSED,  # RFC 9110 15.4.8: the method is kept, so nothing was done yet
    308: Event.REFUSED,
    401: Event.UNAUTHORIZED,
    408: Event.UNAVAILABLE,
    429: Event.THROTTLED,
    502: Event.UNAVAILABLE,
    503: Event.UNAVAILABLE,
    504: Event.UNAVAILABLE,
}
CLASSES = {2: Event.SUCCESS, 4: Event.REFUSED}


@pytest.mark.parametrize("hundred", range(20))
def test_each_status_maps_to_its_event(hundred):
    for status in range(hundred * 100, hundred * 100 + 100):
        expected = NAMED.get(status) or CLASSES.get(hundred, Event.UNCLEAR)
        assert meaning(status)[0] == expected, status


@pytest.mark.parametrize("operation", OPERATIONS.values(), ids=OPERATIONS)
def test_each_text_is_filled_in_for_each_operation(operation):
    for status in range(2000):
        text = meaning(status)[1].format(**vars(operation))
        assert text
        assert not set("{}") & set(text), status


@pytest.mark.parametrize("status", [*NAMED, 400, 403, 404, 409, 422, 500])
def test_a_named_status_has_a_text_of_its_own(status):
    assert meaning(status)[1] != meaning(status // 100 * 100 + 98)[1]
