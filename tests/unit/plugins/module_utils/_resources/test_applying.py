# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Applying a plan: what is sent, predicted, compared and returned, with and without check mode."""

from __future__ import annotations

import math

import pytest
from ansible_collections.infrastructure.services.plugins.module_utils._errors import InvalidInput
from ansible_collections.infrastructure.services.plugins.module_utils._resources.planning import (
    ENVELOPE,
    with_extra,
)
from support import CREATE, LEAST, RESOURCES, UPDATE, run_exactly, run_task
from support.wire import answer, serving

ASSET = {"id": "a1", "name": "web01", "attributes": {"login": True, "cpu": 4}, "more": [1]}


@pytest.mark.parametrize("resource", RESOURCES)
@pytest.mark.parametrize(
    "more",
    [
        {},
        {"access_token": None, "client_id": "c", "client_secret": "s3cret-s3cret"},
        {
            "access_token": None,
            "client_id": "c",
            "client_secret": "s3cret-s3cret",
            "client_authentication": "post",
        },
    ],
)
def test_check_mode_opens_no_connection(resource, more):
    """Neither to the service nor to the token endpoint, which are the same server here."""
    with serving() as wire:
        result = run_task(
            resource, check_mode=True, base_url=wire.url, auth_url=f"{wire.url}/token", **more
        )
        assert wire.connections == 0
    assert (result["changed"], result["outcome"], result["status"]) == (True, "not_sent", None)
    assert result["request_attempts"] == 0


@pytest.mark.parametrize("resource", RESOURCES)
def test_check_mode_shows_the_request_that_would_be_sent(resource):
    with serving(answer(200, ASSET)) as wire:
        predicted = run_task(resource, check_mode=True, base_url=wire.url)
        done = run_task(resource, base_url=wire.url)
    assert predicted["request"] == done["request"]
    assert predicted["changed"] == done["changed"]
    assert set(predicted) == {*done, "plan"}
    assert set(predicted["diff"]) == set(done["diff"])


def test_check_mode_predicts_the_asset_with_null_for_what_only_the_service_knows():
    made = run_task(
        CREATE,
        check_mode=True,
        base_url="https://service.example",
        name="web01",
        attributes={"cpu": 2},
    )
    nulls = dict.fromkeys(ENVELOPE)
    assert made["asset"] == {**nulls, "name": "web01", "attributes": {"cpu": 2}}
    current = {"region": "r", "attributes": {"name": "x"}}
    role = run_task(
        UPDATE, check_mode=True, base_url="https://service.example", id="i", current=current
    )
    assert role["asset"] == {
        **nulls,
        "id": "i",
        "region": "r",
        "attributes": {"name": "x", "login": True},
    }


@pytest.mark.parametrize("resource", RESOURCES)
@pytest.mark.parametrize("check_mode", [False, True])
def test_the_asset_is_a_fact_and_the_after_state(resource, check_mode):
    with serving(answer(200, ASSET)) as wire:
        result = run_task(resource, check_mode, base_url=wire.url)
    assert check_mode or result["asset"] == ASSET
    assert result["ansible_facts"] == {resource: result["asset"]}
    assert (result["diff"]["before"], result["diff"]["after"]) == ({}, result["asset"])
    noun, title = {CREATE: ("virtual machine", "web01"), UPDATE: ("application role", "role-0001")}[
        resource
    ]
    assert result["diff"]["before_header"] == f"{noun} {title} (not known)"
    assert result["diff"]["after_header"] == f"{noun} {title}"


@pytest.mark.parametrize("check_mode", [False, True])
def test_an_asset_that_already_matches_is_not_sent(check_mode):
    current = {"id": "role-0001", "attributes": {"login": True, "name": "x"}}
    with serving() as wire:
        result = run_task(UPDATE, check_mode, base_url=wire.url, current=current)
        assert wire.connections == 0
    assert (result["changed"], result["outcome"], result["request_attempts"]) == (
        False,
        "not_sent",
        0,
    )
    assert result["asset"] == result["diff"]["before"] == result["diff"]["after"] == current


def test_an_asset_that_differs_is_sent_and_shown_as_the_before_state():
    current = {"attributes": {"login": False}}
    with serving(answer(200, ASSET)) as wire:
        result = run_task(UPDATE, base_url=wire.url, current=current)
        assert len(wire.sent) == 1
    assert result["diff"]["before"] == current
    assert result["diff"]["before_header"].endswith("(as known)")


@pytest.mark.parametrize(
    ("back", "named"),
    [
        ({"name": "web01", "attributes": {"cpu": 4, "team": "a"}}, None),
        ({"name": "web01", "attributes": {"cpu": 4.0}}, None),
        ({"name": "web01", "attributes": {}}, None),
        ({}, None),
        ({"name": "WEB01", "attributes": {"cpu": 4}}, 'name ("web01" sent, "WEB01" came back)'),
        ({"name": "web01", "attributes": {"cpu": 8}}, "attributes.cpu (4 sent, 8 came back)"),
        (
            {"name": None, "attributes": None},
            'name ("web01" sent, null came back), attributes ({"cpu": 4} sent, null came back)',
        ),
    ],
)
def test_fields_that_came_back_different_raise_one_warning(back, named):
    with serving(answer(201, back)) as wire:
        result = run_task(CREATE, base_url=wire.url, name="web01", attributes={"cpu": 4})
    told = "virtual machine web01: these fields came back different from what was sent"
    expected = [f"{told}: {named}."] if named else []
    assert result["warnings"] == expected
    assert result["changed"] is True


def test_an_answer_with_the_id_of_another_asset_is_a_warning():
    with serving(answer(200, {"id": "role-0002"})) as wire:
        result = run_task(UPDATE, base_url=wire.url)
    told = "application role role-0001: these fields came back different from what was sent"
    assert result["warnings"] == [f'{told}: id ("role-0001" sent, "role-0002" came back).']


@pytest.mark.parametrize("resource", RESOURCES)
def test_a_failure_shows_the_request(resource):
    with serving(answer(403)) as wire:
        result = run_task(resource, base_url=wire.url)
    assert result["request"]["url"].startswith(wire.url)
    assert set(result["request"]) == {"method", "url", "body"}
    assert (result["failed"], result["status"], result["request_attempts"]) == (True, 403, 1)


@pytest.mark.parametrize("resource", RESOURCES)
def test_values_that_json_cannot_express_are_refused_before_anything_is_sent(resource):
    with serving() as wire:
        result = run_task(
            resource,
            base_url=wire.url,
            **LEAST[resource] | {"extra_attributes": {"a": float("nan")}},
        )
        assert wire.connections == 0
    assert (result["failed"], result["outcome"]) == (True, "not_sent")
    assert "NaN" in result["msg"]


def test_extra_attributes_are_sent_with_the_typed_ones():
    typed = {"cpu": {}, "team": {}}
    extra = {"new": {"a": None, "b": 1}, "old": None}
    assert with_extra({"cpu": 4, "team": None}, extra, typed) == {"cpu": 4, "new": {"b": 1}}
    assert with_extra(None, None, typed) == {}
    with pytest.raises(InvalidInput, match=r"^extra_attributes: team "):
        with_extra({}, {"team": "a"}, typed)


@pytest.mark.parametrize(
    "value", [math.nan, -math.inf, "\ud800", {"a": [math.nan]}, {"\udfff": 1}], ids=ascii
)
@pytest.mark.parametrize(
    ("resource", "option"),
    [
        (CREATE, "extra_attributes"),
        (UPDATE, "extra_attributes"),
        (UPDATE, "body"),
        (UPDATE, "current"),
    ],
)
def test_values_that_json_cannot_express_are_refused_naming_their_option(resource, option, value):
    with serving() as wire:
        given = {"id": "role-1", "send": "given"} if resource == UPDATE else {"name": "web01"}
        given |= {"description": "d"} if option == "current" else {}
        result = run_exactly(
            resource, {"base_url": wire.url, "access_token": "token", **given, option: {"x": value}}
        )
        assert wire.connections == 0
    assert (result["failed"], result["outcome"]) == (True, "not_sent")
    assert result["msg"].startswith(f"{option}: contains a ")


@pytest.mark.parametrize(
    ("resource", "option"),
    [
        (CREATE, "name"),
        (UPDATE, "name"),
        (UPDATE, "id"),
        (UPDATE, "tenant"),
    ],
)
def test_a_lone_surrogate_is_refused_naming_its_option(resource, option):
    result = run_task(resource, base_url="http://127.0.0.1:9", **{option: "web\ud800"})
    assert (result["failed"], result["outcome"]) == (True, "not_sent")
    assert result["msg"].startswith(f"{option}: contains a character that UTF-8 cannot encode")
