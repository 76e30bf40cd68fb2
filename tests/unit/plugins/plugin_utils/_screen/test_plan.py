# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a plan says: shared fields once, own ones first, updates as old and new, and nothing hidden
in silence.
"""

from __future__ import annotations

import json
import re

import pytest
from ansible_collections.infrastructure.services.plugins.module_utils._errors import Message
from ansible_collections.infrastructure.services.plugins.module_utils._list.result import ListResult
from ansible_collections.infrastructure.services.plugins.module_utils._task.specs import (
    APPLICATION_ROLES,
    VIRTUAL_MACHINES,
    ModuleSpec,
)
from ansible_collections.infrastructure.services.plugins.plugin_utils._screen.assets import (
    assets_of,
)
from ansible_collections.infrastructure.services.plugins.plugin_utils._screen.plan import (
    fitted,
    own_fields,
    plan_lines,
)
from ansible_collections.infrastructure.services.plugins.plugin_utils._screen.text import shown
from hypothesis import given
from hypothesis import strategies as st
from support.results import result_from

COMMAND = "ansible-playbook infrastructure.services.in_doubt -e ledger=/srv/fleet.db"
SINCE = "2026-11-22T10:02:03Z"
KEEP = dict(plan="keep", changed=False, outcome="not_sent")
LOST = dict(
    plan="in_doubt",
    changed=False,
    failed=True,
    outcome="unknown",
    msg=Message("how it ended is not known.", "virtual machine lost", COMMAND, SINCE),
)
DRIFT = dict(KEEP, plan="differs", changes=[{"name": "attributes.cpu", "new": 8, "old": 2}])
UPDATE = dict(
    plan="update",
    changed=True,
    outcome="not_sent",
    body={"description": "two"},
    changes=[{"name": "description", "new": "two", "old": "one"}],
    unsent=[
        {"name": "attributes.login", "value": True},
        {"name": "attributes.cluster_id", "value": "eu/a"},
    ],
)
COMMON = {"team": "web", "cpu": 4, "operating_system": "Debian 13"}


def new(name: str, **attributes: object) -> dict:
    body = {"name": name, "attributes": attributes}
    return dict(plan="create", changed=True, outcome="not_sent", body=body)


def lines_of(
    items: dict[str, dict],
    width: int = 80,
    not_listed: tuple = (),
    spec: ModuleSpec = VIRTUAL_MACHINES,
):
    result = ListResult(spec, [*items], None)
    result.not_listed = [*not_listed]
    for number, item in enumerate(items.values()):
        result.add(number, result_from(item))
    operation = spec.resource.operation
    return plan_lines(operation, assets_of(operation, result.done()), width)


def test_a_plan_says_what_is_shared_once_and_the_own_fields_of_each_address_first():
    volumes = [{"name": "data", "size_gb": 250}]
    items = {f"vm{number}": KEEP for number in range(114)}
    items["lost"], items["drift"] = LOST, DRIFT
    items["new1"] = new(
        "new1",
        **COMMON,
        vm_ram=16,
        volumes=volumes,
        ip="192.0.2.11",
        subnet={"mask": "m"},
        status="s",
    )
    items["new2"] = new("new2", **COMMON, vm_ram=32, ip="192.0.2.12")
    assert lines_of(items, 68, ["gone1"]) == [
        "virtual machines: 2 to create, 1 differs, 1 in doubt, 1 not listed, 114 unchanged",
        "  each:    team web, cpu 4, operating_system Debian 13",
        "  ? lost   in doubt since 2026-11-22 10:02: sent, no answer",
        "  ! drift  cpu 2 recorded, 8 listed: the service cannot update it",
        "  + new1   ip 192.0.2.11, vm_ram 16, volumes data 250, 2 more",
        "  + new2   ip 192.0.2.12, vm_ram 32",
        "  . gone1  recorded, not listed: left alone",
        f"  To settle it: {COMMAND}",
    ]


def test_an_update_says_what_changes_and_what_would_be_dropped():
    kept = "login, cluster_id are known and not sent: send: complete keeps them"
    assert lines_of({"role-1": UPDATE}, 130, spec=APPLICATION_ROLES) == [
        "application roles: 1 to update",
        f"  ~ role-1  description one -> two; {kept}",
    ]
    assert lines_of({"role-1": UPDATE}, 80, spec=APPLICATION_ROLES) == [
        "application roles: 1 to update",
        "  ~ role-1  description one -> two",
        f"            {kept}",
    ]
    _head, whole = lines_of({"role-1": UPDATE}, 130, spec=APPLICATION_ROLES)
    assert lines_of({"role-1": UPDATE}, len(whole), spec=APPLICATION_ROLES)[1:] == [whole]
    assert len(lines_of({"role-1": UPDATE}, len(whole) - 1, spec=APPLICATION_ROLES)) == 3


def test_an_update_that_is_forced_says_so():
    forced = dict(UPDATE, known={"id": "role-1"}, changes=[], unsent=[])
    assert lines_of({"role-1": forced}, spec=APPLICATION_ROLES)[1:] == [
        "  ~ role-1  sent again as it is (force)"
    ]


GRANTS = dict(
    UPDATE,
    known={"id": "orders"},
    changes=[
        {"name": "attributes.login", "old": False, "new": True},
        {
            "name": "attributes.effective_grants",
            "old": [{"permissions": ["SELECT", "MODIFY"], "resource": "keyspace orders"}],
            "new": [{"permissions": ["SELECT"], "resource": "keyspace shop"}] * 2,
        },
    ],
    unsent=[{"name": f"attributes.field_{number}", "value": 1} for number in range(9)],
)


def test_each_change_of_an_update_is_told_on_as_many_lines_as_it_takes():
    assert lines_of({"orders": GRANTS}, spec=APPLICATION_ROLES) == [
        "application roles: 1 to update",
        "  ~ orders  login false -> true, effective_grants permissions SELECT, MODIFY",
        "            resource keyspace orders -> permissions SELECT resource keyspace",
        "            shop, permissions SELECT resource keyspace shop",
        "            field_0, field_1, field_2, field_3, field_4, field_5, field_6,",
        "            field_7, field_8 are known and not sent: send: complete keeps them",
    ]


def test_an_attribute_with_the_name_of_a_field_beside_attributes_is_told_apart():
    unsent = [{"name": name, "value": "x"} for name in ("name", "attributes.name", "attributes.a")]
    role = dict(
        UPDATE, changes=[{"name": "attributes.name", "new": "y", "old": "x"}], unsent=unsent
    )
    assert lines_of({"orders": role}, 120, spec=APPLICATION_ROLES)[1] == (
        "  ~ orders  attributes.name x -> y; name, attributes.name, a are known and not sent:"
        " send: complete keeps them"
    )


def test_what_is_not_known_is_not_called_none():
    changes = [{"name": "service", "new": "cassandra"}, {"name": "attributes.login", "new": True}]
    role = dict(UPDATE, changes=changes, unsent=[])
    assert lines_of({"orders": role}, spec=APPLICATION_ROLES) == [
        "application roles: 1 to update",
        "  ~ orders  service not known -> cassandra, login not known -> true",
        "            nothing else is known of it: a service that replaces drops the rest",
    ]
    drift = dict(DRIFT, changes=[{"name": "attributes.dns_names", "new": ["a.example"]}])
    assert lines_of({"drift": drift}, 100)[1] == (
        "  ! drift  dns_names not recorded, a.example listed: the service cannot update it"
    )


def test_updates_are_told_before_creations():
    items = {f"vm{number}": new(f"vm{number}", ip=f"192.0.2.{number}") for number in range(500)}
    items["vm7"] = dict(DRIFT)
    lines = lines_of({**items, "a": UPDATE, "b": UPDATE})
    assert [line[:6].strip() for line in lines[1:6]] == ["! vm", "~ a", "", "~ b", ""]
    assert len(lines) == 1 + 1 + 4 + 37 + 1


def test_one_new_machine_shares_nothing():
    assert lines_of({"new1": new("new1", **COMMON, ip="192.0.2.1")}) == [
        "virtual machines: 1 to create",
        "  + new1  ip 192.0.2.1, team web, cpu 4, operating_system Debian 13",
    ]


def test_of_500_machines_forty_are_shown_within_80_columns():
    items = {
        f"web-prod-{number:03}": new(
            f"web-prod-{number:03}", **COMMON, ip=f"192.0.2.{number}", notes="n" * 90
        )
        for number in range(498)
    }
    lines = lines_of({**items, "lost": LOST, "drift": DRIFT})
    assert len(lines) == 1 + 1 + 40 + 1 + 1
    assert lines[-2] == "  and 460 more"
    assert max(map(len, lines[:-1])) <= 80


def test_of_forty_machines_none_is_left():
    lines = lines_of({f"vm{number}": new(f"vm{number}", cpu=number) for number in range(40)})
    assert lines[-1] == "  + vm39  cpu 39"


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("Debian 13", "Debian 13"),
        (4, "4"),
        (True, "true"),
        (None, "none"),
        ("", "none"),
        ([], "none"),
        ({}, "none"),
        ([{"name": "data", "size_gb": 250}, {"name": "log", "size_gb": 5}], "data 250, log 5"),
        ({"mask": "255.0.0.0", "network": "10.0.0.0"}, "255.0.0.0 10.0.0.0"),
        (
            [{"permissions": ["SELECT", "MODIFY"], "resource_name": "ks"}],
            "permissions SELECT, MODIFY resource_name ks",
        ),
        ("stores, Rome", '"stores, Rome"'),
        (" web", '" web"'),
        (["a, b", "c"], '"a, b", c'),
        ("a\x1b[2J\nb", "a [2J b"),
        ("x" * 70, "x" * 57 + "..."),
    ],
)
def test_a_value_is_shown_in_short(value, text):
    assert shown(value) == text


NAMES = st.text(st.characters(codec="ascii", categories=["L"]), min_size=1, max_size=8)
VALUES = st.one_of(
    st.text(max_size=30),
    st.integers(0, 3),
    st.booleans(),
    st.lists(st.text(max_size=9), max_size=3),
)


@given(bodies=st.lists(st.dictionaries(NAMES, VALUES, max_size=6), min_size=1, max_size=5))
def test_shared_and_own_fields_together_are_all_fields(bodies):
    bodies = [
        {"name": "n", "attributes": {key: each[key] for key in each if key != "name"}}
        for each in bodies
    ]
    shared, owns = own_fields(bodies)
    for body, own in zip(bodies, owns, strict=True):
        assert json.dumps({**shared, **own}, sort_keys=True) == json.dumps(
            body["attributes"], sort_keys=True
        )
        assert not shared.keys() & own.keys()


@given(fields=st.lists(NAMES, min_size=1, max_size=30), width=st.integers(20, 100))
def test_a_part_that_does_not_fit_says_how_many_fields_are_left(fields, width):
    text = fitted(fields, width)
    assert len(text) <= width
    left = re.search(r", (\d+) more$", text)
    said = text[: left.start()] if left else text
    assert said == ", ".join(fields[: len(fields) - (int(left[1]) if left else 0)])
