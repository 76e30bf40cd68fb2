"""The option `ledger` as users write it."""

from __future__ import annotations

import json

import pytest
from support.ledgers import create as create_ledger

CREATE = "infrastructure.services.compute_virtual_machine"
VARIABLE = "INFRASTRUCTURE_SERVICES_LEDGER"
SECRET = "hunter2"
UNREACHABLE = (
    f"postgresql://me:{SECRET}%21@127.0.0.1:1/db?schema=s",
    f"postgresql://127.0.0.1:1/db?schema=s&password={SECRET}%21",
)


def create(name: str, **options) -> dict:
    return {"name": name, CREATE: {"name": "web01", **options}, "ignore_errors": True}


def play(ansible, *tasks: dict, verbosity: str = "-v", **environment: str):
    """Run tasks in one play."""
    text = json.dumps([{"hosts": "localhost", "gather_facts": False, "tasks": tasks}])
    return ansible.playbook(f"{text}\n", verbosity, **environment)


def test_the_ledger_of_the_environment_is_used_unless_the_option_is_none(ansible, service):
    """An empty text, as of a template that found nothing, is no value."""
    location = create_ledger(f"{ansible.directory}/ledger.db", service.url)
    info = {
        "name": "info",
        "infrastructure.services.ledger_info": {"ledger": None},
    }
    run = play(
        ansible,
        create("first"),
        create("again"),
        create("null", ledger=None),
        create("empty", ledger=""),
        create("none", ledger="none"),
        info,
        **{VARIABLE: location},
    ).ok()
    names = ("first", "again", "null", "empty", "none")
    assert [run.result(name)["changed"] for name in names] == [True, False, False, False, True]
    assert len(service.api.conversation) == 2
    assert [entry["name"] for entry in run.result("info")["entries"]] == ["web01"]


@pytest.mark.parametrize(("option", "environment"), [UNREACHABLE, UNREACHABLE[::-1]])
def test_the_password_of_a_ledger_is_not_shown(ansible, service, option, environment):
    run = play(
        ansible,
        create("option", ledger=option),
        create("environment"),
        verbosity="-vvvv",
        **{VARIABLE: environment},
    )
    for name in ("option", "environment"):
        msg = run.result(name)["msg"]
        assert msg.startswith("ledger: postgresql://127.0.0.1:1/db?schema=s: ")
    assert (SECRET in run.output, [*service.api.conversation]) == (False, [])
