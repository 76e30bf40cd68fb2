"""A module that dies gives no result of ours: the task still says what is known."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from support.running import TARGET_PYTHON, Ansible
from support.wire import answer, running

CREATE = "infrastructure.services.compute_virtual_machine"
TOKEN = "a-token-that-is-nowhere"
# How the module ends once its request is there: by an exception, which ansible-core 2.21 reports
# without `msg`, or without a word.
ENDS = {
    "raised": f"raise LookupError('it broke with {TOKEN}')",
    "gone": "import os; os._exit(9)",
}
FORMS: dict[str, dict] = {"once": {}}


def dying_python(directory: Path, name: str) -> str:
    """Write a Python in which nothing can be read from a socket."""
    (directory / name).mkdir()
    hook = f"import socket\ndef recv(*given):\n    {ENDS[name]}\nsocket.socket.recv = socket.socket.recv_into = recv\n"
    (directory / name / "sitecustomize.py").write_text(hook, encoding="utf-8")
    script = directory / f"{name}.python"
    script.write_text(
        f'#!/bin/sh\nPYTHONPATH={directory / name} exec {TARGET_PYTHON} "$@"\n', encoding="utf-8"
    )
    script.chmod(0o755)
    return str(script)


@pytest.fixture(scope="module")
def ran(collections, tmp_path_factory):
    """Run each form of a task for each end; return the run and the service."""
    directory = tmp_path_factory.mktemp("died")
    hosts = {name: {"ansible_python_interpreter": dying_python(directory, name)} for name in ENDS}
    with running(lambda sent: answer(201, json.loads(sent.body))) as service:
        shared = {"access_token": TOKEN, "retries": 0, "ledger": ""}
        where = f"{service.url}/{{{{ inventory_hostname }}}}-"
        tasks = [
            {
                "name": form,
                CREATE: {"name": "vm", "base_url": f"{where}{form}", **shared},
                **keywords,
            }
            for form, keywords in FORMS.items()
        ]
        play = {
            "hosts": "all",
            "gather_facts": False,
            "ignore_errors": True,
            "become": True,
            "become_method": "myself",
            "tasks": tasks,
        }
        ansible = Ansible(directory, collections, service.url, "local", {"all": {"hosts": hosts}})
        run = ansible.playbook(json.dumps([play]) + "\n", ANSIBLE_PIPELINING="true")
    return run, service


@pytest.mark.matrix
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", ENDS)
def test_the_outcome_is_unknown_and_the_message_names_the_machine(ran, name, form):
    result = ran[0].on(name).result(form)
    assert (result["outcome"], result["failed"], result["changed"]) == ("unknown", True, False)
    assert "virtual machine vm: the module gave no result" in result["msg"]
    assert len(ran[1].sent_by(f"{name}-{form}")) == 1


def test_no_credential_is_in_the_message(ran):
    results = [ran[0].on("raised").result(form)["msg"] for form in FORMS]
    assert [msg for msg in results if TOKEN in msg] == []
