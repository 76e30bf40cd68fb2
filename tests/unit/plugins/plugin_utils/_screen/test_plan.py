"""What a plan says: shared fields once, own ones first, updates as old and new, and nothing hidden
in silence.
"""

from __future__ import annotations

import pytest
from ansible_collections.infrastructure.services.plugins.module_utils._errors import Message
from ansible_collections.infrastructure.services.plugins.module_utils._list.result import ListResult
from ansible_collections.infrastructure.services.plugins.module_utils._task.specs import (
    APPLICATION_ROLES,
    VIRTUAL_MACHINES,
    ModuleSpec,
)
from ansible_collections.infrastructure.services.plugins.plugin_utils._screen.plan import (
    plan_lines,
    text,
)
from ansible_collections.infrastructure.services.plugins.plugin_utils._screen.rows import rows_of
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
    msg=Message("these fields are known and not sent: attributes.login.", "application role a"),
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
    results = {name: result_from(item) for name, item in items.items()}
    result = ListResult(spec, {}, results, not_listed=[*not_listed])
    operation = spec.operation
    return plan_lines(operation.resource, rows_of(operation, result.done()), width)


def test_a_plan_says_what_is_shared_once_and_all_own_fields_of_each():
    volumes = [{"name": "data", "size_gb": 250}]
    items = {f"vm{number}": KEEP for number in range(114)}
    items["lost"], items["drift"] = LOST, DRIFT
    own = {"volumes": volumes, "ip": "192.0.2.11", "subnet": {"mask": "m"}, "status": "s"}
    items["new1"] = new("new1", **COMMON, vm_ram=16, **own)
    items["new2"] = new("new2", **COMMON, vm_ram=32, ip="192.0.2.12")
    assert lines_of(items, 68, ["gone1", "gone2"]) == [
        "virtual machines: 2 to create, 1 differs, 1 in doubt, 114 unchanged",
        "  each:    team web, cpu 4, operating_system Debian 13",
        "  ? lost   in doubt since 2026-11-22 10:02: sent, no answer",
        "  ! drift  attributes.cpu 2 -> 8: the service cannot update it",
        '  + new1   vm_ram 16, volumes [{"name": "data", "size_gb": 250}],',
        '      ip 192.0.2.11, subnet {"mask": "m"}, status s',
        "  + new2   vm_ram 32, ip 192.0.2.12",
        "  . 2 recorded and not in this list: gone1, gone2. The run leaves",
        "      them alone. To remove one, delete it on the service, then",
        "      forget its entry.",
        f"  To settle it: {COMMAND}",
    ]


def test_an_update_says_what_changes_and_what_would_be_dropped():
    assert lines_of({"role-1": UPDATE}, 80, spec=APPLICATION_ROLES) == [
        "application roles: 1 to update",
        "  ~ role-1  description one -> two. These fields are known and not sent:",
        "      attributes.login.",
    ]


GRANTS = dict(
    UPDATE,
    changes=[
        {"name": "attributes.login", "old": False, "new": True},
        {
            "name": "attributes.effective_grants",
            "old": [{"permissions": ["SELECT", "MODIFY"], "resource": "keyspace orders"}],
            "new": [{"permissions": ["SELECT"], "resource": "keyspace shop"}] * 2,
        },
    ],
)


def test_each_change_of_an_update_is_told_on_as_many_lines_as_it_takes():
    assert lines_of({"orders": GRANTS}, spec=APPLICATION_ROLES) == [
        "application roles: 1 to update",
        "  ~ orders  attributes.login false -> true, attributes.effective_grants",
        '      [{"permissions": ["SELECT", "MODIFY"], "resource": "keyspace orders"}] ->',
        '      [{"permissions": ["SELECT"], "resource": "keyspace shop"}, {"permissions":',
        '      ["SELECT"], "resource": "keyspace shop"}]. These fields are known and not',
        "      sent: attributes.login.",
    ]


def test_what_is_not_known_is_not_called_none():
    changes = [{"name": "service", "new": "cassandra"}, {"name": "attributes.login", "new": True}]
    role = dict(UPDATE, changes=changes, msg=Message(""))
    assert lines_of({"orders": role}, spec=APPLICATION_ROLES)[1] == (
        "  ~ orders  service not known -> cassandra, attributes.login not known -> true"
    )


def test_updates_are_told_before_creations():
    items = {f"vm{number}": new(f"vm{number}", ip=f"192.0.2.{number}") for number in range(500)}
    items["vm7"] = dict(DRIFT)
    lines = lines_of({**items, "a": UPDATE, "b": UPDATE})
    assert [line[:6].strip() for line in lines[1:6]] == ["! vm", "~ a", "", "~ b", ""]
    assert len(lines) == 1 + 1 + 4 + 37 + 1


def test_what_is_adopted_has_its_id_and_all_its_fields():
    """Also those of which the new ones have another value in common."""
    body = {"name": "old", "attributes": {"cpu": 8}, "id": "vm-1"}
    old = dict(plan="adopt", changed=True, outcome="not_sent", body=body, asset={"id": "vm-1"})
    items = {"a": new("a", cpu=4), "b": new("b", cpu=4), "old": old}
    assert lines_of(items) == [
        "virtual machines: 2 to create, 1 to adopt",
        "  each:  cpu 4",
        "  > old  cpu 8, id vm-1",
        "  + a",
        "  + b",
    ]


def test_of_500_machines_forty_are_shown_within_80_columns():
    items = {
        f"web-prod-{number:03}": new(f"web-prod-{number:03}", **COMMON, ip=f"192.0.2.{number}")
        for number in range(498)
    }
    lines = lines_of({**items, "lost": LOST, "drift": DRIFT})
    assert len(lines) == 1 + 1 + 40 + 1 + 1
    assert lines[-2] == "  and 460 more"
    assert max(map(len, lines[:-1])) <= 80


@pytest.mark.parametrize(
    ("value", "told"),
    [
        ("Debian 13", "Debian 13"),
        (4, "4"),
        (True, "true"),
        (None, "null"),
        ("", '""'),
        ([{"name": "é", "size_gb": 250}], '[{"name": "é", "size_gb": 250}]'),
    ],
)
def test_a_value_is_json_but_for_a_string(value, told):
    assert text(value) == told


def test_a_long_name_is_whole_and_its_fields_follow():
    names = [f"stockholm-{'x' * 60}-{number:03}" for number in range(2)]
    items = {name: new(name, team="web", cpu=number) for number, name in enumerate(names)}
    assert lines_of(items, 40)[1:] == [
        "  each:  team web",
        f"  + {names[0]}",
        "      cpu 0",
        f"  + {names[1]}",
        "      cpu 1",
    ]


def test_a_long_value_ends_in_an_ellipsis():
    *lines, last = lines_of({"a": new("a", notes="word " * 1000)})
    assert (len(lines), last[-6:]) == (20, " [...]")
