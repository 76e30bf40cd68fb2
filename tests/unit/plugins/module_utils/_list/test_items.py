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
from ansible_collections.infrastructure.services.plugins.module_utils._task.options import (
    settings_from,
)
from support import VIRTUAL_MACHINES, validate


def prepared(given_items: list, plural=VIRTUAL_MACHINES, **options) -> list:
    least = {
        "base_url": "http://127.0.0.1:9",
        "access_token": "token-of-the-tests",
        plural.option: given_items,
    }
    given = validate(plural, {**least, **options})
    return items.prepare_all(given, settings_from(given.params))


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
    assert "virtual_machines: 5 invalid items: " in told
    for part in (
        "[0] (web01): ",
        "[1] ( ): name",
        "[3]: name: is missing",
        "[4] (web02): name: is the same as that",
    ):
        assert part in told
    assert "[5] (web03): surplus: there is no such option" in told
    assert "virtual_machines[2]; " in told


def test_only_some_of_many_faults_are_listed():
    with pytest.raises(InvalidInput, match=" and 150 more\\.") as caught:
        prepared([{"name": "web", f"surplus{number}": 1} for number in range(250)])
    assert len(str(caught.value)) < 40_000


def test_a_fault_that_items_share_is_reported_once():
    with pytest.raises(InvalidInput) as caught:
        prepared([{"name": f"web{number}", "attributes": {"cpu": "many"}} for number in range(200)])
    told = str(caught.value)
    assert told.startswith("virtual_machines: 200 invalid items: [0] (web0), [1] (web1), ")
    assert '[9] (web9) and 190 more: attributes.cpu: must be a number, not "many"' in told
    assert told.count("must be a number") == 1


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
            "attributes.qqq: there is no such option (there are ",
        ),
        ("web01", 'must be a dict with the option name, not "web01"'),
    ],
)
def test_a_misspelled_option_gets_a_suggestion(item, told):
    with pytest.raises(ServicesError) as refused:
        items.validated_item(VIRTUAL_MACHINES, item)
    assert told in refused.value.msg
