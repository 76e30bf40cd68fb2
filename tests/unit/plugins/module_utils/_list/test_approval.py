"""Nothing is sent that the approved plan does not have with the same body."""

from __future__ import annotations

import pytest
from ansible_collections.infrastructure.services.plugins.module_utils._errors import InvalidInput
from support import APPLICATION_ROLES, VIRTUAL_MACHINES
from support.lists import run_list
from support.wire import answer, serving

BODY = {
    "name": "web01",
    "attributes": {"cpu": 4, "team": "web", "volumes": [{"name": "data", "size_gb": 5}]},
}

# What is listed instead of BODY, and what is told of it.
OTHERS = {
    "another value": ({"cpu": 8}, "web01: attributes.cpu (8 now, 4 approved)"),
    "text for a number": ({"team": "4"}, 'web01: attributes.team ("4" now, "web" approved)'),
    "a part of a list": (
        {"volumes": [{"name": "data", "size_gb": 6}]},
        "attributes.volumes[0].size_gb (6 now, 5 approved)",
    ),
    "an attribute less": ({"team": None}, 'web01: attributes.team (none now, "web" approved)'),
    "an attribute more": (
        {"ip": "192.0.2.1"},
        'web01: attributes.ip ("192.0.2.1" now, none approved)',
    ),
}


def sent(
    approved: dict | None, items: list[dict], spec=VIRTUAL_MACHINES, check_mode=False, **options
) -> int:
    """Return how many requests were sent; raise InvalidInput."""
    with serving(*[answer(201, {"id": "1"})] * len(items)) as wire:
        try:
            given = {"base_url": wire.url, spec.option: items, **options}
            run_list(spec, given, check_mode=check_mode, approved=approved)
        finally:
            assert len(wire.sent) in (0, len(items))
        return len(wire.sent)


def test_what_is_approved_is_sent():
    assert sent({"web01": BODY, "web02": BODY}, [BODY]) == 1
    assert (
        sent({"web01": BODY}, [{"name": "web01"}], defaults={"attributes": BODY["attributes"]}) == 1
    )
    assert sent(None, [BODY]) == 1
    assert sent({}, []) == 0


@pytest.mark.parametrize("check_mode", [False, True])
@pytest.mark.parametrize(("attributes", "told"), OTHERS.values(), ids=OTHERS)
def test_another_body_is_refused_by_field_with_both_values(attributes, told, check_mode):
    listed = {"name": "web01", "attributes": {**BODY["attributes"], **attributes}}
    with pytest.raises(InvalidInput) as refused:
        sent({"web01": BODY}, [listed], check_mode=check_mode)
    assert told in refused.value.msg


@pytest.mark.parametrize("name", ["WEB01", "web-01"])
def test_another_asset_is_refused_with_all_others_at_once(name):
    with pytest.raises(InvalidInput) as refused:
        sent({"web01": BODY}, [{**BODY, "name": name}, {"name": "third"}])
    assert (
        f"the plan does not match 2 assets of this list: {name}: the plan does not send it; third: the plan"
        in refused.value.msg
    )


def test_a_boolean_is_no_number_and_an_update_is_held_to_its_plan():
    body = {"attributes": {"login": True}}
    assert sent({"r": body}, [{"id": "r", **body}], APPLICATION_ROLES) == 1
    for approved in ({"attributes": {"login": 1}}, {"attributes": {}}, {}, {**body, "name": "x"}):
        with pytest.raises(
            InvalidInput,
            match=r"^approved: the plan does not match 1 asset of this list: r: .* now, .* approved",
        ):
            sent({"r": approved}, [{"id": "r", **body}], APPLICATION_ROLES)


def test_what_is_settled_needs_no_approval():
    known = {"id": "r", "attributes": {"login": True}}
    assert (
        sent({}, [{"id": "r", "attributes": {"login": True}, "current": known}], APPLICATION_ROLES)
        == 0
    )


def test_the_first_hundred_of_many_are_told():
    items = [{**BODY, "name": f"vm{number}"} for number in range(1_100)]
    with pytest.raises(InvalidInput) as refused:
        sent({}, items)
    assert refused.value.msg.startswith(
        "approved: the plan does not match 1,100 assets of this list: vm0: the plan does not send it; "
    )
    assert " and 1,000 more. Make a new plan" in refused.value.msg


@pytest.mark.parametrize(
    ("body", "approved"),
    [
        ({"a.b": 1}, {"a": {"b": 1}}),
        ({"a": {}}, {"a": []}),
        ({"a.b.c": 1}, {"a": {"b.c": 1}}),
    ],
)
def test_a_name_with_a_dot_is_no_path(body, approved):
    assert sent({"r": body}, [{"id": "r", "body": body}], APPLICATION_ROLES) == 1
    for one, other in ((body, approved), (approved, body)):
        with pytest.raises(InvalidInput, match=r"r: a\S* \(.* now, .* approved\)"):
            sent({"r": other}, [{"id": "r", "body": one}], APPLICATION_ROLES)
