"""Each status maps to one event, and has a text that says what to do."""

from __future__ import annotations

import pytest
from ansible_collections.infrastructure.services.plugins.module_utils._call import policy
from ansible_collections.infrastructure.services.plugins.module_utils._call.policy import Event
from support import OPERATIONS

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
        assert policy.meaning(status)[0] == expected, status


@pytest.mark.parametrize("operation", OPERATIONS.values(), ids=OPERATIONS)
def test_each_text_is_filled_in_for_each_operation(operation):
    for status in range(2000):
        text = policy.meaning(status)[1].format(**vars(operation))
        assert text
        assert not set("{}") & set(text), status


@pytest.mark.parametrize("status", [*NAMED, 400, 403, 404, 409, 422, 500])
def test_a_named_status_has_a_text_of_its_own(status):
    assert policy.meaning(status)[1] != policy.meaning(status // 100 * 100 + 98)[1]
