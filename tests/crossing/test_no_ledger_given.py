"""A creation without the option `ledger`, or with an empty one: refused in every place and form, with
both ways to go on.
"""

from __future__ import annotations

import pytest
from crossing.playbook import KEYWORDS, MODULE
from support.wire import Last

GIVEN = {
    "no option": "{{ omit }}",
    "null": None,
    "an empty text": "",
    "a template of nothing": "{{ lookup('ansible.builtin.env', 'NO_SUCH_VARIABLE') }}",
}
UNTIL = {"until": "seen is success", "retries": 1, "delay": 0, "register": "seen"}
# Keywords, and whether the task has a list.
FORMS = {
    "task": ({}, False),
    "checked": ({"check_mode": True}, False),
    "until": (UNTIL, False),
    "target": (KEYWORDS["target"], False),
    "job": ({"async": 60, "poll": 1}, False),
    "list": ({}, True),
    "list checked": ({"check_mode": True}, True),
    "list until": (UNTIL, True),
    "list on a target": (KEYWORDS["target"], True),
}
ON_TARGET = ("target", "job", "list on a target")  # each starts a Python
NAMES = [
    f"{form}, {given}"
    for form in FORMS
    for given in (["no option"] if form in ON_TARGET else GIVEN)
]
IN_ROLE = "infrastructure.services.fleet : Create the virtual machines"


def task(name: str) -> dict:
    form, given = name.split(", ")
    keywords, is_list = FORMS[form]
    machines = {"virtual_machines": [{"name": "x"}]} if is_list else {"name": "x"}
    module = f"{MODULE}s" if is_list else MODULE
    return {"name": name, **keywords, module: {**machines, "ledger": GIVEN[given]}}


@pytest.fixture(scope="module")
def ran(played):
    """Run all tasks, and the role; return what was played."""
    role = {
        "name": "infrastructure.services.fleet",
        "vars": {"fleet_virtual_machines": [{"name": "x"}], "fleet_ledger": ""},
    }
    role["ansible.builtin.include_role"] = {"name": role["name"]}
    empty = {"INFRASTRUCTURE_SERVICES_LEDGER": ""}
    return played([*map(task, NAMES), role], lambda _sent: Last(), environment=empty)


@pytest.mark.parametrize("name", [*NAMES, IN_ROLE])
def test_a_creation_without_a_ledger_is_refused(ran, name):
    result = ran.run.result(name)
    seen = (result["failed"], result["outcome"], result["changed"])
    assert seen == (True, "not_sent", False), result
    option = "fleet_ledger" if name == IN_ROLE else "ledger"
    told = (
        f"{option}: is missing: set it, or the environment variable INFRASTRUCTURE_SERVICES_LEDGER"
    )
    assert result["msg"].startswith(told)
    assert "The word none says that there is no ledger, so that each run creates" in result["msg"]
    assert ran.service.sent == []
