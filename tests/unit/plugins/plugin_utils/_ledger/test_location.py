"""From the option `ledger` to a location, and the commands about what is in doubt there."""

from __future__ import annotations

import sys

import pytest
from ansible_collections.infrastructure.services.plugins.module_utils._errors import (
    InvalidInput,
    ServicesError,
)
from ansible_collections.infrastructure.services.plugins.plugin_utils._ledger.listing import (
    settle_commands,
)
from ansible_collections.infrastructure.services.plugins.plugin_utils._ledger.location import (
    checked_location,
    open_database,
)


@pytest.mark.parametrize(
    ("given", "location"),
    [
        ("/var/ledger.db", "/var/ledger.db"),
        ("~/ledger.db", "/houses/mine/ledger.db"),
        ("postgresql://host/db", "postgresql://host/db"),
    ],
)
def test_a_ledger_is_an_absolute_path_or_a_url(monkeypatch, given, location):
    monkeypatch.setenv("HOME", "/houses/mine")
    assert checked_location(given) == location


@pytest.mark.parametrize(
    "given",
    [
        "ledger.db",
        "http://host/db",
        "postgresql:/host/db",
        "host=db.example password=hunter2",
        "",
        "/a\0b",
    ],
)
def test_anything_else_is_refused_with_both_ways_to_write_it_and_without_a_password(given):
    with pytest.raises(InvalidInput, match=r"^ledger: it is neither an absolute path") as refused:
        checked_location(given)
    assert "$PWD/fleet.db in a variable" in refused.value.msg
    assert "{{ playbook_dir }}/fleet.db in a playbook" in refused.value.msg
    assert "hunter2" not in refused.value.msg


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://me:hun/ter2@127.0.0.1:1/db",
        "postgresql://me:hunter2@x@127.0.0.1:1/db",
        "postgresql://me:%zz@h/db",
        "postgresql://h:hunter2/db",
        "postgresql://h/a#hunter2",
        "postgresql://h/db?hunter2=hunter2",
    ],
)
def test_a_url_that_looks_wrong_is_refused_and_not_quoted(url):
    with pytest.raises(InvalidInput, match="Percent-encode special characters") as refused:
        open_database(url)
    assert "hun" not in refused.value.msg


def test_a_missing_library_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(ServicesError, match="psycopg"):
        open_database("postgresql://host/db")


@pytest.mark.parametrize(
    ("shown", "begin", "option"),
    [
        ("/srv/fleet.db", "", " -e ledger=/srv/fleet.db"),
        ("/srv/a fleet.db", "INFRASTRUCTURE_SERVICES_LEDGER='/srv/a fleet.db' ", ""),
        ("", "", ""),  # the URL has a password, and the user has set the variable
    ],
)
def test_the_commands_list_what_is_in_doubt_and_then_settle_it(shown, begin, option):
    playbook = f"{begin}ansible-playbook infrastructure.services"
    assert settle_commands(shown) == [
        f"{playbook}.in_doubt{option} -e file=in_doubt.csv",
        f"{playbook}.settle{option} -e file=in_doubt.csv",
    ]
