# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""List items are validated as ansible-core would, all their faults are reported, and no two are the same."""

from __future__ import annotations

import pytest
from ansible.module_utils.common.arg_spec import ArgumentSpecValidator
from ansible_collections.infrastructure.services.plugins.module_utils._errors import InvalidInput, ServicesError
from ansible_collections.infrastructure.services.plugins.module_utils._fields import prune
from ansible_collections.infrastructure.services.plugins.module_utils._list import items
from ansible_collections.infrastructure.services.plugins.module_utils._resources.application_role import (
    APPLICATION_ROLES,
)
from ansible_collections.infrastructure.services.plugins.module_utils._resources.virtual_machine import (
    VIRTUAL_MACHINES,
)
from ansible_collections.infrastructure.services.plugins.module_utils._task import task
from hypothesis import given
from hypothesis import strategies as st

PLURALS = {plural.name: plural for plural in (VIRTUAL_MACHINES, APPLICATION_ROLES)}
SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-3, 2**60),
    st.floats(allow_nan=True),
    st.sampled_from(["", "4", "4.0", "yes", "web01", "2026-01-02", "2026-01-02T03:04:05+01:00", "a,b", "{}", "given"]),
)
VALUES = st.recursive(SCALARS, lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=2), inner))


def fitting(option: dict) -> st.SearchStrategy:
    """Values for an option, usually of its type."""
    if "options" in option:
        one = dicts(option["options"])
        return one if option["type"] == "dict" else st.lists(one, max_size=2)
    return st.one_of(SCALARS, VALUES)


def dicts(options: dict) -> st.SearchStrategy:
    keys = st.lists(st.sampled_from([*options, "surplus"]), max_size=4, unique=True)
    return keys.flatmap(
        lambda names: st.fixed_dictionaries({name: fitting(options.get(name, {"type": "str"})) for name in names})
    )


def by_ansible(plural, item: dict) -> dict | None:
    """The options as validated by ansible-core, None when it rejects them."""
    spec = ArgumentSpecValidator(plural.item_options, **plural.resource.constraints)
    result = spec.validate(task.readable(plural.item_options, item))
    return None if result.error_messages else result.validated_parameters


def check(plural, item: dict) -> None:
    try:
        mine = items.Items(plural).validated(item)
    except ServicesError:
        mine = None
    expected = by_ansible(plural, item)
    assert (mine is None) == (expected is None)
    if mine is not None:
        assert repr(prune(mine)) == repr(prune({name: expected[name] for name in mine}))
        assert set(mine) == set(expected)


@given(dicts(VIRTUAL_MACHINES.item_options), st.booleans())
def test_a_machine_is_validated_as_ansible_core_would(item, named):
    check(VIRTUAL_MACHINES, {**item, "name": "web01"} if named else item)


@given(dicts(APPLICATION_ROLES.item_options), st.booleans())
def test_a_role_is_validated_as_ansible_core_would(item, named):
    check(APPLICATION_ROLES, {**item, "id": "role-0001", "name": "n"} if named else item)


def test_a_choice_that_is_null_is_refused_as_ansible_core_does():
    check(APPLICATION_ROLES, {"id": "role-0001", "name": "n", "send": None})


@pytest.mark.parametrize("item", [None, 7, "web01", ["web01"]])
def test_an_item_that_is_not_a_dict_is_refused(item):
    with pytest.raises(ServicesError, match="must be a dict"):
        items.Items(VIRTUAL_MACHINES).validated(item)


def prepared(given_items: list, plural=VIRTUAL_MACHINES, **options) -> list:
    own = items.own_options(plural, with_items=False)
    least = {"base_url": "http://127.0.0.1:9", "access_token": "token-of-the-tests", plural.option: given_items}
    validated = ArgumentSpecValidator(**task.argument_spec(own, {})).validate({**least, **options})
    assert not validated.error_messages
    return items.prepare_all(plural, validated.validated_parameters)


def test_each_item_is_a_task_of_its_own():
    two = [{"name": "web01", "attributes": {"cpu": "4"}}, {"name": "web02"}]
    tasks = prepared(two, on_difference="fail", force=True)
    assert items.labels(tasks) == ["web01", "web02"]
    assert tasks[0].wanted.body == {"name": "web01", "attributes": {"cpu": 4}}
    assert all(each.wanted.force and each.wanted.fails_on_difference for each in tasks)


def test_all_faults_are_reported_at_once_each_with_its_item():
    wrong = [
        {"name": "web01", "attributes": {"cpu": "many"}},
        {"name": " "},
        {"name": "web02"},
        {"attributes": {}},
        {"name": "web02"},
        {"name": "web03", "surplus": 1},
    ]
    with pytest.raises(InvalidInput) as caught:
        prepared(wrong)
    told = str(caught.value)
    assert "virtual_machines: 5 items are invalid, so nothing was sent" in told
    for part in ("[0] (web01): ", "[1] ( ): name", "[3]: missing", "[4] (web02): name: is the same as that of"):
        assert part in told
    assert "[5] (web03): unsupported: surplus" in told
    assert "virtual_machines[2]; " in told


def test_only_some_of_many_faults_are_listed():
    with pytest.raises(InvalidInput, match="And 150 more faults") as caught:
        prepared([{"name": "web", f"surplus{number}": 1} for number in range(250)])
    assert len(str(caught.value)) < 40_000


def test_a_fault_that_items_share_is_reported_once():
    with pytest.raises(InvalidInput) as caught:
        prepared([{"name": f"web{number}", "attributes": {"cpu": "many"}} for number in range(200)])
    told = str(caught.value)
    assert told.startswith("virtual_machines: 200 items are invalid, so nothing was sent: [0] (web0), [1] (web1), ")
    assert '[9] (web9) and 190 more: attributes.cpu: "many" is not a number' in told
    assert told.count("is not a number") == 1


@pytest.mark.parametrize(
    ("option", "value"), [("concurrency", 0), ("concurrency", 257), ("max_unknown", -1), ("max_failures", -1)]
)
def test_numbers_out_of_range_are_refused(option, value):
    with pytest.raises(InvalidInput, match=f"{option}: must be"):
        prepared([{"name": "web01"}], **{option: value})


def test_without_items_there_are_no_tasks():
    assert prepared([]) == []


@pytest.mark.parametrize(("item", "told"), [
    ({"name": "web01", "attributes": {"cpus": 4}}, "attributes.cpus. Did you mean cpu? Supported parameters include:"),
    ({"name": "web01", "attribute": {}}, "attribute. Did you mean attributes? Supported parameters include:"),
    ({"name": "web01", "attributes": {"qqq": 4}}, "attributes.qqq. Supported parameters include:"),
    ("web01", 'must be a dict, not "web01"; write it as - name: web01'),
])
def test_a_misspelled_option_gets_a_suggestion(item, told):
    with pytest.raises(ServicesError) as refused:
        items.Items(VIRTUAL_MACHINES).validated(item)
    assert told in refused.value.msg
