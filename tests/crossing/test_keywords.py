"""What the table leaves out: modules that do not start or do not answer, and keywords that change
how a task runs.

Each row is run without a ledger and with an SQLite ledger.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import NamedTuple

import pytest
from ansible.parsing.vault import VaultLib, VaultSecret
from crossing.conftest import entries_of
from crossing.playbook import MODULE
from crossing.table import created
from support.running import Ansible
from support.wire import Silence, answer, running

PASSWORD = "of the vault"
VAULTED = (
    VaultLib([("default", VaultSecret(PASSWORD.encode()))]).encrypt("token-in-the-vault").decode()
)
HOSTS = ("none", "sqlite")


class Row(NamedTuple):
    """The keywords of a task, and its expected result; the second value is the one with a ledger,
    where it differs.
    """

    keywords: dict
    outcome: tuple[str, str]
    failed: tuple[bool, bool] = (True, True)
    requests: tuple[int, int] = (0, 0)
    state: str | None = None
    says: tuple[str, ...] = ()
    slow: bool = False  # whether the service never answers


OLD_PYTHON = str(Path(__file__).with_name("old_python"))
DONE = {
    "outcome": ("accepted", "accepted"),
    "failed": (False, False),
    "requests": (1, 1),
    "state": "done",
}
BROKEN = {"ansible_python_interpreter": "/bin/false", "ansible_connection": "process"}
NOT_SENT, UNKNOWN = ("not_sent", "not_sent"), ("unknown", "unknown")
ROWS = {
    "no interpreter": Row(
        {
            "vars": {
                "ansible_python_interpreter": "/no/such/python",
                "ansible_connection": "process",
            }
        },
        NOT_SENT,
    ),
    "old interpreter": Row(
        {"vars": {"ansible_python_interpreter": OLD_PYTHON, "ansible_connection": "process"}},
        NOT_SENT,
        says=("requires Python",),
    ),
    # Only the module would tell how it ended, so the entry stays an intent.
    "broken interpreter": Row({"vars": BROKEN}, UNKNOWN, state="intent", says=("no result",)),
    # With a ledger the controller has the plan, which is all that check mode needs.
    "broken, checked": Row({"vars": BROKEN, "check_mode": True}, NOT_SENT, (True, False)),
    # Only the shell that runs before the module proves that nothing was sent.
    "no shell": Row(
        {"vars": {"ansible_shell_executable": "/bin/false", "ansible_connection": "process"}},
        NOT_SENT,
        says=("No shell can be run",),
    ),
    "no such user": Row(
        {"become": True, "become_method": "myself", "become_user": "nobody"},
        NOT_SENT,
        says=("not allowed",),
    ),
    "host away": Row(
        {"vars": {"ansible_connection": "away"}},
        NOT_SENT,
        says=("refused", "delegate_to: localhost"),
    ),
    "host lost": Row(
        {"vars": {"ansible_connection": "away", "ansible_away": "late"}},
        UNKNOWN,
        requests=(1, 1),
        state="intent",
        says=("reset",),
    ),
    "async": Row({"async": 60, "poll": 1}, ("accepted", "not_sent"), (False, True), (1, 0)),
    "timeout": Row(
        {"timeout": 3}, UNKNOWN, requests=(1, 1), state="unknown", says=("interrupted",), slow=True
    ),
    "vault": Row({"vars": {"token": "@VAULT@"}}, **DONE),
    "diff": Row({"diff": True}, **DONE),
    "delegated to this host": Row({"delegate_to": "localhost"}, **DONE),
}


def task(number: int, name: str, row: Row) -> dict:
    given = {
        "name": f"vm-{number}",
        "base_url": "{{ service }}/{{ inventory_hostname }}",
        "access_token": "{{ token }}",
        "retries": 0,
        "ledger": "{{ ledger | default(omit) }}",
    }
    return {"name": name, **row.keywords, MODULE: given}


@pytest.fixture(scope="module")
def ran(collections, tmp_path_factory):
    """Run all rows; return the run, the service, and the ledger's entries."""
    directory = tmp_path_factory.mktemp("keywords")
    (directory / "password").write_text(PASSWORD)
    slow = {f"vm-{number}" for number, row in enumerate(ROWS.values()) if row.slow}

    def choose(sent):
        name = json.loads(sent.body)["name"]
        return Silence() if name in slow else answer(201, created(name) | {"attributes": {}})

    ledger = str(directory / "ledger.db")
    hosts = {"all": {"hosts": {"none": {}, "sqlite": {"ledger": ledger}}}}
    with running(choose) as service:
        play = {
            "hosts": "all",
            "gather_facts": False,
            "ignore_errors": True,
            "ignore_unreachable": True,
            "vars": {"service": service.url, "token": "token-of-the-rows"},
            "tasks": [task(number, *row) for number, row in enumerate(ROWS.items())],
        }
        text = json.dumps([play], indent=1).replace('"@VAULT@"', f"!vault {json.dumps(VAULTED)}")
        run = Ansible(directory, collections, "", "local", hosts).playbook(
            text + "\n",
            "--vault-password-file",
            str(directory / "password"),
            ANSIBLE_PIPELINING="true",
            INFRASTRUCTURE_SERVICES_ACCESS_TOKEN=None,
            INFRASTRUCTURE_SERVICES_BASE_URL=None,
        )
    return run, service, entries_of(ledger)


@pytest.mark.parametrize("host", HOSTS)
@pytest.mark.parametrize("name", ROWS)
def test_the_task_reports_what_happened(ran, name, host):
    row, with_ledger = ROWS[name], host == "sqlite"
    (result,) = [
        line["result"] for line in ran[0].results if (line["task"], line["host"]) == (name, host)
    ]
    assert (result.get("outcome"), result["failed"]) == (
        row.outcome[with_ledger],
        row.failed[with_ledger],
    ), result
    assert [word for word in row.says if word not in result.get("msg", "")] == [], result
    assert bool(result.get("unreachable")) is name.startswith("host")
    assert "token-in-the-vault" not in json.dumps(result)
    assert ("diff" in result) is (name == "diff")


@pytest.mark.parametrize("host", HOSTS)
@pytest.mark.parametrize("name", ROWS)
def test_the_service_receives_the_right_requests(ran, name, host):
    machine = f"vm-{list(ROWS).index(name)}"
    sent = [each for each in ran[1].sent_by(host) if json.loads(each.body)["name"] == machine]
    assert len(sent) == ROWS[name].requests[host == "sqlite"]
    token = "token-in-the-vault" if name == "vault" else "token-of-the-rows"
    assert all(("Authorization", f"Bearer {token}") in request.headers for request in sent)


@pytest.mark.parametrize("name", ROWS)
def test_the_ledger_records_it(ran, name):
    number = list(ROWS).index(name)
    assert ran[2].get(f"vm-{number}") == ROWS[name].state


def test_no_traceback(ran):
    assert "Traceback" not in ran[0].output
