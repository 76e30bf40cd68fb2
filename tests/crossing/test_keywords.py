"""What the table leaves out: modules that do not start or do not answer, and keywords that change
how a task runs.

Each row is run without a ledger and with an SQLite ledger, which a target refuses.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import NamedTuple

import pytest
from crossing.conftest import VAULTED, entries_of
from crossing.playbook import KEYWORDS, MODULE, NOTHING
from crossing.table import created
from support.ledgers import create
from support.running import TARGET_PYTHON
from support.wire import Silence, answer

HOSTS = ("none", "sqlite")
TOKEN, PASSWORD = "token-of-the-rows", "password-in-the-url"
A_WORD = "Connection"  # as a token, one that the error of a connection has
# Do this when the answer comes, and when the module restores the handlers of signals after that.
SITE = """import os, signal, socket
handle, receive, received = signal.signal, socket.socket.recv_into, []
def recv_into(*given):
    {}
    received.append(given)
    return receive(*given)
def restore(*given):
    if received:
        {}
    return handle(*given)
socket.socket.recv_into, signal.signal = recv_into, restore
"""
# Interpreters, by the module of Python that they find first.
SITES = {
    "breaks": ("sitecustomize", SITE.format(f"raise LookupError('it broke with {TOKEN}')", "pass")),
    # By an exception, which ansible-core 2.21 reports without `msg`, or without a word.
    "raises": ("sitecustomize", SITE.format("pass", f"raise LookupError('it broke with {TOKEN}')")),
    "exits": ("sitecustomize", SITE.format("os._exit(9)", "pass")),
    "bare": ("requests", "raise ImportError"),
}


class Row(NamedTuple):
    """The keywords of a task, and its expected result."""

    keywords: dict
    outcome: str
    failed: bool = True
    requests: int = 0
    state: str | None = None  # of the entry, with a ledger
    says: tuple[str, ...] = ()
    options: dict = NOTHING
    starts: bool = False  # whether a Python is started for the module
    slow: bool = False  # whether the service never answers
    advice: str = ""  # of a task outside the worker, with which it refuses the ledger


def through(interpreter: str, **keywords: object) -> dict:
    """Return the keywords of a task whose module has this interpreter."""
    found = {"ansible_python_interpreter": interpreter, "ansible_connection": "process"}
    return {"vars": found, **keywords}


def at(site: str) -> dict:
    return through(f"{{{{ pythons }}}}/{site}.python")


OLD_PYTHON = str(Path(__file__).with_name("old_python"))
DONE = {"outcome": "accepted", "failed": False, "requests": 1, "state": "done"}
TARGET, MYSELF = KEYWORDS["target"], {"become": True, "become_method": "myself"}
ADVICE = "add delegate_to: localhost; or set ledger to none"
ELSEWHERE = {"advice": ADVICE}
MADE = {**DONE, **ELSEWHERE, "starts": True}
WHERE = {
    "BASE_URL": "{{ service }}/{{ inventory_hostname }}",
    "ACCESS_TOKEN": TOKEN,
    "LEDGER": "{{ ledger }}",
}
FROM_ENVIRONMENT = {
    "environment": {f"INFRASTRUCTURE_SERVICES_{name}": it for name, it in WHERE.items()}
}
OMITTED = dict.fromkeys(map(str.lower, WHERE), "{{ omit }}")
BROKEN, AWAY = through("/bin/false"), {"ansible_connection": "away"}
NOT_SENT, UNKNOWN = "not_sent", "unknown"
NO_RESULT = "virtual machine VM: the module gave no result"  # VM: its name
DIED = {"outcome": UNKNOWN, "requests": 1, **ELSEWHERE}
ADOPTED = {"state": "done", "says": ("id: needs a ledger",)}
LATE = {"vars": {**AWAY, "ansible_away": "late"}}
ROWS = {
    "no interpreter": Row(through("/no/such/python"), NOT_SENT, **ELSEWHERE),
    "old interpreter": Row(through(OLD_PYTHON), NOT_SENT, says=("requires Python",), **ELSEWHERE),
    "no requests there": Row(at("bare"), NOT_SENT, says=("requests",), **ELSEWHERE),
    "broken interpreter": Row(BROKEN, UNKNOWN, says=("no result",), **ELSEWHERE),
    "broken, checked": Row({**BROKEN, "check_mode": True}, NOT_SENT, **ELSEWHERE),
    "answer breaks": Row(at("breaks"), **DIED, says=("an unexpected LookupError",)),
    "module raises": Row(at("raises"), **DIED, says=(NO_RESULT,)),
    "module exits": Row(at("exits"), **DIED, says=(NO_RESULT,)),
    # Only the shell that runs before the module proves that nothing was sent.
    "no shell": Row(
        {"vars": {"ansible_shell_executable": "/bin/false", "ansible_connection": "process"}},
        NOT_SENT,
        says=("No shell can be run",),
        **ELSEWHERE,
    ),
    "no such user": Row(
        {**TARGET, **MYSELF, "become_user": "nobody"},
        NOT_SENT,
        says=("not allowed",),
        **ELSEWHERE,
    ),
    "host away": Row(
        {"vars": AWAY}, NOT_SENT, says=("refused", "delegate_to: localhost"), **ELSEWHERE
    ),
    "host lost": Row(LATE, **DIED, says=("reset", NO_RESULT), starts=True),
    # Only the module sees that the URL is refused.
    "host lost, credentials": Row(
        LATE,
        UNKNOWN,
        options={
            "base_url": f"{{{{ service | replace('://', '://me:{PASSWORD}@') }}}}",
            "access_token": A_WORD,
        },
        starts=True,
        **ELSEWHERE,
    ),
    "async": Row(
        {"async": 60, "poll": 1},
        "accepted",
        failed=False,
        requests=1,
        starts=True,
        advice="remove async; or set ledger to none",
    ),
    # Its lease ends later, and puts it in doubt.
    "timeout": Row(
        {"timeout": 3}, UNKNOWN, requests=1, state="intent", says=("interrupted",), slow=True
    ),
    "vault": Row({}, **DONE, options={"access_token": "{{ vaulted }}"}),
    "diff": Row({"diff": True}, **DONE),
    # On this machine there is nobody else to become: the worker sends.
    "become": Row(MYSELF, **DONE),
    "become nobody": Row({**MYSELF, "become_user": "nobody"}, **DONE),
    "become on a target": Row({**TARGET, **MYSELF}, **MADE),
    "environment": Row(FROM_ENVIRONMENT, **DONE, options=OMITTED),
    "environment on a target": Row({**TARGET, **FROM_ENVIRONMENT}, **MADE, options=OMITTED),
    "another connection": Row(TARGET, **MADE),
    "delegated to this host": Row({"delegate_to": "localhost", "become": True}, **DONE),
    "delegated": Row({"delegate_to": "elsewhere"}, **MADE),
    "with an id": Row({}, NOT_SENT, **ADOPTED, options={"id": "1"}),
    "with an id, on a target": Row(
        TARGET, NOT_SENT, says=ADOPTED["says"], options={"id": "2"}, starts=True, **ELSEWHERE
    ),
}


def expected(name: str, host: str) -> Row:
    """Return the expected result on a host."""
    row = ROWS[name]
    if host == "none":
        return row._replace(state=None)
    if row.advice:
        says = ("ledger: works in the Ansible worker alone", row.advice)
        return Row(row.keywords, NOT_SENT, says=says)
    return row._replace(failed=False) if row.options.get("id") else row


def task(number: int, name: str, row: Row) -> dict:
    given = {
        "name": f"vm-{number}",
        "base_url": "{{ service }}/{{ inventory_hostname }}",
        "access_token": TOKEN,
        "retries": 0,
        "ledger": "{{ ledger }}",
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
    hosts = {"none": {"ledger": "none"}, "sqlite": {"ledger": ledger}, "elsewhere": {}}
    hosts["elsewhere"]["ansible_connection"] = "process"
    tasks = [task(number, *row) for number, row in enumerate(ROWS.items())]
    done = played(
        tasks,
        choose,
        hosts,
        ",".join(HOSTS),
        prepare=lambda service, _directory: create(ledger, f"{service}/sqlite"),
        has_tracebacks=True,
        pythons=str(directory),
    )
    started = {int(path.stem) for path in directory.glob("*.started")}
    return done, entries_of(ledger), started


@pytest.mark.parametrize("host", HOSTS)
@pytest.mark.parametrize("name", ROWS)
def test_the_task_reports_what_happened(ran, name, host):
    row, result = expected(name, host), ran[0].run.on(host).result(name)
    assert (result.get("outcome"), result["failed"]) == (row.outcome, row.failed), result
    machine, msg = f"vm-{[*ROWS].index(name)}", result.get("msg", "")
    says = [word.replace("VM", machine) for word in row.says if result["failed"]]
    assert [word for word in says if word not in msg] == [], result
    assert bool(result.get("unreachable")) is (name.startswith("host") and host == "none")
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
    assert len(sent) == expected(name, host).requests
    token = VAULTED if name == "vault" else TOKEN
    assert all(("Authorization", f"Bearer {token}") in request.headers for request in sent)


@pytest.mark.parametrize("name", ROWS)
def test_the_ledger_records_it_and_python_starts_only_where_it_has_to(ran, name):
    number = [*ROWS].index(name)
    assert ran[1].get(f"vm-{number}") == expected(name, "sqlite").state
    assert (number in ran[2]) is ROWS[name].starts


def test_a_worker_without_requests_is_no_place_for_a_ledger(played, tmp_path):
    """The module sends then, with a Python that has requests."""
    (tmp_path / "requests.py").write_text("raise ImportError", encoding="utf-8")
    given = {"name": "x", "base_url": "{{ service }}", "access_token": TOKEN}
    tasks = [
        {"name": ledger, "environment": {"PYTHONPATH": ""}, MODULE: {**given, "ledger": ledger}}
        for ledger in (f"{tmp_path}/fleet.db", "none")
    ]
    environment = {"PYTHONPATH": str(tmp_path)}
    done = played(tasks, lambda _sent: answer(201, created("x")), environment=environment)
    refused, sent = (done.run.result(each["name"]) for each in tasks)
    assert (refused["outcome"], sent["outcome"], len(done.service.sent)) == (
        "not_sent",
        "accepted",
        1,
    )
    assert "install requests for the Python of Ansible; or set ledger to none" in refused["msg"]
