"""What a message proposes as the next step works: it depends on whether there is a ledger, and on
what it records.
"""

from __future__ import annotations

import json
import os
import shlex
import subprocess

import pytest
from support.databases import schema_in
from support.running import BIN

CREATE = "infrastructure.services.compute_virtual_machine"
ANOTHER = "Look for it on the service: sent again, it may exist twice."
SETTLE = (
    "The ledger does not send it again until it is settled. Look again later: it may still"
    " appear. For the commands, run: "
)
IN_DOUBT = "ansible-playbook infrastructure.services.in_doubt"


URLS = ("postgresql", "with a password")
LEDGERS = {"none": "", "file": "ledger.db", "file with spaces": "ledger of us.db"}


def task(name: str, ledger: str, **options) -> dict:
    """Return a task that creates a machine, whose name is the last word of its own."""
    given = {"name": name.rpartition(" ")[2], "retries": 0, "ledger": ledger, **options}
    return {"name": name, CREATE: given, "ignore_errors": True}


@pytest.fixture(scope="module")
def failed(ansible_in, running_service, postgres_server, tmp_path_factory):
    """Lose the answer to each creation of a play, and return Ansible's commands and the results of
    its tasks.
    """
    ansible = ansible_in(tmp_path_factory.mktemp("what-next"))
    running_service.reset()
    running_service.fault(kind="drop", when="after", count=0)
    tasks, here = [], f"{ansible.directory}/"
    hidden = schema_in(f"{postgres_server}&password=secret-of-us")
    urls = {"postgresql": schema_in(postgres_server), "with a password": hidden}
    files = {kind: ledger and here + ledger for kind, ledger in LEDGERS.items()}
    for number, (kind, ledger) in enumerate({**files, **urls}.items()):
        tasks.append(task(f"{kind}: create web{number}", ledger))
        if ledger:
            tasks.append(task(f"{kind}: again web{number}", ledger))
    play = {"hosts": "localhost", "gather_facts": False, "tasks": tasks}
    run = ansible.playbook(json.dumps([play]) + "\n")
    running_service.reset()
    return (
        ansible,
        {line["task"]: line["result"] for line in run.results if line["kind"] != "item"},
        urls,
    )


@pytest.mark.parametrize(("number", "kind"), list(enumerate([*LEDGERS, *URLS])))
def test_after_a_lost_answer_the_message_says_what_rerunning_does(failed, number, kind):
    ansible, results, urls = failed
    path = shlex.quote(f"{ansible.directory}/{LEDGERS.get(kind)}")
    expected = {
        "none": ANOTHER,
        "file": f"{SETTLE}{IN_DOUBT} -e ledger={path}",
        "file with spaces": f"{SETTLE}INFRASTRUCTURE_SERVICES_LEDGER={path} {IN_DOUBT}",
        "postgresql": f"{SETTLE}INFRASTRUCTURE_SERVICES_LEDGER={shlex.quote(urls['postgresql'])} {IN_DOUBT}",
        "with a password": f"{SETTLE}{IN_DOUBT}",
    }[kind]
    first = results[f"{kind}: create web{number}"]
    assert first["outcome"] == "unknown"
    assert first["msg"].partition(" was created. ")[2].removeprefix(f"{ANOTHER} ") == expected
    if kind != "none":
        assert results[f"{kind}: again web{number}"]["msg"].endswith(expected.removeprefix(SETTLE))


def pasted(command: str, ansible, **variables: str) -> subprocess.CompletedProcess:
    """Run a command in the shell of a user."""
    environment = ansible.environment(PATH=f"{BIN}:{os.environ['PATH']}", **variables)
    return subprocess.run(
        command,
        shell=True,
        cwd=ansible.directory,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.matrix
@pytest.mark.parametrize(
    ("number", "kind"),
    [
        pytest.param(1, "file", marks=pytest.mark.matrix),
        (2, "file with spaces"),
        pytest.param(3, "postgresql", marks=pytest.mark.matrix),
        (4, "with a password"),
    ],
)
def test_a_pasted_command_finds_the_ledger_and_so_do_those_that_it_shows(failed, number, kind):
    ansible, results, urls = failed
    command = results[f"{kind}: create web{number}"]["msg"].rpartition("For the commands, run: ")[2]
    variable = {"INFRASTRUCTURE_SERVICES_LEDGER": urls[kind]} if kind == "with a password" else {}
    done = pasted(command, ansible, **variable)
    assert f"web{number}" in done.stdout
    (remove,) = [
        line
        for line in done.stdout.splitlines()
        if f'"name": "web{number}"' in line.replace('\\"', '"') and "absent" in line
    ]
    done = pasted(remove.strip().strip('",'), ansible, **variable)
    assert '"changed": true' in done.stdout, done.stdout + done.stderr


def test_a_command_without_the_variable_that_it_needs_says_which(failed):
    ansible, results, _urls = failed
    done = pasted(results["with a password: create web4"]["msg"].rpartition("run: ")[2], ansible)
    assert done.returncode == 2
    assert "INFRASTRUCTURE_SERVICES_LEDGER" in done.stdout + done.stderr


def test_a_list_with_a_ledger_but_without_requests_says_what_to_install(ansible_once, tmp_path):
    (tmp_path / "without").mkdir()
    (tmp_path / "without/requests.py").write_text("raise ImportError", encoding="utf-8")
    failed = ansible_once.tasks(
        f"""
- name: Create
  {CREATE}s:
    virtual_machines: [{{name: web01}}]
    ledger: "{{{{ playbook_dir }}}}/ledger.db"
""",
        PYTHONPATH=str(tmp_path / "without"),
    ).result("Create")
    assert "has no requests; run there: " in failed["msg"]
    assert failed["outcome"] == "not_sent"
