"""The emulator under each reading of what the interface leaves open: one test per switch."""

from __future__ import annotations

import json

import pytest

ROLE = "/api/v1/services/cassandra/application_roles/role-1"


def test_names_can_be_unique(core):
    core.configure(unique_names=True)
    assert [core.create().status for _time in range(2)] == [201, 409]
    assert len(core.stored()) == 1


@pytest.mark.parametrize(("unset", "shown"), [("null", {"description", "tenant"}), ("omit", set())])
def test_fields_without_a_value_are_null_or_left_out(core, unset, shown):
    core.configure(unset=unset)
    asset = json.loads(core.create().body)
    assert set(asset) & {"description", "tenant"} == shown
    assert ("team" in asset["attributes"]) == bool(shown)


@pytest.mark.parametrize("status", [200, 202, 204])
def test_the_success_status_is_a_switch(core, status):
    core.configure(create_status=status, update_status=status)
    assert [core.create().status, core.update({}).status] == [status, status]


@pytest.mark.parametrize(
    "body", [{}, {"name": "a"}, {"attributes": {}}, {"name": "", "attributes": {}}]
)
def test_required_fields_are_a_switch(core, body):
    assert core.create(body).status == 422
    core.configure(required="lenient")
    assert core.create(body).status == 201


def test_a_401_names_the_scheme(core):
    assert core.create(Authorization=None).headers == (
        ("WWW-Authenticate", 'Bearer realm="emulator"'),
    )
    core.configure(authorization="off")
    assert core.create(Authorization=None).status == 201


def test_a_static_token_is_accepted(core):
    core.configure(token="t")
    assert [core.create().status, core.create(Authorization="Bearer u").status] == [201, 401]


def test_an_unknown_role_is_refused_or_created(core):
    other = ROLE.replace("role-1", "role-2")
    assert core.update({"name": "x"}, other).status == 404
    core.configure(unknown_id="create")
    assert core.update({"name": "x"}, other).status == 200
    assert [role["id"] for role in core.stored("application_roles")] == ["role-1", "role-2"]


@pytest.mark.parametrize(
    ("mode", "expected"),
    [
        ("merge", {"name": "new", "tenant": "t", "attributes": {"login": True, "name": "n"}}),
        ("replace", {"name": "new", "attributes": {"login": True}}),
    ],
)
def test_an_update_merges_or_replaces(core, mode, expected):
    core.configure(put=mode, unset="omit")
    core.api.seed(
        "role-1", {"name": "old", "tenant": "t", "attributes": {"login": False, "name": "n"}}
    )
    asset = json.loads(
        core.update({"name": "new", "id": "other", "attributes": {"login": True}}).body
    )
    assert {key: asset.get(key) for key in expected} == expected
    assert asset["id"] == "role-1"
    assert ("tenant" in asset) == (mode == "merge")


def test_a_null_in_an_update_is_stored_as_null(core):
    core.configure(unset="omit")
    asset = json.loads(core.update({"tenant": None, "attributes": None}).body)
    assert (asset["tenant"], asset["attributes"]) == (None, None)
    core.configure(unset="null")
    assert json.loads(core.update({}).body)["attributes"]["login"] is None
