"""What updating an application role sends: an id that stays one segment, and exactly the fields
that were given.
"""

from __future__ import annotations

import json

import pytest
from ansible_collections.infrastructure.services.plugins.module_utils._resources.planning import (
    Entry,
)
from emulator import server
from support import UPDATE, run_exactly, run_task
from support.wire import answer, serving


@pytest.fixture(scope="module")
def service():
    """The emulator, which records the path as received and creates a role for any id."""
    with server.start(unknown_id="create") as running:
        yield running


@pytest.mark.parametrize(
    ("options", "body"),
    [
        ({"attributes": {"login": "yes", "name": None}}, '{"attributes":{"login":true}}'),
        ({"description": "d", "attributes": {}}, '{"description":"d","attributes":{}}'),
        (
            {"attributes": {"effective_grants": [{"permissions": ["SELECT"], "source": None}]}},
            '{"attributes":{"effective_grants":[{"permissions":["SELECT"]}]}}',
        ),
        (
            {"body": {"description": None, "x": [1.0, {"y": None}]}},
            '{"description":null,"x":[1.0,{"y":null}]}',
        ),
        ({"body": {"attributes": {"login": "yes"}}}, '{"attributes":{"login":"yes"}}'),
    ],
)
def test_the_body_is_what_was_given(options, body):
    with serving(answer(200, {})) as wire:
        run_exactly(
            UPDATE,
            {"id": "i", "base_url": wire.url, "access_token": "token-of-the-tests", **options},
        )
        assert wire.sent[0].body == body.encode()


CURRENT = {"id": "i", "region": "r", "tenant": None, "attributes": {"login": True, "name": "x"}}


@pytest.mark.parametrize(
    ("options", "body"),
    [
        ({"send": "given"}, {"attributes": {"login": False}}),
        (
            {"send": "complete"},
            {"id": "i", "region": "r", "attributes": {"login": False, "name": "x"}},
        ),
    ],
)
def test_either_the_given_fields_or_the_whole_asset_is_sent(options, body):
    with serving(answer(200, {})) as wire:
        run_task(
            UPDATE,
            base_url=wire.url,
            id="i",
            attributes={"login": False},
            current=CURRENT,
            **options,
        )
        assert json.loads(wire.sent[0].body) == body


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"attributes": {"login": True}, "send": "complete"}, "send"),
        ({"extra_attributes": {}}, "attributes or body"),
        ({"body": {}}, "attributes or body"),
        ({"extra_attributes": {"login": True}}, "extra_attributes"),
        ({"id": "..", "name": "x"}, "id"),
    ],
)
def test_an_invalid_update_is_refused_naming_the_option(options, named):
    with serving() as wire:
        result = run_exactly(
            UPDATE,
            {"id": "i", "base_url": wire.url, "access_token": "token-of-the-tests", **options},
        )
        assert wire.connections == 0
    assert (result["failed"], result["outcome"], result["changed"]) == (True, "not_sent", False)
    assert result["msg"].startswith(f"{named}: ")


@pytest.mark.parametrize("options", [{"send": "given"}, {"send": "complete"}])
def test_the_asset_of_another_role_is_refused(options):
    with serving() as wire:
        result = run_task(
            UPDATE, base_url=wire.url, id="role-2", current={"id": "role-1", "name": "x"}, **options
        )
        assert wire.connections == 0
    assert (result["failed"], result["outcome"]) == (True, "not_sent")
    assert result["msg"] == "current: is asset 'role-1', but id is 'role-2'. Nothing was sent."


@pytest.mark.parametrize("placeholder", ["VALUE_SPECIFIED_IN_NO_LOG_PARAMETER", "eu/********/c1"])
@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"send": "complete", "current": {"id": "i", "attributes": {"cluster_id": "@"}}}, "send"),
        ({"attributes": {"cluster_id": "@"}}, "attributes"),
        ({"body": {"a": ["@"]}}, "body"),
        ({"name": "@"}, "name"),
        ({"extra_attributes": {"@": 1}}, "extra_attributes"),
    ],
)
def test_a_placeholder_is_never_sent(options, named, placeholder):
    given = json.loads(json.dumps(options).replace("@", placeholder))
    with serving() as wire:
        least = {"base_url": wire.url, "access_token": "token-of-the-tests", "id": "i"}
        result = run_exactly(
            UPDATE, {**least, **({"name": "n"} if named == "send" else {}), **given}
        )
        assert wire.connections == 0
    assert (result["failed"], result["outcome"]) == (True, "not_sent")
    assert result["msg"].startswith(f"{named}: ")


def test_a_placeholder_is_never_compared():
    current = {"id": "i", "name": "********", "attributes": {"login": True}}
    with serving(answer(200, {})) as wire:
        assert run_task(UPDATE, base_url=wire.url, id="i", current=current)["changed"] is False
        run_task(UPDATE, base_url=wire.url, id="i", current=current, name="x")
        assert len(wire.sent) == 1


@pytest.mark.parametrize(
    "asset",
    [
        {"id": "i"},
        {"id": "i", "attributes": None},
        {"id": "i", "attributes": {"name": "x"}},
    ],
)
def test_the_whole_asset_has_the_sent_fields_that_no_answer_repeated(asset):
    recorded = Entry("done", {"attributes": {"login": True}}, asset)
    given = {
        "id": "i",
        "send": "complete",
        "description": "d",
        "base_url": "https://service.example",
        "access_token": "token-of-the-tests",
    }
    body = run_exactly(UPDATE, given, check_mode=True, recorded=recorded)["request"]["body"]
    assert (body["description"], body["attributes"]["login"]) == ("d", True)
