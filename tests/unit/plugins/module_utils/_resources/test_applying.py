"""Applying a plan: what is sent, predicted, compared and returned, with and without check mode."""

from __future__ import annotations

import math

import pytest
from ansible_collections.infrastructure.services.plugins.module_utils._resources.planning import (
    ENVELOPE,
)
from ansible_collections.infrastructure.services.plugins.module_utils._resources.resources import (
    APPLICATION_ROLE,
    VIRTUAL_MACHINE,
)
from support import CREATE, LEAST, OPERATION, UPDATE, run_exactly, run_task
from support.wire import answer, serving

ASSET = {"id": "a1", "name": "web01", "attributes": {"login": True, "cpu": 4}, "more": [1]}


@pytest.mark.parametrize("resource", OPERATION)
def test_check_mode_shows_the_request_that_would_be_sent(resource):
    with serving(answer(200, ASSET)) as wire:
        predicted = run_task(resource, check_mode=True, base_url=wire.url)
        done = run_task(resource, base_url=wire.url)
    assert predicted["request"] == done["request"]
    assert predicted["changed"] == done["changed"]
    assert set(predicted) == {*done, "plan"}
    assert set(predicted["diff"]) == set(done["diff"])


def test_check_mode_predicts_every_field_with_null_for_what_only_the_service_knows():
    made = run_task(
        CREATE,
        check_mode=True,
        base_url="https://service.example",
        name="web01",
        attributes={"cpu": 2, "subnet": {"mask": "255.0.0.0"}},
    )
    assert made["asset"].keys() == set(ENVELOPE)
    assert (made["asset"]["name"], made["asset"]["id"]) == ("web01", None)
    attributes = made["asset"]["attributes"]
    assert attributes.keys() == VIRTUAL_MACHINE.attributes.keys()
    assert (attributes["cpu"], attributes["ip"], attributes["volumes"]) == (2, None, None)
    assert attributes["subnet"] == {
        "dns": None,
        "gateway": None,
        "mask": "255.0.0.0",
        "network": None,
    }
    assert made["diff"]["after"] == made["request"]["body"]


def test_check_mode_predicts_that_an_update_changes_only_what_it_sends():
    current = {"region": "r", "attributes": {"name": "x", "cluster_id": None}}
    role = run_task(
        UPDATE, check_mode=True, base_url="https://service.example", id="i", current=current
    )
    nulls = dict.fromkeys(APPLICATION_ROLE.attributes)
    assert role["asset"] == {
        **dict.fromkeys(ENVELOPE),
        "id": "i",
        "region": "r",
        "attributes": {**nulls, "name": "x", "login": True},
    }
    assert role["diff"]["after"] == {
        "id": "i",
        "region": "r",
        "attributes": {"name": "x", "cluster_id": None, "login": True},
    }


@pytest.mark.parametrize("resource", OPERATION)
@pytest.mark.parametrize("check_mode", [False, True])
def test_the_asset_is_a_fact_and_the_after_state(resource, check_mode):
    with serving(answer(200, ASSET)) as wire:
        result = run_task(resource, check_mode, base_url=wire.url)
    assert check_mode or result["asset"] == ASSET
    assert result["ansible_facts"] == {resource: result["asset"]}
    assert result["diff"]["before"] == {}
    assert check_mode or result["diff"]["after"] == ASSET
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


@pytest.mark.parametrize(
    ("back", "named"),
    [
        ({"name": "web01", "attributes": {"cpu": 4, "team": "a"}}, None),
        ({"name": "web01", "attributes": {}}, None),
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
        result = run_task(UPDATE, base_url=wire.url, current={"id": "role-0001"})
    told = "application role role-0001: these fields came back different from what was sent"
    assert result["warnings"] == [f'{told}: id ("role-0001" sent, "role-0002" came back).']


@pytest.mark.parametrize("value", ["\ud800", {"a": [math.nan]}], ids=ascii)
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
        given = {"id": "role-1", "send": "given"} if resource == UPDATE else LEAST[CREATE]
        given |= {"description": "d"} if option == "current" else {}
        result = run_exactly(
            resource, {"base_url": wire.url, "access_token": "token", **given, option: {"x": value}}
        )
        assert wire.connections == 0
    assert (result["failed"], result["outcome"]) == (True, "not_sent")
    assert result["msg"].startswith(f"{option}: contains a ")
