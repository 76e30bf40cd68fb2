"""Options in the keyword `environment` reach a module on a target, and no command line there, which
everybody sees.
"""

from __future__ import annotations

import json

import pytest
from support.running import Ansible
from support.wire import answer, running

VM = "infrastructure.services.compute_virtual_machine"
PREFIX = "INFRASTRUCTURE_SERVICES_"
TOKEN = "token-of-the-environment"
# Says what it is told to run, and runs it.
SSH = """#!/bin/sh
echo "$@" >> "{log}"
for command; do :; done
exec /bin/sh -c "$command"
"""
CASES = {
    "one": (VM, {"name": "vm"}, {}),
    "loop": (VM, {"name": "vm{{ item }}"}, {"loop": [1, 2]}),
    "list": (f"{VM}s", {"virtual_machines": [{"name": "vm"}]}, {}),
    "ledger": (VM, {"name": "vm", "ledger": "{{ playbook_dir }}/ledger.db"}, {}),
    "async": (VM, {"name": "vm"}, {"async": 60, "poll": 1}),
}
# A file that only the target has, which is therefore named there; the task says that it cannot be
# read.
ABSENT = {f"{PREFIX}CA_PATH": "/nowhere/ca.pem", f"{PREFIX}BASE_URL": "https://127.0.0.1:9"}


@pytest.fixture(scope="module")
def ran(collections, tmp_path_factory):
    """Run all cases over ssh; return the run, the service and the commands."""
    directory = tmp_path_factory.mktemp("ssh")
    script, log = directory / "ssh", directory / "commands.log"
    script.write_text(SSH.format(log=log), encoding="utf-8")
    script.chmod(0o755)
    with running(lambda sent: answer(201, json.loads(sent.body))) as service:
        tasks = []
        for name, (module, options, keywords) in CASES.items():
            variables = {
                f"{PREFIX}ACCESS_TOKEN": TOKEN,
                f"{PREFIX}BASE_URL": f"{service.url}/{name}",
                "SOME": "thing",
            }
            tasks.append({"name": name, module: options, "environment": variables, **keywords})
        tasks.append(
            {"name": "path", VM: {"name": "vm"}, "environment": ABSENT, "ignore_errors": True}
        )
        play = [{"hosts": "target", "gather_facts": False, "tasks": tasks}]
        hosts = {"all": {"hosts": {"target": {"ansible_ssh_executable": str(script)}}}}
        run = Ansible(directory, collections, service.url, "ssh", hosts).playbook(
            json.dumps(play) + "\n", "-vvvv", ANSIBLE_SSH_TRANSFER_METHOD="piped"
        )
    return run, service, log.read_text(encoding="utf-8")


@pytest.mark.matrix
@pytest.mark.parametrize("name", CASES)
def test_the_token_and_the_url_arrive(ran, name):
    run, service, _commands = ran
    assert run.result(name).get("outcome", "accepted") == "accepted", run.result(name)
    sent = service.sent_by(name)
    assert len(sent) == (2 if name == "loop" else 1)
    assert [dict(each.headers)["Authorization"] for each in sent] == [f"Bearer {TOKEN}"] * len(sent)


def test_neither_a_command_line_nor_the_screen_has_them(ran):
    run, _service, commands = ran
    assert TOKEN not in commands
    assert TOKEN not in run.output
    assert PREFIX not in commands
    assert commands.count("SOME=thing") >= len(CASES)


def test_a_path_of_the_environment_is_one_of_the_target(ran):
    result = ran[0].result("path")
    assert (result["outcome"], result["failed"]) == ("not_sent", True)
    assert "/nowhere/ca.pem cannot be read" in result["msg"]
