# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Items are validated like the options of a single task, all their faults are reported, and no two
are the same.
"""

from __future__ import annotations

import pytest
from ansible_collections.infrastructure.services.plugins.module_utils._errors import (
    InvalidInput,
    ServicesError,
)
from ansible_collections.infrastructure.services.plugins.module_utils._list import items
from ansible_collections.infrastructure.services.plugins.module_utils._task.specs import (
    VIRTUAL_MACHINES,
)
from ansible_collections.infrastructure.services.plugins.module_utils._task.validation import (
    validate,
)


@pytest.mark.parametrize("item", [None, 7, "web01", ["web01"]])
def test_an_item_that_is_not_a_dict_is_refused(item):
    with pytest.raises(ServicesError, match="must be a dict"):
        items.validated_item(VIRTUAL_MACHINES, item)


def prepared(given_items: list, plural=VIRTUAL_MACHINES, **options) -> list:
    least = {
        "base_url": "http://127.0.0.1:9",
        "access_token": "token-of-the-tests",
        plural.option: given_items,
    }
    return items.prepare_all(plural, validate(plural, {**least, **options}).valid())


def test_each_item_is_a_task_of_its_own():
    two = [{"name": "web01", "attributes": {"cpu": "4"}}, {"name": "web02"}]
    tasks = prepared(two, on_difference="fail", force=True)
    assert [each.wanted.key for each in tasks] == ["web01", "web02"]
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
    assert "virtual_machines: 5 items are invalid: " in told
    for part in (
        "[0] (web01): ",
        "[1] ( ): name",
        "[3]: name: is missing",
        "[4] (web02): name: is the same as that",
    ):
        assert part in told
    assert "[5] (web03): surplus: there is no such option" in told
    assert "virtual_machines[2]; " in told


def test_the_name_of_an_item_is_short_and_printable_in_a_message():
    with pytest.raises(InvalidInput) as caught:
        prepared([{"name": name, "surplus": 1} for name in ("\x1b[31m", "x" * 5_000)])
    told = str(caught.value)
    assert "[0] ( [31m), [1] ((too long to be shown)): surplus" in told


def test_only_some_of_many_faults_are_listed():
    with pytest.raises(InvalidInput, match=" and 150 more\\.") as caught:
        prepared([{"name": "web", f"surplus{number}": 1} for number in range(250)])
    assert len(str(caught.value)) < 40_000


def test_a_fault_that_items_share_is_reported_once():
    with pytest.raises(InvalidInput) as caught:
        prepared([{"name": f"web{number}", "attributes": {"cpu": "many"}} for number in range(200)])
    told = str(caught.value)
    assert told.startswith("virtual_machines: 200 items are invalid: [0] (web0), [1] (web1), ")
    assert '[9] (web9) and 190 more: attributes.cpu: must be a number, not "many"' in told
    assert told.count("must be a number") == 1


@pytest.mark.parametrize(
    ("option", "value"),
    [("concurrency", 0), ("concurrency", 257), ("max_unknown", -1), ("max_failures", -1)],
)
def test_numbers_out_of_range_are_refused(option, value):
    with pytest.raises(InvalidInput, match=f"{option}: must be"):
        prepared([{"name": "web01"}], **{option: value})


def test_without_items_there_are_no_tasks():
    assert prepared([]) == []


@pytest.mark.parametrize(
    ("item", "told"),
    [
        (
            {"name": "web01", "attributes": {"cpus": 4}},
            "attributes.cpus: there is no such option (did you mean cpu?)",
        ),
        (
            {"name": "web01", "attribute": {}},
            "attribute: there is no such option (did you mean attributes?)",
        ),
        (
            {"name": "web01", "attributes": {"qqq": 4}},
            "attributes.qqq: there is no such option (there are bios_",
        ),
        ("web01", 'must be a dict, not "web01"; write it as - name: web01'),
        ("web\x1f01", 'must be a dict, not "web\\u001f01"; write it as - name: web 01'),
    ],
)
def test_a_misspelled_option_gets_a_suggestion(item, told):
    with pytest.raises(ServicesError) as refused:
        items.validated_item(VIRTUAL_MACHINES, item)
    assert told in refused.value.msg


def test_a_name_that_no_ledger_in_postgresql_can_hold_is_refused_by_its_item():
    with pytest.raises(
        InvalidInput,
        match=r"1 item is invalid: \[1\] \(web 02\): name: contains a NUL character",
    ):
        prepared([{"name": "web01"}, {"name": "web\x0002"}])
