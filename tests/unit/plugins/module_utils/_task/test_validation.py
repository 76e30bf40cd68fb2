# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The validator: what it takes as ansible-core does, and what it says of everything else."""

from __future__ import annotations

import json
from copy import copy

import pytest
from ansible.module_utils.common.arg_spec import ArgumentSpecValidator
from ansible_collections.infrastructure.services.plugins.module_utils._errors import InvalidInput
from ansible_collections.infrastructure.services.plugins.module_utils._fields import prune
from ansible_collections.infrastructure.services.plugins.module_utils._secrets import HIDDEN
from ansible_collections.infrastructure.services.plugins.module_utils._task.specs import (
    APPLICATION_ROLE,
    APPLICATION_ROLES,
    EXAMPLES,
    LEDGER_ENTRIES,
    LEDGER_ENTRY,
    LEDGER_INFO,
    VIRTUAL_MACHINE,
    VIRTUAL_MACHINES,
)
from ansible_collections.infrastructure.services.plugins.module_utils._task.validation import (
    validate,
    validated,
)
from hypothesis import given
from hypothesis import strategies as st

LEAST = {"base_url": "https://s", "name": "web01"}
SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-3, 2**50),
    st.floats(allow_nan=True),
    st.sampled_from(
        [
            "",
            "4",
            "4.0",
            "yes",
            "web01",
            "2026-01-02",
            "2026-01-02T03:04:05+01:00",
            "a,b",
            "{}",
            "given",
            "a=1",
            "{1, 2}",
            "{'a': 1}",
            '{"cpu": 1}',
            "cpu=4 team='x y'",
        ]
    ),
)
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=2), inner)
)


def fitting(option: dict) -> st.SearchStrategy:
    """Values for an option, usually of its type."""
    if "options" in option:
        one = dicts(option["options"])
        return one if option["type"] == "dict" else st.lists(one, max_size=2)
    return st.one_of(SCALARS, VALUES)


def dicts(options: dict) -> st.SearchStrategy:
    keys = st.lists(st.sampled_from([*options, "surplus"]), max_size=4, unique=True)
    return keys.flatmap(
        lambda names: st.fixed_dictionaries(
            {name: fitting(options.get(name, {"type": "str"})) for name in names}
        )
    )


def by_ansible(spec, item: dict) -> dict | None:
    """The options as validated by ansible-core, which modifies defaults; None when it refuses them."""
    options = {
        name: {**option, "default": copy(option.get("default"))}
        for name, option in spec.item_options.items()
    }
    result = ArgumentSpecValidator(options, **spec.constraints).validate(prune(item))
    return None if result.error_messages else result.validated_parameters


@pytest.mark.parametrize("spec", [VIRTUAL_MACHINES, APPLICATION_ROLES], ids=lambda spec: spec.name)
@given(st.data())
def test_what_is_taken_becomes_what_ansible_core_makes_of_it(spec, data):
    """The rules are stricter: a boolean is no number, for example. What they refuse is told below."""
    item = {spec.key: "x", **data.draw(dicts(spec.item_options))}
    params, problems = validated(spec.item_options, spec.constraints, item)
    if not problems:
        expected = by_ansible(spec, item)
        assert expected is not None
        names = set(params) - {"body", "current", "extra_attributes"}  # nulls in them are values
        assert set(params) == set(expected)
        for name in names:
            assert as_sent(params[name]) == as_sent(prune(expected[name]))


def as_sent(value: object) -> object:
    """A value in which a number has one form: ours are sent in the shortest, unlike those of
    ansible-core.

    A list has no empty text, which ansible-core makes of a text without a part.
    """
    if isinstance(value, dict):
        return {key: as_sent(item) for key, item in value.items()}
    if isinstance(value, list):
        return [as_sent(item) for item in value if item != ""]
    return (
        float(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else value
    )


@pytest.mark.parametrize(
    ("option", "given", "taken"),
    [
        ("validate_certs", "yes", True),
        ("validate_certs", "Off", False),
        ("validate_certs", 1, True),
        ("validate_certs", "0", False),
        ("timeout", "2.50", 2.5),
        ("timeout", 3, 3),
        ("retries", "3", 3),
        ("retries", 3.0, 3),
        ("scopes", "a,b", ["a", "b"]),
        ("scopes", " a , b c,\n d", ["a", "b c", "d"]),
        ("scopes", "a,,b,", ["a", "b"]),
        ("scopes", "", []),
        ("scopes", " , ", []),
        ("scopes", [" a", ""], [" a", ""]),
        ("attributes", {"puppet_classes": "base, nginx"}, {"puppet_classes": ["base", "nginx"]}),
        ("scopes", 5, ["5"]),
        ("scopes", ["a", 5], ["a", "5"]),
        ("headers", '{"A": "b"}', {"A": "b"}),
        ("headers", "A=b C='d e'", {"A": "b", "C": "d e"}),
        ("client_id", 12, "12"),
        ("ca_path", "$SOMEWHERE/ca", "/there/ca"),
        ("ca_path", "~/ca", "/mine/ca"),
        ("attributes", "cpu=4 team=web", {"cpu": 4, "team": "web"}),
        ("attributes", None, {}),
        (
            "attributes",
            {"subnet": {"dns": None}, "volumes": [{"name": None}]},
            {"subnet": {}, "volumes": [{}]},
        ),
        ("attributes", {"vm_ram": 1, "team": None, "cpu": 4}, {"vm_ram": 1, "cpu": 4}),
        ("on_difference", None, "warn"),
    ],
)
def test_values_are_converted_as_by_ansible_core(monkeypatch, option, given, taken):
    monkeypatch.setenv("SOMEWHERE", "/there")
    monkeypatch.setenv("HOME", "/mine")
    found = validate(VIRTUAL_MACHINE, {**LEAST, option: given}).valid()[option]
    assert json.dumps(found) == json.dumps(taken)


def test_a_list_in_the_environment_is_split_in_the_same_way(monkeypatch):
    monkeypatch.setenv("INFRASTRUCTURE_SERVICES_SCOPES", "read, write")
    assert validate(VIRTUAL_MACHINE, LEAST).valid()["scopes"] == ["read", "write"]


@pytest.mark.parametrize(
    ("spec", "options", "told"),
    [
        (
            VIRTUAL_MACHINE,
            {"attributes": {"volumes": [{"size_gb": "big"}]}},
            'attributes.volumes[0].size_gb: must be a number, not "big"',
        ),
        (
            VIRTUAL_MACHINE,
            {"attributes": {"volumes": ["a"]}},
            'attributes.volumes[0]: must be a dict such as {name: data, size_gb: 200}, not "a"',
        ),
        (
            VIRTUAL_MACHINE,
            {"attributes": {"volumes": [None]}},
            "attributes.volumes[0]: must be a dict such as {name: data, size_gb: 200}, not null",
        ),
        (
            VIRTUAL_MACHINE,
            {"attributes": {"volumes": {"a": 1}}},
            "attributes.volumes: must be a list such as [{name: data, size_gb: 200}], not a dict",
        ),
        (
            VIRTUAL_MACHINE,
            {"attributes": {"volumes": "data"}},
            'attributes.volumes: must be a list such as [{name: data, size_gb: 200}], not "data"',
        ),
        (
            VIRTUAL_MACHINE,
            {"attributes": {"subnet": "10.0.0.0/24"}},
            'attributes.subnet: must be a dict such as {network: 10.0.0.0, mask: 255.255.255.0}, not "10.0.0.0/24"',
        ),
        (
            VIRTUAL_MACHINE,
            {"attributes": "cpu 4"},
            'attributes: must be a dict such as {cpu: 4, vm_ram: 16}, not "cpu 4"',
        ),
        (
            APPLICATION_ROLE,
            {"id": "x", "attributes": ["login"]},
            "attributes: must be a dict, not a list",
        ),
        (VIRTUAL_MACHINE, {"headers": 5}, "headers: must be a dict, not 5"),
        (VIRTUAL_MACHINE, {"cpu": 4}, "cpu belongs under attributes; indent it"),
        (
            VIRTUAL_MACHINE,
            {"cpu": 4, "vm_ram": 8, "team": "web"},
            "cpu and vm_ram and team belong under attributes; indent them",
        ),
        (APPLICATION_ROLE, {"id": "x", "login": True}, "login belongs under attributes; indent it"),
        (
            VIRTUAL_MACHINE,
            {"state": "absent"},
            "state: the service cannot delete. To forget a machine, use infra",
        ),
        (
            VIRTUAL_MACHINES,
            {"virtual_machines": [], "state": "present"},
            "state: the service cannot delete. ",
        ),
        (VIRTUAL_MACHINE, {"wait": True}, "wait: a request ends when the service has answered"),
        (VIRTUAL_MACHINE, {"count": 3}, "count: one task is one machine; "),
        (
            VIRTUAL_MACHINE,
            {"attributes": {"count": 3}},
            "attributes.count: there is no such option (",
        ),
        (
            LEDGER_INFO,
            {"state": "done", "ledger": "l"},
            "state: there is no such option (did you mean states?)",
        ),
        (
            VIRTUAL_MACHINE,
            {"attributes": {"cpu": True}},
            "attributes.cpu: must be a number, not true",
        ),
        (
            VIRTUAL_MACHINE,
            {"attributes": {"cpu": float("nan")}},
            "attributes.cpu: must be a finite number, not NaN",
        ),
        (
            VIRTUAL_MACHINE,
            {"attributes": "{1, 2}"},
            'attributes: must be a dict such as {cpu: 4, vm_ram: 16}, not "{1, 2}"',
        ),
        (
            VIRTUAL_MACHINE,
            {"client_id": ["x"]},
            "client_id: must be a string (a word such as yes, no, true or false needs quotes), not a list",
        ),
        (VIRTUAL_MACHINE, {"name": None}, "name: is missing: set it"),
        (APPLICATION_ROLE, {"id": None}, "id: is missing: set it"),
        (
            VIRTUAL_MACHINE,
            {"validate_certs": "perhaps"},
            'validate_certs: must be true or false, not "perhaps"',
        ),
        (VIRTUAL_MACHINE, {"retries": 1.5}, "retries: must be a whole number, not 1.5"),
        (
            VIRTUAL_MACHINE,
            {"on_difference": "x"},
            'on_difference: must be one of warn, fail, not "x"',
        ),
        (VIRTUAL_MACHINE, {"nmae": 1}, "nmae: there is no such option (did you mean name?)"),
        (
            VIRTUAL_MACHINE,
            {"ca_path": "a\0b"},
            'ca_path: must be without characters that no path can have, not "a\\u0000b"',
        ),
        (
            VIRTUAL_MACHINES,
            {"virtual_machines": [], "name": None},
            "name: there is no such option (",
        ),
        (
            LEDGER_INFO,
            {"states": "done,lost", "ledger": "l"},
            "states[1]: must be one of intent, done, ",
        ),
        (
            LEDGER_ENTRY,
            {"ledger": "l", "resource": "compute_virtual_machine", "asset": {}, "id": "x"},
            "id: cannot be given together with name",
        ),
        (
            LEDGER_ENTRY,
            {"ledger": "l", "resource": "compute_virtual_machine"},
            "asset: is needed with state: present",
        ),
    ],
)
def test_what_is_wrong_starts_with_the_full_name_of_the_option(spec, options, told):
    given = {name: value for name, value in LEAST.items() if name in spec.options}
    assert validate(spec, {**given, **options}).problem.startswith(told)


def test_all_that_is_wrong_is_told_at_once():
    assert validate(
        VIRTUAL_MACHINE, {"nmae": "x", "attributes": {"cpu": "x"}, "retries": []}
    ).problem.split("; ") == [
        "nmae: there is no such option (did you mean name?)",
        "base_url: is missing: set it, or the environment variable INFRASTRUCTURE_SERVICES_BASE_URL",
        "retries: must be a number, not a list",
        "name: is missing: set it",
        'attributes.cpu: must be a number, not "x"',
    ]


def test_a_value_from_the_environment_is_refused_by_the_name_of_its_variable(monkeypatch):
    monkeypatch.setenv("INFRASTRUCTURE_SERVICES_TIMEOUT", "soon")
    monkeypatch.setenv("INFRASTRUCTURE_SERVICES_RETRIES", "x")
    assert validate(VIRTUAL_MACHINE, {**LEAST, "retries": "y"}).problem.split("; ") == [
        'INFRASTRUCTURE_SERVICES_TIMEOUT: "soon" is not a number of seconds',
        'retries: must be a number, not "y"',
    ]


def test_all_that_is_wrong_ends_once_with_what_is_known_of_the_effect():
    with pytest.raises(InvalidInput) as refused:
        validate(VIRTUAL_MACHINE, {**LEAST, "nmae": 1, "cpu": 4, "timeout": "x"}).valid()
    assert str(refused.value.final_message).endswith(
        '; timeout: "x" is not a number of seconds. Nothing was sent.'
    )
    assert str(refused.value.final_message).count("Nothing was sent.") == 1


@pytest.mark.parametrize("example", EXAMPLES)
def test_each_example_is_valid_for_one_dict(example):
    options = VIRTUAL_MACHINE.options
    shapes = [
        option["options"]
        for option in (*options.values(), *options["attributes"]["options"].values())
        if "options" in option
    ]
    (shape,) = [each for each in shapes if example.keys() <= each.keys()]
    assert validated(shape, {}, example)[1] == []


SECRET = "s3cret-s3cret"


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("access_token", [SECRET]),
        ("access_token", {SECRET: SECRET}),
        ("client_secret", {"a": SECRET}),
        ("auth_parameters", SECRET),
        ("auth_parameters", [SECRET]),
        ("headers", [{"X-Api-Key": SECRET}]),
        ("headers", SECRET * 50),
        ("scopes", {"a": SECRET}),
        ("acces_token", SECRET),
    ],
)
def test_no_credential_is_quoted(option, value):
    options = validate(VIRTUAL_MACHINE, {**LEAST, option: value})
    assert options.problem.startswith(f"{option}: ")
    assert SECRET not in options.problem
    assert option in options.params or option not in json.dumps(options.invocation())


def test_the_invocation_hides_a_credential_that_is_too_short_to_be_masked():
    headers = {"X-Api-Key": "short", "X-Tenant": "shown"}
    shown = validate(VIRTUAL_MACHINE, {**LEAST, "headers": headers}).invocation()["module_args"][
        "headers"
    ]
    assert shown == {"X-Api-Key": HIDDEN, "X-Tenant": "shown"}


def test_a_name_that_says_that_the_value_is_a_credential_is_enough():
    spec = {"password": {"type": "float"}, "password_location": {"type": "float", "no_log": False}}
    given = dict.fromkeys(spec, SECRET)
    assert validated(spec, {}, given)[1] == [
        "password: must be a number, not a string",
        f'password_location: must be a number, not "{SECRET}"',
    ]


def test_a_default_is_never_shared():
    one, other = (validate(VIRTUAL_MACHINE, LEAST).params["attributes"] for _time in range(2))
    assert one == other == {}
    assert one is not other


@pytest.mark.parametrize(
    ("spec", "effect"),
    [(VIRTUAL_MACHINE, "Nothing was sent."), (LEDGER_ENTRIES, "No entry was changed.")],
    ids=["sends", "edits"],
)
@pytest.mark.parametrize("error", [("ledger", "was moved"), ("ledger: was moved",)], ids=len)
def test_a_failure_ends_with_the_effect_that_its_module_could_have_had(spec, effect, error):
    failed = validate(spec, {}).failed(InvalidInput(*error))
    assert str(failed.msg) == f"ledger: was moved. {effect}"
