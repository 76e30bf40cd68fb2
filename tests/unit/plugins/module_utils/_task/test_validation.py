"""The validator: what it takes as ansible-core does, and what it says of everything else."""

from __future__ import annotations

import json

import pytest
from ansible_collections.infrastructure.services.plugins.module_utils._errors import InvalidInput
from ansible_collections.infrastructure.services.plugins.module_utils._task.specs import (
    LEDGER_ENTRY,
    LEDGER_INFO,
    VIRTUAL_MACHINE,
)
from support import validate

LEAST = {"base_url": "https://s", "name": "web01", "ledger": "none"}


@pytest.mark.parametrize(
    ("option", "given", "taken"),
    [
        ("validate_certs", "yes", True),
        ("validate_certs", "0", False),
        ("timeout", "2.50", 2.5),
        ("retries", 3.0, 3),
        ("scopes", " a , b c,\n d", ["a", "b c", "d"]),
        ("scopes", "a,,b,", ["a", "b"]),
        ("scopes", " , ", []),
        ("scopes", [" a", ""], [" a", ""]),
        ("attributes", {"puppet_classes": "base, nginx"}, {"puppet_classes": ["base", "nginx"]}),
        ("headers", '{"A": "b"}', {"A": "b"}),
        ("headers", "A=b C='d e'", {"A": "b", "C": "d e"}),
        ("ca_path", "$SOMEWHERE/ca", "/there/ca"),
        ("ca_path", "~/ca", "/mine/ca"),
        ("attributes", "cpu=4 team=web", {"cpu": 4, "team": "web"}),
        ("attributes", None, {}),
        ("on_difference", None, "fail"),
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
            {"attributes": {"subnet": "10.0.0.0/24"}},
            "attributes.subnet: must be a dict, not a string",
        ),
        (
            VIRTUAL_MACHINE,
            {"cpu": 4, "vm_ram": 8, "team": "web"},
            "cpu: belongs under attributes; indent it; vm_ram: belongs",
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
            {"attributes": "{1, 2}"},
            "attributes: must be a dict, not a string",
        ),
        (
            VIRTUAL_MACHINE,
            {"client_id": ["x"]},
            "client_id: must be a string (write ",
        ),
        (VIRTUAL_MACHINE, {"name": None}, "name: is missing: set it"),
        (
            VIRTUAL_MACHINE,
            {"validate_certs": "perhaps"},
            'validate_certs: must be true or false, not "perhaps"',
        ),
        (
            VIRTUAL_MACHINE,
            {"retries": 1.5},
            "retries: must be a whole number from 0 to 100, not 1.5",
        ),
        (
            VIRTUAL_MACHINE,
            {"on_difference": "x"},
            'on_difference: must be one of warn, fail, not "x"',
        ),
        (
            VIRTUAL_MACHINE,
            {"ca_path": "a\0b"},
            'ca_path: must be a path that can exist, not "a\\u0000b"',
        ),
        (
            LEDGER_INFO,
            {"states": "done,lost", "ledger": "l"},
            "states[1]: must be one of intent, done, ",
        ),
        (
            LEDGER_ENTRY,
            {"ledger": "l", "entries": [], "file": "f.csv"},
            "parameters are mutually exclusive: entries|file",
        ),
        (
            LEDGER_ENTRY,
            {"ledger": "l"},
            "one of the following is required: resource, entries, file",
        ),
    ],
)
def test_what_is_wrong_starts_with_the_full_name_of_the_option(spec, options, told):
    given = {name: value for name, value in LEAST.items() if name in spec.options}
    assert validate(spec, {**given, **options}).problem.startswith(told)


def test_all_that_is_wrong_is_told_at_once():
    assert validate(
        VIRTUAL_MACHINE,
        {"nmae": "x", "attributes": {"cpu": "x"}, "retries": [], "ledger": "none"},
    ).problem.split("; ") == [
        "nmae: there is no such option (did you mean name?)",
        "base_url: is missing: set it, or the environment variable INFRASTRUCTURE_SERVICES_BASE_URL",
        "retries: must be a whole number from 0 to 100, not a list",
        "name: is missing: set it",
        'attributes.cpu: must be a number, not "x"',
    ]


def test_a_value_from_the_environment_is_refused_by_the_name_of_its_variable(monkeypatch):
    monkeypatch.setenv("INFRASTRUCTURE_SERVICES_TIMEOUT", "soon")
    monkeypatch.setenv("INFRASTRUCTURE_SERVICES_RETRIES", "x")
    assert validate(VIRTUAL_MACHINE, {**LEAST, "retries": "y"}).problem.split("; ") == [
        'INFRASTRUCTURE_SERVICES_TIMEOUT: must be a number from 0.001 to 86400, not "soon"',
        'retries: must be a whole number from 0 to 100, not "y"',
    ]


def test_all_that_is_wrong_ends_once_with_what_is_known_of_the_effect():
    with pytest.raises(InvalidInput) as refused:
        validate(VIRTUAL_MACHINE, {**LEAST, "nmae": 1, "cpu": 4, "timeout": "x"}).valid()
    assert str(refused.value.message).endswith(
        '; timeout: must be a number from 0.001 to 86400, not "x". Nothing was sent.'
    )
    assert str(refused.value.message).count("Nothing was sent.") == 1


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


@pytest.mark.parametrize(
    ("spec", "effect"),
    [(VIRTUAL_MACHINE, "Nothing was sent."), (LEDGER_ENTRY, "No entry was changed.")],
    ids=["sends", "edits"],
)
@pytest.mark.parametrize("error", [("ledger", "was moved"), ("ledger: was moved",)], ids=len)
def test_a_failure_ends_with_the_effect_that_its_module_could_have_had(spec, effect, error):
    failed = validate(spec, {}).failed(InvalidInput(*error))
    assert str(failed.msg) == f"ledger: was moved. {effect}"
