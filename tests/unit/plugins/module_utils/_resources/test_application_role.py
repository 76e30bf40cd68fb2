# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What updating an application role sends: an id that stays one segment, and exactly the fields
that were given.
"""

from __future__ import annotations

import json
from urllib.parse import quote, unquote

import pytest
from ansible_collections.infrastructure.services.plugins.module_utils._resources.application_role import (
    FIELDS,
)
from ansible_collections.infrastructure.services.plugins.module_utils._resources.planning import (
    Recorded,
)
from ansible_collections.infrastructure.services.plugins.module_utils._secrets import (
    holds_placeholder,
)
from emulator import server
from hypothesis import example, given
from hypothesis import strategies as st
from support import UPDATE, run_exactly, run_task
from support.wire import answer, serving

PREFIX = "/api/v1/services/cassandra/application_roles/"
IDS = st.text(st.characters(exclude_categories=["Cc", "Cs"]), min_size=1).filter(
    lambda text: text not in (".", "..") and not holds_placeholder(text)
)


@pytest.fixture(scope="module")
def service():
    """The emulator, which records the path as received and creates a role for any id."""
    with server.start(unknown_id="create") as running:
        yield running


@given(IDS)
@example("a/b")
@example("../x")
@example("/")
@example("%2e%2e")
@example("%2F")
@example("a?b#c")
@example("a b+c")
@example("...")
@example("./..")
@example("ä€🚀")
@example("\\..\\")
@example(";x=1")
def test_any_id_is_a_single_segment_for_the_service(service, identifier):
    service.api.conversation.clear()
    result = run_task(UPDATE, base_url=service.url, id=identifier)
    (entry,) = service.api.conversation
    assert entry.request.target == PREFIX + quote(identifier, safe="")
    assert entry.request.target.count("/") == PREFIX.count("/")
    assert unquote(entry.request.target[len(PREFIX) :]) == identifier
    assert result["asset"]["id"] == identifier


@pytest.mark.parametrize(
    ("options", "body"),
    [
        ({"attributes": {"login": False}}, '{"attributes":{"login":false}}'),
        ({"attributes": {"login": "yes", "name": None}}, '{"attributes":{"login":true}}'),
        ({"name": "x", "tenant": ""}, '{"name":"x","tenant":""}'),
        ({"description": "d", "attributes": {}}, '{"description":"d","attributes":{}}'),
        (
            {"attributes": {"effective_grants": [{"permissions": ["SELECT"], "source": None}]}},
            '{"attributes":{"effective_grants":[{"permissions":["SELECT"]}]}}',
        ),
        (
            {"attributes": {"password_last_rotated_at": "2026-01-02 03:04:05"}},
            '{"attributes":{"password_last_rotated_at":"2026-01-02T03:04:05Z"}}',
        ),
        ({"extra_attributes": {"new": 1}}, '{"attributes":{"new":1}}'),
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


TEXTS = st.text(min_size=1).filter(lambda text: not holds_placeholder(text))  # which is refused


@given(st.fixed_dictionaries({}, optional={field: st.none() | TEXTS for field in FIELDS}))
def test_a_field_that_was_not_given_is_not_predicted_to_be_sent(fields):
    options = {
        "id": "i",
        "base_url": "https://service.example",
        "access_token": "token-of-the-tests",
    }
    result = run_exactly(
        UPDATE, {**options, "extra_attributes": {"new": 1}, **fields}, check_mode=True
    )
    wanted = {name: value for name, value in fields.items() if value is not None}
    try:
        json.dumps(wanted, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        assert result["failed"] is True
    else:
        assert result["request"]["body"] == {**wanted, "attributes": {"new": 1}}


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


def test_force_sends_what_is_already_known_to_match():
    with serving(answer(200, {})) as wire:
        run_task(UPDATE, base_url=wire.url, id="i", current=CURRENT, force=True)
        assert len(wire.sent) == 1


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"attributes": {"login": True}, "send": "complete"}, "send"),
        ({"attributes": {}}, "attributes"),
        ({"extra_attributes": {}}, "attributes"),
        ({"attributes": {"login": None}}, "attributes"),
        ({"body": {}}, "body"),
        ({"extra_attributes": {"login": True}}, "extra_attributes"),
        ({"id": "", "name": "x"}, "id"),
        ({"id": "..", "name": "x"}, "id"),
        ({"id": "a\nb", "name": "x"}, "id"),
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
    assert result["msg"] == "current: is the asset 'role-1', but id is 'role-2'. Nothing was sent."


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
    ("asset", "lacking"),
    [
        ({"id": "i"}, "attributes"),
        ({"id": "i", "attributes": None}, "attributes"),
        ({"id": "i", "attributes": {"name": "x"}}, "attributes.login"),
    ],
)
def test_the_whole_asset_is_not_sent_when_it_lacks_previously_sent_fields(asset, lacking):
    recorded = Recorded({"attributes": {"login": True}}, asset)
    options = {
        "id": "i",
        "send": "complete",
        "description": "d",
        "base_url": "https://service.example",
    }
    result = run_exactly(
        UPDATE, {"access_token": "token-of-the-tests", **options}, recorded=recorded
    )
    assert (result["failed"], result["outcome"]) == (True, "not_sent")
    assert f"it lacks {lacking}, which was sent before" in result["msg"]


@pytest.mark.parametrize("empty", [{"effective_grants": []}])
def test_emptied_fields_are_sent(empty):
    current = {"id": "i", "attributes": {"effective_grants": [{"source": "a"}], "login": True}}
    with serving(answer(200, {})) as wire:
        run_task(
            UPDATE, base_url=wire.url, id="i", current=current, attributes=empty, send="complete"
        )
        assert json.loads(wire.sent[0].body)["attributes"] == {
            "effective_grants": [],
            "login": True,
        }
