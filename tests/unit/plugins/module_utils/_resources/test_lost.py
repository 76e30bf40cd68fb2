"""What an update loses: fields that were known, were not sent, and came back different or not at
all.
"""

from __future__ import annotations

import pytest
from ansible_collections.infrastructure.services.plugins.module_utils._resources.planning import (
    ENVELOPE,
    Entry,
)
from support import UPDATE, run_exactly, run_task
from support.wire import answer, serving

NULLS = dict.fromkeys(ENVELOPE)
KNOWN = {
    **NULLS,
    "id": "role-1",
    "name": "one",
    "service": "cassandra",
    "attributes": {
        "login": True,
        "cluster_id": "eu/a",
        "effective_grants": [{"permissions": ["SELECT"]}],
        "name": None,
        "password_last_rotated_at": "2026-01-02T03:04:05Z",
    },
}
KEPT = KNOWN["attributes"]
LOGIN = {"name": "attributes.login", "known": True}
CLUSTER = {"name": "attributes.cluster_id", "known": "eu/a"}
GRANTS = {"name": "attributes.effective_grants", "known": [{"permissions": ["SELECT"]}]}
ROTATED = {"name": "attributes.password_last_rotated_at", "known": "2026-01-02T03:04:05Z"}
TWO = {"description": "two"}
LOST = [{"name": "name", "known": "one"}, {"name": "service", "known": "cassandra"}]

# What was sent, what came back, and what is lost.
ROWS = {
    "merged": (TWO, {**KNOWN, **TWO}, []),
    "replaced, null for all else": (
        TWO,
        {**NULLS, **TWO, "id": "role-1", "attributes": dict.fromkeys(KEPT)},
        [{**each, "now": None} for each in (*LOST, LOGIN, CLUSTER, GRANTS, ROTATED)],
    ),
    "replaced, attributes null": (
        TWO,
        {**KNOWN, **TWO, "attributes": None},
        [LOGIN, CLUSTER, GRANTS, ROTATED],
    ),
    "one field dropped": (
        TWO,
        {**KNOWN, **TWO, "attributes": {**KEPT, "cluster_id": None}},
        [{**CLUSTER, "now": None}],
    ),
    "one field changed": (
        TWO,
        {**KNOWN, **TWO, "attributes": {**KEPT, "login": False}},
        [{**LOGIN, "now": False}],
    ),
    "an echo and what is no field": (TWO, {**TWO, "id": "role-1", "request": "r1"}, []),
    "an echo of attributes": (
        {"attributes": {"login": False}},
        {"id": "role-1", "attributes": {"login": False}},
        [],
    ),
    "attributes sent in part": (
        {"attributes": {"login": False}},
        {**KNOWN, "attributes": {"login": False}},
        [CLUSTER, GRANTS, ROTATED],
    ),
    "an instant written in another way": (
        TWO,
        {
            **KNOWN,
            **TWO,
            "attributes": {**KEPT, "password_last_rotated_at": "2026-01-02T05:04:05+02:00"},
        },
        [],
    ),
    "what was sent as null": (
        {"body": {"description": "two", "attributes": None}},
        {**KNOWN, **TWO, "attributes": None},
        [],
    ),
    "the whole asset was sent": ({**TWO, "send": "complete"}, {**NULLS, **TWO, "id": "role-1"}, []),
    "nothing was known": ({**TWO, "current": None}, {**NULLS, **TWO, "id": "role-1"}, []),
    "what was known was masked": (
        {**TWO, "current": {"attributes": {"password_location": "********"}}},
        {**NULLS, **TWO, "id": "role-1", "attributes": {}},
        [],
    ),
}


@pytest.mark.parametrize(("options", "came_back", "lost"), ROWS.values(), ids=ROWS)
def test_known_fields_that_are_lost_are_told(options, came_back, lost):
    options = {"id": "role-1", **options}
    with serving(answer(200, came_back)) as wire:
        given = {"base_url": wire.url, "access_token": "token-of-the-tests", **options}
        recorded = None if "current" in options else Entry("done", {}, KNOWN)
        result = run_exactly(UPDATE, given, recorded=recorded)
    assert (result["outcome"], result.get("lost", [])) == ("accepted", lost)
    told = [warning for warning in result["warnings"] if "were known and not sent" in warning]
    assert len(told) == (1 if lost else 0)
    for each in lost:
        assert each["name"] in told[0]
        assert "send: complete" in told[0]


def test_a_warning_names_the_asset_the_fields_and_both_values():
    with serving(answer(200, {**KNOWN, **TWO, "attributes": {**KEPT, "login": None}})) as wire:
        result = run_task(
            UPDATE, base_url=wire.url, id="role-1", attributes=None, **TWO, current=KNOWN
        )
    (told,) = result["warnings"]
    assert told == (
        "application role role-1: these fields were known and not sent, and came back different or not at all:"
        " attributes.login (true known, null now). The service replaces what is not sent, or somebody else changed it."
        " To restore them, add the known values to the task, the item or its body, with send: complete."
    )


@pytest.mark.parametrize(
    ("check", "came_back", "named"),
    [
        (True, {}, "name, service, attributes, platform, region, tenant"),
        (
            False,
            {**NULLS, **TWO, "id": "role-1"},
            "name, service, attributes, platform, region, tenant",
        ),
        (False, {**KNOWN, **TWO}, "platform, region, tenant"),
        (False, {**KNOWN, **TWO, "platform": "p", "region": "r", "tenant": "t"}, ""),
    ],
)
def test_an_update_of_an_unknown_role_names_the_fields_that_it_may_drop(check, came_back, named):
    with serving(answer(200, came_back)) as wire:
        given = {"base_url": wire.url, "access_token": "token-of-the-tests", "id": "role-1", **TWO}
        result = run_exactly(UPDATE, given, check_mode=check)
    told = (
        "application role role-1: nothing is known of it, and a service that replaces drops the"
        f" fields that are not sent: {named}. Send them too; or record the asset, or give current,"
        " with send: complete."
    )
    assert result["warnings"] == ([told] if named else [])
