# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The shared options: what is refused before anything is sent, and what the others become."""

from __future__ import annotations

import math

import pytest
from ansible_collections.infrastructure.services.plugins.module_utils._errors import (
    InvalidInput,
    ServicesError,
)
from ansible_collections.infrastructure.services.plugins.module_utils._task.options import (
    ARGUMENT_SPEC,
    ENVIRONMENT_PREFIX,
    settings_from,
)
from ansible_collections.infrastructure.services.plugins.module_utils._task.specs import (
    LEDGER_ENTRY,
    LEDGER_INFO,
)
from ansible_collections.infrastructure.services.plugins.module_utils._task.validation import (
    validate,
)
from ansible_collections.infrastructure.services.plugins.module_utils._task.validation import (
    validated as validation,
)
from hypothesis import given
from hypothesis import settings as settings_of_hypothesis
from hypothesis import strategies as st

LEAST = {"base_url": "https://service.example", "access_token": "t"}
CLIENT = {
    "access_token": None,
    "auth_url": "https://id.example/token",
    "client_id": "c",
    "client_secret": "s",
}


def settings(**options):
    """Return the settings that these options make."""
    return settings_from(validated({**LEAST, **options}))


def wrong(options):
    """Return what is wrong with options."""
    return validation(ARGUMENT_SPEC, {}, options)[1]


def validated(options):
    """Return the options as they are validated; raise ServicesError."""
    params, problems = validation(ARGUMENT_SPEC, {}, options)
    if problems:
        raise ServicesError("; ".join(problems))
    return params


@pytest.mark.parametrize(
    ("url", "base"),
    [
        ("https://service.example", "https://service.example"),
        ("https://service.example/", "https://service.example"),
        ("https://service.example:8443/a/b/", "https://service.example:8443/a/b"),
    ],
)
def test_a_base_url_is_kept_except_for_a_trailing_slash(url, base):
    assert settings(base_url=url).base_url == base


@pytest.mark.parametrize("option", ["base_url", "auth_url"])
@pytest.mark.parametrize(
    "url", ["service.example", "http://service.example", "https://user:secret@service.example"]
)
def test_an_invalid_url_is_refused_naming_the_option(option, url):
    with pytest.raises(InvalidInput, match=rf"^{option}: "):
        settings(**{**CLIENT, option: url})


def test_a_token_endpoint_may_have_a_query():
    assert settings(
        **{**CLIENT, "auth_url": "https://id.example/t?tenant=a"}
    ).credentials.auth_url.endswith("?tenant=a")


def test_allow_http_allows_http_and_nothing_else():
    assert (
        settings(base_url="http://service.example", allow_http=True).base_url
        == "http://service.example"
    )
    with pytest.raises(InvalidInput, match="base_url"):
        settings(base_url="ftp://service.example", allow_http=True)


@pytest.mark.parametrize("token", ["", " ", "a b", "a\n", "a\r\nX: y", "\x00", "é", "a\u2028b"])
def test_a_token_that_no_header_can_carry_is_refused(token):
    with pytest.raises(InvalidInput, match=r"^access_token: ") as refused:
        settings(access_token=token)
    assert refused.value.outcome == "not_sent"


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"access_token": None}, "access_token"),
        ({**CLIENT, "client_id": None}, "auth_url"),
        ({**CLIENT, "client_secret": None}, "auth_url"),
        ({**CLIENT, "client_secret": "a\nb"}, "client_secret"),
        ({**CLIENT, "client_id": "a\x7f"}, "client_id"),
        ({**CLIENT, "scopes": ["a\nb"]}, "scopes"),
        ({**CLIENT, "auth_parameters": {"a": ["b"]}}, "auth_parameters"),
        ({"http_agent": "a\r\nX: y"}, "http_agent"),
        ({"timeout": 0}, "timeout"),
        ({"timeout": -1}, "timeout"),
        ({"timeout": math.nan}, "timeout"),
        ({"timeout": math.inf}, "timeout"),
        ({"timeout": 86401}, "timeout"),
        ({"timeout": 1e10}, "timeout"),
        ({"connect_timeout": 0}, "connect_timeout"),
        ({"connect_timeout": math.inf}, "connect_timeout"),
        ({"connect_timeout": math.nan}, "connect_timeout"),
        ({"retries": -1}, "retries"),
        ({"retry_max_delay": -0.1}, "retry_max_delay"),
        ({"retry_max_delay": math.inf}, "retry_max_delay"),
    ],
)
def test_an_invalid_option_is_refused_by_name(options, named):
    with pytest.raises(ServicesError, match=rf"^{named}: "):
        settings(**options)


def test_an_access_token_wins_over_an_auth_url():
    made = settings(**{**CLIENT, "access_token": "t"})
    assert (made.access_token, made.credentials) == ("t", None)


def test_another_grant_needs_no_client():
    grant = {"grant_type": "password", "n": 1}
    made = settings(access_token=None, auth_url="https://id.example", auth_parameters=grant)
    assert made.credentials.parameters == (("grant_type", "password"), ("n", "1"))


def test_settings_from_equal_options_are_equal():
    assert (
        len(
            {
                settings(**CLIENT),
                settings(**CLIENT),
                settings(**{**CLIENT, "client_secret": "other"}),
            }
        )
        == 2
    )


def test_the_environment_provides_missing_options(monkeypatch):
    for name, value in {
        "BASE_URL": "https://env.example",
        "ACCESS_TOKEN": "e",
        "TIMEOUT": "7",
        "RETRIES": "0",
    }.items():
        monkeypatch.setenv(ENVIRONMENT_PREFIX + name, value)
    made = settings_from(validated({"access_token": "t"}))
    assert (made.base_url, made.access_token, made.timeout, made.retries) == (
        "https://env.example",
        "t",
        7.0,
        0,
    )


FROM_ENVIRONMENT = {
    name: option["fallback"][1] for name, option in ARGUMENT_SPEC.items() if "fallback" in option
}


def test_an_empty_variable_counts_as_unset(monkeypatch):
    without = validated(dict(LEAST))
    for variables in FROM_ENVIRONMENT.values():
        for variable in variables:
            monkeypatch.setenv(variable, "")
    assert validated(dict(LEAST)) == without
    monkeypatch.setenv("CURL_CA_BUNDLE", "/ca.pem")
    assert validated(dict(LEAST))["ca_path"] == "/ca.pem"


def test_an_empty_ledger_means_none_whatever_the_environment_says(monkeypatch):
    monkeypatch.setenv(ENVIRONMENT_PREFIX + "LEDGER", "/ledger.db")
    assert validated(dict(LEAST))["ledger"] == "/ledger.db"
    assert validated({**LEAST, "ledger": ""})["ledger"] == ""


@pytest.mark.parametrize(
    "option",
    [
        name
        for name, option in ARGUMENT_SPEC.items()
        if "fallback" in option or option.get("default") is not None
    ],
)
def test_null_means_not_given(monkeypatch, option):
    given = {name: value for name, value in LEAST.items() if name != option}
    for variables in FROM_ENVIRONMENT.values():
        monkeypatch.delenv(variables[0], raising=False)
    monkeypatch.setenv(ENVIRONMENT_PREFIX + "BASE_URL", "https://env.example")
    if option in FROM_ENVIRONMENT:
        values = {"bool": "true", "int": "7", "float": "7"}
        value = (
            "post"
            if option == "client_authentication"
            else values.get(str(ARGUMENT_SPEC[option]["type"]), "/env")
        )
        monkeypatch.setenv(FROM_ENVIRONMENT[option][0], value)
    expected = validated(given)
    assert validated({**given, option: None}) == expected
    assert expected[option] is not None


@pytest.mark.parametrize("spec", [LEDGER_ENTRY, LEDGER_INFO], ids=lambda spec: spec.name)
def test_a_ledger_that_is_null_is_the_one_of_the_environment_for_every_module(monkeypatch, spec):
    others = {**LEAST, "resource": "compute_virtual_machine", "name": "x", "asset": {}}
    given = {name: value for name, value in others.items() if name in spec.options}
    monkeypatch.setenv(ENVIRONMENT_PREFIX + "LEDGER", "/ledger.db")
    assert validate(spec, {**given, "ledger": None}).valid()["ledger"] == "/ledger.db"


WRONG = {
    "str": [True, [1], {"a": 1}, [], {}],
    "path": [True, [1], {"a": 1}, [], {}],
    "bool": [[1], {"a": 1}, "maybe", 2],
    "int": [True, [1], {"a": 1}, "x", 1.5],
    "float": [True, [1], {"a": 1}, "x"],
    "list": [True, {"a": 1}, [[1]], [True]],
    "dict": [True, [1], 1, "x", [{"a": 1}], []],
}


@pytest.mark.parametrize(
    ("option", "value"),
    [
        (name, value)
        for name, option in ARGUMENT_SPEC.items()
        for value in WRONG[str(option["type"])]
    ],
    ids=str,
)
def test_an_option_of_the_wrong_type_is_refused_by_name(option, value):
    (problem,) = wrong({**LEAST, option: value})
    assert problem.startswith((f"{option}: must be ", f"{option}[0]: must be ")) or (
        problem.startswith(f"{option}: ") and problem.endswith(" is not a number of seconds")
    )


@pytest.mark.parametrize("option", ["ca_path", "client_cert", "client_key"])
@pytest.mark.parametrize("path", ["a\0b", "\ud800"], ids=ascii)
def test_a_path_that_cannot_be_is_refused_by_name(option, path):
    (problem,) = wrong({**LEAST, option: path})
    assert problem.startswith(f"{option}: must be without characters that no path can have, not ")
    assert problem.isprintable()
    assert wrong({**LEAST, option: "a\udcffb"}) == []  # a byte that is not UTF-8


@pytest.mark.parametrize(
    ("url", "right"),
    [
        ("https://service.example/api/v1", "https://service.example"),
        ("https://service.example/api/v1/", "https://service.example"),
        ("https://service.example/a//API/V1//", "https://service.example/a"),
    ],
)
def test_a_base_url_with_the_api_prefix_is_refused_and_corrected(url, right):
    with pytest.raises(InvalidInput) as refused:
        settings(base_url=url)
    assert (
        refused.value.msg
        == f"base_url: must not end in /api/v1, which every path starts with; give {right}"
    )
    assert settings(base_url=right).base_url == right
    assert settings(base_url="https://service.example/my-api/v10").base_url.endswith("/my-api/v10")


def test_a_timeout_that_is_too_long_names_the_maximum():
    with pytest.raises(InvalidInput, match=r"^timeout: must be greater than 0 and at most 86400$"):
        settings(timeout=86400.1)
    assert settings(timeout=86400).timeout == 86400


def test_a_number_that_has_no_maximum_names_none():
    with pytest.raises(InvalidInput, match=r"^retries: must be at least 0$"):
        settings(retries=-1)


def test_a_wait_is_at_most_a_day():
    assert settings(retry_max_delay=1e300).retry_max_delay == 86400


def test_missing_options_name_their_environment_variables():
    told = validate(LEDGER_ENTRY, {}).problem.split("; ")
    for option in ("base_url", "ledger"):
        variable = f"INFRASTRUCTURE_SERVICES_{option.upper()}"
        assert f"{option}: is missing: set it, or the environment variable {variable}" in told
    assert "resource: is missing: set it" in told


SCALARS = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text()
    | st.sampled_from([10**400, "9" * 5000])
)
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=5
)


def problems(option: str, value: object) -> list[str]:
    """Return the problems reported for a refused option."""
    params, found = validation(
        ARGUMENT_SPEC, {}, {**LEAST, "auth_url": "https://id.example", option: value}
    )
    if found:
        return found
    try:
        settings_from(params)
    except InvalidInput as refused:
        return [refused.msg]
    return []


@given(st.sampled_from(sorted(ARGUMENT_SPEC)), VALUES)
@settings_of_hypothesis(max_examples=5 * settings_of_hypothesis.default.max_examples)
def test_any_value_of_an_option_is_used_or_refused_by_name(option, value):
    for problem in problems(option, value):
        assert option in problem or problem.startswith("auth_url: ")


@pytest.mark.parametrize("option", ["timeout", "connect_timeout", "retry_max_delay", "retries"])
@pytest.mark.parametrize(
    "value", [math.inf, -math.inf, math.nan, "inf", "nan", "-1", -1e308], ids=repr
)
def test_negative_and_non_finite_numbers_are_refused_by_name(option, value):
    (problem,) = problems(option, value)
    assert option in problem


def test_a_number_beyond_a_float_is_refused_for_seconds():
    assert "timeout" in problems("timeout", 10**400)[0]
    assert "retries" in problems("retries", 10**400)[0]


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"client_id": "c"},
        {"auth_url": "https://id.example"},
        {"auth_url": "https://id.example", "client_id": "c"},
    ],
    ids=str,
)
def test_in_check_mode_what_gives_a_token_may_be_missing(options):
    params = validated({**LEAST, "access_token": None, **options})
    assert settings_from(params, check_mode=True).base_url == LEAST["base_url"]
    with pytest.raises(InvalidInput, match=r"^(access_token|auth_url): "):
        settings_from(params)


@pytest.mark.parametrize(
    "options",
    [
        {"access_token": "a b"},
        {"access_token": ""},
        {"auth_url": "ftp://tokens"},
        {"client_secret": "a\nb"},
        {"scopes": ["\u2603"]},
        {"auth_parameters": {"a": []}},
        {"base_url": "ftp://service"},
    ],
    ids=str,
)
def test_in_check_mode_what_is_given_is_checked(options):
    with pytest.raises(InvalidInput, match=f"^{next(iter(options))}: "):
        settings_from(validated({**LEAST, "access_token": None, **options}), check_mode=True)
