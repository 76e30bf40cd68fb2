"""What the table leaves out: modules that do not start or do not answer, and keywords that change
how a task runs.

Each row is run without a ledger and with an SQLite ledger.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import NamedTuple

import pytest
from crossing.conftest import VAULTED, entries_of
from crossing.playbook import KEYWORDS, MODULE, NOTHING
from crossing.table import created
from support.running import TARGET_PYTHON
from support.wire import Silence, answer

HOSTS = ("none", "sqlite")
TOKEN, PASSWORD = "token-of-the-rows", "password-in-the-url"
A_WORD = "Connection"  # as a token, one that the error of a connection has
NEVER = """import socket
def recv(*given):
    {}
socket.socket.recv = socket.socket.recv_into = recv
"""
# Interpreters, by the module of Python that they find first.
SITES = {
    # By an exception, which ansible-core 2.21 reports without `msg`, or without a word.
    "raises": ("sitecustomize", NEVER.format(f"raise LookupError('it broke with {TOKEN}')")),
    "exits": ("sitecustomize", NEVER.format("import os; os._exit(9)")),
    "bare": ("requests", "raise ImportError"),
}


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
    options: dict = NOTHING
    starts: bool = False  # whether a Python is started for the module
    slow: bool = False  # whether the service never answers


def through(interpreter: str, **keywords: object) -> dict:
    """Return the keywords of a task whose module has this interpreter."""
    found = {"ansible_python_interpreter": interpreter, "ansible_connection": "process"}
    return {"vars": found, **keywords}


def at(site: str) -> dict:
    return through(f"{{{{ pythons }}}}/{site}.python")


OLD_PYTHON = str(Path(__file__).with_name("old_python"))
DONE = {
    "outcome": ("accepted", "accepted"),
    "failed": (False, False),
    "requests": (1, 1),
    "state": "done",
}
MYSELF = KEYWORDS["become"]
WHERE = {
    "BASE_URL": "{{ service }}/{{ inventory_hostname }}",
    "ACCESS_TOKEN": TOKEN,
    "LEDGER": "{{ ledger | default('') }}",
}
BROKEN, AWAY = through("/bin/false"), {"ansible_connection": "away"}
NOT_SENT, UNKNOWN = ("not_sent", "not_sent"), ("unknown", "unknown")
# Only the module would tell how it ended, so the entry stays an intent.
DIED = {"outcome": UNKNOWN, "requests": (1, 1), "state": "intent"}
NO_RESULT = "virtual machine VM: the module gave no result"  # VM: its name
ADOPTED = {"failed": (True, False), "state": "done", "says": ("id: needs a ledger",)}
ROWS = {
    "no interpreter": Row(through("/no/such/python"), NOT_SENT),
    "old interpreter": Row(through(OLD_PYTHON), NOT_SENT, says=("requires Python",)),
    "no requests there": Row(at("bare"), NOT_SENT, says=("requests",)),
    "broken interpreter": Row(BROKEN, UNKNOWN, state="intent", says=("no result",)),
    # With a ledger the controller has the plan, which is all that check mode needs.
    "broken, checked": Row({**BROKEN, "check_mode": True}, NOT_SENT, (True, False)),
    "module raises": Row(at("raises"), **DIED, says=(NO_RESULT,)),
    "module exits": Row(at("exits"), **DIED, says=(NO_RESULT,)),
    # Only the shell that runs before the module proves that nothing was sent.
    "no shell": Row(
        {"vars": {"ansible_shell_executable": "/bin/false", "ansible_connection": "process"}},
        NOT_SENT,
        says=("No shell can be run",),
    ),
    "no such user": Row({**MYSELF, "become_user": "nobody"}, NOT_SENT, says=("not allowed",)),
    "host away": Row({"vars": AWAY}, NOT_SENT, says=("refused", "delegate_to: localhost")),
    "host lost": Row(
        {"vars": {**AWAY, "ansible_away": "late"}}, **DIED, says=("reset", NO_RESULT), starts=True
    ),
    # Without a ledger, only the module sees that the URL is refused.
    "host lost, credentials": Row(
        {"vars": {**AWAY, "ansible_away": "late"}},
        ("unknown", "not_sent"),
        options={
            "base_url": f"{{{{ service | replace('://', '://me:{PASSWORD}@') }}}}",
            "access_token": A_WORD,
        },
        starts=True,
    ),
    "async": Row(
        {"async": 60, "poll": 1}, ("accepted", "not_sent"), (False, True), (1, 0), starts=True
    ),
    "timeout": Row(
        {"timeout": 3}, UNKNOWN, requests=(1, 1), state="unknown", says=("interrupted",), slow=True
    ),
    "vault": Row({}, **DONE, options={"access_token": "{{ vaulted }}"}),
    "diff": Row({"diff": True}, **DONE),
    "become": Row(MYSELF, **DONE, starts=True),
    "environment": Row(
        {"environment": {f"INFRASTRUCTURE_SERVICES_{name}": it for name, it in WHERE.items()}},
        **DONE,
        options=dict.fromkeys(map(str.lower, WHERE), "{{ omit }}"),
    ),
    "another connection": Row({"vars": {"ansible_connection": "process"}}, **DONE, starts=True),
    "delegated to this host": Row({"delegate_to": "localhost"}, **DONE),
    "delegated": Row({"delegate_to": "elsewhere"}, **DONE, starts=True),
    "with an id": Row({}, NOT_SENT, **ADOPTED, options={"id": "1"}),
    "with an id, on a target": Row(MYSELF, NOT_SENT, **ADOPTED, options={"id": "2"}, starts=True),
    "with an id, in a job": Row(
        {"async": 60}, NOT_SENT, says=("ledger",), options={"id": "3"}, starts=True
    ),
}


def task(number: int, name: str, row: Row) -> dict:
    given = {
        "name": f"vm-{number}",
        "base_url": "{{ service }}/{{ inventory_hostname }}",
        "access_token": TOKEN,
        "retries": 0,
        "ledger": "{{ ledger | default(omit) }}",
        **row.options,
    }
    found = {"ansible_python_interpreter": f"{{{{ pythons }}}}/{number}.python"}
    variables = {"vars": {**found, **row.keywords.get("vars", {})}}
    return {"name": name, **row.keywords, **variables, MODULE: given}


def write_pythons(directory: Path) -> None:
    """Write the interpreter of each row, which leaves a file when it is started, and of each site."""
    before = {str(number): f"touch {directory}/{number}.started" for number in range(len(ROWS))}
    for name, (module, text) in SITES.items():
        (directory / name).mkdir()
        (directory / name / f"{module}.py").write_text(text, encoding="utf-8")
        before[name] = f"export PYTHONPATH={directory / name}"
    for name, line in before.items():
        script = directory / f"{name}.python"
        script.write_text(f'#!/bin/sh\n{line}\nexec {TARGET_PYTHON} "$@"\n', encoding="utf-8")
        script.chmod(0o755)


@pytest.fixture(scope="module")
def ran(played, tmp_path_factory):
    """Run all rows; return what was played, the ledger's entries, and the rows that started a
    Python.
    """
    directory = tmp_path_factory.mktemp("keywords")
    write_pythons(directory)
    slow = {f"vm-{number}" for number, row in enumerate(ROWS.values()) if row.slow}

    def choose(sent):
        name = json.loads(sent.body)["name"]
        return Silence() if name in slow else answer(201, created(name) | {"attributes": {}})

    ledger = str(directory / "ledger.db")
    hosts = {"none": {}, "sqlite": {"ledger": ledger}, "elsewhere": {}}
    hosts["elsewhere"]["ansible_connection"] = "process"
    tasks = [task(number, *row) for number, row in enumerate(ROWS.items())]
    done = played(
        tasks, choose, hosts, ",".join(HOSTS), has_tracebacks=True, pythons=str(directory)
    )
    started = {int(path.stem) for path in directory.glob("*.started")}
    return done, entries_of(ledger), started


@pytest.mark.parametrize("host", HOSTS)
@pytest.mark.parametrize("name", ROWS)
def test_the_task_reports_what_happened(ran, name, host):
    row, with_ledger = ROWS[name], host == "sqlite"
    result = ran[0].run.on(host).result(name)
    seen = (result.get("outcome"), result["failed"])
    assert seen == (row.outcome[with_ledger], row.failed[with_ledger]), result
    machine, msg = f"vm-{[*ROWS].index(name)}", result.get("msg", "")
    says = [word.replace("VM", machine) for word in row.says if result["failed"]]
    assert [word for word in says if word not in msg] == [], result
    is_refused_here = "credentials" in name and with_ledger
    is_away = name.startswith("host") and not is_refused_here
    assert bool(result.get("unreachable")) is is_away
    for hidden in (VAULTED, PASSWORD, TOKEN):
        assert hidden not in json.dumps(result)
    assert "credentials" not in name or A_WORD not in msg
    assert ("diff" in result) is (name == "diff")


@pytest.mark.parametrize("host", HOSTS)
@pytest.mark.parametrize("name", ROWS)
def test_the_service_receives_the_right_requests(ran, name, host):
    machine = f"vm-{[*ROWS].index(name)}"
    sent = ran[0].service.sent_by(host)
    sent = [each for each in sent if json.loads(each.body)["name"] == machine]
    assert len(sent) == ROWS[name].requests[host == "sqlite"]
    token = VAULTED if name == "vault" else TOKEN
    assert all(("Authorization", f"Bearer {token}") in request.headers for request in sent)


@pytest.mark.parametrize("name", ROWS)
def test_the_ledger_records_it_and_python_starts_only_where_it_has_to(ran, name):
    number = [*ROWS].index(name)
    assert ran[1].get(f"vm-{number}") == ROWS[name].state
    assert (number in ran[2]) is ROWS[name].starts
