"""From the option `ledger` to one place, whatever the environment says, and the commands that name it."""

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
    open_database,
)
from ansible_collections.infrastructure.services.plugins.plugin_utils._ledger.postgresql import (
    parsed_url,
)

URL = "postgresql://h/db?schema=s"
PLACE = "postgresql://h:5432/db?schema=s"


@pytest.mark.parametrize(
    "given",
    [
        "ledger.db",
        "./ledger.db",
        "~/ledger.db",
        "~ann/ledger.db",
        "",
        "None",
        "NONE",
        " none",
        "/a\0b",
        "{{ ledger }}",
        "$HOME/ledger.db",
        "sqlite:////srv/ledger.db",
        "postgresql:/host/db",
        "postgres://host/db?schema=s",
        "host=db.example password=hunter2",
    ],
)
def test_anything_else_is_refused_with_both_ways_to_write_it_and_without_a_password(
    given, monkeypatch
):
    monkeypatch.setenv("HOME", "/houses/mine")
    with pytest.raises(InvalidInput, match=r"^ledger: it is neither an absolute path") as refused:
        open_database(given)
    assert "$PWD/fleet.db in a variable" in refused.value.msg
    assert "{{ playbook_dir }}/fleet.db in a playbook" in refused.value.msg
    assert "hunter2" not in refused.value.msg


def test_the_word_none_is_no_ledger():
    with pytest.raises(InvalidInput, match=r"^to: none is no ledger, and this needs one"):
        open_database("none", "to")


SPECIAL = "Percent-encode special characters"
INCOMPLETE = "the URL has to name host, database and schema itself"
WRONG = {
    SPECIAL: (
        "postgresql://me:hun/ter2@127.0.0.1:1/db?schema=s",
        "postgresql://me:hunter2@x@127.0.0.1:1/db?schema=s",
        "postgresql://me:%zz@h/db?schema=s",
        "postgresql://h:hunter2/db?schema=s",
        "postgresql://h/a?schema=s#hunter2",
        "postgresql://h/db?schema=s&hunter2=hunter2",
        "postgresql://h/db?schema=s&hunter2",
        "postgresql://h/db?%73chema=s",
        "postgresql://h/db?SCHEMA=s",
        "postgresql://h/d%20b?schema=s",
    ),
    INCOMPLETE: (
        "postgresql://",
        "postgresql://u@h/?schema=s",
        "postgresql://u@h?schema=s",
        "postgresql://h/db",
        "postgresql:///db?schema=s",
        "postgresql://u@/db?schema=s",
        "postgresql://a,,b/db?schema=s",
        "postgresql:///?host=/run&schema=s",
        "postgresql://h/db?schema=",
        "postgresql://h/db?schema=a.b",
        "postgresql://h/db?schema=%22a%22",
        "postgresql://h/db?schema=$user",
        "postgresql://h/db?schema=a b",
        "postgresql://h/db?schema=é",
        f"postgresql://h/db?schema={'s' * 64}",
    ),
    "service after the ?": (f"{URL}&service=a", f"{URL}&%73ervice=a"),
    "port after the ?": (f"{URL}&port=6432",),
    "dbname after the ?": (f"{URL}&dbname=other",),
    "hostaddr after the ?": (f"{URL}&hostaddr=192.0.2.1",),
    "host after the ?": (
        f"{URL}&host=/run",
        "postgresql:///db?schema=s&host=db.example",
        "postgresql:///db?schema=s&host=/run,/other",
    ),
    "schema after the ?": (f"{URL}&schema=s", f"{URL}&schema=other"),
    "sslmode after the ?": (f"{URL}&sslmode=disable&sslmode=require",),
}


@pytest.mark.parametrize(("says", "url"), [(says, url) for says in WRONG for url in WRONG[says]])
def test_a_url_that_could_mean_several_ledgers_is_refused_and_not_quoted(says, url):
    with pytest.raises(InvalidInput) as refused:
        open_database(url)
    assert refused.value.msg.startswith("ledger: ")
    assert says in refused.value.msg
    assert "hun" not in refused.value.msg


@pytest.mark.parametrize(
    ("url", "place"),
    [
        (URL, PLACE),
        ("postgresql://me:hunter2@H:5432/db?schema=s&sslmode=disable", PLACE),
        ("postgresql://h/%64b?application_name=x&schema=s&", PLACE),
        (f"{URL}&options=-csearch_path%3Dother&target_session_attrs=read-write", PLACE),
        ("postgresql://h/db?schema=S", "postgresql://h:5432/db?schema=S"),
        ("postgresql://h:6432/db?schema=s", "postgresql://h:6432/db?schema=s"),
        ("postgresql://h/DB?schema=a_b-1", "postgresql://h:5432/DB?schema=a_b-1"),
        ("postgresql://a,B:6432/db?schema=s", "postgresql://a:5432,b:6432/db?schema=s"),
        ("postgresql://[::1]/db?schema=s", "postgresql://::1:5432/db?schema=s"),
        ("postgresql:///db?host=/Run&schema=s", "postgresql:///Run:5432/db?schema=s"),
        ("postgresql://%2FRun/db?schema=s", "postgresql:///Run:5432/db?schema=s"),
        ("postgresql://u@:6432/db?host=/Run&schema=s", "postgresql:///Run:6432/db?schema=s"),
    ],
)
def test_a_place_has_one_name(url, place):
    """Messages, the mark of a move and the notes of a controller have it."""
    assert open_database(url).where == place


@pytest.mark.parametrize("variable", ["SERVICE", "HOST", "HOSTADDR", "PORT", "DATABASE", "OPTIONS"])
def test_no_variable_chooses_the_server(monkeypatch, variable):
    """Each parameter that does is passed, so that libpq looks for none of them."""
    before = parsed_url(URL)
    monkeypatch.setenv(f"PG{variable}", "other")
    assert parsed_url(URL) == before
    settings, schema = before
    assert schema == "s"
    passed = dict(host="h", hostaddr="", port="5432", dbname="db", options="")
    assert passed.items() <= settings.items()


@pytest.mark.parametrize(
    ("url", "variable", "mode"),
    [
        (URL, "", "require"),
        (URL, "verify-full", "verify-full"),
        (f"{URL}&sslmode=disable", "", "disable"),
        (f"{URL}&sslmode=disable", "verify-full", "disable"),
        ("postgresql://10.0.0.1/db?schema=s", "", "require"),
        ("postgresql://127.0.0.1,h/db?schema=s", "", "require"),
        ("postgresql://localhost.example/db?schema=s", "", "require"),
        ("postgresql://127.0.0.1/db?schema=s", "", None),
        ("postgresql://LOCALHOST/db?schema=s", "", None),
        ("postgresql://[::1]/db?schema=s", "", None),
        ("postgresql:///db?host=/run&schema=s", "", None),
    ],
)
def test_a_host_that_is_not_loopback_needs_tls_unless_somebody_says_otherwise(
    monkeypatch, url, variable, mode
):
    monkeypatch.setenv("PGSSLMODE", variable)
    assert parsed_url(url)[0].get("sslmode") == mode


@pytest.mark.parametrize(
    ("url", "is_shown"),
    [
        (f"{URL}&target_session_attrs=read-write", True),
        ("postgresql://me:@h/db?schema=s", True),
        ("postgresql://me:hunter2@h/db?schema=s", False),
        (f"{URL}&password=hunter2", False),
        (f"{URL}&pass%77ord=hunter2", False),
        (f"{URL}&sslpassword=hunter2", False),
    ],
)
def test_commands_have_the_url_unless_it_has_a_password(url, is_shown):
    assert open_database(url).shown == (url if is_shown else "")


def test_a_missing_library_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(ServicesError, match="psycopg"):
        open_database(URL)


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
