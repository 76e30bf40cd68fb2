"""The page about failures matches the code."""

from __future__ import annotations

from ansible_collections.infrastructure.services.plugins.module_utils._call import policy
from ansible_collections.infrastructure.services.plugins.module_utils._call.policy import Event
from tools import docs_failures

PAGE = docs_failures.PAGE.read_text(encoding="utf-8")


def test_the_table_matches_the_code():
    assert docs_failures.BETWEEN.search(PAGE).group() == docs_failures.table()


def test_every_event_of_the_policy_is_in_the_table():
    shown = {Event[name] for name in docs_failures.EVENTS}
    shown |= {
        policy.meaning(code)[0] for code in {*policy._BY_STATUS, *docs_failures.CLASSES.values()}
    }
    assert shown | {Event.SUCCESS} == set(Event)
