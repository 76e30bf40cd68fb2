"""The shared options: what is refused before anything is sent, and what the others become."""

from __future__ import annotations

import math

import pytest
from ansible_collections.infrastructure.services.plugins.module_utils._errors import (
    InvalidInput,
    ServicesError,
)
from ansible_collections.infrastructure.services.plugins.module_utils._task.api_request import (
    API_REQUEST,
)
from ansible_collections.infrastructure.services.plugins.module_utils._task.options import (
    ARGUMENT_SPEC,
    ENVIRONMENT_PREFIX,
    settings_from,
    variables_of,
)
from ansible_collections.infrastructure.services.plugins.module_utils._task.specs import (
    APPLICATION_ROLE,
    APPLICATION_ROLES,
    LEDGER_ENTRY,
    VIRTUAL_MACHINE,
    VIRTUAL_MACHINES,
)
from ansible_collections.infrastructure.services.plugins.module_utils._task.validation import (
    validated as validation,
)
from support import validate

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
    ("options", "named"),
    [
        ({"access_token": None}, "access_token"),
        ({"access_token": "Bearer abc"}, "access_token"),
        ({**CLIENT, "client_id": None}, "auth_url"),
        ({**CLIENT, "client_secret": None}, "auth_url"),
        ({**CLIENT, "auth_url": "http://id.example/token"}, "auth_url"),
        ({**CLIENT, "auth_url": "https://id.example/token#part"}, "auth_url"),
        ({**CLIENT, "client_secret": "a\nb"}, "client_secret"),
        ({**CLIENT, "auth_parameters": {"a": ["b"]}}, "auth_parameters"),
        ({"timeout": 0}, "timeout"),
        ({"timeout": math.nan}, "timeout"),
        ({"timeout": 86401}, "timeout"),
        ({"connect_timeout": math.inf}, "connect_timeout"),
        ({"retry_max_delay": math.inf}, "retry_max_delay"),
        ({"connect_timeout": 0}, "connect_timeout"),
        ({"retries": -1}, "retries"),
        ({"retries": 101}, "retries"),
        ({"retry_max_delay": -0.1}, "retry_max_delay"),
    ],
)
def test_an_invalid_option_is_refused_by_name(options, named):
    with pytest.raises(ServicesError, match=rf"^{named}: "):
        settings(**options)


def test_an_access_token_wins_over_an_auth_url():
    made = settings(**{**CLIENT, "access_token": "t"})
    assert (made.access_token, made.credentials) == ("t", None)


FROM_ENVIRONMENT = {name: variables_of(name) for name in ARGUMENT_SPEC if variables_of(name)}


def test_an_empty_variable_counts_as_unset(monkeypatch):
    without = validated(dict(LEAST))
    for variables in FROM_ENVIRONMENT.values():
        for variable in variables:
            monkeypatch.setenv(variable, "")
    assert validated(dict(LEAST)) == without
    monkeypatch.setenv("CURL_CA_BUNDLE", "/ca.pem")
    assert validated(dict(LEAST))["ca_path"] == "/ca.pem"


@pytest.mark.parametrize(
    "option",
    [
        name
        for name, option in ARGUMENT_SPEC.items()
        if name in FROM_ENVIRONMENT or option.get("default") is not None
    ],
)
def test_null_and_an_empty_text_mean_not_given(monkeypatch, option):
    """As a template gives them that found nothing; the variable of the environment counts then."""
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
    assert validated({**given, option: None}) == validated({**given, option: ""}) == expected
    assert expected[option] is not None


@pytest.mark.parametrize("option", ["ca_path", "client_cert", "client_key"])
@pytest.mark.parametrize("path", ["a\0b", "\ud800"], ids=ascii)
def test_a_path_that_cannot_be_is_refused_by_name(option, path):
    (problem,) = wrong({**LEAST, option: path})
    assert problem.startswith(f"{option}: must be a path that can exist, not ")
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


def test_a_number_out_of_range_is_refused_with_its_limits():
    with pytest.raises(ServicesError, match=r"^timeout: must be a number from 0.001 to 86400, not"):
        settings(timeout=86400.1)
    assert settings(timeout=86400).timeout == 86400
    with pytest.raises(InvalidInput, match=r"^timeout: must be at most 900 with a ledger$"):
        settings(timeout=901, ledger="/l")
    assert settings(timeout=901, ledger="none").timeout == 901


@pytest.mark.parametrize(
    "spec", [VIRTUAL_MACHINE, VIRTUAL_MACHINES, LEDGER_ENTRY], ids=lambda spec: spec.name
)
@pytest.mark.parametrize("given", [{}, {"base_url": "", "ledger": ""}], ids=len)
def test_missing_options_name_their_environment_variables_and_that_there_may_be_no_ledger(
    spec, given
):
    told = validate(spec, given).problem
    for option in ("base_url", "ledger") if spec.operation else ("ledger",):
        variable = f"INFRASTRUCTURE_SERVICES_{option.upper()}"
        assert f"{option}: is missing: set it, or the environment variable {variable}" in told
    assert "The word none says that there is no ledger, so that each run creates another" in told


@pytest.mark.parametrize(
    "spec", [APPLICATION_ROLE, APPLICATION_ROLES, API_REQUEST], ids=lambda spec: spec.name
)
def test_what_creates_nothing_needs_no_ledger(spec):
    assert "ledger" not in validate(spec, {}).problem


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
        {"auth_url": "ftp://tokens"},
        {"scopes": ["a\nb"], "auth_url": "https://tokens"},
        {"base_url": "ftp://service"},
    ],
    ids=str,
)
def test_in_check_mode_what_is_given_is_checked(options):
    with pytest.raises(InvalidInput, match=f"^{next(iter(options))}: "):
        settings_from(validated({**LEAST, "access_token": None, **options}), check_mode=True)
